"""The feed farm: start it, let it publish, ask which articles a correct reader must have."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from threading import Lock
from types import TracebackType
from typing import Self

from local.farm.router import AccessRecord, HostLoad, SiteRouter
from local.farm.server import ServerThread, Sockets
from local.farm.site import Site
from local.farm.specs import FeedKind, FeedSpec


class Farm:
    """Plays all the feeds of `specs` at once, on one port of each of their hosts. A context manager.

    Args:
        specs: The feeds; their names are unique, and so is each host and path.
        port: The port on every host; 0 picks one below the ephemeral range. A farm that is started again keeps it.
        address: One address for all hosts, to which their names resolve (in containers). Then the field `Host` of a
            request names the host, and hosts that refuse connections do so on the next port. None: each host is an
            address of its own.
        edition: Part of every link and entry id: letters, digits, hyphens. Two farms of the same edition publish the
            same articles.
    """

    def __init__(
        self,
        specs: Iterable[FeedSpec],
        *,
        port: int = 0,
        address: str | None = None,
        edition: str = "2026",
    ) -> None:
        if not edition.replace("-", "").isalnum():
            raise ValueError(f"the edition {edition!r} is more than letters, digits and hyphens")
        self.specs = tuple(specs)
        self.port = port
        self._address = address
        self.wave = 0
        now = datetime.now(UTC)
        self._sites = {spec.name: Site(_at_home(spec), edition=edition, now=now) for spec in self.specs}
        if len(self._sites) != len(self.specs):
            raise ValueError("two feeds of a farm have the same name")
        self._router = SiteRouter(self._make_routes(edition, now), by_name=address is not None)
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
        """Close all sockets; the log stays. Does nothing if the farm does not run."""
        running, self._running = self._running, None
        if running:
            running.close()

    def url(self, spec: FeedSpec) -> str:
        """Return the address of this feed; the port is known once the farm has been started."""
        if not self.port:
            raise RuntimeError("the farm has not been started: its port is not known yet")
        nobody_listens = self._address is not None and spec.kind is FeedKind.REFUSED
        return f"http://{spec.host}:{self.port + nobody_listens}{spec.path}"

    def publish(self) -> int:
        """Publish new articles in all feeds with `items_per_wave`; return the number of this wave."""
        now = datetime.now(UTC)
        with self._publishing:
            growing = [site for site in self._sites.values() if site.spec.items_per_wave]
            self._router.publish({site: site.next_issue(now) for site in growing})
            self.wave += 1
            return self.wave

    def expected_of(self, spec: FeedSpec) -> dict[str, str]:
        """Return title by URL of the articles that a correct reader gets from this feed."""
        return self._router.published(self._sites[spec.name]) if spec.kind.delivers else {}

    def expected_articles(self) -> dict[str, str]:
        """Return title by URL of all articles so far that a correct reader must deliver once."""
        return {url: title for spec in self.specs for url, title in self.expected_of(spec).items()}

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
        """Return the site of each host and path. A moved feed has a redirect at its old address."""
        routes: dict[tuple[str, str], Site] = {}
        for spec in self.specs:
            here = [(spec.host, spec.path, self._sites[spec.name])]
            if spec.kind is FeedKind.MOVED:
                redirect = Site(spec, edition=edition, now=now)
                here = [(spec.host, spec.path, redirect), (spec.moved_host, spec.moved_path, self._sites[spec.name])]
            for host, path, site in here:
                if (host, path) in routes:
                    raise ValueError(f"two feeds of a farm are served from {host}{path}")
                routes[host, path] = site
        return routes


def _at_home(spec: FeedSpec) -> FeedSpec:
    if spec.kind is not FeedKind.MOVED:
        return spec
    return replace(spec, kind=FeedKind.PLAIN, host=spec.moved_host, path=spec.moved_path)
