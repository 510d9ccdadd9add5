"""What is part of a recording: the lines of the journal, and what follows from them."""
