"""The seed file: each URL once, ever, however many processes start at once."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from services.admin.registry import Connection, NewFeed, add_feed, connect, insert_feeds
from services.admin.seeds import Seeded, load_seeds
from services.admin.subscriptions import importing
from services.cli.__main__ import app
from shared.errors import ConfigurationError

YAML = """\
feeds:
  - https://a.example/feed
  - url: https://b.example/feed
    name: B
    tags: [News, news, " a / b "]
    config: {headers: {X-Key: k}}
  - https://A.example/feed
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "seeds.yaml"
    path.write_text(YAML)
    return path


def feeds(database_url: str) -> list[dict[str, object]]:
    with connect(database_url) as connection:
        return connection.execute("SELECT url, name, tags, source_config FROM feeds ORDER BY url").fetchall()


def test_a_feed_is_seeded_once_and_stays_removed(database_url: str, file: Path) -> None:
    with connect(database_url) as connection:
        add_feed(connection, NewFeed("https://a.example/feed", name="Mine"))
    assert load_seeds(database_url, str(file)) == Seeded(listed=2, added=1, there=1)
    a, b = feeds(database_url)
    assert (a["name"], a["tags"]) == ("Mine", [])
    assert (b["name"], b["tags"], b["source_config"]) == ("B", ["News", "a/b"], {"headers": {"X-Key": "k"}})
    with connect(database_url) as connection:
        connection.execute("DELETE FROM feeds")
    file.write_text(YAML + "  - https://c.example/feed\n")
    assert load_seeds(database_url, str(file)) == Seeded(listed=3, added=1)
    assert [feed["url"] for feed in feeds(database_url)] == ["https://c.example/feed"]


def test_eight_that_start_at_once_seed_once(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.admin.seeds.CHUNK", 20)
    monkeypatch.setattr(importing, "TRIES", 100)
    file = tmp_path / "seeds.txt"
    file.write_text("".join(f"https://f{number}.example/feed\n" for number in range(150)))
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda _: load_seeds(database_url, str(file)), range(8)))
    assert sum(each.added for each in done) == len(feeds(database_url)) == 150
    assert not any(each.there for each in done)


def test_one_that_dies_leaves_whole_chunks_and_the_next_adds_the_rest(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.admin.seeds.CHUNK", 10)
    file = tmp_path / "seeds.txt"
    file.write_text("".join(f"https://f{number:02}.example/feed\n" for number in range(25)))
    left = 2

    def insert(connection: Connection, rows: list[dict[str, Any]]) -> dict[str, int]:
        nonlocal left
        if not left:
            raise RuntimeError
        left -= 1
        return insert_feeds(connection, rows)

    monkeypatch.setattr("services.admin.seeds.insert_feeds", insert)
    with pytest.raises(RuntimeError):
        load_seeds(database_url, str(file))
    monkeypatch.undo()
    assert len(feeds(database_url)) == 20
    assert load_seeds(database_url, str(file)) == Seeded(listed=25, added=5)


def test_the_default_file_is_within_the_package_and_can_be_used(database_url: str) -> None:
    done = load_seeds(database_url, "default")
    assert 15 <= done.added == done.listed <= 25


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("feeds:\n  - https://a.example/\n  - url: gopher://x\n", r"line 3: 'gopher://x': the scheme is 'gopher'"),
        ("feeds:\n  - url: https://a.example/\n    nmae: X\n", "line 2: nmae: Extra inputs"),
        ("feeds:\n  - url: https://a.example/\n    source_type: pigeon\n", "line 2: .*pigeon' is not installed here"),
        ("feeds:\n  - url: https://a.example/\n    config: {timeout_seconds: x}\n", "line 2: .*timeout_seconds"),
        ('feeds:\n  - url: https://a.example/\n    name: "\\0"\n', "line 2: a character or a number"),
        ("feeds:\n  - url: https://a.example/\n    config: {x: .inf}\n", "line 2: a character or a number"),
        ("feeds:\n  - [\n", "line 3: the YAML can't be read"),
        ("feed: []\n", "line 1: expected `feeds:` with a list"),
        ("", "line 1: expected `feeds:` with a list"),
        ("- &a [*a]\n", "line 1"),
        ("[" * 3000, "line 1: the YAML"),
        ("feeds: [{url: https://a.example/, config: &a {x: *a}}]", "line 1"),
        ("- {url: 7}\n", "line 1: url: Input should be a valid string"),
        ("? [a]\n: b\n", "line 1: expected `feeds:` with a list"),
    ],
)
def test_a_bad_file_is_refused_whole_with_its_line(
    database_url: str, tmp_path: Path, content: str, complaint: str
) -> None:
    file = tmp_path / "bad.yml"
    file.write_text(content)
    with pytest.raises(ConfigurationError, match=rf"bad.yml \(FEEDMILL_SEED_FILE\): {complaint}.*Nothing of it was"):
        load_seeds(database_url, str(file))
    assert feeds(database_url) == []


def test_migrate_seeds_last_and_ends_with_78_if_the_file_is_bad(
    database_url: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEEDMILL_DATABASE_URL", database_url)
    monkeypatch.setenv("FEEDMILL_SEED_FILE", str(file))
    result = CliRunner().invoke(app, ["migrate"])
    assert (result.exit_code, len(feeds(database_url))) == (0, 2)
    assert f"seed file {file}: 2 feeds, 2 added now" in "".join(result.output.splitlines())
    file.write_text("x: 1")
    for bad, complaint in ((file.with_name("none"), "can't be read: No such file"), (file, "line 1: expected")):
        environment = os.environ | {"FEEDMILL_SEED_FILE": str(bad)}
        command = [sys.executable, "-m", "services.cli", "migrate"]
        ended = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
        assert ended.returncode == 78
        assert complaint in ended.stderr
        assert "the tables are up to date" in ended.stdout
