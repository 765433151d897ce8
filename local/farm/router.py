"""All sites of a farm: finds the site that a request is for, keeps the access log, counts requests in flight.

One lock guards all of it: the server's thread and any other thread may call every method.
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
from local.farm.site import Issue, Site

LOG_SIZE = 200_000
"""The access log keeps the newest so many requests."""

_NOT_FOUND = make_reply(HTTPStatus.NOT_FOUND, "There is no feed at this path.\n")
_NOT_ALLOWED = make_reply(HTTPStatus.METHOD_NOT_ALLOWED, "Only GET is allowed.\n", "Allow: GET")


class AccessRecord(NamedTuple):
    """One line of the access log, written when the request has arrived."""

    at: float
    """`time.monotonic()`, which is the same clock in all processes of a Linux machine."""
    host: str
    path: str
    status: int


@dataclass(slots=True)
class HostLoad:
    """Requests to one host that have arrived and are not answered yet, now and at most."""

    in_flight: int = 0
    peak_in_flight: int = 0


class SiteRouter:
    """Answers for all sites by host and path.

    Args:
        routes: the site of each host and path.
        by_name: all hosts share one address; the field `Host` of a request names the host.
    """

    def __init__(self, routes: Mapping[tuple[str, str], Site], *, by_name: bool = False) -> None:
        self._by_name = by_name
        self._routes = dict(routes)
        self._lock = Lock()
        self._log: deque[AccessRecord] = deque(maxlen=LOG_SIZE)
        self._requests = 0
        self._loads = {host: HostLoad() for host, _ in routes}

    def find_host(self, request: Request) -> str | None:
        """Return the host that the request is for, or None if the farm has no such host."""
        host = request.headers.get("host", "").partition(":")[0].lower() if self._by_name else request.host
        return host if host in self._loads else None

    def answer(self, request: Request) -> Reply:
        """Return the reply to this request. `finished` must follow."""
        site = self._routes.get((request.host, request.path))
        with self._lock:
            if request.method != "GET":
                reply = _NOT_ALLOWED
            elif site is None:
                reply = _NOT_FOUND
            else:
                reply = site.answer(request)
                if site.spec.delay_seconds:
                    reply = reply._replace(delay_seconds=site.spec.delay_seconds)
            self._requests += 1
            load = self._loads[request.host]
            load.in_flight += 1
            load.peak_in_flight = max(load.peak_in_flight, load.in_flight)
            self._log.append(AccessRecord(time.monotonic(), request.host, request.path, reply.status))
        return reply

    def finished(self, host: str) -> None:
        """Register that a reply was sent, or that the client left before."""
        with self._lock:
            self._loads[host].in_flight -= 1

    def publish(self, issues: Mapping[Site, Issue]) -> None:
        """Let each of these sites publish its new issue, all at once."""
        with self._lock:
            for site, issue in issues.items():
                site.adopt(issue)

    def published(self, site: Site) -> dict[str, str]:
        """Return title by URL of all that the site has published."""
        with self._lock:
            return dict(site.published)

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
