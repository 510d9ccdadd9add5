"""While the code runs: what is written down, and how."""
