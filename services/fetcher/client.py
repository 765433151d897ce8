"""One hop over HTTP: conditional, bounded in time and size. Redirects are told, not followed.

The only module that uses httpx: its URLs, headers and TLS set-up, over its own transport (httpcore), one connection a
fetch. `httpx.Client` itself would add a cookie jar, a pool and redirects that we have to do without.
"""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import httpcore
import httpx

from services.fetcher.decoding import ACCEPT_ENCODING, BodyBroken, BodyTooLarge, decode_body
from services.fetcher.failure import Failure, FetchFailed
from services.fetcher.guard import Blocked, Network
from services.fetcher.network import Deadline, GuardedBackend
from services.fetcher.trail import REDIRECTS, check_url
from shared.politeness import DEFAULT_PORTS, BadUrl

ACCEPT = (
    "application/rss+xml, application/atom+xml, application/feed+json, application/rdf+xml,"
    " application/xml;q=0.9, text/xml;q=0.9, application/json;q=0.8, */*;q=0.5"
)
Header = tuple[bytes, bytes]

_HEADER_ENCODING = "latin-1"
"""Any byte there and back: validators are sent as they came, also where they are not ASCII."""


@dataclass(frozen=True)
class Request:
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
    sent: Callable[[], None] | None = field(default=None, repr=False)
    """Called when the connection stands, at the moment before the request leaves."""


@dataclass(frozen=True)
class Answer:
    """One complete answer with its decoded body. A context manager: leaving it releases what the body holds."""

    status: int
    url: str
    headers: httpx.Headers = field(repr=False)
    body: bytes = field(repr=False)
    wire_bytes: int
    redirect: str | None = None
    """The Location of a 301, 302, 303, 307 or 308 that has one: a reference, to be resolved against `url`."""

    def release(self) -> None:
        """Say that the body is done with."""

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


class FeedClient:
    """Fetches feeds; safe to use from many threads, each fetch staying on the thread that calls.

    Every fetch has a connection of its own, without a pool (docs/decisions.md): feeds go to many hosts, so keep-alive
    buys little, and what no other thread can be given, none can close under us.
    """

    def __init__(self, limits: ClientLimits, *, user_agent: str, allowed: tuple[Network, ...] = ()) -> None:
        self._limits = limits
        self._deadline = Deadline()
        self._backend = GuardedBackend(allowed, self._deadline)
        self._tls = httpx.create_ssl_context()
        self._timeouts = {
            "connect": limits.connect_seconds,
            "read": limits.read_seconds,
            "write": limits.read_seconds,
        }
        self._headers = [
            (b"User-Agent", user_agent.encode()),
            (b"Accept", ACCEPT.encode()),
            (b"Accept-Encoding", ACCEPT_ENCODING.encode()),
            (b"Connection", b"close"),
        ]

    def close(self) -> None:
        """Let go of the threads that resolve names. Connections end with their fetches."""
        self._backend.close()

    def get(self, request: Request) -> Answer:
        """Return the answer to one request. Redirects are told, not followed.

        Raises:
            FetchFailed: see `Failure`.
        """
        seconds = self._limits.deadline_seconds if request.seconds is None else request.seconds
        self._deadline.at = time.monotonic() + seconds
        try:
            check_url(request.url)
            return self._get(request)
        except Blocked as error:
            raise FetchFailed(Failure.BLOCKED, str(error), None, request.url) from error
        except BadUrl as error:
            raise FetchFailed(Failure.BAD_URL, str(error)) from error
        except (httpx.InvalidURL, httpcore.UnsupportedProtocol, UnicodeError) as error:
            raise FetchFailed(Failure.BAD_URL, f"not a URL: {error}") from error
        finally:
            self._deadline.at = float("inf")

    def _get(self, request: Request) -> Answer:
        status: int | None = None
        url = request.url
        try:
            with self._open(httpx.URL(url), request) as response:
                status, headers = response.status, httpx.Headers(response.headers, _HEADER_ENCODING)
                if not 200 <= status < 300:  # whatever it says, we would not read it
                    return Answer(status, url, headers, b"", 0, _redirect(status, headers))
                encoding = headers.get("content-encoding", "")
                body, wire = decode_body(response.iter_stream(), encoding, self._limits.max_body_bytes)
                return Answer(status, url, headers, body, wire)
        except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
            raise FetchFailed(Failure.CONNECT, f"cannot connect: {error}", None, url) from error
        except (httpcore.TimeoutException, TimeoutError) as error:
            raise FetchFailed(Failure.TIMEOUT, f"too slow: {error or type(error).__name__}", status, url) from error
        except BodyTooLarge as error:
            raise FetchFailed(Failure.TOO_LARGE, str(error), status, url) from error
        except BodyBroken as error:
            raise FetchFailed(Failure.PROTOCOL, str(error), status, url) from error
        except (httpcore.ProtocolError, httpcore.NetworkError, OSError) as error:
            raise FetchFailed(Failure.PROTOCOL, f"{type(error).__name__}: {error}", status, url) from error

    @contextmanager
    def _open(self, url: httpx.URL, asked: Request) -> Iterator[httpcore.Response]:
        """Send the request over a connection of its own; yield the response with its body still to come."""
        if url.scheme not in DEFAULT_PORTS:  # what one reader of URLs takes for http, another may not
            raise BadUrl(f"the scheme is {url.scheme!r}")
        port = url.port or DEFAULT_PORTS[url.scheme]
        request = httpcore.Request(
            b"GET",
            httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=port, target=url.raw_path),
            headers=[(b"Host", url.netloc), *_merged(self._headers, asked, url)],
            extensions={"timeout": self._timeouts},
        )
        connection = httpcore.HTTPConnection(request.url.origin, ssl_context=self._tls, network_backend=self._backend)
        try:
            if asked.sent is not None:
                asked.sent()
            yield connection.handle_request(request)
        finally:
            connection.close()


def _merged(ours: list[Header], request: Request, url: httpx.URL) -> list[Header]:
    """Return the request's headers; a feed's own take the place of ours."""
    own = [(name.encode(), value.encode(_HEADER_ENCODING)) for name, value in request.headers.items()]
    names = {name.lower() for name, _ in own}
    kept = [header for header in ours if header[0].lower() not in names]
    credentials = [] if b"authorization" in names else _credentials(request, url)
    return [*kept, *own, *credentials, *_conditions(request)]


def _credentials(request: Request, url: httpx.URL) -> list[Header]:
    """Return the Authorization of a request with credentials, or of a URL with user and password in it (RFC 7617)."""
    user, password = request.credentials or (url.username, url.password)
    if not (user or password):
        return []
    return [(b"Authorization", b"Basic " + b64encode(f"{user}:{password}".encode()))]


def _conditions(request: Request) -> list[Header]:
    validators = ((b"If-None-Match", request.etag), (b"If-Modified-Since", request.last_modified))
    return [(name, value.encode(_HEADER_ENCODING, "replace")) for name, value in validators if value]


def _redirect(status: int, headers: httpx.Headers) -> str | None:
    """Return the Location of a redirect that has one; it may hold UTF-8, as browsers take it."""
    location = headers.get("location", "").strip() if status in REDIRECTS else ""
    try:
        return location.encode(_HEADER_ENCODING).decode() or None
    except UnicodeError:
        return location
