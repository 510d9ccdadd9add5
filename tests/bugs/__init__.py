"""Regressions: each test is the smallest program that once went wrong."""
