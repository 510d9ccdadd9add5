"""Staying below `max_bytes`, and tidying up."""
