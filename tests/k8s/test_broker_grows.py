"""A queue that was declared on the first node gets its members when the others join: RabbitMQ itself, by our lines."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compose.stack import why_no_docker
from tests.k8s.manifests import find, render

IMAGE = "rabbitmq:4-management"
SETTING = "quorum_queue.continuous_membership_reconciliation"
NODES = (1, 2, 3)
PATIENCE_SECONDS = 120.0

# In one container without a network: each node has ports and files of its own.
SCRIPT = r"""
cd /tmp && echo '[].' >plugins && echo -n cookie >"$HOME/.erlang.cookie" && chmod 400 "$HOME/.erlang.cookie"
for n in 1 2 3; do
  export RABBITMQ_NODENAME=node$n@localhost RABBITMQ_NODE_PORT=567$n RABBITMQ_DIST_PORT=2567$n \
    RABBITMQ_LOGS=/tmp/log$n RABBITMQ_LOG_BASE=/tmp RABBITMQ_MNESIA_BASE=/tmp/data$n \
    RABBITMQ_ENABLED_PLUGINS_FILE=/tmp/plugins RABBITMQ_CONFIG_FILE=/tmp/rabbitmq.conf
  rabbitmq-server >/tmp/out$n 2>&1 &
done
wait
"""
DECLARE = (
    'rabbit_amqqueue:declare({resource, <<"/">>, queue, <<"early">>}, true, false,'
    ' [{<<"x-queue-type">>, longstr, <<"quorum">>}], none, <<"test">>).'
)


class Nodes:
    """Three nodes that know nothing of each other yet."""

    def __init__(self, container: str) -> None:
        self.container = container

    def control(self, number: int, *words: str, check: bool = True) -> str:
        command = ["docker", "exec", self.container, "rabbitmqctl", "-q", "-n", f"node{number}@localhost", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0 or not check, done.stdout + done.stderr
        return done.stdout if done.returncode == 0 else ""

    def until(self, number: int, *words: str, says: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not re.search(says, said := self.control(number, *words, check=False)):
            assert time.monotonic() < deadline, said
            time.sleep(0.5)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    reason = why_no_docker()
    if reason is None:
        look = subprocess.run(["docker", "image", "inspect", IMAGE], capture_output=True, check=False)
        reason = f"the engine has no image {IMAGE}" if look.returncode else None
    if reason is not None:
        pytest.skip(reason)
    text = find(render("prod/queue-fetcher"), "RabbitmqCluster", "feedmill-broker")["spec"]["rabbitmq"]
    lines = [line for line in text["additionalConfig"].splitlines() if line.startswith(f"{SETTING}.")]
    (tmp_path / "rabbitmq.conf").write_text("\n".join([*lines, f"{SETTING}.trigger_interval = 1000", ""]))
    (tmp_path / "rabbitmq.conf").chmod(0o644)
    mount = f"{tmp_path}/rabbitmq.conf:/tmp/rabbitmq.conf:ro"
    command = ["docker", "run", "--rm", "--detach", "--init", "--network", "none", "--volume", mount]
    started = subprocess.run(
        [*command, "--entrypoint", "bash", IMAGE, "-c", SCRIPT], capture_output=True, text=True, check=True
    )
    container = started.stdout.strip()
    try:
        yield Nodes(container)
    finally:
        subprocess.run(["docker", "rm", "--force", container], capture_output=True, check=False)


def test_a_queue_that_was_declared_before_the_other_nodes_joined_gets_three_members(nodes: Nodes) -> None:
    for number in NODES:
        nodes.until(number, "ping", says="succeeded")
        nodes.until(number, "eval", "rabbit:is_running().", says="true")
    nodes.control(1, "eval", DECLARE)
    assert nodes.control(1, "list_queues", "members").count("@") == 1
    for number in NODES[1:]:
        for words in (("stop_app",), ("reset",), ("join_cluster", "node1@localhost"), ("start_app",)):
            nodes.control(number, *words)
    nodes.until(1, "list_queues", "members", says="(@.*){3}")
