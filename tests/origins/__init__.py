"""Planted origins: what makes NaN, infinity or an unusual sample, in models of up to a thousand operations."""
