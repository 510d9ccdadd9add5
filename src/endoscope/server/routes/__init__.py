"""What an address answers, and what is read from it."""
