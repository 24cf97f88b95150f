"""The report's figures, a module for each subject. Functions write an image to ``path`` and return it."""
