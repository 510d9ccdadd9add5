"""Places for the boxes of a module graph: one folding and one layout for page, drawings and report. See README.md."""
