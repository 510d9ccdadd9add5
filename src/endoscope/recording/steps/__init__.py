"""The life of a step: where it begins, what belongs to it, where it ends."""
