"""When a feed is polled and why then, and how its polls went."""
