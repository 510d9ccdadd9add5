"""Frozen vocabulary shared by the write side and the read side; imports nothing of ours and no torch."""
