"""What the packages of ``experiments`` share: pools and clusters for a study's cells, its frame, and pictures'
style."""
