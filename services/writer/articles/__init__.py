"""Which article an entry is."""
