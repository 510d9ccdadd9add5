"""From tensors to the writer: measuring, raw values, the queue."""
