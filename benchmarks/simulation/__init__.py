"""A month of 47,000 feeds under several ways of choosing when to look again. No network, no server, no sleeping.

Run with `python -m benchmarks simulation`. docs/explanation/polling.md says what it assumes and what came out.
"""
