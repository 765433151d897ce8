"""MANNERS 25: addresses that are not public are refused before anything reaches them."""

from __future__ import annotations

from pathlib import Path

from local.servers import Servers
from shared.wire.outcomes import Outcome
from tests.manners.jobs import running_fetcher
from tests.manners.replies import fresh, redirect
from tests.manners.sites import Site, serving

OCTAL = "0177.0.0.1"
"""Some programs read this as 127.0.0.1. For us it is no host."""

SPELLINGS = (
    "127.0.0.1",
    "localhost",
    "LOCALHOST",
    "2130706433",
    "0x7f000001",
    "127.1",
    "0.0.0.0",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[2002:7f00:1::]",
    "[2001:0:1:1:0:0:80ff:fffe]",
    "[fe80::1%25lo]",
    "[::1%25lo]",
    "100.64.0.1",
    "169.254.169.254",
    "192.168.0.1",
)


def test_25_an_address_that_is_not_public_is_refused_however_it_is_written(servers: Servers, tmp_path: Path) -> None:
    home = Site({"/feed": [fresh()]}, host="127.0.0.1")
    with serving(home), running_fetcher(servers, tmp_path, FEEDMILL_ALLOW_NETWORKS="") as fetcher:
        fetcher.fetch(f"http://{host}:{home.port}/feed" for host in (*SPELLINGS, OCTAL))
        *results, octal = fetcher.results(len(SPELLINGS) + 1)
    outcomes = {host: result.outcome for host, result in zip(SPELLINGS, results, strict=True)}
    assert outcomes == dict.fromkeys(SPELLINGS, Outcome.BLOCKED)
    assert (octal.outcome, octal.error_class) == (Outcome.HARD_ERROR, "bad_url")
    assert home.connections == 0


def test_25_an_allowed_network_is_the_only_exemption_on_every_hop(servers: Servers, tmp_path: Path) -> None:
    inside = Site({"/feed": [fresh()]})
    outside = Site({"/feed": [redirect(inside)], "/other": [fresh()]})
    with (
        serving(inside, outside),
        running_fetcher(servers, tmp_path, FEEDMILL_ALLOW_NETWORKS=f"{outside.host}/32") as fetcher,
    ):
        fetcher.fetch([outside.url("/other"), outside.url()])
        outcomes = [result.outcome for result in fetcher.results(2)]
    assert outcomes == [Outcome.FETCHED, Outcome.BLOCKED]
    assert inside.connections == 0
