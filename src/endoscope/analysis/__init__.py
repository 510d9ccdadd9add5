"""Pure functions over records: names, patterns, counts; no torch, so the read side uses them too."""
