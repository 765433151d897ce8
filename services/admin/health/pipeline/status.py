"""Pure: how a stage fares."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """How a stage fares. The worst of them is the pipeline's, `unknown` apart."""

    HEALTHY = "healthy"
    UNKNOWN = "unknown"
    DEGRADED = "degraded"
    DOWN = "down"
