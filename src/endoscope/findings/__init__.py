"""Findings: say what looks wrong in a recording, since when and where. No torch, and nothing here writes but `silence`.

diagnose ─► facts (all numbers, read once) ─► checks/* (one file each) ─► ranking ─► what is silenced is left out
"""
