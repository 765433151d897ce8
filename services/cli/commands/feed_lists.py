"""The commands `feedmill feeds import` and `feedmill feeds export`: lists of feeds of other programs."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from local.terminal import Interrupted, Terminal, interrupt_on_sigterm
from services.admin.health.diagnosis import in_words
from services.cli.calls.opening import open_api
from services.cli.options import AsJson, OfTag
from services.cli.output import console
from shared.errors import ConfigurationError, Unavailable
from shared.observability.display import ascii_json, safe_to_show

if TYPE_CHECKING:
    import httpx

EXIT_REFUSED = 3
"""Done, but feeds of the list were refused."""

FORMATS = "opml|csv|list"

SHOWN_CHARACTERS = 300
BLOCK_BYTES = 65_536
ALREADY_THERE = "already_there"


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
    interrupt_on_sigterm()
    _check_format(form)
    report = _Report(as_json=as_json, verbose=verbose)
    query = {"format": form, "tag": tag or None, "dry_run": dry_run, "salvage": salvage}
    with _open(file) as source, open_api(create=True) as api, _progress() as progress:
        report.show_progress(progress)
        with _saying_what_is_done(report, file):
            for line in api.lines("POST", "/api/feeds/import", query=query, content=_blocks(source)):
                report.take(line)
    done = report.end()
    if done["refused"]:
        raise typer.Exit(EXIT_REFUSED)


def _check_format(name: str | None) -> None:
    if name is not None and name not in FORMATS.split("|"):
        raise typer.BadParameter(f"{name[:50]!r}: expected {FORMATS}", param_hint="--format")


async def _blocks(source: BinaryIO) -> AsyncIterator[bytes]:
    while block := source.read(BLOCK_BYTES):
        yield block


@contextmanager
def _open(file: str) -> Iterator[BinaryIO]:
    """Yield the file; standard input as a copy, since a call that reads from a terminal can't be interrupted."""
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
def _saying_what_is_done(report: _Report, file: str) -> Iterator[None]:
    """Name the file in an error of the list, or say at an interruption how much is in."""
    try:
        yield
    except ConfigurationError as error:
        raise ConfigurationError(f"{file}: {error}") from None
    except Unavailable as error:
        said = "" if report.has_failed or not report.is_open else f". {report.so_far}"
        raise Unavailable(f"{error}{said}") from error
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
        self.has_failed = False
        self._as_json = as_json
        self._verbose = verbose
        self._opened: dict[str, Any] = {}
        self._done: dict[str, Any] | None = None
        self._added = 0
        self._printed = 0
        self._bar: tuple[Progress, TaskID] | None = None

    @property
    def is_open(self) -> bool:
        """Whether the list could be read."""
        return bool(self._opened)

    @property
    def so_far(self) -> str:
        """What is committed for sure, when something ends the import; a chunk may just be ending."""
        return f"at least {self._added:,} new feeds are in; the same command adds the rest"

    def show_progress(self, progress: Progress) -> None:
        """Show on this bar how far the import is."""
        self._bar = (progress, progress.add_task("", total=None))

    def take(self, line: dict[str, Any]) -> None:
        """Take a line of the answer.

        Raises:
            Unavailable: it is an error, and ends the import.
        """
        for name, value in line.items():
            match name:
                case "opened":
                    self._opened = value
                    self._move(total=value["feeds"])
                    self._warn(value["warnings"])
                case "skipped":
                    self._skip(value)
                case "progress":
                    self._added = value["added"]
                    self._move(completed=value["read"])
                case "done":
                    self._done = value
                case "error":
                    self.has_failed = True
                    raise Unavailable(str(value["detail"]))

    def _move(self, **values: float) -> None:
        if self._bar:
            progress, task = self._bar
            progress.update(task, **values)  # type: ignore[arg-type]

    def _warn(self, flaws: list[dict[str, Any]]) -> None:
        for flaw in flaws:
            again = f" (and {flaw['count'] - 1:,} times more)" if flaw["count"] > 1 else ""
            said = f"warning: line {flaw['line']:,}: {safe_to_show(flaw['text'])}{again}"
            Terminal(stderr=True).print(said, soft_wrap=True, highlight=False)

    def _skip(self, skipped: dict[str, Any]) -> None:
        """Report a line that adds no feed."""
        if self._as_json:
            print(",\n" if self._printed else '{"skipped": [\n', ascii_json(skipped), sep="", end="")
            self._printed += 1
        elif self._verbose or skipped["reason"] != ALREADY_THERE:
            # The URL is last: a secret at its end would be masked up to the next space.
            texts = filter(None, (skipped["detail"], skipped["url"]))
            said = ": ".join(safe_to_show(text, SHOWN_CHARACTERS) for text in texts)
            console.print(f"line {skipped['line']:,}: {said}", soft_wrap=True, highlight=False)

    def end(self) -> dict[str, Any]:
        """Print the summary, and return the counts.

        Raises:
            Unavailable: the answer broke off.
        """
        if self._done is None:
            raise Unavailable(f"the answer broke off. {self.so_far}")
        if self._as_json:
            about = {name: self._opened[name] for name in ("format", "encoding", "warnings")}
            summary = ascii_json(about | self._done)
            print("\n], " if self._printed else '{"skipped": [], ', summary[1:], sep="")
        else:
            console.print(_in_words(self._opened["format"], self._done), soft_wrap=True, highlight=False)
        return self._done


def _in_words(form: str, done: dict[str, Any]) -> str:
    dry_run, tagged, reasons = done["dry_run"], done["tagged"], done["reasons"]
    twice, wait = reasons.get("duplicate", 0), done["first_polls_within_seconds"]
    counts = [
        f"{done['listed']:,} listed ({form})",
        f"{done['added']:,} {'would be ' * dry_run}added",
        f"{reasons.get(ALREADY_THERE, 0):,} there already",
        f"{tagged:,} of them {'would get' if dry_run else 'got'} tags" if tagged else "",
        f"{twice:,} twice in the list" if twice else "",
        f"{done['refused']:,} refused" if done["refused"] else "",
    ]
    last = f"; first polls within {in_words(wait)}" if wait else ""
    return f"{', '.join(filter(None, counts))}{last}"


def export(
    form: Annotated[str, typer.Option("--format", metavar=FORMATS, help="How the list is written.")] = "opml",
    tag: OfTag = None,
) -> None:
    """Print the feeds as a list that other programs read; `import` reads it, too. Tags become folders in OPML."""
    _check_format(form)
    secrets = 0

    def begun(headers: httpx.Headers) -> None:
        nonlocal secrets
        secrets = int(headers.get("feedmill-secret-urls", "0"))

    with open_api() as api:
        for part in api.stream("GET", "/api/feeds/export", query={"format": form, "tag": tag}, begun=begun):
            sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()
    if secrets:
        said = f"warning: the URLs of {secrets:,} feeds hold passwords or tokens, and so does this list"
        Terminal(stderr=True).print(said, soft_wrap=True)
