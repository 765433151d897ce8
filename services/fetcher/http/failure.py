"""Pure: why an answer could not be had or used."""

from __future__ import annotations

from enum import StrEnum

from shared.observability.secrets import mask_credentials


class Failure(StrEnum):
    """Why no answer could be had or used."""

    CONNECT = "connect"
    """DNS, refused, connect timeout, TLS: nothing of HTTP happened."""
    TIMEOUT = "timeout"
    PROTOCOL = "protocol"
    """No HTTP, an answer cut short, a broken encoding."""
    TOO_LARGE = "too_large"
    BLOCKED = "blocked"
    REDIRECT = "redirect"
    BAD_URL = "bad_url"


class FetchFailed(Exception):
    """There is no answer to judge. `failure` says why; `status` and `url` are the failing hop's, where known.

    `is_ours`: it says nothing of the host, since a resource of ours was short. `ours_seconds`: how long these took.
    """

    def __init__(
        self,
        failure: Failure,
        reason: str,
        status: int | None = None,
        url: str | None = None,
        *,
        is_ours: bool = False,
        ours_seconds: float = 0.0,
    ) -> None:
        super().__init__(mask_credentials(reason))
        self.failure = failure
        self.status = status
        self.url = url
        self.is_ours = is_ours
        self.ours_seconds = ours_seconds
