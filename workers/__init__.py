"""The training programs: the loop, models, data and straggler profiles, and the baselines, which exchange gradients
without the switch."""
