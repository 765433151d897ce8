"""The blocking client for the HTTP API. The standard library is all that it needs."""

from __future__ import annotations

import http.client
import json
import select
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from feedmill_client import calls
from feedmill_client.calls import Article
from feedmill_client.loop import NAP_SECONDS, Consumer

TIMEOUT_SECONDS = 30.0
"""For the connection, and for each part of an answer."""

IDLE_SECONDS = 3.0
"""A connection that was idle for longer is made anew: servers and proxies close idle ones."""

_TRY_AGAIN = {
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
}


class ApiAway(ConnectionError):
    """The API, or the database behind it, is away or can't serve now."""


class ApiRefused(Exception):
    """The API refused a call, for example because of the token; says why."""


class HttpPendingArticles(Consumer):
    """`PendingArticles` on another network: the same calls over HTTP, with a token of the scope `consume`.

    Every call raises one of `AWAY` if the API is away. It may then be repeated, as `patiently` does.

    Args:
        api_url: such as `https://feedmill.example`.
        token: of the scope `consume`.
        wait_seconds: how long the API holds a request while there is no article; 30 at most.
        context: for TLS; None: the system's certificates.
    """

    AWAY = (OSError, http.client.HTTPException)

    def __init__(
        self, api_url: str, token: str = "", *, wait_seconds: float = 20.0, context: ssl.SSLContext | None = None
    ) -> None:
        super().__init__()
        self._url = urlsplit(api_url)
        if self._url.scheme not in {"http", "https"} or not self._url.hostname:
            raise ValueError("api_url: give http(s)://HOST[:PORT]")
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._wait_seconds = wait_seconds
        self._context = context
        self._connection: http.client.HTTPConnection | None = None
        self._used_at = 0.0

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def claim(self, most: int = 50, lease: timedelta = calls.LEASE) -> list[Article]:
        """Claim up to `most` articles (1,000 at most), the oldest first."""
        return self._claim(most, lease, 0.0)

    def ack(self, articles: Sequence[Article]) -> int:
        """Acknowledge and remove them; return how many. Articles whose text has changed meanwhile stay pending."""
        done = [{"md5": article.md5, "content_hash": article.content_hash} for article in articles]
        return int(self._post("ack", {"articles": done})["acknowledged"])

    def fail(self, articles: Sequence[Article], error: str | Exception, retry_after: timedelta | None = None) -> int:
        """Count a failure: they come again after a pause, or become dead. Return how many this consumer still held."""
        pause = None if retry_after is None else retry_after.total_seconds()
        body = {"articles": _held(articles), "error": calls.describe(error), "retry_after_seconds": pause}
        return len(self._post("fail", body)["failed"])

    def renew(self, articles: Sequence[Article], lease: timedelta = calls.LEASE) -> list[Article]:
        """Start their lease anew; return the articles that this consumer still holds."""
        held = set(self._post("renew", {"articles": _held(articles), "lease_seconds": lease.total_seconds()})["held"])
        return [article for article in articles if article.md5 in held]

    def release(self, articles: Sequence[Article]) -> int:
        """Release them for other consumers; return how many this consumer still held."""
        return int(self._post("release", {"articles": _held(articles)})["released"])

    def _wait(self, most: int, lease: timedelta) -> list[Article]:
        return self._claim(most, lease, self._wait_seconds)

    def _claim(self, most: int, lease: timedelta, wait: float) -> list[Article]:
        answer = self._post("claim", {"max": most, "lease_seconds": lease.total_seconds()}, wait)
        return [_read(article) for article in answer.get("articles", ())]

    def _post(self, verb: str, body: Mapping[str, Any], wait: float = 0.0) -> Any:
        """Return the answer; an empty one if a wait for it was stopped."""
        connection = self._connect()
        try:
            path = f"{self._url.path.rstrip('/')}/api/articles/{verb}" + f"?wait={wait:g}" * (wait > 0)
            connection.request("POST", path, json.dumps(body), self._headers)
            if wait > 0 and not self._until_answer(connection, wait):
                self.close()  # the API sees it, and claims nothing for us
                return {}
            response = connection.getresponse()
            content = response.read()
        except BaseException:
            self.close()  # what comes on this connection would be taken for the answer to the next call
            raise
        self._used_at = time.monotonic()
        if response.status >= HTTPStatus.MULTIPLE_CHOICES:
            sentence = f"{verb}: {response.status} {_detail(content)}"
            raise ApiAway(sentence) if response.status in _TRY_AGAIN else ApiRefused(sentence)
        return json.loads(content)

    def _until_answer(self, connection: http.client.HTTPConnection, wait: float) -> bool:
        """Return whether an answer comes, or its time is over; False once `stop()` was called."""
        until = time.monotonic() + wait + TIMEOUT_SECONDS
        while not self._stopped and (left := until - time.monotonic()) > 0:
            if select.select([connection.sock], [], [], min(left, NAP_SECONDS))[0]:
                return True
        return not self._stopped

    def _connect(self) -> http.client.HTTPConnection:
        if self._connection is not None and time.monotonic() - self._used_at > IDLE_SECONDS:
            self.close()
        if self._connection is None:
            host, port = self._url.hostname or "", self._url.port
            if self._url.scheme == "https":
                context = self._context or ssl.create_default_context()
                self._connection = http.client.HTTPSConnection(host, port, timeout=TIMEOUT_SECONDS, context=context)
            else:
                self._connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_SECONDS)
        return self._connection


def _held(articles: Sequence[Article]) -> list[dict[str, str]]:
    return [{"md5": article.md5, "lease_id": str(article.lease_id)} for article in articles]


def _read(row: Mapping[str, Any]) -> Article:
    values = {field.name: row[field.name] for field in fields(Article) if field.name in row}
    for name in ("published_at", "updated_at", "created_at", "claimed_until"):
        values[name] = values[name] and datetime.fromisoformat(values[name])
    return Article(**values | {"lease_id": UUID(values["lease_id"])})


def _detail(content: bytes) -> str:
    try:
        return str(json.loads(content)["detail"])
    except (ValueError, KeyError, TypeError):
        return "is this the API of Feedmill?"
