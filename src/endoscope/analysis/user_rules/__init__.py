"""Rules of the user's own."""
