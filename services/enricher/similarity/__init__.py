"""Sketches of texts: by them the writer finds that two feeds bring the same story."""

from services.enricher.similarity.sketching import load_sketches

__all__ = ["load_sketches"]
