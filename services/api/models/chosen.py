"""Requests that name things, or all of them."""

from __future__ import annotations

from pydantic import JsonValue


def these_or_all(names: str) -> dict[str, JsonValue]:
    """Return what the schema of such a request says beside its fields: `names` or `all`, one of both."""
    these: JsonValue = {"required": [names], "properties": {names: {"minItems": 1}, "all": {"const": False}}}
    every: JsonValue = {"required": ["all"], "properties": {names: {"maxItems": 0}, "all": {"const": True}}}
    return {"oneOf": [these, every]}
