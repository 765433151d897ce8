"""Pure: what is wrong with RabbitMQ, PostgreSQL, the clocks, and those who take articles."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from services.admin.health.alarms.advice import Finding
from services.admin.health.diagnosis import counted, in_words
from services.admin.health.pipeline.picture import Picture
from services.admin.health.pipeline.status import Status

CLOCK_SECONDS = 5.0
"""A clock that is off by less is right."""

PENDING_SECONDS = 90_000.0
"""Whoever drains once a day is not to be told off (the alert FeedmillConsumersBehind)."""


_ROOM = {"memory": "give it more memory", "disk": "make room on its disk"}
"""What to do for the broker, by what it is low on."""


def find_at_broker(at: Picture) -> Iterator[Finding]:
    """Yield what keeps services from working with the broker."""
    if at.broker.trouble:
        yield Finding(Status.DOWN, "broker_away", f"RabbitMQ can't be asked: {at.broker.trouble}", at.broker.since)
    elif at.broker_alarm:
        said = f"RabbitMQ takes no messages: it is {at.broker_alarm}"
        what = next((what for kind, what in _ROOM.items() if kind in at.broker_alarm), None)
        action = f"{what}. Don't purge work queues" if what else None
        yield Finding(Status.DOWN, "broker_alarm", said, action=action)


def find_at_database(at: Picture) -> Iterator[Finding]:
    """Yield what keeps services from working with the database."""
    if at.database.trouble:
        said = f"PostgreSQL can't be asked: {at.database.trouble}"
        yield Finding(Status.DOWN, "database_away", said, at.database.since)
    if at.state is None:
        return
    state = at.state
    if state.schema < state.needs_schema:
        said = "the tables are missing" if not state.schema else f"the tables are those of migration {state.schema}"
        yield Finding(Status.DOWN, "tables_missing", f"{said}; this version needs migration {state.needs_schema}")
    elif at.figures_trouble:
        yield Finding(Status.DEGRADED, "database_slow", f"PostgreSQL answers, but not in time: {at.figures_trouble}")
    if state.is_full:
        yield Finding(Status.DOWN, "database_full", "the disk of PostgreSQL is full: nothing can be written")
    if state.is_read_only:
        why = "it is a standby, which follows another server" if state.is_standby else "it takes no changes"
        yield Finding(Status.DOWN, "database_read_only", f"PostgreSQL is read-only: {why}")


def find_around(at: Picture) -> Iterator[Finding]:
    """Yield what is wrong with clocks and consumers: no stage is at fault."""
    if at.state and abs(at.state.ahead_seconds) >= CLOCK_SECONDS:
        ahead = round(at.state.ahead_seconds)
        said = (
            f"the clock of {at.machine} is {in_words(abs(ahead))} {'ahead of' if ahead > 0 else 'behind'} PostgreSQL's"
        )
        yield Finding(Status.DEGRADED, "clock_off", said)
    if at.state and at.state.log_ahead_seconds >= CLOCK_SECONDS:
        said = (
            f"PostgreSQL's clock went back by {in_words(round(at.state.log_ahead_seconds))} or more: the newest attempt"
        )
        yield Finding(Status.DEGRADED, "database_clock_back", f"{said} was written by a time that is still to come")
    if at.waiting and at.waiting.longest_seconds > PENDING_SECONDS:
        seconds, number = at.waiting.longest_seconds, at.waiting.articles
        many = (
            counted(number, "article waits", "articles wait") if number else "articles wait"
        )  # after a crash the statistics know of none
        said = f"{many} for a consumer, the oldest for {in_words(seconds)}: does anybody take them?"
        yield Finding(Status.DEGRADED, "nobody_drains", said, at.now - timedelta(seconds=seconds))
