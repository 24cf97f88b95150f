"""Does the process group `serene` train real models as gloo does? Losses, accuracies and magnitudes side by side."""
