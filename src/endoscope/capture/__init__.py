"""Tracing: record every operation of a forward pass. See README.md in this folder for the call map."""
