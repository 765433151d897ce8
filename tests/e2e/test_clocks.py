"""Machines whose clocks are hours off: the pipeline works as if they were right, and logs a warning."""

from __future__ import annotations

import re
from pathlib import Path

import psycopg
import pytest

from tests.e2e.pipeline import Pipeline, growing_specs, running_pipeline

pytestmark = pytest.mark.e2e

SHIFTED = Path(__file__).parent / "shifted"


def complaints(pipeline: Pipeline) -> dict[str, str]:
    """Return the services that report a wrong clock, with their messages."""
    found = [
        (name, re.search(r"clock is \d+ s (ahead of|behind) the database's", line)) for name, line in pipeline.lines
    ]
    return {name: match.group(1) for name, match in found if match}


@pytest.mark.parametrize(("fetcher", "others"), [(2, -3)])
async def test_clocks_that_are_hours_off_change_nothing(
    amqp_url: str, database_url: str, fetcher: int, others: int
) -> None:
    clocks = f"services.fetcher={fetcher} services.writer={others} services.scheduler={others}"
    specs = growing_specs(12, hosts=6)
    wrong = running_pipeline(amqp_url, database_url, specs, PYTHONPATH=str(SHIFTED), SHIFTED_CLOCKS=clocks)
    async with wrong as pipeline:
        await pipeline.until_complete()
        pipeline.farm.publish()
        await pipeline.until_complete()
        said = complaints(pipeline)
    direction = {True: "ahead of", False: "behind"}
    assert said == {"fetcher": direction[fetcher > 0]} | dict.fromkeys(("scheduler", "writer"), direction[others > 0])
    with psycopg.connect(database_url) as connection:
        assert ("stale",) not in connection.execute("SELECT DISTINCT outcome FROM feed_fetch_log").fetchall()
        sane = "SELECT bool_and(abs(extract(epoch FROM now() - {})) < 60) FROM {}"
        for column, table in (
            ("started_at", "feed_fetch_log"),
            ("next_fetch_at", "feeds"),
            ("last_success_at", "feeds"),
        ):
            assert connection.execute(sane.format(column, table).encode()).fetchone() == (True,), column
