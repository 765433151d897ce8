"""Finds people, organisations, places and technologies in texts: by a list, by rules, by spaCy's models if asked."""

from services.enricher.entities.finder import load_entities

__all__ = ["load_entities"]
