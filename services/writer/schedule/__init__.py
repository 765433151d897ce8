"""When a feed is polled next."""
