"""One request over HTTP: conditional, bounded in time, size and memory. It reports redirects and does not follow them.

The only module that uses httpx: its URLs, headers and TLS set-up, over a transport of our own (`network`, `http1`),
with one connection per request. `httpx.Client` would add a cookie jar, a pool and redirects, none of which we want.
"""

from __future__ import annotations

import re
import ssl
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import httpx

from services.fetcher.http.address_guard import Blocked, Network
from services.fetcher.http.decoding import OVERHEAD_BYTES, BodyBroken, BodyTooLarge, decode_body
from services.fetcher.http.failure import Failure, FetchFailed
from services.fetcher.http.http1 import BadResponse, Head, ResponseReader, content_length, is_chunked
from services.fetcher.http.network import ConnectFailed, Connection, Connector, Deadline
from services.fetcher.http.redirects import REDIRECTS, check_url
from services.fetcher.http.request import HEADER_ENCODING, HttpRequest, compose_request, default_headers
from shared.politeness import DEFAULT_PORTS, BadUrl

_PLAIN = re.compile(r"(https?)://([a-z0-9.-]+)(?::([1-9]\d*))?((?:/(?!\.)[\w~.-]*)+(?:\?[\w~./=&+-]*)?)?", re.ASCII)
"""URLs in which httpx changes nothing: almost all. Its reader takes ten times as long."""


class Permit:
    """Permission to hold one large body. It is released once, at the latest when nobody refers to it any more."""

    def __init__(self, free: threading.Semaphore) -> None:
        self._free: threading.Semaphore | None = free

    def release(self) -> None:
        """Let another large body in. Further calls do nothing."""
        free, self._free = self._free, None
        if free is not None:
            free.release()

    def __del__(self) -> None:
        self.release()


@dataclass(frozen=True)
class HttpResponse:
    """One complete response with its decoded body. A context manager: its end releases the permit of a large body."""

    status: int
    url: str
    headers: httpx.Headers = field(repr=False)
    body: bytes = field(repr=False)
    wire_bytes: int
    redirect: str | None = None
    """The Location of a 301, 302, 303, 307 or 308 that has one: a reference, to be resolved against `url`."""
    waited_seconds: float = 0.0
    """How long the fetch waited until it could hold its body. The server is not to blame for this time."""
    ours_seconds: float = 0.0
    """The same, plus the look-up of the name: all time that does not count as the server's."""
    has_end: bool = True
    """False if only the end of the connection ended the body."""
    permit: Permit | None = field(default=None, repr=False, compare=False)

    def release(self) -> None:
        """Let another large body in. The caller also has to drop its references to this one."""
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
    """Bodies of more than 512 KiB that the process holds at a time, from reading to `HttpResponse.release`."""
    large_body_wait_seconds: float = 60.0
    """How long a fetch waits until it may hold its large body. Its deadline does not run meanwhile."""


class FeedClient:
    """Fetches feeds. Safe to use from many threads; each request stays on the thread that calls.

    Every request has a connection of its own, without a pool (docs/explanation/decisions.md). Feeds are spread over
    many hosts, so keep-alive saves little, and a connection that nobody shares can't be closed by another thread.
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
        self._free = threading.Semaphore(limits.large_bodies)
        tls = tls or httpx.create_ssl_context()
        tls.set_alpn_protocols(["http/1.1"])
        self._connector = Connector(
            tls, allowed, connect_seconds=limits.connect_seconds, silence_seconds=limits.read_seconds
        )
        self._headers = default_headers(user_agent)

    def close(self) -> None:
        """Stop the threads that resolve names. Connections end with their requests."""
        self._connector.close()

    def get(self, request: HttpRequest) -> HttpResponse:
        """Return the response to one request. Use it as `with client.get(request) as response:`.

        Raises:
            FetchFailed: its `failure` says why.
            OSError: this machine has no socket or memory left. That says nothing about the feed.
        """
        fetch = _Fetch(request, self._limits, self._free)
        try:
            return fetch.run(self._connector, self._headers)
        except Exception as error:
            failure = next((failure for kinds, failure in _FAILURES if isinstance(error, kinds)), None)
            if failure is None:
                raise
            raise FetchFailed(
                failure,
                str(error),
                fetch.status,
                is_ours=isinstance(error, ConnectFailed) and error.is_ours,
                ours_seconds=fetch.deadline.ours,
            ) from error


_FAILURES: tuple[tuple[type[Exception] | tuple[type[Exception], ...], Failure], ...] = (
    (ConnectFailed, Failure.CONNECT),
    (Blocked, Failure.BLOCKED),
    (BadUrl, Failure.BAD_URL),
    (BodyTooLarge, Failure.TOO_LARGE),
    ((BodyBroken, BadResponse), Failure.PROTOCOL),
    (TimeoutError, Failure.TIMEOUT),
    (ConnectionError, Failure.PROTOCOL),
)
"""What the errors of the lower modules mean. Any other error is a bug of ours."""


class _Fetch:
    """One request under way."""

    def __init__(self, request: HttpRequest, limits: ClientLimits, free: threading.Semaphore) -> None:
        self.status: int | None = None
        self.deadline = Deadline(limits.deadline_seconds if request.seconds is None else request.seconds)
        self._request = request
        self._limits = limits
        self._free = free
        self._permit: Permit | None = None
        self._waited = 0.0

    def run(self, connector: Connector, ours: Mapping[str, str]) -> HttpResponse:
        place = find_place(self._request.url)
        message = compose_request(self._request, ours, host=place.authority, path=place.path, userinfo=place.userinfo)
        span = self._request.span
        span.note(host=place.host, port=place.port)
        with connector.connect(place.host, place.port, self.deadline, tls=place.tls, note=span.event) as connection:
            if self._request.before_send is not None:
                self._request.before_send()
            connection.send(message)
            if self._request.sent is not None:
                self._request.sent()
            span.event("sent")
            return self._read(connection)

    def _read(self, connection: Connection) -> HttpResponse:
        reader = ResponseReader(connection.receive)
        head = reader.read_head()
        self._request.span.event("answered")
        self.status = head.status
        headers = httpx.Headers(head.fields, HEADER_ENCODING)
        if not 200 <= head.status < 300 or head.status in {204, 205}:  # nobody would read such a body
            redirect = _redirect(head.status, headers)
            ours = self.deadline.ours
            return HttpResponse(head.status, self._request.url, headers, b"", 0, redirect, ours_seconds=ours)
        self._check_whole(head)
        length = content_length(head)
        if length is not None and length > self._limits.max_body_bytes + OVERHEAD_BYTES:
            raise BodyTooLarge(f"the server announces {length} bytes; at most {self._limits.max_body_bytes} are taken")
        encoding = headers.get("content-encoding", "")
        try:
            body, wire = decode_body(reader.read_body(head), encoding, self._limits.max_body_bytes, self._wait_permit)
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
            ours_seconds=self.deadline.ours,
            has_end=length is not None or is_chunked(head),
            permit=self._permit,
        )

    def _check_whole(self, head: Head) -> None:
        """Refuse a part, which may be cut anywhere (RFC 9110 15.3.7), and an unasked delta (RFC 3229 10.4.1)."""
        own = {name.lower() for name in self._request.headers}
        if head.status == 206 or (head.status == 226 and "a-im" not in own):
            raise BadResponse(f"the server answers with a part that nobody asked for (status {head.status})")

    def _wait_permit(self) -> None:
        """Wait until the process may hold one more large body. The deadline does not run meanwhile."""
        started, most = time.monotonic(), self._limits.large_body_wait_seconds
        is_free = self._free.acquire(timeout=most)
        self._waited = time.monotonic() - started
        self.deadline.extend(self._waited)
        if not is_free:
            raise TimeoutError(f"there was no room for a large body for {most:g} s")
        self._permit = Permit(self._free)


@dataclass(frozen=True)
class Place:
    """Where a request goes."""

    tls: bool
    host: str
    port: int
    authority: bytes
    """Host and port, for the header Host."""
    path: bytes
    userinfo: tuple[str, str] = "", ""


def find_place(url: str) -> Place:
    """Return where a request to `url` goes, by the host that its group was found by.

    Raises:
        BadUrl: it can't be fetched.
    """
    host = check_url(url)
    plain = _PLAIN.fullmatch(url)
    if plain is None or plain[2] != host:
        return _parse(url, host)
    scheme, _, written, path = plain.groups()
    default = DEFAULT_PORTS[scheme]
    port = int(written or default)
    authority = host if port == default else f"{host}:{port}"
    return Place(scheme == "https", host, port, authority.encode(), (path or "/").encode())


def _parse(text: str, host: str) -> Place:
    """Read any URL as httpx does, but with this host: two readers of a URL may see two hosts in it."""
    try:
        url = httpx.URL(text)
        if url.raw_host.decode() != host:
            url = url.copy_with(host=host)
    except (httpx.InvalidURL, UnicodeError) as error:
        raise BadUrl(f"not a URL: {error}") from error
    if url.scheme not in DEFAULT_PORTS:  # one reader of URLs may see http where another sees something else
        raise BadUrl(f"the scheme is {url.scheme!r}")
    port = DEFAULT_PORTS[url.scheme] if url.port is None else url.port
    userinfo = url.username, url.password
    return Place(url.scheme == "https", url.raw_host.decode(), port, url.netloc, url.raw_path, userinfo)


def _redirect(status: int, headers: httpx.Headers) -> str | None:
    """Return the first Location of a redirect. It may hold UTF-8, as browsers accept it."""
    if status not in REDIRECTS:
        return None
    location = next(iter(headers.get_list("location")), "").strip()
    with suppress(UnicodeError):
        location = location.encode(HEADER_ENCODING).decode()
    return location or None
