"""What commands print for people: tables, and moments in a time zone that is named."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import typer
from rich.cells import cell_len, set_cell_size
from rich.text import Text

from local.terminal import Terminal
from shared.errors import ConfigurationError
from shared.observability.display import ascii_json, safe_to_show

console = Terminal()


def confirm(question: str, *, on_stderr: bool = False) -> None:
    """Ask a person; on standard error if standard output is for machines.

    Raises:
        ConfigurationError: nobody answers, because there is no terminal.
        typer.Abort: the answer is no.
    """
    try:
        agreed = typer.confirm(question, err=on_stderr)
    except typer.Abort:
        if sys.stdin.isatty():
            raise
        raise ConfigurationError("nobody answers the question, since this is no terminal: add --yes") from None
    if not agreed:
        raise typer.Abort


GAP = "  "
LEAST_CELLS = 10
"""A column that may be cut keeps at least so many cells."""


@dataclass(frozen=True)
class Column:
    """A column of a table, and how it is shown where the terminal is too narrow."""

    name: str
    of: str | Callable[[Any], object] | None = None
    """The key of its value in a row (None: the name), or a function from the row to its value."""
    flexible: bool = False
    """Its texts may be cut."""
    cut: int | None = None
    """How many characters are shown of an id; commands take its beginning."""
    below: bool = False
    """It stands on a line of its own below the row and is never cut."""
    only_wide: bool = False
    """A terminal shows it only with `--wide`."""
    right: bool = False

    def text(self, row: Any) -> str:
        """Return what the row shows in this column, safe to show; nothing for None."""
        value = self.of(row) if callable(self.of) else row[self.of or self.name]
        return "" if value is None else safe_to_show(value, None)


def print_table(columns: Sequence[Column], rows: Sequence[Any], *, wide: bool = False, note: str = "") -> None:
    """Print a table that fits the terminal. With `wide`, and in a pipe or a file, nothing is cut.

    Args:
        columns: in their order; a terminal shows none without any value.
        rows: the columns take their values from them.
        wide: cut nothing, and give each column a place in the row.
        note: a line below the table.
    """
    texts = [[column.text(row) for column in columns] for row in rows]
    if wide or not console.is_terminal:
        _print_rows(columns, texts, None)
    else:
        used = [
            n for n, column in enumerate(columns) if not column.only_wide and (not rows or any(row[n] for row in texts))
        ]
        _print_rows([columns[n] for n in used], [[row[n] for n in used] for row in texts], console.width)
    if note:
        _print_line(note, style="dim")


def print_json_rows(rows: Iterable[Any]) -> None:
    """Print a JSON list while its rows come. If an error ends them, the list ends with what there was."""
    print("[", end="")
    gap = ""
    try:
        for row in rows:
            print(f"{gap}{ascii_json(row)}", end="")
            gap = ", "
    finally:
        print("]")


def print_facts(facts: Sequence[tuple[str, object]]) -> None:
    """Print names and values, one pair a line; nothing is cut."""
    width = max((cell_len(name) for name, _ in facts), default=0)
    for name, value in facts:
        _print_line(f"{name:<{width}}{GAP}{safe_to_show(value, None)}")


def _print_rows(columns: Sequence[Column], rows: Sequence[Sequence[str]], room: int | None) -> None:
    """Print header and rows. With `room` (cells), ids and flexible columns are cut, others stand below the row."""
    places = [n for n, column in enumerate(columns) if room is None or not column.below]
    below = [n for n in range(len(columns)) if n not in places]
    cut = [columns[n].cut if room is not None else None for n in places]
    cells = [[row[n][:most] for n, most in zip(places, cut, strict=True)] for row in rows]
    shown = [columns[n] for n in places]
    widths = [max(map(cell_len, texts)) for texts in zip([column.name for column in shown], *cells, strict=True)]
    if room is not None:
        widths = _fit(widths, [column.flexible for column in shown], room)
    _print_line(_join([column.name for column in shown], widths, shown), style="bold")
    for row, texts in zip(rows, cells, strict=True):
        _print_line(_join(texts, widths, shown))
        for n in below:
            if row[n]:
                _print_line(f"{GAP * 2}{row[n]}", style="dim")


def _fit(widths: Sequence[int], flexible: Sequence[bool], room: int) -> list[int]:
    """Return widths that fit into `room` if flexible columns can be cut as far as that: the widest first."""
    fitted = list(widths)
    excess = sum(widths) + len(GAP) * (len(widths) - 1) - room
    while excess > 0:
        widest = max((n for n, may in enumerate(flexible) if may), key=lambda n: fitted[n], default=None)
        if widest is None or fitted[widest] <= LEAST_CELLS:
            break
        fitted[widest] -= 1
        excess -= 1
    return fitted


def _join(texts: Sequence[str], widths: Sequence[int], columns: Sequence[Column]) -> str:
    cells = []
    for text, width, column in zip(texts, widths, columns, strict=True):
        fitting = text if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"
        padding = " " * (width - cell_len(fitting))
        cells.append(padding + fitting if column.right else fitting + padding)
    return GAP.join(cells).rstrip()


def _print_line(text: str, style: str = "") -> None:
    console.print(Text(text, style=style), soft_wrap=True, highlight=False)


class Times:
    """Shows moments in the zone of this terminal, or in UTC.

    Args:
        utc: show UTC.
        wide: show date and time, however near the moment is.
    """

    def __init__(self, *, utc: bool = False, wide: bool = False) -> None:
        self._zone = UTC if utc else None
        self._wide = wide or not console.is_terminal
        self._today = self._local(datetime.now(UTC))

    def __call__(self, moment: datetime | None) -> str:
        """Return the moment in its shortest clear form: the time if it is today, day and time if it is this year."""
        if moment is None:
            return ""
        local = self._local(moment)
        if self._wide or local.year != self._today.year:
            return f"{local:%Y-%m-%d %H:%M:%S}"
        return f"{local:%H:%M:%S}" if local.date() == self._today.date() else f"{local:%m-%d %H:%M}"

    def with_zone(self, moment: datetime | None) -> str:
        """Return date, time and zone."""
        return f"{self._local(moment):%Y-%m-%d %H:%M:%S} {self.zone}" if moment else ""

    @property
    def zone(self) -> str:
        """The zone: `UTC`, or `CET (UTC+01:00)`."""
        name, offset = f"{self._today:%Z}", f"{self._today:%z}"
        return name if name == "UTC" else f"{name} (UTC{offset[:3]}:{offset[3:5]})"

    @property
    def note(self) -> str:
        """The line below a table with times."""
        return f"times in {self.zone}"

    def _local(self, moment: datetime) -> datetime:
        return moment.astimezone(self._zone)
