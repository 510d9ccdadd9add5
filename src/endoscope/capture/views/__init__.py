"""What is derived from the record, and how users see it."""
