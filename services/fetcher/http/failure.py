"""Pure: why there is no response, or none that can be used."""

from __future__ import annotations

from enum import StrEnum

from shared.observability.secrets import mask_credentials


class Failure(StrEnum):
    """Why there is no response, or none that can be used. Recorded as the result's `error_class`."""

    CONNECT = "connect"
    """DNS, refused, connect timeout, TLS: no HTTP happened."""
    TIMEOUT = "timeout"
    PROTOCOL = "protocol"
    """Not HTTP, a response cut short, a broken encoding."""
    TOO_LARGE = "too_large"
    BLOCKED = "blocked"
    REDIRECT = "redirect"
    BAD_URL = "bad_url"


class FetchFailed(Exception):
    """There is no response to judge.

    `failure` says why; `status` and `url` are those of the failing request, where known. `is_ours`: it says nothing
    about the host, since a resource of ours was short. `ours_seconds`: how long the fetch waited for our resources.
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
