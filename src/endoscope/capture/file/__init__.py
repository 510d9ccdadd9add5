"""A trace in one file: written, read without torch, and given back what needs functions."""
