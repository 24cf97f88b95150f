"""Commands that measure and draw: training runs, checks at length, benchmarks, studies."""
