"""What the system does with files, and what it does not promise."""
