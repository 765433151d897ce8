"""The wire: the messages that services exchange, as bytes and back."""
