"""The demo is the main job; here it runs as a person would run it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from local.settings import child_environment
from tests.e2e.process_watch import remaining_processes

pytestmark = pytest.mark.e2e


def run_demo(home: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "services.cli", "demo", *arguments],
        env=child_environment({"FEEDMILL_HOME": str(home), **environment}),
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )


def test_every_article_arrives_exactly_once_on_given_servers(tmp_path: Path, amqp_url: str, database_url: str) -> None:
    given = {"FEEDMILL_AMQP_URL": amqp_url, "FEEDMILL_DATABASE_URL": database_url}
    first = run_demo(tmp_path, "--json", **given)
    assert first.returncode == 0, first.stderr
    result = json.loads(first.stdout)
    assert result["expected"] == result["delivered"] > 500
    assert (result["lost"], result["duplicated"], result["unexpected"]) == (0, 0, 0)
    assert (result["feeds"] >= 60, result["hosts"] >= 20) == (True, True)
    by_kind = {kind["kind"]: kind["outcomes"] for kind in result["kinds"]}
    assert by_kind["gone"] == {"gone": 4}
    for kind, outcome in (
        ("plain", "not_modified"),
        ("refused", "soft_error"),
        ("error_500", "soft_error"),
        ("not_found", "hard_error"),
        ("html", "not_a_feed"),
        ("no_validators", "unchanged"),
    ):
        assert outcome in by_kind[kind]
    assert f"expected {result['expected']} · delivered" in first.stderr
    # It leaves neither queues nor tables behind, so it can run again.
    again = run_demo(tmp_path, "--json", **given)
    assert again.returncode == 0, again.stderr
    assert remaining_processes(tmp_path) == []


def test_the_demo_refuses_to_mix_with_a_pipeline_that_is_there(
    tmp_path: Path, amqp_url: str, database_url: str
) -> None:
    import asyncio

    from shared.broker.rabbitmq import RabbitMQ
    from shared.settings import BrokerSettings

    async def declare() -> None:
        async with RabbitMQ(amqp_url, name="test", max_message_bytes=1000).connect(BrokerSettings().topology()):
            pass

    asyncio.run(declare())
    refused = run_demo(tmp_path, FEEDMILL_AMQP_URL=amqp_url, FEEDMILL_DATABASE_URL=database_url)
    assert refused.returncode == 1
    assert "'fetcher.00' exists" in refused.stderr
