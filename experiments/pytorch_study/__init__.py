"""The PyTorch study: compares trainings by the process group `serene` with the same ones by gloo."""
