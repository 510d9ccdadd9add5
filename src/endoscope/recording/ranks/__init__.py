"""A job of several processes: which process this is, and what its tensors are to those of the others."""
