"""The feed farm's door: start it, let it publish, ask what a correct reader must have got."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from threading import Lock
from types import TracebackType
from typing import Self

from local.farm.router import AccessRecord, HostLoad, Router
from local.farm.server import ServerThread, Sockets
from local.farm.site import Freshness, Site
from local.farm.specs import FeedKind, FeedSpec


class Farm:
    """Plays all the feeds of `specs` at once, on one port of each of their hosts. A context manager.

    Args:
        specs: The feeds; their names are unique, and so is each host and path.
        port: The port on every host; 0 picks one below the ephemeral range. A farm that is started again keeps it.
        address: One address for all hosts, whose names lead to it (in containers): a request's `Host` says which one is
            meant, and those that refuse connections do it on the next port. None: each host is an address.
        latency_seconds: Every answer from a feed waits so long.
        freshness: What becomes of validators; may be changed while the farm runs.
        edition: Part of every link and entry id: letters, digits, hyphens. Two farms of the same edition publish the
            same articles; a reader that remembers the first one needs another edition to see anything new.
        now: When the farm opens, for the dates of its articles.
        log_size: The access log keeps the newest so many requests.
    """

    def __init__(
        self,
        specs: Iterable[FeedSpec],
        *,
        port: int = 0,
        address: str | None = None,
        latency_seconds: float = 0.0,
        freshness: Freshness = Freshness.HONEST,
        edition: str = "2026",
        now: datetime | None = None,
        log_size: int = 200_000,
    ) -> None:
        if not edition.replace("-", "").isalnum():
            raise ValueError(f"the edition {edition!r} is more than letters, digits and hyphens")
        self.specs = tuple(specs)
        self.port = port
        self._address = address
        self.wave = 0
        now = now or datetime.now(UTC)
        self._sites = {spec.name: Site(_at_home(spec), edition=edition, now=now) for spec in self.specs}
        if len(self._sites) != len(self.specs):
            raise ValueError("two feeds of a farm have the same name")
        self._router = Router(self._make_routes(edition, now), log_size=log_size, by_name=address is not None)
        self.latency_seconds = latency_seconds
        self.freshness = freshness
        self._publishing = Lock()
        self._running: ExitStack | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def hosts(self) -> tuple[str, ...]:
        """All addresses that the feeds name, those that refuse connections included."""
        hosts = {host for spec in self.specs for host in (spec.host, spec.moved_host) if host}
        return tuple(sorted(hosts, key=lambda host: [int(part) for part in re.findall(r"\d+", host)]))

    @property
    def latency_seconds(self) -> float:
        """How long every answer from a feed waits; may be changed while the farm runs."""
        return self._router.latency_seconds

    @latency_seconds.setter
    def latency_seconds(self, seconds: float) -> None:
        self._router.latency_seconds = seconds

    @property
    def freshness(self) -> Freshness:
        """What becomes of validators; may be changed while the farm runs."""
        return self._router.freshness

    @freshness.setter
    def freshness(self, freshness: Freshness) -> None:
        self._router.freshness = freshness

    def start(self) -> None:
        """Listen and serve, from a thread of its own.

        Raises:
            OSError: the port is taken on one of the hosts.
        """
        if self._running:
            raise RuntimeError("the farm is running")
        refusing = {spec.host for spec in self.specs if spec.kind is FeedKind.REFUSED}
        listening = [host for host in self.hosts if host not in refusing]
        if self._address is not None:
            listening, refusing = [self._address], set()
        with ExitStack() as running:
            sockets = Sockets.open(listening, refusing, self.port)
            running.callback(sockets.close)
            server = ServerThread(sockets, self._router)
            server.start()
            running.callback(server.stop)
            self.port = sockets.port
            self._running = running.pop_all()

    def stop(self) -> None:
        """Close everything; log and ledger stay. Does nothing if the farm does not run."""
        running, self._running = self._running, None
        if running:
            running.close()

    def url(self, spec: FeedSpec) -> str:
        """Return the address of this feed; the port is known once the farm has been started."""
        if not self.port:
            raise RuntimeError("the farm has not been started: its port is not known yet")
        nobody_listens = self._address is not None and spec.kind is FeedKind.REFUSED
        return f"http://{spec.host}:{self.port + nobody_listens}{spec.path}"

    def publish(self, now: datetime | None = None) -> int:
        """Let new articles appear in all feeds that have `items_per_wave`; return the number of this wave."""
        now = now or datetime.now(UTC)
        with self._publishing:
            growing = [site for site in self._sites.values() if site.spec.items_per_wave]
            self._router.publish({site: site.next_issue(now) for site in growing})
            self.wave += 1
            return self.wave

    def expected_of(self, spec: FeedSpec) -> dict[str, str]:
        """Return title by URL of what a correct reader has got from this feed in the end."""
        return self._router.published(self._sites[spec.name]) if spec.kind.delivers else {}

    def expected_articles(self) -> dict[str, str]:
        """Return title by URL of what a correct reader must have delivered, each once, of all published so far."""
        return {url: title for spec in self.specs for url, title in self.expected_of(spec).items()}

    def unserved(self) -> list[FeedSpec]:
        """Return the delivering feeds whose newest state no client has been sent completely."""
        return [
            spec
            for spec in self.specs
            if spec.kind.delivers and not self._router.has_served_newest(self._sites[spec.name])
        ]

    def access_log(self) -> list[AccessRecord]:
        """Return the requests so far, oldest first."""
        return self._router.access_log()

    def request_count(self) -> int:
        """Return how many requests have come."""
        return self._router.request_count()

    def host_loads(self) -> dict[str, HostLoad]:
        """Return connections and requests in flight by host, now and at their worst."""
        return self._router.host_loads()

    def _make_routes(self, edition: str, now: datetime) -> dict[tuple[str, str], Site]:
        """Return who answers where. A moved feed lives at its new home and leaves a signpost behind."""
        routes: dict[tuple[str, str], Site] = {}
        for spec in self.specs:
            here = [(spec.host, spec.path, self._sites[spec.name])]
            if spec.kind is FeedKind.MOVED:
                signpost = Site(spec, edition=edition, now=now)
                here = [(spec.host, spec.path, signpost), (spec.moved_host, spec.moved_path, self._sites[spec.name])]
            for host, path, site in here:
                if (host, path) in routes:
                    raise ValueError(f"two feeds of a farm are served from {host}{path}")
                routes[host, path] = site
        return routes


def _at_home(spec: FeedSpec) -> FeedSpec:
    if spec.kind is not FeedKind.MOVED:
        return spec
    return replace(spec, kind=FeedKind.PLAIN, host=spec.moved_host, path=spec.moved_path)
