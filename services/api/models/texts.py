"""Texts in requests."""

from __future__ import annotations

PLAIN = r"^[^\x00]*$"
"""The pattern of a text: PostgreSQL has no NUL."""
