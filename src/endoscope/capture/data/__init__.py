"""What a trace is made of, as plain data that both a run and a file can fill; nothing in here imports torch."""
