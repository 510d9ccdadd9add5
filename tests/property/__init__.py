"""Random tensor programs, and an oracle that works out every edge the slow way."""
