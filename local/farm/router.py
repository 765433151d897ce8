"""All feeds of a farm behind one door: finds who answers, keeps the access log, counts who is there.

One lock guards all of it. The server's thread calls `connected`, `answer`, `reject`, `finished` and
`disconnected`; the rest may be called from any thread.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from threading import Lock
from typing import NamedTuple

from local.farm.http import Reply, Request, make_reply
from local.farm.site import Freshness, Issue, Site

_NOT_FOUND = make_reply(HTTPStatus.NOT_FOUND, "Nothing is served here.\n")
_NOT_ALLOWED = make_reply(HTTPStatus.METHOD_NOT_ALLOWED, "Only GET is.\n", "Allow: GET")


UNNAMED = ""
"""The host of a connection that has not said yet which one it wants."""


class AccessRecord(NamedTuple):
    """One line of the access log, written when the request has arrived."""

    at: float
    """`time.monotonic()`, which is the same clock in all processes of a Linux machine."""
    host: str
    path: str
    method: str
    status: int
    if_none_match: str | None
    if_modified_since: str | None
    user_agent: str | None
    accept_encoding: str | None


@dataclass(slots=True)
class HostLoad:
    """What one host has to bear, now and at its worst."""

    connections: int = 0
    peak_connections: int = 0
    in_flight: int = 0
    """Requests that have arrived and are not answered yet."""
    peak_in_flight: int = 0


class Router:
    """Answers for all sites by host and path."""

    def __init__(self, routes: Mapping[tuple[str, str], Site], *, log_size: int, by_name: bool = False) -> None:
        self.by_name = by_name
        """All hosts share one address: a request's `Host` says whose it is."""
        self.latency_seconds = 0.0
        self.freshness = Freshness.HONEST
        self._routes = dict(routes)
        self._lock = Lock()
        self._log: deque[AccessRecord] = deque(maxlen=log_size)
        self._requests = 0
        self._loads = {host: HostLoad() for host, _ in routes} | ({UNNAMED: HostLoad()} if by_name else {})

    def find_host(self, named: str) -> str | None:
        """Return the host of ours that a `Host` field names, if it does."""
        host = named.partition(":")[0].lower()
        return host if host in self._loads and host != UNNAMED else None

    def connected(self, host: str) -> None:
        """Note that a client has connected to this host."""
        with self._lock:
            load = self._loads[host]
            load.connections += 1
            load.peak_connections = max(load.peak_connections, load.connections)

    def disconnected(self, host: str) -> None:
        """Note that a client has gone."""
        with self._lock:
            self._loads[host].connections -= 1

    def answer(self, request: Request) -> Reply:
        """Return the reply to this request. `finished` must follow."""
        site = self._routes.get((request.host, request.path))
        with self._lock:
            if request.method != "GET":
                reply = _NOT_ALLOWED
            elif site is None:
                reply = _NOT_FOUND
            else:
                reply = site.answer(request, self.freshness)
                delay = self.latency_seconds + site.spec.delay_seconds
                if delay:
                    reply = reply._replace(delay_seconds=delay)
            self._note(request.host, request.path, request.method, reply.status, request.headers)
        return reply

    def reject(self, host: str, reason: str) -> Reply:
        """Return the reply to something that is no request. `finished` must follow."""
        with self._lock:
            self._note(host, "", "", HTTPStatus.BAD_REQUEST.value, {})
        return make_reply(HTTPStatus.BAD_REQUEST, f"{reason}\n")

    def finished(self, host: str, reply: Reply, *, complete: bool) -> None:
        """Note that the reply is on its way, or that the client left before."""
        with self._lock:
            self._loads[host].in_flight -= 1
            if complete and reply.on_delivered:
                reply.on_delivered()

    def publish(self, issues: Mapping[Site, Issue]) -> None:
        """Let each of these sites adopt its new issue, all at once."""
        with self._lock:
            for site, issue in issues.items():
                site.adopt(issue)

    def published(self, site: Site) -> dict[str, str]:
        """Return title by URL of all that the site has published."""
        with self._lock:
            return dict(site.published)

    def has_served_newest(self, site: Site) -> bool:
        """Return whether some client has the site's current state."""
        with self._lock:
            return site.issue.served

    def access_log(self) -> list[AccessRecord]:
        """Return the log so far, oldest first."""
        with self._lock:
            return list(self._log)

    def host_loads(self) -> dict[str, HostLoad]:
        """Return the load by host."""
        with self._lock:
            return {host: replace(load) for host, load in self._loads.items()}

    def request_count(self) -> int:
        """Return how many requests have come; unlike the log it has no limit."""
        with self._lock:
            return self._requests

    def _note(self, host: str, path: str, method: str, status: int, headers: Mapping[str, str]) -> None:
        self._requests += 1
        load = self._loads[host]
        load.in_flight += 1
        load.peak_in_flight = max(load.peak_in_flight, load.in_flight)
        self._log.append(
            AccessRecord(
                time.monotonic(),
                host,
                path,
                method,
                status,
                headers.get("if-none-match"),
                headers.get("if-modified-since"),
                headers.get("user-agent"),
                headers.get("accept-encoding"),
            )
        )
