"""Messages that no service could handle."""
