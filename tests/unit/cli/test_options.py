"""Spans of time as people write them, beginnings of ids, ranges of queues, JSON lines of `feedmill up`."""

from __future__ import annotations

import io
import json

import pytest
import typer

from services.admin.dead_letters.ids import match_ids
from services.cli.commands.up import print_json
from services.cli.options import span
from services.cli.output import confirm
from shared.errors import ConfigurationError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("5m", 300), ("2h", 7200), ("1d", 86_400), ("1.5H", 5400), (" .5 ", 0.5), ("0", 0)],
)
def test_a_span_is_read_in_its_unit(text: str, seconds: float) -> None:
    assert span()(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "5x", "-5", "5 m 3 s", "nan", "inf", "1e3", "400d", "٥"])
def test_an_invalid_span_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="5m, 2h or 1d"):
        span()(text)


def test_a_span_has_bounds() -> None:
    with pytest.raises(typer.BadParameter, match="expected 1 to"):
        span(1)("0.5s")


def test_an_id_is_found_by_its_beginning_unless_that_is_ambiguous() -> None:
    found = ["abcd1", "abcd2", "efgh", "efghi", "x"]
    assert match_ids(["abcd1", "x", "efgh"], found) == ["abcd1", "x", "efgh"]  # a whole id is no beginning
    assert match_ids(["efghi", "abcd2"], found) == ["efghi", "abcd2"]
    with pytest.raises(ConfigurationError, match="'abcd' is ambiguous, give more of it: it begins abcd1, abcd2"):
        match_ids(["abcd"], found)
    for unknown in ("abc", "zzzz", ""):
        with pytest.raises(ConfigurationError, match="there is no dead letter"):
            match_ids([unknown], found)


def test_a_line_of_a_process_names_its_instance(capsys: pytest.CaptureFixture[str]) -> None:
    for line in ('{"service": "fetcher", "message": "m"}', "Traceback\x1b", "[" * 100_000, "7"):
        print_json("fetcher-2", line)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["service"], line["instance"]) for line in lines] == [("fetcher", "fetcher-2")] * 4
    assert [line["message"] for line in lines[:2]] == ["m", "Traceback\x1b"]


def test_a_question_that_nobody_can_answer_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    with pytest.raises(ConfigurationError, match="add --yes"):
        confirm("throw it away?")
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    with pytest.raises(typer.Abort):
        confirm("throw it away?")
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    confirm("throw it away?")


def test_a_span_may_be_nothing_or_a_second_at_least() -> None:
    read = span(1, or_zero=True)
    assert (read("0"), read("1"), read("1m")) == (0, 1, 60)
    with pytest.raises(typer.BadParameter, match="expected 0 or 1 to"):
        read("0.5")
