"""One hop over HTTP: conditional, bounded in time, size and memory. Redirects are told, not followed.

The only module that uses httpx: its URLs, headers and TLS set-up, over a transport of our own (`network`, `http1`),
one connection a fetch. `httpx.Client` itself would add a cookie jar, a pool and redirects that we have to do without.
"""

from __future__ import annotations

import re
import ssl
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import httpx

from services.fetcher.http.address_guard import Blocked, Network
from services.fetcher.http.decoding import ACCEPT_ENCODING, OVERHEAD_BYTES, BodyBroken, BodyTooLarge, decode_body
from services.fetcher.http.failure import Failure, FetchFailed
from services.fetcher.http.http1 import BadResponse, Head, ResponseReader, content_length, is_chunked
from services.fetcher.http.large_bodies import LargeBodies, Permit
from services.fetcher.http.network import ConnectFailed, Connection, Connector, Deadline
from services.fetcher.http.redirects import REDIRECTS, check_url
from shared.politeness import DEFAULT_PORTS, BadUrl, host_of

ACCEPT = (
    "application/rss+xml, application/atom+xml, application/feed+json, application/rdf+xml,"
    " application/xml;q=0.9, text/xml;q=0.9, application/json;q=0.8, */*;q=0.5"
)
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_HEADER_ENCODING = "latin-1"
"""Any byte there and back: validators are sent as they came, also where they are not ASCII."""


@dataclass(frozen=True)
class HttpRequest:
    """One hop: a GET of one URL. What may be sent to it is the caller's decision."""

    url: str
    etag: str | None = None
    """Sent verbatim as If-None-Match. It has to belong to this very URL."""
    last_modified: str | None = None
    """Sent verbatim as If-Modified-Since. It has to belong to this very URL."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """A feed's own headers, already checked (`options`); they take the place of ours."""
    credentials: tuple[str, str] | None = field(default=None, repr=False)
    """User and password (Basic, RFC 7617); those in the URL count likewise."""
    seconds: float | None = None
    """What is left of the fetch's wall-clock deadline; None: the client's own deadline."""
    leaving: Callable[[], None] | None = field(default=None, repr=False)
    """Called when all is ready for the request to leave; it may raise."""
    sent: Callable[[], None] | None = field(default=None, repr=False)
    """Called when the request has left. Not before: a stall in between would bring the next one close to it."""


@dataclass(frozen=True)
class HttpResponse:
    """One complete answer with its decoded body. A context manager: leaving it releases what the body holds."""

    status: int
    url: str
    headers: httpx.Headers = field(repr=False)
    body: bytes = field(repr=False)
    wire_bytes: int
    redirect: str | None = None
    """The Location of a 301, 302, 303, 307 or 308 that has one: a reference, to be resolved against `url`."""
    waited_seconds: float = 0.0
    """How long the fetch stood still for want of room for its body: our time, not the server's."""
    ours_seconds: float = 0.0
    """The same, and the look-up of the name: what the server did not take of the fetch's time."""
    has_end: bool = True
    """False if nothing told the body's end but the end of the connection."""
    permit: Permit | None = field(default=None, repr=False, compare=False)

    def release(self) -> None:
        """Say that the body is done with: another large one may be read. It has to be let go of as well."""
        if self.permit:
            self.permit.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


@dataclass(frozen=True)
class ClientLimits:
    """Spans in seconds; the body's size in bytes after decoding."""

    deadline_seconds: float = 30.0
    connect_seconds: float = 10.0
    read_seconds: float = 15.0
    max_body_bytes: int = 10 * 1024 * 1024
    large_bodies: int = 12
    """Bodies of more than 512 KiB that are held at a time, from their reading to `HttpResponse.release`."""
    large_body_wait_seconds: float = 60.0
    """How long a fetch waits for room for its large body; its deadline does not run meanwhile."""


class FeedClient:
    """Fetches feeds; safe to use from many threads, each fetch staying on the thread that calls.

    Every fetch has a connection of its own, without a pool (docs/explanation/decisions.md): feeds go to many hosts, so
    keep-alive buys little, and what no other thread can be given, none can close under us.
    """

    def __init__(
        self,
        limits: ClientLimits,
        *,
        user_agent: str,
        allowed: tuple[Network, ...] = (),
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._limits = limits
        self._large_bodies = LargeBodies(limits.large_bodies, limits.large_body_wait_seconds)
        tls = tls or httpx.create_ssl_context()
        tls.set_alpn_protocols(["http/1.1"])
        self._connector = Connector(
            tls, allowed, connect_seconds=limits.connect_seconds, silence_seconds=limits.read_seconds
        )
        self._headers = {
            "User-Agent": user_agent,
            "Accept": ACCEPT,
            "Accept-Encoding": ACCEPT_ENCODING,
            "Connection": "close",
        }

    def close(self) -> None:
        """Let go of the threads that resolve names. Connections end with their fetches."""
        self._connector.close()

    def get(self, request: HttpRequest) -> HttpResponse:
        """Return the answer to one request. Redirects are told, not followed.

        To be used as `with client.get(request) as answer:`, so that the room that a large body takes is given back.

        Raises:
            FetchFailed: see `Failure`.
            OSError: this machine has no socket or memory left; that says nothing of the feed.
        """
        fetch = _Fetch(request, self._limits, self._large_bodies)
        try:
            return fetch.run(self._connector, self._headers)
        except FetchFailed:
            raise
        except Exception as error:
            failure = _failure(error)
            if failure is None:
                raise
            raise FetchFailed(
                failure,
                str(error),
                fetch.status,
                request.url,
                is_ours=isinstance(error, ConnectFailed) and error.is_ours,
                ours_seconds=fetch.ours_seconds,
            ) from error


class _Fetch:
    """One request on its way."""

    def __init__(self, request: HttpRequest, limits: ClientLimits, large_bodies: LargeBodies) -> None:
        self.status: int | None = None
        self._request = request
        self._limits = limits
        self._large_bodies = large_bodies
        self._deadline = Deadline(limits.deadline_seconds if request.seconds is None else request.seconds)
        self._permit: Permit | None = None
        self._waited = 0.0

    @property
    def ours_seconds(self) -> float:
        """Seconds that went to resources of ours."""
        return self._deadline.ours

    def run(self, connector: Connector, ours: Mapping[str, str]) -> HttpResponse:
        url = _parse(self._request.url)
        host, port = url.raw_host.decode(), DEFAULT_PORTS[url.scheme] if url.port is None else url.port
        message = _compose(self._request, url, ours)
        with connector.connect(host, port, self._deadline, tls=url.scheme == "https") as connection:
            if self._request.leaving is not None:
                self._request.leaving()
            connection.send(message)
            if self._request.sent is not None:
                self._request.sent()
            return self._read(connection)

    def _read(self, connection: Connection) -> HttpResponse:
        reader = ResponseReader(connection.receive)
        head = reader.read_head()
        self.status = head.status
        headers = httpx.Headers(head.fields, _HEADER_ENCODING)
        if not 200 <= head.status < 300 or head.status in {204, 205}:  # whatever it says, we would not read it
            redirect = _redirect(head.status, headers)
            return HttpResponse(
                head.status, self._request.url, headers, b"", 0, redirect, ours_seconds=self.ours_seconds
            )
        self._check_whole(head)
        self._check_length(head)
        encoding = headers.get("content-encoding", "")
        try:
            body, wire = decode_body(reader.read_body(head), encoding, self._limits.max_body_bytes, self._make_room)
        except BaseException:
            if self._permit:
                self._permit.release()
            raise
        return HttpResponse(
            head.status,
            self._request.url,
            headers,
            body,
            wire,
            waited_seconds=self._waited,
            ours_seconds=self.ours_seconds,
            has_end=content_length(head) is not None or is_chunked(head),
            permit=self._permit,
        )

    def _check_whole(self, head: Head) -> None:
        """A part may be cut anywhere (RFC 9110 15.3.7), a delta needs what it changes (RFC 3229 10.4.1)."""
        own = {name.lower() for name in self._request.headers}
        if head.status == 206 or (head.status == 226 and "a-im" not in own):
            raise BadResponse(f"the server answers with a part that nobody asked for (status {head.status})")

    def _check_length(self, head: Head) -> None:
        """What is announced to be too large, packed or not, is not waited for."""
        length = content_length(head)
        if length is not None and length > self._limits.max_body_bytes + OVERHEAD_BYTES:
            raise BodyTooLarge(f"the server announces {length} bytes; at most {self._limits.max_body_bytes} are taken")

    def _make_room(self) -> None:
        started = time.monotonic()
        try:
            self._permit = self._large_bodies.acquire()
        finally:
            self._waited = time.monotonic() - started
            self._deadline.extend(self._waited)


def _failure(error: Exception) -> Failure | None:
    """Return what an error of the lower rooms means; None for one that is our own mistake."""
    for kinds, failure in _FAILURES:
        if isinstance(error, kinds):
            return failure
    return None


_FAILURES: tuple[tuple[tuple[type[Exception], ...], Failure], ...] = (
    ((ConnectFailed,), Failure.CONNECT),
    ((Blocked,), Failure.BLOCKED),
    ((BadUrl,), Failure.BAD_URL),
    ((BodyTooLarge,), Failure.TOO_LARGE),
    ((BodyBroken, BadResponse), Failure.PROTOCOL),
    ((TimeoutError,), Failure.TIMEOUT),
    ((ConnectionError,), Failure.PROTOCOL),
)


def _parse(text: str) -> httpx.URL:
    """Return the URL with the host that its group was found by: two readers of a URL may see two hosts in it."""
    check_url(text)
    try:
        url = httpx.URL(text).copy_with(host=host_of(text))
    except (httpx.InvalidURL, UnicodeError) as error:
        raise BadUrl(f"not a URL: {error}") from error
    if url.scheme not in DEFAULT_PORTS:  # what one reader of URLs takes for http, another may not
        raise BadUrl(f"the scheme is {url.scheme!r}")
    return url


def _compose(request: HttpRequest, url: httpx.URL, ours: Mapping[str, str]) -> bytes:
    """Return the request as it goes over the wire; a feed's own headers take the place of ours."""
    fields = {name.lower(): (name, value) for name, value in (*ours.items(), *request.headers.items())}
    if "authorization" not in fields and (credentials := _basic(request, url)):
        fields["authorization"] = ("Authorization", credentials)
    for name, validator in (("If-None-Match", request.etag), ("If-Modified-Since", request.last_modified)):
        if validator:
            fields[name.lower()] = (name, validator)
    lines = [f"{name}: {value}\r\n" for name, value in fields.values() if not _CONTROL.search(value)]
    target = b"GET %b HTTP/1.1\r\nHost: %b\r\n" % (url.raw_path, url.netloc)
    return target + "".join(lines).encode(_HEADER_ENCODING, "replace") + b"\r\n"


def _basic(request: HttpRequest, url: httpx.URL) -> str | None:
    """Return the Authorization of a request with credentials, or of a URL with user and password in it (RFC 7617)."""
    user, password = request.credentials or (url.username, url.password)
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode() if user or password else None


def _redirect(status: int, headers: httpx.Headers) -> str | None:
    """Return the Location of a redirect that has one: the first; it may hold UTF-8, as browsers take it."""
    if status not in REDIRECTS:
        return None
    location = next(iter(headers.get_list("location")), "").strip()
    with suppress(UnicodeError):
        location = location.encode(_HEADER_ENCODING).decode()
    return location or None
