"""`feedmill up` as a person uses it: private servers, another terminal, Ctrl-C, and again the next day."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from local.farm import Farm, FeedKind, FeedSpec
from local.settings import child_environment
from tests.e2e.process_watch import remaining_processes

pytestmark = pytest.mark.e2e

SPEC = FeedSpec(name="site", host="127.0.0.2", path="/feed", kind=FeedKind.PLAIN)


def environment(home: Path) -> dict[str, str]:
    return child_environment(
        {
            "FEEDMILL_HOME": str(home),
            "FEEDMILL_ALLOW_NETWORKS": "127.0.0.0/8",
            "FEEDMILL_TICK_SECONDS": "0.2",
            "FEEDMILL_API_PORT": "0",
        }
    )


def feedmill(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "services.cli", *arguments],
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@contextmanager
def up(home: Path, **settings: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "services.cli", "up"],
        env=environment(home) | settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
        os.killpg(process.pid, signal.SIGINT)  # what a terminal does on Ctrl-C
        process.communicate(timeout=60)
        assert process.returncode == 0
        assert remaining_processes(home) == []
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


def wait_for(process: subprocess.Popen[str], *parts: str) -> list[str]:
    """Read lines until every part was seen."""
    assert process.stdout is not None
    missing, seen = set(parts), []
    for line in process.stdout:
        seen.append(line)
        missing -= {part for part in missing if part in line}
        if not missing:
            return seen
    raise AssertionError(f"ended without {missing}:\n{''.join(seen)}")


def status(home: Path) -> dict[str, Any]:
    answer = feedmill(home, "status", "--json")
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)  # type: ignore[no-any-return]


def test_a_feed_that_is_added_is_polled_and_is_still_there_the_next_day(home: Path) -> None:
    with Farm([SPEC]) as farm:
        url = farm.url(SPEC)
        with up(home) as process:
            lines = wait_for(
                process,
                "management UI",
                "dashboard",
                "fetcher",
                "writer",
                "consuming",
                "listening api=http://127.0.0.1:",
            )
            (address,) = (line.split("api=")[1].split()[0] for line in lines if "listening api=" in line)
            assert httpx.get(f"{address}/feeds", trust_env=False).status_code == 200
            page = httpx.get(address.removesuffix("/api") + "/", trust_env=False)
            assert "RabbitMQ's queues</a>" in page.text.replace("&#39;", "'")
            assert not any("://feedmill:" in line for line in lines), "a password was printed"
            assert any(f"PGSERVICEFILE={home}/up/pg_service.conf psql service=feedmill" in line for line in lines)
            assert (home / "up" / "pg_service.conf").stat().st_mode & 0o777 == 0o600
            added = feedmill(home, "feeds", "add", url, "--name", "The site", "--priority", "5")
            assert (added.returncode, "added as feed 1" in added.stdout) == (0, True), added.stdout + added.stderr
            assert "already" in feedmill(home, "feeds", "add", url).stdout
            wait_for(process, "wrote 1 results")
            assert status(home)["counts"]["pending_articles"] == len(farm.expected_articles())
        with up(home, FEEDMILL_LOG_FORMAT="json") as process:
            lines = wait_for(process, '"instance": "fetcher"', "consuming")
            assert all(json.loads(line)["instance"] for line in lines if line.startswith("{"))
            (feed,) = json.loads(feedmill(home, "feeds", "list", "--json").stdout)
            assert (feed["name"], feed["priority"], feed["last_outcome"]) == ("The site", 5, "fetched")
            assert status(home)["counts"]["pending_articles"] == len(farm.expected_articles())


def test_without_servers_a_command_says_what_to_do(tmp_path: Path) -> None:
    answer = feedmill(tmp_path, "status")
    assert answer.returncode == 1
    assert "feedmill up" in answer.stderr
    assert "Traceback" not in answer.stderr


@pytest.mark.parametrize("url", ["ftp://a.example/", "nonsense", "http://user:secret@/"])
def test_a_feed_that_cannot_be_fetched_is_not_registered(tmp_path: Path, database_url: str, url: str) -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "services.cli", "feeds", "add", url],
        env=child_environment({"FEEDMILL_AMQP_URL": "amqp://localhost/", "FEEDMILL_DATABASE_URL": database_url}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 1
    assert "feedmill:" in answer.stderr
    assert "secret" not in answer.stderr


def test_what_looks_like_markup_in_a_feed_is_shown_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "feed.xml"
    file.write_text(
        "<rss version='2.0'><channel><title>[bold]News[/evil]</title>"
        "<item><title>[/red] alert</title><link>http://a.example/[/x]</link></item></channel></rss>"
    )
    answer = feedmill(tmp_path, "parse", str(file))
    assert answer.returncode == 0, answer.stderr
    assert "[bold]News[/evil]" in answer.stdout
    assert "[/red] alert" in answer.stdout
