"""What Endoscope promises to people who use it, tested from outside through public names only."""
