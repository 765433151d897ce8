"""The salvage tier: what regular expressions find in a body that no other tier reads."""

from services.fetcher.parse.formats.salvage.reader import read_salvage

__all__ = ["read_salvage"]
