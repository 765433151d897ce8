"""How much is asked of a host, and when."""
