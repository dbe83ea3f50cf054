"""One module an experiment: its load and its measurements."""
