"""Recordings as bytes on disk: FORMAT.md says which. Written and read here, understood in `query`. No torch."""
