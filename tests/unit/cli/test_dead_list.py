"""`feedmill dead list` stays a table to be read, whatever strangers put into a queue."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from services.cli.commands.dead import make_table


def shown(rows: list[dict[str, Any]], most: int) -> str:
    console = Console(file=io.StringIO(), width=80)
    console.print(make_table(rows, most))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def letter(id_: str) -> dict[str, Any]:
    return {"message_id": id_, "queue": "writer.dead", "reason": "too_large", "error": "why", "died_at": "2026"}


def test_a_long_id_takes_no_other_column_away() -> None:
    said = shown([letter("\x1b[2J" * 50), letter("a" * 32)], 100)
    for text in ("why", "2026", "a" * 32):
        assert text in said
    assert "\x1b[2J" not in said


def test_a_list_that_is_cut_says_so() -> None:
    assert "2 dead letters, the oldest 2 of a queue" in " ".join(shown([letter("a"), letter("b")], 2).split())
    assert "--most" not in shown([letter("a"), letter("b")], 3)
