"""The lenient tier: malformed RSS, Atom and RDF over feedparser."""

from services.fetcher.parse.formats.lenient.reader import read_lenient

__all__ = ["read_lenient"]
