"""Text of strangers is shown as letters: none of it acts on a terminal, a log or a reader."""

from __future__ import annotations

import io
import json
import logging
import sys
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table

from local.terminal import LogPrinter, Terminal
from services.fetcher.parse.text.links import absolute
from shared.observability.display import ascii_json, readable_json, safe_to_show
from shared.observability.logs import JsonFormatter, TextFormatter
from shared.politeness import BadUrl, clean_url

ACTING = [
    *map(chr, (*range(0x20), *range(0x7F, 0xA0))),
    *"\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c",
    *"\u200b\u200c\u200d\u2060\ufeff\u00ad\u034f\u3164\u115f\uffa0\u180e\U000e0041\U000e0101\ud800\udfff",
]


def hostile(act: str) -> str:
    return f"a{act}b [red]c[/red] :smile: http://me:secret@h.example/"


@pytest.mark.parametrize("act", ACTING, ids=lambda act: f"{ord(act):x}")
def test_no_character_acts(act: str) -> None:
    shown = safe_to_show(hostile(act))
    assert act not in shown
    assert shown.isprintable()
    assert json.loads(f'"{shown}"') == hostile(act).replace("me:secret", "***")


def test_letters_of_all_languages_stay_as_they_are() -> None:
    for text in ("Ünïcödé – “quoted”", "日本語のタイトル", "عنوان", "देवनागरी", "❤️ 🎉", "C:\\n"):
        assert safe_to_show(text) == text


def test_joiners_stay_where_they_shape_what_is_seen() -> None:
    for text in ("👨\u200d👩\u200d👧", "❤️\u200d🔥", "می\u200cشود", "क्\u200dष"):
        assert safe_to_show(text) == text
    for text, shown in (
        ("é\u200da", "é\\u200da"),
        ("\u200d👩", "\\u200d👩"),
        ("👩\u200d\u200d👧", "👩\\u200d\\u200d👧"),
        ("ک\u200c\u202eک", "ک\\u200c\\u202eک"),
    ):
        assert safe_to_show(text) == shown


def test_a_long_text_is_cut_and_lines_stay_where_they_are_meant() -> None:
    assert safe_to_show("x" * 3000) == "x" * 2000 + "… (1000 more characters)"
    assert safe_to_show("a\n\x1bb\r\n", lines=True) == "a\n\\u001bb\\r\n"


@given(st.recursive(st.text() | st.none(), lambda items: st.lists(items) | st.dictionaries(st.text(), items)))
def test_json_is_faithful_and_harmless(value: Any) -> None:
    for text in (ascii_json(value), readable_json(value)):
        assert json.loads(text) == value
        assert text.replace("\n", "").isprintable()
    assert ascii_json(value).isascii()


def record(text: str, **fields: object) -> logging.LogRecord:
    made = logging.LogRecord("room", logging.WARNING, "", 0, "polled %s", (text,), None)
    vars(made).update(fields)
    return made


@pytest.mark.parametrize("act", ACTING, ids=lambda act: f"{ord(act):x}")
def test_no_log_line_acts(act: str) -> None:
    try:
        raise ValueError(f"x\n2026-01-01 00:00:00.000 INFO    forged {act}")
    except ValueError:
        made = record(hostile(act), error=hostile(act), **{f"k{act}": act})
        made.exc_info = sys.exc_info()
    line = JsonFormatter("fetcher").format(made)
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line)["error"] == hostile(act).replace("me:secret", "***")
    text = TextFormatter().format(made)
    assert text.replace("\n", "").isprintable()
    assert not any(line.startswith("2026-01-01") for line in text.splitlines())
    assert sum("forged" in line for line in text.splitlines()) == 2  # the line of the source, and the error's own
    assert "secret" not in line + text


def test_a_field_of_a_log_line_is_masked_by_its_name() -> None:
    made = record("x", token="hunter2", config={"password": "hunter2"}, note="auth=hunter2")
    assert "hunter2" not in JsonFormatter("fetcher").format(made) + TextFormatter().format(made)


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("COLUMNS", "300")
    made = Terminal()
    made.file = io.StringIO()
    return made


def said(screen: Terminal) -> str:
    assert isinstance(screen.file, io.StringIO)
    return screen.file.getvalue()


@pytest.mark.parametrize("act", [act for act in ACTING if act != "\n"], ids=lambda act: f"{ord(act):x}")
def test_nothing_acts_on_the_screen_wherever_it_is_printed(screen: Terminal, act: str) -> None:
    table = Table(hostile(act), title=hostile(act), caption=hostile(act))
    table.add_row(hostile(act))
    screen.print(hostile(act), table)
    view = LogPrinter(screen)
    line = {"at": hostile(act), "level": act, "message": hostile(act), "f": hostile(act), "traceback": hostile(act)}
    view.show("fetcher", json.dumps(line))
    view.show("fetcher", f"no JSON {hostile(act)}")
    shown = said(screen)
    assert shown.replace("\n", "").isprintable()
    assert shown.count("[red]c[/red] :smile:") >= 7
    assert "secret" not in shown


def test_no_line_of_a_service_forges_another(screen: Terminal) -> None:
    forged = "x\nwriter     00:00:00.000 forged"
    record = {"at": "", "level": "info", "message": forged, "f": forged, "traceback": forged}
    LogPrinter(screen).show("fetcher", json.dumps(record))
    assert [line for line in said(screen).splitlines() if line.startswith("writer")] == []


@pytest.mark.parametrize("act", ACTING[-30:], ids=lambda act: f"{ord(act):x}")
def test_no_feeds_url_holds_what_is_not_seen(act: str) -> None:
    if (
        act not in "\u034f\u3164\u115f\uffa0\U000e0101"
    ):  # letters and marks to Unicode, and escaped where they are shown
        with pytest.raises(BadUrl, match="control character"):
            clean_url(f"http://h.example/a{act}b")


@pytest.mark.parametrize("act", [*map(chr, range(0x80, 0xA0)), *"\u202e\u2066\u200f\u061c\u200b\ufeff\u2028"])
def test_no_link_of_an_article_acts(act: str) -> None:
    for href in (f"http://h.example/a{act}b", f"/a{act}b", f"http://h.example/?q={act}#{act}"):
        link = absolute(href, "http://h.example/")
        assert link.startswith("http://h.example/")
        assert link.isascii()


def test_moments_are_those_of_the_api() -> None:
    moment = datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert ascii_json([moment, moment.astimezone(timezone(timedelta(hours=1)))]) == (
        '["2026-01-01T12:00:00Z", "2026-01-01T13:00:00+01:00"]'
    )
