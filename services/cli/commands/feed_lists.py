"""The commands `feedmill feeds import` and `feedmill feeds export`: lists of feeds of other programs."""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from local import addresses
from local.terminal import Interrupted, Terminal, interrupt_on_sigterm
from services.admin.diagnosis import in_words
from services.admin.registry import connect
from services.admin.tags import clean_tag, merge_tags
from services.cli.options import AsJson, OfTag, connect_here
from services.cli.output import console
from services.cli.settings import CliSettings
from shared.errors import ConfigurationError, DatabaseUnavailable
from shared.observability.display import MOST_CHARACTERS, ascii_json, safe_to_show
from shared.observability.secrets import mask_credentials
from shared.settings import read_settings

if TYPE_CHECKING:
    from services.admin.subscriptions.importing import Imported, Rules
    from services.admin.subscriptions.model import BadList, Flaw, Format
    from services.admin.subscriptions.reading import FeedList
    from services.admin.subscriptions.rules import Skipped

EXIT_REFUSED = 3
"""Done, but feeds of the list were refused."""

FORMATS = "opml|csv|list"

SHOWN_CHARACTERS = 300


def import_(
    file: Annotated[str, typer.Argument(help="The list; - is standard input.", metavar="FILE|-")],
    form: Annotated[
        str | None, typer.Option("--format", metavar=FORMATS, help="How it is written. By default its content tells.")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Give all its feeds this tag, too; repeatable.")] = None,
    salvage: Annotated[
        bool, typer.Option("--salvage", help="Take from a broken file what can be read. Otherwise it is refused.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Name the feeds, too, that are there already.")] = False,
    as_json: AsJson = False,
) -> None:
    """Register the feeds of an OPML file, a CSV, or a list of URLs; folders become tags.

    Nothing is requested now. The first polls are spread over time. A feed that is there keeps all it has, and gets the
    list's tags. Every line that adds no feed is reported. Exit code 3: feeds were refused.
    """
    from services.admin.subscriptions.importing import Import
    from services.admin.subscriptions.model import BadList
    from services.admin.subscriptions.reading import open_list

    interrupt_on_sigterm()
    rules = _read_rules(merge_tags((), map(clean_tag, tag or ())), dry_run=dry_run)
    report = _Report(as_json=as_json, verbose=verbose)
    with _open(file) as source:
        try:
            feeds = open_list(source, _format(form), salvage=salvage)
        except BadList as error:
            raise ConfigurationError(f"{file}: {_explain(error)}") from None
        report.warn(feeds.flaws.in_order)
        with addresses.open_database(read_settings(CliSettings), create=True) as database_url, _progress() as progress:
            task = progress.add_task("", total=feeds.feeds)
            with _saying_what_is_done(report), connect(database_url) as connection:
                connection.commit()
                work = Import(connection, rules, report.skip)
                report.done = work.done
                work.run(feeds.read(), lambda read: progress.update(task, completed=read))
    report.end(feeds, dry_run=dry_run)
    if work.done.refused:
        raise typer.Exit(EXIT_REFUSED)


def _read_rules(tags: list[str], *, dry_run: bool) -> Rules:
    from services.admin.subscriptions.importing import Rules
    from services.fetcher.settings import FetcherSettings

    settings = read_settings(FetcherSettings)
    limits = settings.limits()
    return Rules(
        allowed=settings.allowed(),
        proxy_hosts=settings.proxy_host_set(),
        interval_of=lambda group: limits.policy(group).min_interval_seconds or 0.0,
        tags=tuple(tags),
        dry_run=dry_run,
    )


def _format(name: str | None) -> Format | None:
    from services.admin.subscriptions.model import Format

    if name is not None and name not in list(Format):
        raise typer.BadParameter(f"{name[:50]!r}: expected {FORMATS}", param_hint="--format")
    return None if name is None else Format(name)


def _explain(error: BadList) -> str:
    before = f"{error.feeds_before:,} feed{'s' * (error.feeds_before != 1)} before that"
    remedy = f"; {before}. --salvage takes what can be read" if error.salvageable else ""
    return f"{error}{remedy}; nothing was imported"


@contextmanager
def _open(file: str) -> Iterator[BinaryIO]:
    from services.admin.subscriptions.source import seekable

    try:
        with (
            nullcontext(sys.stdin.buffer) if file == "-" else Path(file).open("rb") as opened,
            seekable(opened) as source,
        ):
            yield source
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise ConfigurationError(f"{file} can't be read: {error.strerror}") from error


@contextmanager
def _saying_what_is_done(report: _Report) -> Iterator[None]:
    """Add to an error, or say at an interruption, how much is in."""
    try:
        yield
    except DatabaseUnavailable as error:
        raise DatabaseUnavailable(f"{error}. {report.so_far}") from error
    except (KeyboardInterrupt, Interrupted):
        Terminal(stderr=True).print(report.so_far)
        raise


def _progress() -> Progress:
    terminal = Terminal(stderr=True)
    columns = (TextColumn("importing"), BarColumn(), MofNCompleteColumn())
    # rich prints lines above the bar itself, but on the bar's terminal: not those that go to a file or a pipe.
    return Progress(
        *columns,
        console=terminal,
        transient=True,
        disable=not terminal.is_terminal,
        redirect_stdout=sys.stdout.isatty(),
        redirect_stderr=False,
    )


class _Report:
    """Prints, as they come, warnings, lines that were skipped, and what was done; all that it keeps is numbers."""

    def __init__(self, *, as_json: bool, verbose: bool) -> None:
        self.done: Imported | None = None
        self._as_json = as_json
        self._verbose = verbose
        self._warnings: list[Flaw] = []
        self._printed = 0

    @property
    def so_far(self) -> str:
        """What was committed, when something ends the import."""
        added = self.done.added if self.done else 0
        return f"{added:,} new feeds are in; the same command adds the rest"

    def warn(self, flaws: list[Flaw]) -> None:
        """Warn of what is wrong with the file."""
        self._warnings = flaws
        for flaw in flaws:
            again = f" (and {flaw.count - 1:,} times more)" if flaw.count > 1 else ""
            said = f"warning: line {flaw.line:,}: {safe_to_show(flaw.text)}{again}"
            Terminal(stderr=True).print(said, soft_wrap=True, highlight=False)

    def skip(self, skipped: Skipped) -> None:
        """Report a line that adds no feed."""
        if self._as_json:
            url = mask_credentials(skipped.url[:MOST_CHARACTERS])
            found = {"line": skipped.line, "reason": skipped.reason, "detail": skipped.detail, "url": url}
            print(",\n" if self._printed else '{"skipped": [\n', ascii_json(found), sep="", end="")
            self._printed += 1
        elif self._verbose or not skipped.reason.is_known:
            # The URL is last: a secret at its end would be masked up to the next space.
            said = ": ".join(safe_to_show(text, SHOWN_CHARACTERS) for text in (skipped.detail, skipped.url) if text)
            console.print(f"line {skipped.line:,}: {said}", soft_wrap=True, highlight=False)

    def end(self, feeds: FeedList, *, dry_run: bool) -> None:
        """Print the summary."""
        assert self.done is not None
        if self._as_json:
            summary = ascii_json(self._summary(feeds, self.done, dry_run=dry_run))
            print("\n], " if self._printed else '{"skipped": [], ', summary[1:], sep="")
        else:
            console.print(_in_words(feeds, self.done, dry_run=dry_run), soft_wrap=True, highlight=False)

    def _summary(self, feeds: FeedList, done: Imported, *, dry_run: bool) -> dict[str, Any]:
        return {
            "format": feeds.format,
            "encoding": feeds.encoding,
            "dry_run": dry_run,
            "listed": done.listed,
            "added": done.added,
            "tagged": done.tagged,
            "refused": done.refused,
            "reasons": dict(done.skipped),
            "first_polls_within_seconds": done.longest_wait_seconds,
            "warnings": [{"line": flaw.line, "text": flaw.text, "count": flaw.count} for flaw in self._warnings],
        }


def _in_words(feeds: FeedList, done: Imported, *, dry_run: bool) -> str:
    from services.admin.subscriptions.rules import Reason

    counts = [
        f"{done.listed:,} listed ({feeds.format})",
        f"{done.added:,} {'would be ' * dry_run}added",
        f"{done.skipped[Reason.ALREADY_THERE]:,} there already",
        f"{done.tagged:,} of them {'would get' if dry_run else 'got'} tags" if done.tagged else "",
        f"{done.skipped[Reason.DUPLICATE]:,} twice in the list" if done.skipped[Reason.DUPLICATE] else "",
        f"{done.refused:,} refused" if done.refused else "",
    ]
    last = f"; first polls within {in_words(done.longest_wait_seconds)}" if done.longest_wait_seconds else ""
    return f"{', '.join(filter(None, counts))}{last}"


def export(
    form: Annotated[str, typer.Option("--format", metavar=FORMATS, help="How the list is written.")] = "opml",
    tag: OfTag = None,
) -> None:
    """Print the feeds as a list that other programs read; `import` reads it, too. Tags become folders in OPML."""
    from services.admin.subscriptions.exporting import export_feeds

    chosen = _format(form)
    assert chosen is not None
    with tempfile.TemporaryFile() as file:  # a transaction must not wait for who reads our output
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        with connect_here() as connection:
            secrets = export_feeds(connection, text, chosen, tag)
        file.seek(0)
        shutil.copyfileobj(file, sys.stdout.buffer)
        text.detach()
    sys.stdout.buffer.flush()
    if secrets:
        said = f"warning: the URLs of {secrets:,} feeds hold passwords or tokens, and so does this list"
        Terminal(stderr=True).print(said, soft_wrap=True)
