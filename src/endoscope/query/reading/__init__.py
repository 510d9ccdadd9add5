"""How the numbers of a recording are found in its tables: which tensor, which rows, which bytes."""
