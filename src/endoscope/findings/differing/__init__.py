"""Two sides of a training compared: what differs consistently, by how much, and is it more than chance.

sides (types, trials) ─► windows of neighbouring steps ─┐
sides (categories)    ─► samples of one step           ─┴► Contrasts ─► testing ─► Difference, ranked
"""
