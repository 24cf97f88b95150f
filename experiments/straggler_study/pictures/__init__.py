"""The report's figures, by what they show."""
