"""Pure: one HTTP request, and how it goes over the wire. Every header that a server sees is put together here."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from services.fetcher.http.decoding import ACCEPT_ENCODING
from shared.tracing import NO_SPAN, Span

ACCEPT = (
    "application/rss+xml, application/atom+xml, application/feed+json, application/rdf+xml,"
    " application/xml;q=0.9, text/xml;q=0.9, application/json;q=0.8, */*;q=0.5"
)
HEADER_ENCODING = "latin-1"
"""Maps every byte to a character and back: validators are sent as they came, also where they are not ASCII."""

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


@dataclass(frozen=True)
class HttpRequest:
    """A GET of one URL. The caller decides what may be sent to it."""

    url: str
    etag: str | None = None
    """Sent verbatim as If-None-Match. It has to belong to this very URL."""
    last_modified: str | None = None
    """Sent verbatim as If-Modified-Since. It has to belong to this very URL."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The feed's own headers, already checked (`options`)."""
    credentials: tuple[str, str] | None = field(default=None, repr=False)
    """User and password (Basic, RFC 7617). Without them, those in the URL are sent."""
    seconds: float | None = None
    """The seconds left of the fetch's wall-clock deadline. None: the client's own deadline."""
    before_send: Callable[[], None] | None = field(default=None, repr=False)
    """Called when the request is ready to leave. It may raise, and then nothing is sent."""
    sent: Callable[[], None] | None = field(default=None, repr=False)
    """Called when the request has left. If it were called before, a stall in between would bring the next request too
    close to this one."""
    span: Span = field(default=NO_SPAN, repr=False)
    """Gets an event for each step."""


def default_headers(user_agent: str) -> dict[str, str]:
    """Return the headers of every request."""
    return {"User-Agent": user_agent, "Accept": ACCEPT, "Accept-Encoding": ACCEPT_ENCODING, "Connection": "close"}


def compose_request(
    request: HttpRequest, ours: Mapping[str, str], *, host: bytes, path: bytes, userinfo: tuple[str, str]
) -> bytes:
    """Return the bytes of a request to `host` (with its port, if it has one of its own).

    Later headers replace earlier ones of the same name: ours, then the feed's own, then credentials and validators.
    Headers for all feeds of a host would come between ours and the feed's own: as a field of `HostPolicy`
    (`politeness`), which already holds what is special about a host, handed over in `HttpRequest`.
    """
    fields = {name.lower(): (name, value) for name, value in (*ours.items(), *request.headers.items())}
    user, password = request.credentials or userinfo
    if "authorization" not in fields and (user or password):
        credentials = b64encode(f"{user}:{password}".encode()).decode()
        fields["authorization"] = ("Authorization", f"Basic {credentials}")
    for name, validator in (("If-None-Match", request.etag), ("If-Modified-Since", request.last_modified)):
        if validator:
            fields[name.lower()] = (name, validator)
    lines = [f"{name}: {value}\r\n" for name, value in fields.values() if not _CONTROL.search(value)]
    start = b"GET %b HTTP/1.1\r\nHost: %b\r\n" % (path, host)
    return start + "".join(lines).encode(HEADER_ENCODING, "replace") + b"\r\n"
