"""Reading recordings: trials, steps, series, tensors, SQL. No torch, and nothing here writes."""
