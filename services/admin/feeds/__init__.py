"""Registered feeds, one by one: found, added, changed, looked at, fetched."""
