"""Questions about a graph."""
