"""The training programs: the loop, models, data and stragglers, and the baselines that exchange gradients by other
means than the switch."""
