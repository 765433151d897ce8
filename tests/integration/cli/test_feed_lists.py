"""`feedmill feeds import` and `feedmill feeds export`, and tags."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from typer.testing import CliRunner, Result

from services.admin.feeds.tags import MAX_TAGS
from services.admin.registry import NewFeed, add_feed, connect
from services.cli.__main__ import app
from shared.errors import ConfigurationError
from tests.unit.subscriptions.lists import opml, outline

Run = Callable[..., Result]

LIST = opml(
    '<outline text="Tech">',
    outline("https://a.example/feed", "A &nbsp;"),
    "</outline>",
    outline("http://me:hunter2@b.example/feed?token=hunter2", "B"),
    outline("http://10.0.0.1/feed", "Private"),
    '<outline text="Gone" type="rss"/>',
    outline("HTTPS://A.example/feed#x", "Again"),
)


@pytest.fixture
def feeds(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("FEEDMILL_DATABASE_URL", database_url)
    monkeypatch.setenv("FEEDMILL_AMQP_URL", "amqp://127.0.0.1:1/")

    def run(*arguments: str, typed: str | bytes = "") -> Result:
        result = CliRunner().invoke(app, ["feeds", *arguments], input=typed)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


def test_an_import_reports_every_line_that_it_skips(feeds: Run) -> None:
    result = feeds("import", "-", typed=LIST)
    assert result.exit_code == 3
    assert result.stdout.splitlines() == [
        "line 7: 10.0.0.1 is not a public address; if feeds are meant to be fetched from there, name its network in"
        " FEEDMILL_ALLOW_NETWORKS: http://10.0.0.1/feed",
        "line 8: no URL: Gone",
        "line 9: the feed of line 4 again: HTTPS://A.example/feed#x",
        "5 listed (opml), 2 added, 0 there already, 1 twice in the list, 2 refused",
    ]
    assert result.stderr == "warning: line 4: &nbsp; is not defined in XML: read as in HTML\n"
    again = feeds("import", "-", "--verbose", typed=LIST).stdout
    assert "line 6: there already as feed" in again
    assert ": http://***@b.example/feed?token=***\n" in again
    assert "0 added, 2 there already" in again
    assert "hunter2" not in again


def test_progress_is_shown_at_a_terminal_and_the_report_goes_where_it_is_sent(
    database_url: str, tmp_path: Path
) -> None:
    file = tmp_path / "feeds.opml"
    file.write_text(LIST)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "services.cli", "feeds", "import", str(file)]
    environment = os.environ | {"FEEDMILL_DATABASE_URL": database_url, "TERM": "xterm"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=environment) as process:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # the end of a terminal
            while data := os.read(ours, 10_000):
                shown += data
        report = process.communicate()[0].decode()
    os.close(ours)
    assert b"importing" in shown
    assert b"5/5" in shown
    assert report.splitlines()[0].startswith("line 7: 10.0.0.1 is not a public address")
    assert report.splitlines()[-1].startswith("5 listed")


def test_an_import_in_json_is_one_object(feeds: Run) -> None:
    for typed, code, reasons in ((LIST, 3, {"refused_address": 1, "no_url": 1, "duplicate": 1}), (CLEAN, 0, {})):
        result = feeds("import", "-", "--json", "--dry-run", typed=typed)
        found = json.loads(result.stdout)
        assert (result.exit_code, found["reasons"], found["dry_run"]) == (code, reasons, True)
        assert len(found["skipped"]) == sum(reasons.values())
    found = json.loads(feeds("import", "-", "--json", typed=LIST).stdout)
    assert (found["listed"], found["added"], found["refused"], found["format"]) == (5, 2, 2, "opml")
    assert found["skipped"][0]["reason"] == "refused_address"
    assert found["warnings"] == [{"line": 4, "text": "&nbsp; is not defined in XML: read as in HTML", "count": 1}]


CLEAN = "http://c.example/feed\n"


def test_only_known_feeds_and_duplicates_are_a_success(feeds: Run) -> None:
    assert feeds("import", "-", typed=CLEAN * 2).exit_code == 0
    assert feeds("import", "-", typed=CLEAN).exit_code == 0


def test_a_network_may_be_allowed(feeds: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEEDMILL_ALLOW_NETWORKS", "10.0.0.0/8")
    assert feeds("import", "-", typed="http://10.0.0.1/feed\n").exit_code == 0


def test_a_broken_file_is_refused_whole_and_salvaged_on_demand(feeds: Run, tmp_path: Path) -> None:
    file = tmp_path / "cut.opml"
    file.write_text(opml(outline("http://a.example/feed"), outline("http://b.example/feed"))[:-40])
    with pytest.raises(ConfigurationError, match=r"cut.opml: line 4: the file is cut off.*1 feed before.*nothing was"):
        feeds("import", str(file))
    assert feeds("list", "--json").stdout == "[]\n"
    result = feeds("import", str(file), "--salvage")
    assert "1 listed (opml), 1 added" in result.stdout
    assert "warning: line 4: the file is cut off" in result.stderr
    for missing in (tmp_path, tmp_path / "missing"):
        with pytest.raises(ConfigurationError, match="can't be read"):
            feeds("import", str(missing))


def test_an_export_imports_with_tags_and_names_what_is_secret(feeds: Run, database_url: str, tmp_path: Path) -> None:
    feeds("import", "-", "--tag", "mine", typed=LIST)
    exported = feeds("export")
    assert "the URLs of 1 feeds hold passwords or tokens" in exported.stderr
    file = tmp_path / "feeds.opml"
    file.write_text(exported.stdout)
    with psycopg.connect(database_url) as connection:
        connection.execute("TRUNCATE feeds CASCADE")
    assert feeds("import", str(file)).exit_code == 0
    assert feeds("export").stdout == exported.stdout
    assert feeds("export", "--tag", "TECH", "--format", "list").stdout == "https://a.example/feed\n"
    csv = feeds("export", "--tag", "tech", "--format", "csv").stdout
    assert csv == 'url,name,tags,site_url,source_type\nhttps://a.example/feed,A,"Tech,mine",,feed\n'
    assert feeds("export", "--format", "xml").exit_code == 2


def test_tags_are_given_taken_and_listed_in_upper_or_lower_case(feeds: Run, database_url: str) -> None:
    with connect(database_url) as connection:
        for n in (1, 2):
            add_feed(connection, NewFeed(f"http://f{n}.example/feed"))
    feeds("set", "1", "--tag", " a / b ", "--tag", "News", "--tag", "news")
    assert "tags          a/b, News" in feeds("show", "1").stdout
    assert [row["id"] for row in json.loads(feeds("list", "--tag", "NEWS", "--json").stdout)] == [1]
    assert json.loads(feeds("list", "--tag", "nobody's", "--json").stdout) == []
    feeds("set", "1", "2", "--untag", "NEWS", "--tag", "x")
    assert [row["tags"] for row in json.loads(feeds("list", "--json").stdout)] == [["a/b", "x"], ["x"]]
    with pytest.raises(ConfigurationError, match="at most 32"):
        feeds("set", "1", *(part for n in range(MAX_TAGS) for part in ("--tag", f"t{n}")))
    with pytest.raises(ConfigurationError, match="a tag is empty"):
        feeds("list", "--tag", "/")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_import_leaves_whole_chunks_and_says_how_many(
    database_url: str, tmp_path: Path, number: signal.Signals
) -> None:
    file = tmp_path / "feeds.txt"
    file.write_text("".join(f"http://f{n}.example/feed\n" for n in range(50_000)))
    command = [sys.executable, "-m", "services.cli", "feeds", "import", str(file)]
    environment = os.environ | {"FEEDMILL_DATABASE_URL": database_url}
    count = "SELECT count(*) FROM feeds"
    with (
        psycopg.connect(database_url, autocommit=True) as connection,
        subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process,
    ):
        while (connection.execute(count).fetchone() or (0,))[0] < 10_000:
            assert process.poll() is None
        process.send_signal(number)
        said = process.communicate(timeout=60)[1]
        assert process.returncode == 130
        row = connection.execute(count).fetchone()
    told = re.search(r"at least ([\d,]+) new feeds are in; the same command adds the rest", said)
    assert told is not None, said
    assert row is not None
    assert 10_000 <= row[0] < 50_000
    assert row[0] % 1000 == 0
    assert int(told[1].replace(",", "")) in range(1000, row[0] + 1, 1000)
