"""Controls the test session's own RabbitMQ node from the inside: connections, alarms, time-outs."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from local.servers import Servers

FETCHER = "feedmill fetcher"
"""The name of the fetcher's connections at the broker, without the purpose that follows it."""


class BrokerControl:
    """Evaluates Erlang expressions on the node, as `rabbitmqctl eval` does, which takes seconds to start."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers

    def evaluate(self, expression: str) -> str:
        """Return the value of an Erlang expression on the node."""
        rabbitmq = self._servers.rabbitmq
        tool = next(Path("/usr/lib/erlang").glob("erts-*/bin/erl_call"))
        done = subprocess.run(
            [str(tool), "-n", rabbitmq.identity.node, "-e"],
            input=expression + ".\n",
            env=rabbitmq._erlang_environment(),
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        assert done.stdout.startswith("{ok"), done.stdout
        return done.stdout.removeprefix("{ok,").strip().removesuffix("}").strip()

    def save_queues(self) -> None:
        """Have the node write the names of new quorum queues to disk.

        RabbitMQ 3.10 does so half a second after the last change at the earliest. A node that is killed before can't
        start its newest queue again: its messages are lost, and its consumers get INTERNAL_ERROR.
        """
        self.evaluate("[ok = dets:sync(Table) || Table <- dets:all()]")

    def close_connections(self, amqp_url: str, name: str = FETCHER, *, kill: bool = False) -> int:
        """Close the connections of this name in the virtual host of `amqp_url`; return how many.

        `kill`: without a word, as a network does it.
        """
        vhost = urlsplit(amqp_url).path.removeprefix("/")
        end = "exit(Pid, kill)" if kill else 'rabbit_networking:close_connection(Pid, "by the test")'
        counted = self.evaluate(
            "length([begin "
            + end
            + ", 1 end || [{pid, Pid}, {vhost, V}, {client_properties, P}]"
            + " <- rabbit_networking:connection_info_all([pid, vhost, client_properties]),"
            + f' V =:= <<"{vhost}">>, {{<<"connection_name">>, _, N}} <- P,'
            + f' string:prefix(N, "{name}") =/= nomatch])'
        )
        return int(counted)

    @contextmanager
    def memory_alarm(self) -> Iterator[None]:
        """Raise a memory alarm: the broker takes nothing from publishers."""
        before = self.evaluate("vm_memory_monitor:get_vm_memory_high_watermark()")
        self.evaluate("vm_memory_monitor:set_vm_memory_high_watermark(0.0000001)")
        try:
            yield
        finally:
            self.evaluate(f"vm_memory_monitor:set_vm_memory_high_watermark({before})")

    @contextmanager
    def disk_alarm(self) -> Iterator[None]:
        """Raise a disk alarm: no disk has so much room."""
        before = self.evaluate("rabbit_disk_monitor:get_disk_free_limit()")
        self.evaluate(f"rabbit_disk_monitor:set_disk_free_limit({2**60})")
        try:
            yield
        finally:
            self.evaluate(f"rabbit_disk_monitor:set_disk_free_limit({before})")

    @contextmanager
    def setting(self, **values: int) -> Iterator[None]:
        """Change settings of the node; they hold for channels that are opened from then on."""
        before = {name: self.evaluate(f"application:get_env(rabbit, {name}, undefined)") for name in values}
        for name, value in values.items():
            self.evaluate(f"application:set_env(rabbit, {name}, {value})")
        try:
            yield
        finally:
            for name, was in before.items():
                self.evaluate(f"application:set_env(rabbit, {name}, {was})")
