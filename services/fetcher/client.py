"""One feed over HTTP: conditional, bounded in time and size, every redirect checked.

The only module that uses httpx: its URLs, headers and TLS set-up, over its own transport (httpcore), one connection a
fetch. `httpx.Client` itself would add a cookie jar, a pool and redirects that we have to do without.
"""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpcore
import httpx

from services.fetcher.decoding import ACCEPT_ENCODING, BodyBroken, BodyTooLarge, decode_body
from services.fetcher.failure import Failure, FetchFailed
from services.fetcher.guard import Blocked, Network
from services.fetcher.network import Deadline, GuardedBackend
from shared.politeness import DEFAULT_PORTS, BadUrl, politeness_group

ACCEPT = (
    "application/rss+xml, application/atom+xml, application/feed+json, application/rdf+xml,"
    " application/xml;q=0.9, text/xml;q=0.9, application/json;q=0.8, */*;q=0.5"
)
Header = tuple[bytes, bytes]

MAX_REDIRECTS = 10
_HEADER_ENCODING = "latin-1"
"""Any byte there and back: validators are sent as they came, also where they are not ASCII."""

_PERMANENT = {301, 308}
_REDIRECT = {301, 302, 303, 307, 308}


@dataclass(frozen=True)
class Request:
    """What to fetch. Validators are sent only to the URL that gave them."""

    url: str
    etag: str | None = None
    last_modified: str | None = None
    validators_url: str | None = None


@dataclass(frozen=True)
class Answer:
    """A complete answer with its decoded body."""

    status: int
    final_url: str
    moved_to: str | None
    """Where an unbroken chain of permanent redirects from the start led."""
    conditional: bool
    """Whether validators were sent to this URL, so that a 304 has a meaning."""
    headers: httpx.Headers = field(repr=False)
    body: bytes = field(repr=False)
    wire_bytes: int


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

    def fetch(self, request: Request) -> Answer:
        """Return the answer at the end of the redirects.

        Raises:
            FetchFailed: see `Failure`.
        """
        self._deadline.at = time.monotonic() + self._limits.deadline_seconds
        try:
            return self._follow(request)
        except Blocked as error:
            raise FetchFailed(Failure.BLOCKED, str(error)) from error
        except BadUrl as error:
            raise FetchFailed(Failure.BAD_URL, str(error)) from error
        except (httpx.InvalidURL, httpcore.UnsupportedProtocol, UnicodeError) as error:
            raise FetchFailed(Failure.BAD_URL, f"not a URL: {error}") from error
        finally:
            self._deadline.at = float("inf")

    def _follow(self, request: Request) -> Answer:
        url, moved_to, permanent = request.url, None, True
        seen: set[str] = set()
        while True:
            politeness_group(url)  # refuses schemes and hosts that can't be fetched, on every hop
            if url in seen:
                raise FetchFailed(Failure.REDIRECT, f"the redirects go round in a circle at {url}")
            if len(seen) > MAX_REDIRECTS:
                raise FetchFailed(Failure.REDIRECT, f"more than {MAX_REDIRECTS} redirects")
            seen.add(url)
            conditions = _conditions(request, url)
            status, headers, body, wire = self._get(url, conditions)
            if status not in _REDIRECT or "location" not in headers:
                exact = httpx.Headers(headers.raw, _HEADER_ENCODING)
                return Answer(status, url, moved_to, bool(conditions), exact, body, wire)
            url = str(httpx.URL(url).join(headers["location"]).copy_with(fragment=None))
            permanent = permanent and status in _PERMANENT
            moved_to = url if permanent else moved_to

    def _get(self, url: str, conditions: list[Header]) -> tuple[int, httpx.Headers, bytes, int]:
        status: int | None = None
        try:
            with self._open(httpx.URL(url), conditions) as response:
                status, headers = response.status, httpx.Headers(response.headers)
                if not 200 <= status < 300:  # whatever it says, we would not read it
                    return status, headers, b"", 0
                encoding = headers.get("content-encoding", "")
                body, wire = decode_body(response.iter_stream(), encoding, self._limits.max_body_bytes)
                return status, headers, body, wire
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
    def _open(self, url: httpx.URL, conditions: list[Header]) -> Iterator[httpcore.Response]:
        """Send the request over a connection of its own; yield the response with its body still to come."""
        if url.scheme not in DEFAULT_PORTS:  # what one reader of URLs takes for http, another may not
            raise BadUrl(f"the scheme is {url.scheme!r}")
        port = url.port or DEFAULT_PORTS[url.scheme]
        request = httpcore.Request(
            b"GET",
            httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=port, target=url.raw_path),
            headers=[(b"Host", url.netloc), *self._headers, *_credentials(url), *conditions],
            extensions={"timeout": self._timeouts},
        )
        connection = httpcore.HTTPConnection(request.url.origin, ssl_context=self._tls, network_backend=self._backend)
        try:
            yield connection.handle_request(request)
        finally:
            connection.close()


def _credentials(url: httpx.URL) -> list[Header]:
    """Return the Authorization of a URL with user and password in it (RFC 7617). A redirect's URL has its own."""
    if not (url.username or url.password):
        return []
    return [(b"Authorization", b"Basic " + b64encode(f"{url.username}:{url.password}".encode()))]


def _conditions(request: Request, url: str) -> list[Header]:
    if request.validators_url != url:
        return []
    validators = ((b"If-None-Match", request.etag), (b"If-Modified-Since", request.last_modified))
    return [(name, value.encode(_HEADER_ENCODING, "replace")) for name, value in validators if value]
