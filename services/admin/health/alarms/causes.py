"""Pure: why attempts fail, found from the error texts of the fetch log, and what to do if all fail for one cause."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from services.admin.health.alarms.measured import Failures


class Attempt(NamedTuple):
    """A row of the fetch log that failed."""

    host: str
    error_class: str | None
    error: str | None


@dataclass(frozen=True)
class Cause:
    """Why attempts fail."""

    words: str
    """The beginning of a sentence that goes on with `for all of 120 hosts`."""
    action: str


_RESOLVER = (
    "is there a resolver? Try `feedmill parse URL` where a fetcher runs; look at its DNS settings and at UDP port 53"
)
_NETWORK = "is there a network? Look at the routes and network policies of the fetchers' machine"
_FIREWALL = "is there a firewall, or a proxy that is down? Try `feedmill parse URL` where a fetcher runs"
_CERTIFICATES = "are the authorities' certificates there, is the clock right, does a proxy put in its own certificate?"
_OVERLOAD = "is the line, or the fetchers' machine, overloaded? Try fewer fetchers"

_BY_TEXT = (
    (r"^cannot resolve |was not resolved in time|no resolver was free", "name resolution fails", _RESOLVER),
    (r"unreachable|no route to host|cannot assign requested", "the network is unreachable", _NETWORK),
    (r"connection refused", "connections are refused", _FIREWALL),
    (r"^cannot connect .*timed out|^not connected when", "connections time out", _FIREWALL),
    (r"connection reset|broken pipe|operation not permitted", "connections are cut", _FIREWALL),
    (r"not to be trusted", "certificates are not trusted", _CERTIFICATES),
    (r"^no tls with ", "no TLS connection comes about", _CERTIFICATES),
    (r"nothing was left of the fetch's time", "no time is left for the request", _OVERLOAD),
)
_BY_CLASS = {
    "connect": ("connections fail", _FIREWALL),
    "timeout": ("servers do not answer in time", _OVERLOAD),
    "protocol": ("answers are cut short, or are no HTTP", "does a proxy answer in place of the servers?"),
    "blocked": (
        "names lead to private addresses",
        "which resolver gives them? FEEDMILL_ALLOW_NETWORKS names private networks that may be asked",
    ),
    "http_407": ("a proxy wants a login", "put the proxy's user and password into its URL"),
    "http_429": ("servers ask for fewer requests", "poll less: FEEDMILL_POLL_WORTH_SECONDS"),
    "not_a_feed": ("pages come in place of feeds", "does a proxy or a portal answer in place of the servers?"),
    "unparseable": ("feeds can't be read", "does a proxy change the answers? Else report it, with a feed's URL"),
    "stale": ("jobs come too late", "is the backlog too long, or a clock wrong? More fetchers; `feedmill doctor`"),
}
_LOGS = "look at `feedmill feeds show FEED` for one of them, and try `feedmill parse URL` where a fetcher runs"


def find_cause(error_class: str | None, error: str | None) -> Cause:
    """Return why an attempt failed, as far as its error tells."""
    text = (error or "").lower()
    for pattern, words, action in _BY_TEXT:
        if re.search(pattern, text):
            return Cause(words, action)
    name = error_class or ""
    if name in _BY_CLASS:
        return Cause(*_BY_CLASS[name])
    if name.startswith("http_"):
        return Cause(f"servers answer with status {name.removeprefix('http_')}", _LOGS)
    return Cause(f"fetching fails ({name or 'nobody says why'})", _LOGS)


def count_causes(failed: Iterable[Attempt], others: Iterable[str] = ()) -> Failures:
    """Count hosts by the cause of their failures.

    Args:
        failed: attempts that failed.
        others: hosts that answered well.
    """
    hosts: dict[str, set[str]] = defaultdict(set)
    for host, error_class, error in failed:
        hosts[find_cause(error_class, error).words].add(host)
    every = set(others).union(*hosts.values())
    return Failures(len(every), {words: len(found) for words, found in hosts.items()})


_ACTIONS = {
    **{words: action for _, words, action in _BY_TEXT},
    **dict(_BY_CLASS.values()),
}


def commonest(failures: Failures) -> Cause | None:
    """Return the commonest cause, with the number of its hosts: `name resolution fails for all of 120 hosts`.

    What only a minority of the hosts has in common is no cause; its action is the usual one of the alarm.
    """
    if not failures.causes:
        return None
    words, hosts = max(failures.causes.items(), key=lambda cause: (cause[1], cause[0]))
    if 2 * hosts < failures.hosts:
        return Cause("for various reasons", "")
    whom = (
        f"{'all of ' if hosts > 1 else ''}{hosts:,}" if hosts == failures.hosts else f"{hosts:,} of {failures.hosts:,}"
    )
    return Cause(f"{words} for {whom} host{'s' if failures.hosts != 1 else ''}", _ACTIONS.get(words, _LOGS))
