"""`endoscope demo`: a small training with a bug that slows it down, recorded twice; `docs/tutorial.md` finds the bug.

task ─► network ─► training.record_trial ─► runs/demo/suspect, runs/demo/repaired ─► the page, with views.py

The code uses Endoscope as anybody would, through its public names: read `training.py` to see how a loop is recorded.
"""
