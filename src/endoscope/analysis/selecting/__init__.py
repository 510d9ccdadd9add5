"""Patterns that select nodes."""
