"""Edits: other values on the way, and putting back what a run changed."""
