"""A pipeline in which every fetch fails, and a machine whose clock is wrong: the command says so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import psycopg
import pytest

from local.addresses import Addresses
from local.settings import child_environment
from tests.e2e.pipeline import Pipeline, growing_specs, running_pipeline
from tests.e2e.test_clocks import SHIFTED

pytestmark = pytest.mark.e2e

HOSTS = 12


def status(amqp_url: str, database_url: str, *arguments: str, **more: str) -> tuple[int, str]:
    """Return the exit code of `feedmill status`, and what it prints."""
    environment = child_environment(Addresses(amqp_url, database_url).environment() | more)
    command = [sys.executable, "-m", "services.cli", "status", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout, done.stderr
    return done.returncode, done.stdout


def names(amqp_url: str, database_url: str, **more: str) -> dict[str, str]:
    """Return the alarms that ring, with their sentences."""
    code, said = status(amqp_url, database_url, "--json", **more)
    alarms: list[dict[str, Any]] = json.loads(said)["alarms"]
    assert code == int(any(alarm["severity"] == "critical" for alarm in alarms))
    return {alarm["name"]: alarm["sentence"] for alarm in alarms}


def waiting(pipeline: Pipeline) -> tuple[int, int]:
    """Return how many feeds are due, and how many wait for their retry."""
    with psycopg.connect(pipeline.database_url) as connection:
        row = connection.execute(
            "SELECT count(*) FILTER (WHERE due_at <= now()),"
            " count(*) FILTER (WHERE last_outcome = 'soft_error' AND claim_id IS NOT NULL AND issued_at IS NULL)"
            " FROM feeds"
        ).fetchone()
    assert row is not None
    return row[0], row[1]


async def test_a_resolver_that_fails_rings_though_no_feed_is_due_and_fetchers_run(
    amqp_url: str, database_url: str
) -> None:
    settings = {"FEEDMILL_SILENCE_SECONDS": "5", "FEEDMILL_RETRY_DELAY_SECONDS": "3600"}
    specs = growing_specs(HOSTS, hosts=HOSTS)
    async with running_pipeline(amqp_url, database_url, specs, also=settings) as pipeline:
        await pipeline.until_complete()
        assert names(amqp_url, database_url, **settings) == {}
        break_names(database_url)
        await pipeline.until(lambda: waiting(pipeline) == (0, HOSTS))
        with psycopg.connect(database_url) as connection:  # a silence begins a minute after the last success
            connection.execute("UPDATE feed_fetch_log SET started_at = started_at - interval '2 min' WHERE ok")
        await pipeline.until(lambda: "silent" in names(amqp_url, database_url, **settings))
        said = names(amqp_url, database_url, **settings)["silent"]
        assert said.endswith(f": name resolution fails for all of {HOSTS} hosts")
        code, said = status(amqp_url, database_url, "--health", **settings)
        assert (code, "the pipeline is down" in said, "is there a resolver?" in said) == (1, True, True)
        with psycopg.connect(database_url) as connection:
            connection.execute("UPDATE feeds SET enabled = false")
        assert "silent" not in names(amqp_url, database_url, **settings)  # all are paused
        mend_names(pipeline)
        await pipeline.until(lambda: not names(amqp_url, database_url, **settings))


def break_names(database_url: str) -> None:
    """Let feeds be at names that nobody resolves, and due."""
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "UPDATE feeds SET url = 'http://h' || id || '.invalid/feed', politeness_group = 'h' || id || '.invalid',"
            " next_fetch_at = now()"
        )


def mend_names(pipeline: Pipeline) -> None:
    """Let feeds be where they are, and due at once."""
    urls = [pipeline.farm.url(spec) for spec in pipeline.farm.specs]
    with psycopg.connect(pipeline.database_url) as connection:
        for number, url in enumerate(urls):
            connection.execute(
                "UPDATE feeds SET url = %s, politeness_group = %s, enabled = true, next_fetch_at = now(),"
                " claim_id = NULL, claim_expires_at = NULL, issued_at = NULL"
                " WHERE id = (SELECT id FROM feeds ORDER BY id OFFSET %s LIMIT 1)",
                [url, f"mended{number}", number],
            )


@pytest.mark.parametrize(("hours", "said"), [(2, "2 hours ahead of"), (-3, "3 hours behind")])
def test_a_clock_that_is_hours_off_is_told_with_its_machine(
    amqp_url: str, database_url: str, hours: int, said: str
) -> None:
    more = {"PYTHONPATH": str(SHIFTED), "SHIFTED_CLOCKS": f"services.cli={hours}"}
    assert (
        names(amqp_url, database_url, **more)["clock_off"]
        == f"the clock of {os.uname().nodename} is {said} PostgreSQL's"
    )
    assert "clock_off" not in names(amqp_url, database_url)


def test_a_clock_of_the_database_that_went_back_is_told(amqp_url: str, database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("INSERT INTO feeds (url, politeness_group) VALUES ('http://a.example/', 'a.example')")
        connection.execute(
            "INSERT INTO feed_fetch_log (result_id, feed_id, queued_at, started_at, elapsed_seconds, ok, outcome,"
            " final, attempt, items_seen, items_new, wire_bytes, decoded_bytes)"
            " SELECT gen_random_uuid(), id, now(), now() + interval '121 min', 1, true, 'fetched', true, 1, 0, 0, 0, 0"
            " FROM feeds"
        )
    assert "went back by 2 hours or more" in names(amqp_url, database_url)["database_clock_back"]
