"""Pure: the reasons why a request gives no usable response."""

from __future__ import annotations

from enum import StrEnum

from shared.observability.secrets import mask_credentials


class Failure(StrEnum):
    """The reason why a request gave no usable response. Recorded as the result's `error_class`."""

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

    `failure` says why; `status` is that of the response, if one came. `is_ours`: the failure says nothing about the
    host, since a resource of ours was short. `ours_seconds`: how long the fetch waited for our resources.
    """

    def __init__(
        self,
        failure: Failure,
        reason: str,
        status: int | None = None,
        *,
        is_ours: bool = False,
        ours_seconds: float = 0.0,
    ) -> None:
        super().__init__(mask_credentials(reason))
        self.failure = failure
        self.status = status
        self.is_ours = is_ours
        self.ours_seconds = ours_seconds
