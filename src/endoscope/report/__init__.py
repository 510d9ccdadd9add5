"""`endoscope report`: recordings and what was found in them as one HTML file that needs nothing else. No torch.

diagnose ─► findings ─┐
recording ─► curves, pictures (charts, heat) ─┼─► sections ─► build: one page, everything escaped (markup)
graph ─► network ─► drawing ──────────────────┘
"""
