"""The strict tier: well-formed RSS, Atom and RDF over expat."""

from services.fetcher.parse.formats.strict.reader import read_strict

__all__ = ["read_strict"]
