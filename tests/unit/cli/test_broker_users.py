"""The rights of the broker's users, compared with the topology: neither misses a name of the other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from services.cli.broker_users import Rights, prepare_broker, service_rights
from services.cli.settings import CliSettings
from shared.broker.shards import MOST_SHARDS, shard_name
from shared.broker.topology import EXCHANGE, FETCHERS, Topology, fetch_routing_key
from shared.errors import ConfigurationError
from shared.settings import BrokerSettings
from shared.wire.results import FeedFetched

TOPOLOGY = BrokerSettings().topology()
RIGHTS = service_rights(TOPOLOGY)
SERVICES = ("scheduler", "fetcher", "enricher", "writer", "batch", "api")
QUEUES = {queue.name for queue in TOPOLOGY.queues}
EXCHANGES = {exchange.name for exchange in TOPOLOGY.exchanges}
SHARDS = set(TOPOLOGY.fetcher.queues)
FRONTS = QUEUES & {f"{shard}.front" for shard in SHARDS}
TRIALS = QUEUES & {"writer.trials"}
DEAD = {stage.dead for stage in TOPOLOGY.stages}
FETCHERS_OWN = {"fetcher.07.owner", "fetcher.alive.0b5ba2c4e3a74c65a8b0d6c1c9f7f0aa"}
DEFAULT_EXCHANGE = "amq.default"
"""What RabbitMQ calls the exchange without a name when it looks for rights."""


def allowed(pattern: str, names: set[str]) -> set[str]:
    return {name for name in names if re.search(pattern, name)}


@pytest.mark.parametrize("service", SERVICES)
def test_nobody_can_declare_or_delete_what_is_durable_or_use_the_default_exchange(service: str) -> None:
    rights = RIGHTS[service]
    assert allowed(rights.configure, QUEUES | EXCHANGES | {DEFAULT_EXCHANGE, "a-new-queue", "fetcher.new"}) == set()
    assert allowed(rights.write, {DEFAULT_EXCHANGE}) == set()
    assert allowed(rights.read, {EXCHANGE, DEFAULT_EXCHANGE}) == set(), "it could bind a queue, and read all messages"
    assert rights.tags == ""


@pytest.mark.parametrize(
    ("service", "queues"),
    [
        ("scheduler", set()),
        ("fetcher", SHARDS | FRONTS | FETCHERS_OWN),
        ("enricher", {"enricher"}),
        ("writer", {"writer"} | TRIALS),
        ("batch", SHARDS),
        ("api", DEAD | {stage.retry for stage in TOPOLOGY.stages}),
    ],
)
def test_a_service_reads_its_own_queues_only(service: str, queues: set[str]) -> None:
    assert allowed(RIGHTS[service].read, QUEUES | FETCHERS_OWN) == queues


def test_only_a_fetcher_reads_the_fetchers_heartbeats() -> None:
    assert {name for name, rights in RIGHTS.items() if allowed(rights.read, {FETCHERS})} == {"fetcher"}
    assert allowed(RIGHTS["fetcher"].configure, FETCHERS_OWN) == FETCHERS_OWN
    for service in ("batch", "command"):
        assert allowed(RIGHTS[service].configure, FETCHERS_OWN) == {"fetcher.07.owner"}, "the lock of a shard"


@pytest.mark.parametrize(
    ("service", "exchanges"),
    [
        ("scheduler", {EXCHANGE, FETCHERS}),
        ("fetcher", {EXCHANGE, FETCHERS, TOPOLOGY.fetcher.retry, TOPOLOGY.fetcher.fast_delay}),
        ("enricher", {EXCHANGE, TOPOLOGY.stage("enricher").retry}),
        ("writer", {EXCHANGE, TOPOLOGY.writer.retry}),
        ("batch", {EXCHANGE}),
        ("api", {EXCHANGE, TOPOLOGY.fetcher.fast_delay}),  # to look at the queue of that name
    ],
)
def test_a_service_publishes_to_its_own_exchanges_only(service: str, exchanges: set[str]) -> None:
    assert allowed(RIGHTS[service].write, EXCHANGES) == exchanges


@pytest.mark.parametrize(
    ("service", "queues"),
    [
        ("scheduler", SHARDS),
        ("fetcher", {*SHARDS, *FRONTS, *TRIALS, "enricher", "writer", "fetcher.dead"}),
        ("enricher", {"writer", "enricher.dead"}),
        ("writer", {"writer.dead"}),
        ("batch", {"enricher", "writer", "fetcher.dead"}),
        ("api", {*SHARDS, *FRONTS, "enricher", "writer"}),
        ("command", {*SHARDS, *FRONTS, "enricher", "writer", "fetcher.dead"}),
    ],
)
def test_a_services_routing_keys_lead_to_its_own_target_queues(service: str, queues: set[str]) -> None:
    keys = RIGHTS[service].keys[EXCHANGE]
    reached = {q.name for q in TOPOLOGY.queues if q.exchange == EXCHANGE and allowed(keys, set(q.bindings))}
    assert reached == queues
    assert allowed(keys, {"", "#", "feed.fetch.*.v1", "writer.dead.x"}) == set()


def test_a_scheduler_and_a_fetcher_may_look_at_the_queues_whose_length_stops_them() -> None:
    assert allowed(RIGHTS["scheduler"].write, SHARDS) == SHARDS
    for service in ("fetcher", "batch"):
        assert allowed(RIGHTS[service].write, {"enricher", "writer"}) == {"enricher", "writer"}


@pytest.mark.parametrize("user", ["api", "command"])
def test_the_api_and_commands_may_look_at_every_queue(user: str) -> None:
    rights = RIGHTS[user]
    assert allowed(rights.write, QUEUES) | allowed(rights.read, QUEUES) == QUEUES


def test_a_user_that_counts_messages_may_read_none() -> None:
    assert RIGHTS["scaling"] == Rights(tags="monitoring")


def test_rights_hold_for_as_many_shards_and_as_long_delays_as_there_can_be() -> None:
    shards = {shard_name(number) for number in range(MOST_SHARDS)}
    assert allowed(RIGHTS["fetcher"].read, shards) == shards
    assert all(allowed(RIGHTS["scheduler"].keys[EXCHANGE], {fetch_routing_key(f"{n}", MOST_SHARDS)}) for n in range(99))
    for seconds in (0.001, 2.5, 1e-3, 3_999_999.0, 1e6):
        other: Topology = BrokerSettings(retry_delay_seconds=seconds, message_retry_seconds=seconds).topology()
        assert service_rights(other)["fetcher"].write == RIGHTS["fetcher"].write
        assert allowed(RIGHTS["fetcher"].write, {other.fetcher.retry}), other.fetcher.retry
        assert allowed(RIGHTS["writer"].write, {other.writer.retry}), other.writer.retry


def test_results_are_what_a_batch_publishes() -> None:
    keys = {FeedFetched.KIND, "enricher"}
    assert allowed(RIGHTS["batch"].keys[EXCHANGE], {*keys, "writer"}) == keys


def test_rights_do_not_depend_on_whether_the_enricher_is_switched_on() -> None:
    """One service is switched over after the other."""
    assert service_rights(BrokerSettings(enricher=True).topology()) == RIGHTS


@pytest.mark.parametrize(
    ("name", "password", "said"),
    [("mallory", "secret", "no user mallory"), ("fetcher", "\n", "is empty")],
)
def test_passwords_that_can_not_be_right_are_refused_before_anything_is_made(
    tmp_path: Path, name: str, password: str, said: str
) -> None:
    (tmp_path / name).write_text(password, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=said) as refused:
        prepare_broker("amqp://127.0.0.1:1/", CliSettings(broker_users=str(tmp_path)))
    assert "secret" not in str(refused.value)


def test_without_passwords_the_broker_is_left_alone() -> None:
    assert prepare_broker("amqp://127.0.0.1:1/", CliSettings()) == []
