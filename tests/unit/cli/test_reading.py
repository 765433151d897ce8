from __future__ import annotations

import gzip
import json
import random
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from services.admin.feeds.preview import ReadingFailed, as_json, read_bytes
from services.cli.__main__ import app, main
from services.cli.commands.parse import show
from services.cli.output import Times
from shared.errors import ConfigurationError
from shared.wire.outcomes import Outcome
from tests.unit.parse.feeds import atom, rss

FEED = atom(
    '<link rel="hub" href="https://hub.example/"/><link href="https://example.org/"/>'
    "<entry><id>1</id><title>One</title><link href='/1'/><updated>today</updated></entry>"
)


KEYS = (
    "entry_id url title body content_quality published_at updated_at author categories enclosures language md5 "
    "content_hash flags"
)


def read(content: bytes) -> dict[str, Any]:
    return as_json(read_bytes(content, base_url=None, content_type=None))


def test_a_feed_as_json_has_the_keys_that_were_promised() -> None:
    found = read(FEED.encode())
    assert list(found) == ["feed", "format", "tier", "warnings", "entries"]
    assert found["feed"] == {
        "title": "News",
        "site_url": "https://example.org/",
        "language": None,
        "ttl_seconds": None,
        "skip_hours": [],
        "skip_days": [],
        "self_url": None,
        "hubs": ["https://hub.example/"],
        "icon": None,
        "image": None,
        "update_period": None,
        "update_frequency": None,
        "update_base": None,
    }
    assert " ".join(found["entries"][0]) == KEYS


def test_html_is_shown_if_it_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEEDMILL_KEEP_HTML", "true")
    feed = atom("<entry><id>1</id><title>One</title><summary type='html'>&lt;p&gt;a&lt;/p&gt;</summary></entry>")
    assert read(feed.encode())["entries"][0]["html"] == "<p>a</p>"


def test_a_packed_file_is_unpacked() -> None:
    packed = read(gzip.compress(FEED.encode()))
    assert packed["feed"] == read(FEED.encode())["feed"]


def test_an_unreadable_source_is_reported_with_its_reason() -> None:
    for content, outcome in (
        (b"<html>", Outcome.NOT_A_FEED),
        (b"{", Outcome.UNPARSEABLE),
        (gzip.compress(bytes(11_000_000)), Outcome.TOO_LARGE),
        (gzip.compress(FEED.encode())[:-20], Outcome.SOFT_ERROR),
    ):
        with pytest.raises(ReadingFailed) as failed:
            read(content)
        assert failed.value.outcome is outcome


ONE = rss("<item><title>Größe &amp; one</title><link>https://example.org/1</link></item>")
TITLE = "Größe & one"
READ: dict[str, tuple[bytes, str]] = {
    "gzip without a header": (gzip.compress(ONE.encode()), TITLE),
    "marks in the middle": (f"\ufeff{ONE.replace('<item>', chr(0xFEFF) + '<item>')}".encode(), TITLE),
    "two documents": ((ONE + ONE.replace("one", "two")).encode(), TITLE),
    "CDATA in CDATA": (ONE.replace("Größe", "<![CDATA[a <![CDATA[b]]>").encode(), "a b & one"),
    "NULs": (ONE.replace("one", "o\0ne").encode() + bytes(99), TITLE),
    "nested entities": (
        b"<!DOCTYPE rss [<!ENTITY a '&b;&b;'><!ENTITY b 'x'>]>" + ONE.partition("?>")[2].replace("one", "&a;").encode(),
        "Größe & &a;",
    ),
    "a long title": (ONE.replace("one", "x" * 100_000).encode(), "Größe & " + "x" * 1_992),
    "UTF-16 LE without a mark": (ONE.encode("utf-16-le"), TITLE),
    "UTF-16 BE without a mark": (ONE.encode("utf-16-be"), TITLE),
    "UTF-7, which nobody reads any more": (ONE.encode("utf-7"), "Gr+APYA3w-e & one"),
    "EBCDIC": (ONE.replace('"1.0"?', '"1.0" encoding="ibm037"?').encode("cp037"), TITLE),
}
NOT_READ: dict[str, tuple[bytes, Outcome]] = {
    "a page": (b"<!DOCTYPE html><html><body><p>Hello</body></html>", Outcome.NOT_A_FEED),
    "nothing": (b"", Outcome.NOT_A_FEED),
    "zeros": (bytes(10_000), Outcome.NOT_A_FEED),
    "garbage": (bytes(random.Random(7).randbytes(5_000)), Outcome.NOT_A_FEED),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(99), Outcome.NOT_A_FEED),
    "a declaration": (b"<?xml version='1.0'?>", Outcome.NOT_A_FEED),
    "gzip, cut short": (gzip.compress(ONE.encode())[:-9], Outcome.SOFT_ERROR),
    "gzip, cut in its head": (gzip.compress(ONE.encode())[:7], Outcome.SOFT_ERROR),
    "a feed, cut in its only entry": (ONE.partition("</link>")[0].encode(), Outcome.UNPARSEABLE),
}


def run_parse(path: Path) -> tuple[int, dict[str, Any]]:
    result = CliRunner().invoke(app, ["parse", str(path), "--json"])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, json.loads(result.output)


@pytest.mark.parametrize(("content", "title"), READ.values(), ids=READ)
def test_an_odd_file_gives_its_entry(tmp_path: Path, content: bytes, title: str) -> None:
    (tmp_path / "odd").write_bytes(content)
    code, found = run_parse(tmp_path / "odd")
    assert (code, [entry["title"] for entry in found["entries"]]) == (0, [title])


@pytest.mark.parametrize(("content", "outcome"), NOT_READ.values(), ids=NOT_READ)
def test_a_file_that_is_no_feed_gives_a_clear_error(tmp_path: Path, content: bytes, outcome: Outcome) -> None:
    (tmp_path / "odd").write_bytes(content)
    code, found = run_parse(tmp_path / "odd")
    assert (code, found["error"]["outcome"]) == (1, outcome.value)
    assert found["error"]["reason"]


def test_a_file_that_cannot_be_read_is_an_error_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        monkeypatch.setattr("sys.argv", ["feedmill", "parse", str(path)])
        with pytest.raises(SystemExit, match="1"):
            main()
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert str(path) in said
        assert "https://" in said


def test_an_argument_that_is_no_text_is_an_error_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["feedmill", "feeds", "show", "\udcff"])
    monkeypatch.setattr("services.cli.__main__.app", "\udcff".encode)
    with pytest.raises(SystemExit, match="2"):
        main()
    assert capsys.readouterr().err.count("\n") == 1


def test_people_see_the_tier_the_facts_the_flags_and_the_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    show(read_bytes((FEED + "<end>").encode(), base_url=None, content_type=None), Times())
    shown = " ".join(capsys.readouterr().out.split())
    for text in ("lenient tier", "hubs https://hub.example/", "date_guessed", "warning: malformed XML"):
        assert text in shown


def run_enriching(source: Path, *options: str) -> Result:
    result = CliRunner().invoke(app, ["parse", "--enrich", str(source), *options])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def english(tmp_path: Path) -> Path:
    path = tmp_path / "feed.xml"
    title = "The committee could not say when the new bridge over the river will be opened"
    path.write_text(FEED.replace("<title>One</title>", f"<title>{title}</title>"), encoding="utf-8")
    return path


def test_labels_are_shown_only_if_they_are_asked_for(english: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("py3langid")
    monkeypatch.setenv("FEEDMILL_ENRICH", "language")
    (entry,) = json.loads(run_enriching(english, "--json").stdout)["entries"]
    assert (entry["enrichment"]["language"], entry["enrichment"]["entities"]) == ("en", None)
    assert entry["enrichment"]["language_confidence"] > 0.5
    assert "sketch" not in entry["enrichment"]
    assert re.search(r"\ben \(\d+ %\)", run_enriching(english).stdout)
    assert "enrichment" not in CliRunner().invoke(app, ["parse", str(english), "--json"]).stdout


def test_a_part_that_is_not_installed_is_named_and_the_feed_is_read_without(
    english: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEEDMILL_ENRICH", "language")
    monkeypatch.setitem(sys.modules, "py3langid", None)  # what an import of it finds where it is not installed
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    result = run_enriching(english, "--json")
    assert "without language: " in result.stderr
    (entry,) = json.loads(result.stdout)["entries"]
    assert (entry["enrichment"]["language"], entry["enrichment"]["flags"]) == (None, [])


def test_a_part_that_does_not_exist_is_a_wrong_setting(english: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEEDMILL_ENRICH", "language,mood")
    with pytest.raises(ConfigurationError, match="FEEDMILL_ENRICH: no part mood"):
        run_enriching(english)
