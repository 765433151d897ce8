"""One feed over HTTP: conditional, bounded in time and size, every redirect checked.

The only module that uses httpx.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpcore
import httpx

from services.fetcher.decoding import ACCEPT_ENCODING, BodyBroken, BodyTooLarge, decode_body
from services.fetcher.failure import Failure, FetchFailed
from services.fetcher.guard import Blocked, Network
from services.fetcher.network import Deadline, GuardedBackend
from shared.politeness import BadUrl, politeness_group

ACCEPT = (
    "application/rss+xml, application/atom+xml, application/feed+json, application/rdf+xml,"
    " application/xml;q=0.9, text/xml;q=0.9, application/json;q=0.8, */*;q=0.5"
)
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

    Every fetch opens its own connection: feeds go to many hosts, so keep-alive buys little, and a shared pool with
    few idle connections closes some that another thread was just given (encode/httpcore#1110).
    """

    def __init__(self, limits: ClientLimits, *, user_agent: str, allowed: tuple[Network, ...] = ()) -> None:
        self._limits = limits
        self._deadline = Deadline()
        self._backend = GuardedBackend(allowed, self._deadline)
        self._http = httpx.Client(
            transport=_Transport(self._backend),
            headers={
                "User-Agent": user_agent,
                "Accept": ACCEPT,
                "Accept-Encoding": ACCEPT_ENCODING,
                "Connection": "close",
            },
            timeout=httpx.Timeout(limits.read_seconds, connect=limits.connect_seconds),
            follow_redirects=False,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            trust_env=False,
        )

    def close(self) -> None:
        """Close what connections are left."""
        self._http.close()
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
        except (httpx.InvalidURL, httpx.UnsupportedProtocol, httpcore.UnsupportedProtocol, UnicodeError) as error:
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

    def _get(self, url: str, conditions: dict[bytes, bytes]) -> tuple[int, httpx.Headers, bytes, int]:
        status: int | None = None
        try:
            with self._http.stream("GET", url, headers=conditions) as response:
                status = response.status_code
                if not response.is_success:  # whatever it says, we would not read it
                    return status, response.headers, b"", 0
                encoding = response.headers.get("content-encoding", "")
                body, wire = decode_body(response.iter_raw(), encoding, self._limits.max_body_bytes)
                return status, response.headers, body, wire
        except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
            raise FetchFailed(Failure.CONNECT, f"cannot connect: {error}", None, url) from error
        except (httpcore.TimeoutException, TimeoutError) as error:
            raise FetchFailed(Failure.TIMEOUT, f"too slow: {error or type(error).__name__}", status, url) from error
        except BodyTooLarge as error:
            raise FetchFailed(Failure.TOO_LARGE, str(error), status, url) from error
        except BodyBroken as error:
            raise FetchFailed(Failure.PROTOCOL, str(error), status, url) from error
        except (httpcore.ProtocolError, httpcore.NetworkError, httpx.TransportError, OSError) as error:
            raise FetchFailed(Failure.PROTOCOL, f"{type(error).__name__}: {error}", status, url) from error


def _conditions(request: Request, url: str) -> dict[bytes, bytes]:
    if request.validators_url != url:
        return {}
    validators = {b"If-None-Match": request.etag, b"If-Modified-Since": request.last_modified}
    return {name: value.encode(_HEADER_ENCODING, "replace") for name, value in validators.items() if value}


class _Transport(httpx.BaseTransport):
    """httpx over an httpcore pool with our own backend. httpcore's errors pass through as they are."""

    def __init__(self, backend: httpcore.NetworkBackend) -> None:
        self._pool = httpcore.ConnectionPool(
            ssl_context=httpx.create_ssl_context(),
            max_connections=None,
            max_keepalive_connections=0,
            network_backend=backend,
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        assert isinstance(request.stream, httpx.SyncByteStream)
        response = self._pool.handle_request(
            httpcore.Request(
                method=request.method,
                url=httpcore.URL(
                    scheme=request.url.raw_scheme,
                    host=request.url.raw_host,
                    port=request.url.port,
                    target=request.url.raw_path,
                ),
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx.Response(
            response.status, headers=response.headers, stream=_Body(response), extensions=response.extensions
        )

    def close(self) -> None:
        self._pool.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        yield from self._response.iter_stream()

    def close(self) -> None:
        self._response.close()
