"""The API's settings."""

from __future__ import annotations

from pydantic import Field

from shared.settings import (
    BrokerSettings,
    ClaimSettings,
    Count,
    DatabaseSettings,
    PolitenessSettings,
    Seconds,
    TelemetrySettings,
)


class ApiSettings(BrokerSettings, ClaimSettings, DatabaseSettings, PolitenessSettings, TelemetrySettings):
    """What the API reads itself. Feeds are added and checked by the settings of fetcher and writer."""

    api_host: str = Field("127.0.0.1", description="Address on which the API listens.")
    api_port: int = Field(8080, ge=0, le=65535, description="Its port; 0 takes a free one and logs it.")
    fire_seconds: Seconds = Field(300.0, description="A fetch by hand without a result after this time is an error.")
    api_connections: Count = Field(10, description="Database connections of one API process, at most.")
