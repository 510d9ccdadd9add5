"""The graph of modules: where its boxes are, and where the user has put them."""
