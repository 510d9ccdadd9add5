"""Proof by replay: run every operation of a trace again and see that the trace told the truth."""
