"""Compares the articles that the farm published with those in `pending_articles`, one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import psycopg

from local.farm.farm import Farm
from local.farm.specs import FeedKind


@dataclass(frozen=True)
class KindCount:
    """The feeds of one kind."""

    kind: str
    feeds: int
    expected: int
    delivered: int
    attempts: int
    outcomes: dict[str, int]


@dataclass(frozen=True)
class Count:
    """The articles that were expected, and those in `pending_articles`."""

    expected: int
    delivered: int
    lost: int
    duplicated: int
    unexpected: int
    feeds: int
    hosts: int
    attempts: int
    elapsed_seconds: float
    kinds: list[KindCount]

    @property
    def perfect(self) -> bool:
        """Whether every expected article is there exactly once, and nothing else."""
        return self.lost == self.duplicated == self.unexpected == 0 and self.delivered == self.expected


_ARTICLES = "SELECT url, title FROM pending_articles WHERE feed_id = ANY(%s)"
_ATTEMPTS = """
SELECT feed_id, outcome, count(*), coalesce(sum(items_new), 0)::integer
FROM feed_fetch_log WHERE feed_id = ANY(%s) GROUP BY 1, 2
"""


def count(farm: Farm, ids: Mapping[str, int], database_url: str, *, elapsed: float) -> Count:
    """Compare the farm's articles with the table, by URL and title."""
    with psycopg.connect(database_url) as connection:
        # One snapshot of both tables: an article written in between would look like a duplicate.
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        feeds = [list(ids.values())]
        rows = Counter(connection.execute(_ARTICLES, feeds).fetchall())
        outcomes: dict[int, Counter[str]] = {id_: Counter() for id_ in ids.values()}
        brought = 0
        for id_, outcome, number, new in connection.execute(_ATTEMPTS, feeds).fetchall():
            outcomes[id_][outcome] = number
            brought += new
    expected = set(farm.expected_articles().items())
    urls = Counter(url for url, _ in rows)
    return Count(
        expected=len(expected),
        delivered=len(expected & rows.keys()),
        lost=len(expected - rows.keys()),
        # Two rows of one URL, and articles that were written twice, which the table's primary key hides.
        duplicated=sum(number - 1 for number in urls.values()) + max(brought - len(rows), 0),
        unexpected=len(rows.keys() - expected),
        feeds=len(farm.specs),
        hosts=len(farm.hosts),
        attempts=sum(counter.total() for counter in outcomes.values()),
        elapsed_seconds=round(elapsed, 1),
        kinds=[_count_kind(farm, kind, ids, rows, outcomes) for kind in FeedKind],
    )


def _count_kind(
    farm: Farm,
    kind: FeedKind,
    ids: Mapping[str, int],
    rows: Mapping[tuple[str, str], int],
    outcomes: Mapping[int, Counter[str]],
) -> KindCount:
    specs = [spec for spec in farm.specs if spec.kind is kind]
    expected = {article for spec in specs for article in farm.expected_of(spec).items()}
    total: Counter[str] = sum((outcomes[ids[spec.name]] for spec in specs), Counter())
    return KindCount(
        kind=kind.value,
        feeds=len(specs),
        expected=len(expected),
        delivered=len(expected & rows.keys()),
        attempts=total.total(),
        outcomes=dict(total.most_common()),
    )
