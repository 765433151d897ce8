from __future__ import annotations

import pytest

from shared.broker.port import Broker
from shared.broker.rabbitmq import RabbitMQ
from tests.fakes.memory_broker import MemoryBroker

MOST_BYTES = 100_000


@pytest.fixture(params=["memory", "rabbitmq"])
def broker(request: pytest.FixtureRequest) -> Broker:
    """The fake, and the real one in a vhost of its own."""
    if request.param == "memory":
        return MemoryBroker(max_message_bytes=MOST_BYTES, turns=2)
    return RabbitMQ(request.getfixturevalue("amqp_url"), name="conformance", max_message_bytes=MOST_BYTES)


@pytest.fixture(params=["memory", "rabbitmq"])
def ticking(request: pytest.FixtureRequest) -> Broker:
    """A broker whose delay queues expire messages."""
    if request.param == "memory":
        return MemoryBroker(ticking=True)
    return RabbitMQ(request.getfixturevalue("amqp_url"), name="contract", max_message_bytes=100_000)
