"""How long articles take from their publication to their row."""
