"""The enricher."""
