"""The enricher's settings."""

from __future__ import annotations

from pydantic import Field

from services.enricher.parts import Parts
from shared.settings import BrokerSettings, Prefetch, TelemetrySettings


class EnrichSettings(BrokerSettings):
    """What is looked for in texts, and how. `feedmill parse --enrich` reads it, too."""

    enrich: str = Field(
        "language,duplicates,topics,entities", description="What the enricher looks for, comma-separated."
    )

    def parts(self) -> Parts:
        """Load what is asked for and installed.

        Raises:
            ConfigurationError: there is no such part.
        """
        return Parts()


class EnricherSettings(EnrichSettings, TelemetrySettings):
    """Every setting that the enricher reads."""

    enricher_prefetch: Prefetch = Field(50, description="Messages that the enricher holds unacknowledged, at most.")
