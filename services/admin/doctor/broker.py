"""Checks the broker: the connection, the queues, and what its management API says of versions and alarms."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import unquote

import httpx
from pydantic import AmqpDsn

from services.admin.doctor.findings import Finding, error, judge_version, warning, well
from services.admin.health.queues import Levels, read_levels
from shared.broker.rabbitmq import RabbitMQ
from shared.broker.shards import in_ranges, is_shard
from shared.broker.topology import Topology
from shared.errors import BrokerUnavailable, TopologyMismatch
from shared.observability.secrets import mask_credentials

LEAST_VERSION = "3.10"
SECONDS = 15.0

_ADVICE = {
    "ACCESS_REFUSED": "correct user and password in FEEDMILL_AMQP_URL, or give the user its rights",
    "Authentication": "correct user and password in FEEDMILL_AMQP_URL",
    "NOT_ALLOWED": "create the virtual host (`rabbitmqctl add_vhost`), or correct it in FEEDMILL_AMQP_URL",
    "OpenOk": "create the virtual host (`rabbitmqctl add_vhost`), or correct it in FEEDMILL_AMQP_URL",
    "no address is known": "correct the host in FEEDMILL_AMQP_URL",
    "nobody listens there": "start RabbitMQ, or correct host and port in FEEDMILL_AMQP_URL",
}
_USUAL_ADVICE = "look whether RabbitMQ runs, and at FEEDMILL_AMQP_URL"


async def check_broker(url: str, topology: Topology) -> AsyncIterator[Finding]:
    """Yield findings; after an error of the connection there are no others. Nothing is declared that is not there."""
    broker = RabbitMQ(url, name="feedmill doctor", max_message_bytes=1024)
    try:
        async with asyncio.timeout(SECONDS):
            levels = await read_levels(broker, topology)
    except (BrokerUnavailable, TimeoutError) as failure:
        said = mask_credentials(str(failure)) or f"no answer within {SECONDS:g} s"
        advice = next((advice for words, advice in _ADVICE.items() if words in said), _USUAL_ADVICE)
        yield error("broker", f"{mask_credentials(url)}: {said}", advice)
        return
    yield well("broker", f"connected to {mask_credentials(url)}")
    for finding in judge_levels(levels, topology):
        yield finding
    if all(levels.get(queue.name) for queue in topology.queues):
        yield await _check_arguments(broker, topology)


def judge_levels(levels: Levels, topology: Topology) -> Iterator[Finding]:
    """Yield what the levels tell: queues that are missing, that nobody reads, or that nobody here knows."""
    missing = [queue.name for queue in topology.queues if levels.get(queue.name) is None]
    if missing:
        how = "start a service, which declares them" if topology.declared_on_connect else "run `feedmill migrate`"
        yield warning("queues", f"not declared: {in_ranges(missing)}", how)
    extra = [name for name, level in levels.items() if is_shard(name) and name not in topology.fetcher.queues]
    if extra:
        yield warning(
            "queues",
            f"shards beyond FEEDMILL_FETCHER_SHARDS ({len(topology.fetcher.queues)}): {in_ranges(extra)}",
            "give all services the same FEEDMILL_FETCHER_SHARDS; if it was lowered, delete these once they are empty",
        )
    read = {queue for stage in topology.stages for queue in stage.queues}
    unread = [name for name, level in levels.items() if name in read and level and level.ready and not level.consumers]
    if unread:
        yield warning("queues", f"messages wait and nobody reads: {in_ranges(unread)}", "start the services")
    dead = [(stage.dead, level.ready) for stage in topology.stages if (level := levels.get(stage.dead)) and level.ready]
    for name, number in dead:
        yield warning("queues", f"{number:,} dead letters in {name}", "`feedmill dead list` tells why")


async def _check_arguments(broker: RabbitMQ, topology: Topology) -> Finding:
    """Declare the queues once more, all of which are there: the broker refuses that if their arguments differ."""
    if not topology.declared_on_connect:
        return well("queues", "all are declared")
    try:
        async with asyncio.timeout(SECONDS), broker.connect(topology):
            return well("queues", "all are declared, with our arguments")
    except TopologyMismatch as failure:
        return error("queues", str(failure), "delete that queue when it is empty, or undo the change of the setting")
    except (BrokerUnavailable, TimeoutError) as failure:
        said = mask_credentials(str(failure)) or f"no answer within {SECONDS:g} s"
        return warning("queues", f"their arguments can't be checked: {said}", "run this as a user who may declare")


async def check_management(management_url: str, amqp_url: str) -> AsyncIterator[Finding]:
    """Yield what the management API says. It is a warning if it does not answer: services work without it."""
    parts = AmqpDsn(amqp_url)
    auth = (unquote(parts.username or "guest"), unquote(parts.password or "guest"))
    try:
        async with httpx.AsyncClient(auth=auth, timeout=SECONDS, trust_env=False) as client:
            overview = await _get(client, f"{management_url.rstrip('/')}/api/overview")
            nodes = await _get(client, f"{management_url.rstrip('/')}/api/nodes")
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as failure:
        said, advice = _why(failure)
        advice = f"{advice}: nothing else tells the broker's version and alarms"
        yield warning("management", f"{mask_credentials(management_url)}: {said}", advice)
        return
    yield judge_version("RabbitMQ", str(overview.get("rabbitmq_version", "0")), LEAST_VERSION)
    for finding in judge_nodes(nodes):
        yield finding


def _why(failure: Exception) -> tuple[str, str]:
    """Return why the management API tells nothing, and what to do."""
    correct = "correct FEEDMILL_MANAGEMENT_URL"
    match failure:
        case httpx.HTTPStatusError(response=answer) if answer.status_code in {401, 403}:
            return f"it refuses the user (status {answer.status_code})", "give the user the tag `monitoring`"
        case httpx.ConnectError():
            return "nothing answers there", f"switch RabbitMQ's management plugin on, or {correct}"
        case httpx.TimeoutException():
            return f"no answer within {SECONDS:g} s", "look whether RabbitMQ is well"
        case httpx.InvalidURL() | httpx.UnsupportedProtocol():
            return "it is no URL", f"{correct}, such as http://HOST:15672"
        case httpx.HTTPStatusError() | ValueError():
            return "what answers there is no management API", correct
    return str(failure) or type(failure).__name__, correct


async def _get(client: httpx.AsyncClient, url: str) -> Any:
    answer = await client.get(url)
    answer.raise_for_status()
    return answer.json()


def judge_nodes(nodes: list[dict[str, Any]]) -> Iterator[Finding]:
    """Yield the broker's alarms; with one, no publisher gets through."""
    for node in nodes:
        name = node.get("name")
        if not node.get("running", True):
            yield error("management", f"the node {name} does not run", "start it")
        if node.get("mem_alarm"):
            yield error("management", f"{name} has a memory alarm: nothing can be published", "give it more memory")
        if node.get("disk_free_alarm"):
            yield error("management", f"{name} has a disk alarm: nothing can be published", "free space on its disk")
    if not any(node.get("mem_alarm") or node.get("disk_free_alarm") for node in nodes):
        yield well("management", "no alarms")
