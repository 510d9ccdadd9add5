"""What is said about all trials at once: a few numbers of each, and what was found in any."""
