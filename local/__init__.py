"""Feedmill on one machine: private servers, the supervisor, the feed farm and the demo. Not production code."""
