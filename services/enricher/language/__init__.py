"""Which language texts are in (docs/explanation/enrichment.md)."""

from __future__ import annotations

from services.enricher.language.detecting import load_languages

__all__ = ["load_languages"]
