"""The commands `feedmill pending claim`, `ack` and so on: what consumers do, for shell scripts and by hand.

Keys may be the beginnings of keys. A command ends with 1 if it was not done for all of them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from services.admin.ids import KEY_CHARACTERS, PREFIX_CHARACTERS, the_one
from services.cli.calls.opening import open_api
from services.cli.options import AsJson, span
from services.cli.output import console
from shared.errors import ConfigurationError
from shared.observability.display import ascii_json

if TYPE_CHECKING:
    from services.cli.calls.api import Api

POLL_SECONDS = 30.0
"""The longest wait of one request."""

ROUND = 1000
"""Keys of one request, at most."""

Md5s = Annotated[list[str], typer.Argument(help="Keys of articles, or their beginnings (four characters or more).")]
Lease = Annotated[
    float, typer.Option(parser=span(0.1), metavar="SPAN", help="Nobody else is given the articles for so long.")
]
LeaseId = Annotated[
    str | None, typer.Option(help="Only articles that are still held under this lease, as `claim` gave it.")
]


def claim(
    most: Annotated[int, typer.Option("--max", min=1, max=ROUND, help="So many at most.")] = 1,
    lease: Lease = 300.0,
    wait: Annotated[float, typer.Option(parser=span(), metavar="SPAN", help="Wait so long while there is none.")] = 0.0,
    max_expiries: Annotated[
        int, typer.Option(min=1, max=1000, help="An article whose lease ran out so often is dead instead.")
    ] = 5,
) -> None:
    """Claim articles for a script: prints each as a line of JSON; nothing if there is none."""
    body = {"max": most, "lease_seconds": lease, "max_expiries": max_expiries}
    until = time.monotonic() + wait
    with open_api() as api:
        while True:
            left = max(until - time.monotonic(), 0.0)
            found = api.call("POST", "/api/articles/claim", query={"wait": min(left, POLL_SECONDS)}, body=body).json()
            for article in found["articles"]:
                print(ascii_json(article), flush=True)
            if found["articles"] or left <= POLL_SECONDS:
                return


def ack(
    md5s: Md5s,
    claimed: Annotated[
        bool, typer.Option("--claimed", help="Only the text that was claimed last: one that has changed stays.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Drop pending articles as if a consumer had acknowledged the text that they have now."""
    with open_api() as api:
        rows = _find(api, md5s)
        articles = [{"md5": row["md5"], "content_hash": None if claimed else row["content_hash"]} for row in rows]
        answer = _post(api, "ack", "articles", articles, reason="by hand")
    _report("acknowledged", md5s, answer, answer.get("acknowledged", 0), as_json=as_json)


def fail(
    md5s: Md5s,
    error: Annotated[str, typer.Option(help="What went wrong; it is stored with the articles.")] = "by hand",
    lease_id: LeaseId = None,
    retry_after: Annotated[
        float | None,
        typer.Option(parser=span(), metavar="SPAN", help="Give them out again then, not in 1, 5, 25, … minutes."),
    ] = None,
    max_failures: Annotated[int, typer.Option(min=1, max=1000, help="An article that failed so often is dead.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Count a failure: the articles are given out again after a pause, or are dead."""
    options = {"error": error, "retry_after_seconds": retry_after, "max_failures": max_failures}
    with open_api() as api:
        answer = _post(api, "fail", "articles", _held(_find(api, md5s), lease_id), **options)
    _report("failed", md5s, answer, len(answer.get("failed", ())), as_json=as_json)


def renew(md5s: Md5s, lease: Lease = 300.0, lease_id: LeaseId = None, as_json: AsJson = False) -> None:
    """Let the leases of claimed articles run from now."""
    with open_api() as api:
        answer = _post(api, "renew", "articles", _held(_find(api, md5s), lease_id), lease_seconds=lease)
    _report("renewed", md5s, answer, len(answer.get("held", ())), as_json=as_json)


def release(md5s: Md5s, lease_id: LeaseId = None, as_json: AsJson = False) -> None:
    """Take claimed articles away from their consumer: they are given out again at once."""
    with open_api() as api:
        answer = _post(api, "release", "articles", _held(_find(api, md5s), lease_id), reason="by hand")
    _report("released", md5s, answer, answer.get("released", 0), as_json=as_json)


def bury(
    md5s: Md5s,
    reason: Annotated[str, typer.Option(help="Why no consumer shall have them.")] = "by hand",
    as_json: AsJson = False,
) -> None:
    """Move pending articles to the dead ones, with a reason: no consumer is given them. `revive` brings them back."""
    with open_api() as api:
        answer = _post(api, "bury", "md5s", [row["md5"] for row in _find(api, md5s)], reason=reason)
    _report("moved to the dead", md5s, answer, answer.get("buried", 0), as_json=as_json)


def revive(
    md5s: Annotated[list[str] | None, typer.Argument(help="Keys of dead articles, or their beginnings.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    as_json: AsJson = False,
) -> None:
    """Make dead articles pending again, with nothing counted against them."""
    if bool(md5s) == everything:
        raise ConfigurationError("say which: keys of dead articles, or --all")
    with open_api() as api:
        if everything:
            answer = api.call("POST", "/api/articles/revive", body={"all": True}).json()
        else:
            answer = _post(api, "revive", "md5s", [row["md5"] for row in _find(api, md5s or [], "/dead")])
    revived = answer.get("revived", 0)
    if as_json:
        print(ascii_json(answer))
    else:
        console.print(f"{revived} revived")
    if md5s and revived < len(set(md5s)):
        raise ConfigurationError(f"{len(set(md5s)) - revived} not: they are not dead, or their feed was removed")


def _find(api: Api, keys: Sequence[str], among: str = "") -> list[dict[str, Any]]:
    """Return the articles of these keys, or beginnings of keys; each once. One that fits none is left out."""
    found = {}
    for key in keys:
        if not PREFIX_CHARACTERS <= len(key) <= KEY_CHARACTERS or not set(key.lower()) <= set("0123456789abcdef"):
            continue
        rows = api.call("GET", f"/api/articles{among}", query={"md5": key, "limit": 3}).json()["items"]
        by_md5 = {row["md5"]: row for row in rows}
        if md5 := the_one(key, sorted(by_md5)):
            found[md5] = by_md5[md5]
    return list(found.values())


def _held(rows: list[dict[str, Any]], lease_id: str | None) -> list[dict[str, Any]]:
    return [{"md5": row["md5"], "lease_id": lease_id} for row in rows]


def _post(api: Api, verb: str, name: str, articles: list[Any], **more: Any) -> dict[str, Any]:
    if not articles:
        return {}
    answer: dict[str, Any] = api.call("POST", f"/api/articles/{verb}", body={name: articles, **more}).json()
    return answer


def _report(done: str, md5s: Sequence[str], answer: dict[str, Any], number: int, *, as_json: bool) -> None:
    missing = len(set(md5s)) - number
    if as_json:
        print(ascii_json(answer))
    else:
        console.print(f"{number} {done}" + f"; {missing} not, see `feedmill pending show MD5`" * (missing > 0))
    if missing > 0:
        raise typer.Exit(1)
