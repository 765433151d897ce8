"""Feeds to measure with, that look as real systems print them: `python -m benchmarks.feeds` serves them on loopback.

styles: nine kinds of markup. site: one feed, its entries and its answers.
"""
