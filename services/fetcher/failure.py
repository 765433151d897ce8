"""Pure: why an answer could not be had or used."""

from __future__ import annotations

from enum import StrEnum

from shared.secrets import mask_credentials


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
    """There is no answer to judge. `failure` says why; `status` and `url` are the failing hop's, where known."""

    def __init__(self, failure: Failure, reason: str, status: int | None = None, url: str | None = None) -> None:
        super().__init__(mask_credentials(reason))
        self.failure = failure
        self.status = status
        self.url = url
