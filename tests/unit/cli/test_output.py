"""Tables and times, as a person sees them at a terminal, and as a program gets them in a pipe."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.cells import cell_len

from local.terminal import Terminal
from services.cli import output
from services.cli.commands.dead import show_letters
from services.cli.output import Column, Times, print_facts, print_table

Shown = Callable[[], str]

COLUMNS = (
    Column("created"),
    Column("title", flexible=True),
    Column("error", flexible=True),
    Column("md5", cut=8),
    Column("note", only_wide=True),
    Column("url", below=True),
)
MD5 = "0123456789abcdef" * 2
URL = "http://news.example/" + "long/" * 30
ROW = dict(
    zip(
        ("created", "title", "error", "md5", "note", "url"),
        ("15:03:21", "A title of some length that tells " * 4, "why " * 10, MD5, "more", URL),
        strict=True,
    )
)


@pytest.fixture
def at_terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shown]:
    yield from screen(monkeypatch, is_terminal=True)


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shown]:
    yield from screen(monkeypatch, is_terminal=False)


def screen(monkeypatch: pytest.MonkeyPatch, *, is_terminal: bool) -> Iterator[Shown]:
    file = io.StringIO()
    console = Terminal()
    console.file = file
    console._width, console._force_terminal, console._color_system = 80, is_terminal, None
    monkeypatch.setattr(output, "console", console)
    yield file.getvalue


def test_at_80_columns_each_row_fits_and_its_id_is_cut(at_terminal: Shown) -> None:
    print_table(COLUMNS, [ROW, ROW | {"title": "短い題名" * 20, "error": "", "url": None}], note="2 shown")
    header, row, below, other, note = at_terminal().splitlines()
    assert header.split() == ["created", "title", "error", "md5"]
    assert "A title of some length" in row
    assert "… " in row
    assert row.endswith(MD5[:8])
    assert below.strip() == URL
    assert max(map(cell_len, (header, row, other, note))) <= 80
    assert note == "2 shown"


def test_a_column_that_nobody_has_a_value_for_is_left_out_at_a_terminal(at_terminal: Shown) -> None:
    print_table(COLUMNS, [ROW | {"error": None}])
    assert "error" not in at_terminal()


def test_nothing_is_cut_in_a_pipe(piped: Shown) -> None:
    print_table(COLUMNS, [ROW])
    header, row = piped().splitlines()
    assert header.split() == ["created", "title", "error", "md5", "note", "url"]
    assert all(value.strip() in row for value in ROW.values())


def test_nothing_is_cut_with_wide(at_terminal: Shown) -> None:
    print_table(COLUMNS, [ROW], wide=True)
    assert all(value.strip() in at_terminal().splitlines()[1] for value in ROW.values())


def test_what_strangers_wrote_stays_on_its_line_and_does_nothing(at_terminal: Shown) -> None:
    print_table(
        [Column("title"), Column("url", below=True)],
        [{"title": "a\x1b[2J\nb [/b] :smile:", "url": "http://me:secret@h/\x07"}],
    )
    print_facts([("title", "c\x1b[2J\nd")])
    assert r"a\u001b[2J\nb [/b] :smile:" in at_terminal()
    assert r"c\u001b[2J\nd" in at_terminal()
    assert not {"\x1b", "\x07"} & set(at_terminal())
    assert "secret" not in at_terminal()


def letter(id_: str) -> dict[str, Any]:
    return {
        "message_id": id_,
        "queue": "writer.dead",
        "reason": "too_large",
        "error": "why",
        "died_at": "2026-11-22T10:00:00Z",
        "feed_id": 7,
    }


def test_dead_letters_with_ids_and_times_of_strangers_stay_a_table(at_terminal: Shown) -> None:
    rows = [letter("\x1b[2J" * 50), letter("a" * 32), letter("b") | {"died_at": "never\x1b"}]
    show_letters(rows, Times(utc=True), wide=False, note="3 dead letters")
    for text in ("why", "too_large", "aaaaaaaa", "writer.dead", "never"):
        assert text in at_terminal()
    assert "\x1b" not in at_terminal()
    assert max(map(len, at_terminal().splitlines())) <= 80


def test_a_moment_is_shown_in_the_terminals_zone_and_the_zone_is_named(
    at_terminal: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "XYZ-05:30")
    time.tzset()
    try:
        now = datetime.now(UTC)
        here, there = Times(), Times(utc=True)
        assert here.zone == "XYZ (UTC+05:30)"
        assert there.note == "times in UTC"
        assert here(now) == f"{now + timedelta(hours=5.5):%H:%M:%S}"
        assert there(now) == f"{now:%H:%M:%S}"
        assert here(datetime(2020, 1, 2, 23, tzinfo=UTC)) == "2020-01-03 04:30:00"
        assert here.with_zone(datetime(2020, 1, 2, tzinfo=UTC)) == "2020-01-02 05:30:00 XYZ (UTC+05:30)"
        assert len(there(now - timedelta(days=1))) in {len("11-21 15:03"), len("2025-12-31 15:03:21")}
        assert (here(None), here.with_zone(None)) == ("", "")
    finally:
        monkeypatch.undo()
        time.tzset()


def test_in_a_pipe_a_moment_has_its_date(piped: Shown) -> None:
    now = datetime.now(UTC)
    assert Times(utc=True)(now) == f"{now:%Y-%m-%d %H:%M:%S}"
