"""What keeps us from the broker is said in words."""

from __future__ import annotations

import errno
import socket

import pytest
from aio_pika.exceptions import AMQPConnectionError, ConnectionClosed

from shared.broker.amqp import translated
from shared.broker.reasons import describe
from shared.errors import BrokerUnavailable


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (AMQPConnectionError(errno.ECONNREFUSED, "Connect call failed ('127.0.0.1', 5672)"), "nobody listens there"),
        (AMQPConnectionError(socket.EAI_NONAME, "Name or service not known"), "no address is known for its name"),
        (ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"), "the connection was cut"),
        (TimeoutError(), "it does not answer in time"),
        (RuntimeError("channel is closed"), "channel is closed"),
        (ConnectionClosed(530, "NOT_ALLOWED - vhost /no"), "NOT_ALLOWED - vhost /no"),
        (RuntimeError("lost amqp://me:secret@mq/"), "lost amqp://***@mq/"),
    ],
)
def test_an_error_of_the_library_is_told_in_words(error: BaseException, words: str) -> None:
    assert words in describe(error)


async def test_what_was_tried_is_said_too() -> None:
    with pytest.raises(BrokerUnavailable, match="cannot connect: it does not answer in time"), translated("connect"):
        raise TimeoutError
