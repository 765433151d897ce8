"""Other ways to fetch, beside the bare loop of httpx: the standard library's client, and ours."""

from __future__ import annotations

import gzip
from http.client import HTTPConnection, HTTPException
from ipaddress import ip_network
from urllib.parse import urlsplit

from benchmarks.bare import FAILED, HEADERS, Fetch, Loop
from services.fetcher.http.client import ClientLimits, FeedClient
from services.fetcher.http.failure import FetchFailed
from services.fetcher.http.request import HttpRequest


class StandardLoop(Loop):
    """`http.client`, a connection for each fetch: the fastest in plain Python that needs nothing installed."""

    def ask(self, fetch: Fetch) -> int:
        """Fetch once."""
        url = urlsplit(fetch.url)
        connection = HTTPConnection(str(url.hostname), url.port, timeout=30.0)
        try:
            connection.request("GET", url.path, headers={**HEADERS, "Connection": "close", **fetch.headers})
            answer = connection.getresponse()
            body = answer.read()
            if answer.headers["Content-Encoding"] == "gzip":
                gzip.decompress(body)
        except (HTTPException, OSError):
            return FAILED
        finally:
            connection.close()
        return answer.status


class ClientLoop(Loop):
    """The fetcher's own client with all its checks, without messages, scoreboard and reading."""

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        self._client = FeedClient(ClientLimits(), user_agent="feedmill-bench", allowed=(ip_network("127.0.0.0/8"),))

    def close(self) -> None:
        """Close the client."""
        self._client.close()

    def ask(self, fetch: Fetch) -> int:
        """Fetch once."""
        named = fetch.headers
        request = HttpRequest(fetch.url, named.get("If-None-Match"), named.get("If-Modified-Since"))
        try:
            with self._client.get(request) as answer:
                return answer.status
        except FetchFailed:
            return FAILED
