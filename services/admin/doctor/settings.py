"""Checks the settings of this environment: some can not be read, nobody reads others, some contradict each other."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping

from services.admin.doctor.findings import Finding, error, warning, well
from services.enricher.settings import EnrichSettings
from services.fetcher.settings import FetcherSettings
from services.scheduler.settings import SchedulerSettings
from services.writer.settings import WriterSettings
from shared.errors import ConfigurationError
from shared.settings import SECRETS, FeedmillSettings, read_settings

PREFIX = "FEEDMILL_"

OTHERS = frozenset({SECRETS, "FEEDMILL_TAG", "FEEDMILL_IMAGE", "FEEDMILL_REVISION"})
"""Variables of deployments, which no service reads as a setting."""

JOBS_PER_SHARD = 4

PAGE = "docs/reference/configuration.md"


def check_settings(environment: Mapping[str, str], classes: Collection[type[FeedmillSettings]]) -> Iterator[Finding]:
    """Yield what is wrong with the settings of this environment.

    Args:
        environment: all variables.
        classes: the settings of everything that runs.
    """
    reasons = find_unreadable(classes)
    for reason in reasons:
        yield error("settings", reason, f"correct it; {PAGE} lists all settings")
    known = {f"{PREFIX}{name.upper()}" for cls in classes for name in cls.model_fields} | OTHERS
    unknown = [
        warning("settings", f"nobody reads {name}", _advice(name, known))
        for name in sorted(environment)
        if name.startswith(PREFIX) and name.upper() not in known
    ]
    yield from unknown
    if reasons:
        return
    wrong = list(
        contradictions(read_settings(SchedulerSettings), read_settings(FetcherSettings), read_settings(WriterSettings))
    )
    yield from wrong
    if not wrong and not unknown:
        number = sum(name.upper() in known for name in environment if name.startswith(PREFIX))
        yield well("settings", f"{number} variables are set, and all of them fit")


def check_parts(settings: EnrichSettings, *, is_here: bool) -> Iterator[Finding]:
    """Yield what the enricher can't do here; nothing if it is switched off.

    Args:
        settings: the enricher's.
        is_here: whether it runs in this environment, as with `feedmill up`. Else it may have packages of its own.
    """
    if not settings.enricher and (not is_here or "enricher" in settings.model_fields_set):
        return
    try:
        missing = settings.parts().missing
    except ConfigurationError as wrong:
        yield error("enricher", str(wrong), f"correct it; {PAGE} lists all settings")
        return
    for name, said in missing.items() if is_here else ():
        yield warning(
            "enricher", f"articles come without {name}: {said}", "install it, or take it out of FEEDMILL_ENRICH"
        )
    if not missing or not is_here:
        yield well("enricher", f"it looks for {settings.enrich}")


def find_unreadable(classes: Collection[type[FeedmillSettings]]) -> list[str]:
    """Return why settings can't be read, each variable once."""
    reasons: dict[str, None] = {}
    for cls in classes:
        try:
            read_settings(cls)
        except ConfigurationError as wrong:
            reasons |= dict.fromkeys(str(wrong).removesuffix(f". See {PAGE}").split("; "))
    return list(reasons)


def _advice(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name.upper(), known, n=1, cutoff=0.75)
    return f"do you mean {near[0]}?" if near else f"remove it, or look for its name in {PAGE}"


def contradictions(scheduler: SchedulerSettings, fetcher: FetcherSettings, writer: WriterSettings) -> Iterator[Finding]:
    """Yield settings that are fine each, and not together."""
    fetch = max(fetcher.fetch_deadline_seconds, fetcher.parse_seconds)
    if scheduler.claim_seconds <= fetch:
        yield error(
            "settings",
            f"FEEDMILL_CLAIM_SECONDS ({scheduler.claim_seconds:g}) is over before a fetch may be"
            f" (FEEDMILL_FETCH_DEADLINE_SECONDS {fetcher.fetch_deadline_seconds:g}): feeds would be fetched twice",
            "raise FEEDMILL_CLAIM_SECONDS to several minutes",
        )
    elif scheduler.claim_seconds <= fetch + fetcher.fast_delay_seconds:
        yield warning(
            "settings",
            f"FEEDMILL_CLAIM_SECONDS ({scheduler.claim_seconds:g}) leaves a job no time to wait for its host"
            f" (FEEDMILL_FAST_DELAY_SECONDS {fetcher.fast_delay_seconds:g}): feeds may be fetched twice",
            "raise FEEDMILL_CLAIM_SECONDS to several minutes",
        )
    if fetcher.fetcher_prefetch < JOBS_PER_SHARD * fetcher.fetcher_shards:
        yield warning(
            "settings",
            f"FEEDMILL_FETCHER_PREFETCH ({fetcher.fetcher_prefetch}) is less than {JOBS_PER_SHARD} for each of"
            f" {fetcher.fetcher_shards} shards (FEEDMILL_FETCHER_SHARDS): a single fetcher holds more all the same",
            f"set FEEDMILL_FETCHER_PREFETCH to {JOBS_PER_SHARD * fetcher.fetcher_shards} or more",
        )
    if fetcher.fetcher_prefetch < fetcher.fetch_threads:
        yield warning(
            "settings",
            f"FEEDMILL_FETCHER_PREFETCH ({fetcher.fetcher_prefetch}) is less than FEEDMILL_FETCH_THREADS"
            f" ({fetcher.fetch_threads}): some threads never have work",
            "raise the one, or lower the other",
        )
    if writer.min_poll_seconds > writer.max_poll_seconds:
        yield error(
            "settings",
            f"FEEDMILL_MIN_POLL_SECONDS ({writer.min_poll_seconds:g}) is more than FEEDMILL_MAX_POLL_SECONDS"
            f" ({writer.max_poll_seconds:g})",
            "swap them",
        )
