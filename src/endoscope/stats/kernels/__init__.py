"""The compiled part: numba functions over raw addresses. Imported only when there is nothing in the cache.

vectors ─► piece ─► units ─┐
memory  ─► fill ───────────┼─► request ─► entry (the one function that is called from Python)
           histogram ─► quantiles ─┘
"""
