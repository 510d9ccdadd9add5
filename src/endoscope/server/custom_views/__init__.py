"""Views of the user's own: run when the page asks."""
