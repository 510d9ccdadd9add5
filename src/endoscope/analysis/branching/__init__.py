"""Which `if` or `while` a value steered."""
