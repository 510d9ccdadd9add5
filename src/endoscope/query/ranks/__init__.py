"""A trial of many ranks read as one whole: steps, tensors, series, metrics, raw values. Nothing here writes.

trial ─► sources: one reader for each rank and attempt
           ├─ steps     which recorded steps of which rank belong together
           ├─ placement what the tensor of one rank is to the whole
           ├─ parts     statistics of parts ─► of the whole
           └─ tables    the same questions as to one rank, answered for all of them
"""
