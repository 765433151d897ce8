"""Fetches by hand: ends their tasks with what they brought; tries dry runs, and rolls back."""
