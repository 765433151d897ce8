"""An import as a series of facts, to be shown: skipped lines, progress, and the counts at the end."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, BinaryIO

from services.admin.errors import Invalid
from services.admin.registry import connect
from services.admin.subscriptions.importing import Import, Imported, Rules
from services.admin.subscriptions.model import BadList, Format
from services.admin.subscriptions.reading import FeedList, open_list
from services.admin.subscriptions.rules import Skipped
from services.fetcher.settings import FetcherSettings
from shared.observability.display import MOST_CHARACTERS
from shared.observability.secrets import mask_credentials

Fact = dict[str, dict[str, Any]]
"""What happened, by its name: `opened`, `skipped`, `progress`, `done`."""


def make_rules(settings: FetcherSettings, tags: tuple[str, ...], *, dry_run: bool) -> Rules:
    """Return the rules of an import by the fetcher's settings; `tags` are in the form that `clean_tag` returns."""
    return Rules(
        allowed=settings.allowed(),
        proxy_hosts=settings.proxy_host_set(),
        interval_of=settings.limits().interval_of,
        tags=tags,
        dry_run=dry_run,
    )


def open_for_import(file: BinaryIO, form: Format | None, *, salvage: bool) -> FeedList:
    """Return the list in a file, as `open_list` does. Raises Invalid if it can't be read, with what to do."""
    try:
        return open_list(file, form, salvage=salvage)
    except BadList as error:
        before = f"{error.feeds_before:,} feed{'s' * (error.feeds_before != 1)} before that"
        remedy = f"; {before}. --salvage (`salvage=true`) takes what can be read" if error.salvageable else ""
        raise Invalid(f"{error}{remedy}; nothing was imported", f"body.line {error.line}") from None


class RunningImport:
    """One import that goes on as its facts are taken. `done` says at any time what has been committed."""

    def __init__(self, database_url: str, feeds: FeedList, rules: Rules) -> None:
        self.done = Imported()
        self._database_url = database_url
        self._feeds = feeds
        self._rules = rules

    def facts(self) -> Generator[list[Fact], None, None]:
        """Yield what happened, chunk by chunk. Who stops taking ends the import: nothing is open between two chunks.

        Raises:
            DatabaseUnavailable: as `connect`. What was committed before stays.
            ConfigurationError: as `connect`.
        """
        skipped: list[Fact] = []
        with connect(self._database_url) as connection:
            connection.commit()
            work = Import(connection, self._rules, lambda each: skipped.append({"skipped": _shown(each)}))
            self.done = work.done
            yield [{"opened": self._opened()}]
            for read in work.chunks(self._feeds.read()):
                yield [*skipped, {"progress": {"read": read, "added": self.done.added}}]
                skipped.clear()
        yield [{"done": self.counts()}]

    def _opened(self) -> dict[str, Any]:
        flaws = self._feeds.flaws.in_order
        return {
            "format": str(self._feeds.format),
            "encoding": self._feeds.encoding,
            "feeds": self._feeds.feeds,
            "warnings": [{"line": flaw.line, "text": flaw.text, "count": flaw.count} for flaw in flaws],
        }

    def counts(self) -> dict[str, Any]:
        """Return what was done so far, as JSON has it."""
        return {
            "dry_run": self._rules.dry_run,
            "listed": self.done.listed,
            "added": self.done.added,
            "tagged": self.done.tagged,
            "refused": self.done.refused,
            "reasons": {str(reason): count for reason, count in self.done.skipped.items()},
            "first_polls_within_seconds": self.done.longest_wait_seconds,
        }


def _shown(skipped: Skipped) -> dict[str, Any]:
    url = mask_credentials(skipped.url[:MOST_CHARACTERS])
    return {"line": skipped.line, "reason": str(skipped.reason), "detail": mask_credentials(skipped.detail), "url": url}
