"""Pure: says in sentences how pending articles are drained, and what to do."""

from __future__ import annotations

from collections.abc import Iterator

from services.admin.articles.consumers import MOST_CALLS, MOST_COUNTED, Draining
from services.admin.health.diagnosis import in_words

LAG_SECONDS = 600.0
"""An article may wait for so long before anybody is told."""

LEAST = 20
MOST_FAILED = 0.1
MOST_EXPIRED = 0.02


def describe_draining(at: Draining) -> list[str]:
    """Return what is wrong, each a sentence with what to do. Empty: nothing is."""
    return list(_findings(at))


def counted(number: int) -> str:
    """Return a number that was counted up to `MOST_COUNTED`, and is an estimate above."""
    if number > MOST_COUNTED:
        return f"about {float(f'{number:.1e}'):,.0f}"
    return f"{number:,} or more" if number == MOST_COUNTED else f"{number:,}"


def _findings(at: Draining) -> Iterator[str]:
    claimed, done = at.in_an_hour("claimed"), at.in_an_hour("acknowledged")
    lag = at.lag_seconds or 0.0
    if lag > LAG_SECONDS and not claimed and not at.claimed:
        yield (
            f"nobody drains: the oldest article has waited for {in_words(lag)}, and none was claimed within the last"
            " hour. Start a consumer, or read the error that yours prints"
        )
    elif lag > LAG_SECONDS and done < at.came_in_an_hour and at.new:
        yield (
            f"articles come faster than they are done: {at.came_in_an_hour:,} came within the last hour,"
            f" {done:,} were acknowledged. Start more consumers, or let yours claim more at a time"
        )
    if claimed >= LEAST and at.in_an_hour("failed") > MOST_FAILED * claimed:
        yield (
            f"consumers report failures of {at.in_an_hour('failed'):,} of {claimed:,} articles that were claimed within"
            " the last hour: the articles' `last_error` says why"
        )
    expired = at.in_an_hour("expired") + at.lease_expired
    if expired > max(1.0, MOST_EXPIRED * claimed):
        yield (
            f"leases of {counted(expired)} articles ran out within about an hour: consumers died, or need longer than"
            " their lease. Give them a longer lease or fewer articles at a time, or let them renew it"
        )
    if at.calls >= MOST_CALLS:
        yield (
            f"{at.calls:,} calls or more were not added up, and the figures leave out those beyond: no writer of this"
            " version runs. Start one, or delete them: `TRUNCATE consumer_calls`"
        )
    if at.died_in_an_hour:
        why = f", most with `{at.reasons[0][0]}`" if at.reasons else ""
        articles = "article" if at.died_in_an_hour == 1 else "articles"
        yield f"{counted(at.died_in_an_hour)} {articles} died within the last hour{why}. Repair it, then revive them"
