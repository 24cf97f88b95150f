"""The controller of Serene: brings a switch up, admits jobs and workers, writes strategies, reads counters."""
