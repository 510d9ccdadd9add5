"""One file per source file of `endoscope.capture`."""
