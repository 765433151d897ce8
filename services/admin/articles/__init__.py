"""Pending and dead articles, claims on them, the ledger."""
