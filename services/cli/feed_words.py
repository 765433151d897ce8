"""A feed's state in words, for people."""

from __future__ import annotations

from calendar import day_name
from datetime import UTC, datetime
from typing import Any

from services.admin.health import freshness_words
from services.admin.health.diagnosis import in_words
from services.cli.output import Times
from shared.wire.outcomes import words_of


def retry(row: dict[str, Any], at: str) -> str:
    """Return which retry a feed waits for, and when it is made."""
    what = f"retry {row['retry']} of {row['retries']}" if row["retry"] else "deferred"
    if row["retry_at"] < datetime.now(UTC):
        return f"{what}, due since {at}"
    return f"{what} at {at}" if row["retry"] else f"{what} until {at}"


def last(row: dict[str, Any], *, with_words: bool = False) -> str:
    """Return a feed's last outcome, and how often in a row it failed."""
    if not row["last_outcome"]:
        return "never polled"
    count = f" ({row['failures']} in a row)" if row["failures"] else ""
    details = (words_of(row["last_outcome"]) if with_words else "", row["last_error"])
    return ": ".join([f"{row['last_outcome']}{count}", *filter(None, details)])


def health(row: dict[str, Any], times: Times) -> str:
    """Return how a feed is, since or until when."""
    if row["until"]:
        return f"{row['text']} until {times(row['until'])}"
    if row["word"] == "failing" and row["since"]:
        return f"{row['text']} since {times(row['since'])}"
    return str(row["text"])


def polling(row: dict[str, Any], times: Times) -> str:
    """Return what becomes of a feed that was to be polled now: what follows `feed 7`."""
    group, until = row["politeness_group"], times.with_zone(row["until"])
    if row["polling"] == "due":
        return "is due now"
    if row["polling"] == "in_flight":
        return f"is {in_flight(row, times)}: it is being fetched"
    if row["polling"] == "throttled":
        return f"waits: {group} asked to be left alone until {until}"
    planned = retry(row, times.with_zone(row["retry_at"]))
    if row["polling"] == "retried":
        return f"is fetched now; planned was {planned}"
    if row["polling"] == "unreachable":
        said = f"{group} could not be connected to, and fetchers leave it alone until {until} at least"
        return f"waits, {planned}: {said}"
    said = f"its job is not in the retry queue, so a fetcher has it; else the feed is due again at {until}"
    return f"waits, {planned}: {said}"


def facts(row: dict[str, Any], times: Times) -> list[tuple[str, str]]:
    """Return what a person wants to know of a feed, in words; what has no value is left out."""
    from shared.wire.jobs import DEFAULT_SOURCE_TYPE

    said = [
        ("feed", row["url"]),
        ("id", str(row["id"])),
        ("name", row["name"]),
        ("tags", ", ".join(row["tags"])),
        ("health", health(row["health"], times)),
        ("  because", row["health"]["reason"]),
        ("  what to do", row["health"]["advice"]),
        ("  new URL", row["health"]["url"]),
        ("polled", "yes" if row["enabled"] else f"no: {row['disabled_reason'] or 'disabled'}"),
        ("next poll", times.with_zone(row["next_fetch_at"]) if row["enabled"] and not is_claimed(row) else None),
        ("failing", retry(row, times.with_zone(row["retry_at"])) if row["retry_at"] else "yes" * row["failing"]),
        ("pace", _pace(row)),
        ("in flight", in_flight(row, times)),
        ("host throttled until", times.with_zone(row["throttled_until"])),
        ("last outcome", last(row, with_words=True)),
        ("last success", _ago(row["seconds_since_success"])),
        ("last new items", _ago(row["seconds_since_news"])),
        ("this week", _week(row)),
        ("freshness", _freshness(row)),
        ("dates", _date_order(row)),
        ("304 untrue since", times.with_zone(row["lying_since"])),
        ("host", row["politeness_group"]),
        ("source type", row["source_type"] if row["source_type"] != DEFAULT_SOURCE_TYPE else None),
        ("own settings", ", ".join(row["config"])),
    ]
    return [(name, value) for name, value in said if value]


def _date_order(row: dict[str, Any]) -> str | None:
    order = row["date_order"] or row["date_order_seen"]
    return order and f"03/04/2026 has the {order} first, as {'set' if row['date_order'] else 'its dates prove'}"


def _pace(row: dict[str, Any]) -> str:
    said = []
    if row["interval_seconds"]:
        said.append(f"every {in_words(row['interval_seconds'])}, as set")
    elif row["poll_seconds"]:
        said.append(f"adaptive, now about every {in_words(row['poll_seconds'])}")
    if row["items_per_day"] is not None:
        said.append(f"{row['items_per_day']:.3g} articles a day")
    bounds = [f"{name} {in_words(row[key])}" for name, key in _BOUNDS.items() if row[key]]
    if row["skip_hours"]:
        bounds.append(f"not in the hours {', '.join(map(str, row['skip_hours']))} (UTC)")
    if row["skip_days"]:
        bounds.append(f"not on {', '.join(day_name[day] for day in row['skip_days'])}")
    return "; ".join([*said, *bounds])


_BOUNDS = {"at least": "shortest_seconds", "at most": "longest_seconds", "the feed asks for": "ttl_seconds"}


def is_claimed(row: dict[str, Any]) -> bool:
    """Return whether a job of the feed is under way."""
    return row["claim_expires_at"] is not None and row["claim_expires_at"] > datetime.now(UTC)


def in_flight(row: dict[str, Any], times: Times) -> str | None:
    """Return since when and until when a job of the feed is under way; None if none is, or it waits for its retry."""
    if not is_claimed(row) or row["retry_at"]:
        return None
    since = f"issued {times.with_zone(row['issued_at'])}, " if row["issued_at"] else ""
    return f"{since}claimed until {times.with_zone(row['claim_expires_at'])}"


def _week(row: dict[str, Any]) -> str | None:
    if not row["attempts"]:
        return None
    seconds = "" if row["mean_seconds"] is None else f", {row['mean_seconds']:.2f} s each"
    return f"{row['attempts']} attempts, {100 * row['success_rate']:.0f} % good{seconds}"


def _freshness(row: dict[str, Any]) -> str:
    week = row["freshness"] and row["freshness"].week
    return f"this week {said}" if week and (said := freshness_words.in_words(week)) else ""


def _ago(seconds: float | None) -> str | None:
    return None if seconds is None else f"{in_words(max(seconds, 0.0))} ago"
