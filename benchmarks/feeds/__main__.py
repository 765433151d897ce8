"""Serves feeds from a process of its own: `python -m benchmarks.feeds --feeds 200 --entries 88`.

Prints one JSON line when it is ready: `{"urls": […]}`. It ends when its standard input closes: keep that open. Each
line on standard input is a command, answered by one JSON line:

    publish NUMBER      so many new articles in every feed
    tick                another number of comments, or the like, in every entry
    latency SECONDS     delay every answer
    articles            the links of all articles so far
    status              CPU seconds of this process
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from datetime import UTC, datetime, timedelta
from http import HTTPStatus

from benchmarks.feeds.site import Site
from benchmarks.feeds.styles import STYLES
from local.farm.http import Reply, Request, make_reply
from local.farm.server import ServerThread, Sockets
from local.farm.specs import loopback_host

NOT_FOUND = make_reply(HTTPStatus.NOT_FOUND, "There is no feed at this path.\n")


class Router:
    """All sites by host and path. An answer and a change may come in any order, but each is whole."""

    def __init__(self, options: argparse.Namespace) -> None:
        opened_at = datetime.now(UTC).replace(microsecond=0) - timedelta(days=1)
        self.latency_seconds = 0.0
        self.sites: dict[tuple[str, str], Site] = {}
        for number in range(options.feeds):
            style = STYLES[number % len(STYLES)]
            self.sites[loopback_host(number % options.hosts), f"/{number}/{style.name}"] = Site(
                f"site-{number}",
                style,
                entries=options.entries,
                text_length=options.text_length,
                edition=options.edition,
                opened_at=opened_at,
            )

    def find_host(self, request: Request) -> str:
        """Return the host that the request is for: each has an address of its own."""
        return request.host

    def answer(self, request: Request) -> Reply:
        """Return the feed's answer."""
        site = self.sites.get((request.host, request.path))
        return (site.answer(request) if site else NOT_FOUND)._replace(delay_seconds=self.latency_seconds)

    def finished(self, host: str) -> None:
        """Nothing: nobody asks for the number of open requests."""

    def run_command(self, words: list[str]) -> dict[str, object]:
        """Do what standard input says, and return the answer."""
        match words:
            case ["publish", number]:
                for site in self.sites.values():
                    site.publish(int(number))
            case ["tick"]:
                for site in self.sites.values():
                    site.tick()
            case ["latency", seconds]:
                self.latency_seconds = float(seconds)
            case ["articles"]:
                return {"articles": [url for site in self.sites.values() for url in site.urls]}
            case ["status"]:
                return {"cpu_seconds": time.process_time()}
            case _:
                return {"error": f"unknown command {' '.join(words)!r}"}
        return {}


def main() -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.feeds", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--feeds", type=int, default=100)
    parser.add_argument("--hosts", type=int, default=100)
    parser.add_argument("--entries", type=int, default=20, help="articles that each feed lists")
    parser.add_argument("--text-length", type=int, default=150, help="characters of text in an article, on average")
    parser.add_argument("--edition", default="2026", help="part of every link: another edition has other articles")
    router = Router(parser.parse_args())
    hosts = dict.fromkeys(host for host, _ in router.sites)
    sockets = Sockets.open(hosts, [])
    server = ServerThread(sockets, router)
    server.start()
    _print({"urls": [f"http://{host}:{sockets.port}{path}" for host, path in router.sites]})
    for line in sys.stdin:
        _print(router.run_command(line.split()))
    server.stop()
    sockets.close()


def _print(answer: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
