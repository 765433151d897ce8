"""The readers of each format and tier."""
