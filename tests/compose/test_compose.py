"""`docker compose up` as people use it: real containers of the real image, killed, scaled and replaced under load."""

from __future__ import annotations

import json
import re
import signal
import time
from pathlib import Path

import httpx
import pytest

from shared.broker.shards import SHARDS
from shared.broker.topology import build_topology
from tests.compose.stack import LONGEST_SECONDS, Stack, management, run

pytestmark = pytest.mark.e2e

SERVICES = ("scheduler", "fetcher", "enricher", "writer", "api")


def test_up_waits_until_all_is_healthy_and_every_article_is_there_once(stack: Stack) -> None:
    counted = stack.until_exact(more_than=300)
    outcomes = {kind["kind"]: kind["outcomes"] for kind in counted["kinds"] if kind["feeds"]}
    assert outcomes["gzip"].keys() == {"fetched", "not_modified"}
    assert outcomes["not_found"].keys() == {"hard_error"}
    assert outcomes["html"].keys() == {"not_a_feed"}
    for service in (*SERVICES, "rabbitmq", "postgres", "farm"):
        stack.until_healthy(service)


def test_management_ui_shows_the_queues_by_their_names(stack: Stack) -> None:
    topology = build_topology(
        fast_delay_seconds=2, retry_delay_seconds=3600, message_retry_seconds=60, fetcher_shards=SHARDS
    )
    queues = {queue["name"]: queue for queue in management(stack, "queues")}
    assert {queue.name for queue in topology.queues} <= queues.keys()
    assert queues[topology.writer.queue]["type"] == "quorum"
    assert management(stack, "overview")["rabbitmq_version"].startswith("4.")
    bounded = {
        name for name, queue in queues.items() if (queue.get("operator_policy") or "").startswith(("jobs", "results"))
    }
    own = {queue.name for queue in topology.queues if "x-max-length-bytes" in queue.arguments}
    assert bounded == {queue.name for queue in topology.queues} - {stage.dead for stage in topology.stages} - own


def test_ports_are_open_on_loopback_only(stack: Stack) -> None:
    published = {}
    for service in ("rabbitmq", "postgres", "farm", *SERVICES):
        (container, *_) = stack.containers(service)
        bindings = stack.inspect(container)["HostConfig"]["PortBindings"] or {}
        published[service] = {binding["HostIp"] for many in bindings.values() for binding in many}
    assert published.pop("rabbitmq") == published.pop("postgres") == published.pop("api") == {"127.0.0.1"}
    assert not any(published.values())


def test_the_api_answers_on_its_port_and_wants_to_know_who_asks(stack: Stack) -> None:
    address = f"http://{stack('port', 'api', '8080').strip()}"
    assert httpx.get(f"{address}/readyz", trust_env=False).json() == {"ok": True, "failures": []}
    answer = httpx.get(f"{address}/api/feeds", trust_env=False)
    assert answer.headers["content-type"] in {"application/json", "application/problem+json"}
    token = stack("run", "--rm", "-T", "feedmill", "token", "create", "me", "--scope", "admin", check=False)
    if "No such command" not in token:
        assert answer.status_code == 401


@pytest.mark.parametrize("service", SERVICES)
def test_services_run_without_privileges(stack: Stack, service: str) -> None:
    (container, *_) = stack.containers(service)
    host = stack.inspect(container)["HostConfig"]
    assert host["ReadonlyRootfs"]
    assert host["CapDrop"] == ["ALL"]
    assert host["SecurityOpt"] == ["no-new-privileges:true"]
    assert host["Memory"] > 0
    assert host["NanoCpus"] > 0
    assert host["PidsLimit"] > 0
    assert host["RestartPolicy"]["Name"] == "unless-stopped"
    assert stack("exec", "-T", service, "id", "-u").strip() == "10001"
    assert "Read-only file system" in stack("exec", "-T", service, "touch", "/opt/feedmill/here", check=False)


def test_the_fetcher_reaches_no_database_and_the_writer_nothing_outside(stack: Stack) -> None:
    def networks(service: str) -> set[str]:
        (container, *_) = stack.containers(service)
        names = stack.inspect(container)["NetworkSettings"]["Networks"]
        return {name.removeprefix(f"{stack.project}_") for name in names}

    assert networks("fetcher") == {"broker", "web", "farm"}
    assert networks("enricher") == {"broker"}
    assert networks("writer") == networks("scheduler") == {"broker", "database"}
    look_up = "import socket; socket.create_connection(('postgres', 5432), 3)"
    assert "gaierror" in stack("exec", "-T", "fetcher", "python", "-c", look_up, check=False)
    for network in ("broker", "database", "farm"):
        (found,) = json.loads(run("docker", "network", "inspect", f"{stack.project}_{network}"))
        assert found["Internal"], network


def test_killed_in_the_middle_nothing_is_lost_and_nothing_comes_twice(stack: Stack) -> None:
    """By the restart policies of the containers; tests/faults kills each process by itself."""
    before = stack.count()["expected"]
    killed = {
        service: stack.containers(service)[0] for service in ("fetcher", "enricher", "rabbitmq", "postgres", "writer")
    }
    started = {service: stack.inspect(container)["State"]["StartedAt"] for service, container in killed.items()}
    stack.publish()
    for service in killed:
        stack.kill_process(service)
    stack.publish()
    counted = stack.until_exact(more_than=before)
    assert counted["expected"] - before == 2 * 32  # both waves
    for service, container in killed.items():
        after = stack.inspect(container)
        assert after["RestartCount"] >= 1, f"{service} was not killed"
        assert after["State"]["StartedAt"] != started[service]
        stack.until_healthy(service)


def test_three_fetchers_share_the_work(stack: Stack) -> None:
    stack("up", "--detach", "--no-deps", "--scale", "fetcher=3", "fetcher")
    try:
        stack.until_healthy("fetcher", containers=3)
        before = stack.count()["expected"]
        deadline = time.monotonic() + LONGEST_SECONDS
        idle = set(stack.containers("fetcher"))
        assert len(idle) == 3
        while idle and time.monotonic() < deadline:
            stack.publish()
            idle = {container for container in idle if "fetch ended" not in run("docker", "logs", container)}
        assert not idle, stack.story("of three fetchers some got nothing to do")
        stack.until_exact(more_than=before)
    finally:
        stack("up", "--detach", "--no-deps", "--scale", "fetcher=1", "fetcher")
    stack.until_exact(more_than=before)


def test_another_image_replaces_the_running_one_under_load(stack: Stack) -> None:
    before = stack.count()["expected"]
    first = {service: stack.inspect(stack.containers(service)[0])["Image"] for service in SERVICES}
    stack("build", "migrate", FEEDMILL_TAG="b")
    stack.publish()
    stack("up", "--detach", "--no-deps", "migrate", *SERVICES, FEEDMILL_TAG="b")
    stack.publish()
    counted = stack.until_exact(more_than=before)
    assert counted["expected"] - before == 2 * 32
    for service in SERVICES:
        (container,) = stack.containers(service)
        found = stack.inspect(container)
        assert found["Image"] != first[service]
        assert found["Config"]["Labels"]["org.opencontainers.image.version"] == "b"
        stack.until_healthy(service)


def test_logs_are_for_people(stack: Stack) -> None:
    for service in SERVICES:
        stack.until_healthy(service)
        lines = stack("logs", "--no-log-prefix", "--tail", "50", service).splitlines()
        told = [re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", line).rstrip() for line in lines]
        odd = [
            line
            for line in told
            if line and not re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} (INFO|WARNING) +\w", line)
        ]
        assert told
        assert not odd
    logs = stack("logs")
    assert stack.password() not in logs
    assert not re.search(r"://\w+:[^*]", logs)


def test_a_wrong_setting_is_one_sentence(stack: Stack) -> None:
    said = stack("run", "--rm", "--no-deps", "-e", "FEEDMILL_FETCH_THREADS=many", "fetcher", check=False)
    assert "FEEDMILL_FETCH_THREADS: Input should be a valid integer" in said
    assert "Traceback" not in said
    assert "many" not in said


def test_commands_run_beside_the_services(stack: Stack) -> None:
    shown = json.loads(stack("run", "--rm", "--quiet-pull", "-T", "feedmill", "status", "--json").splitlines()[-1])
    assert shown["queues"]["writer"] is not None
    said = stack("run", "--rm", "-T", "feedmill", "feeds", "add", "http://no-such-host.invalid/feed.xml")
    assert "added as feed" in said
    assert "removed" in stack(
        "run", "--rm", "-T", "feedmill", "feeds", "remove", "--yes", "http://no-such-host.invalid/feed.xml"
    )


def test_the_broker_stops_publishers_before_its_container_is_full(stack: Stack) -> None:
    (container, *_) = stack.containers("rabbitmq")
    said = stack("exec", "-T", "rabbitmq", "rabbitmqctl", "eval", "vm_memory_monitor:get_memory_limit().")
    assert 0 < int(said.split()[-1]) < 0.75 * stack.inspect(container)["HostConfig"]["Memory"]


def test_who_is_stopped_while_starting_ends_at_once(stack: Stack) -> None:
    container = stack("run", "--detach", "--no-deps", "fetcher").split()[-1]
    try:
        run("docker", "stop", "--time", "60", container)
        assert stack.inspect(container)["State"]["ExitCode"] in {0, 143}
    finally:
        run("docker", "rm", "--force", container)


def test_as_process_1_it_listens_to_sigterm_before_it_has_started(stack: Stack) -> None:
    """As in Kubernetes, where nothing stands between; the signal is one that process 1 gets only if it asked for it."""
    container = run("docker", "run", "--detach", stack.image, "fetcher").strip()
    try:
        deadline = time.monotonic() + LONGEST_SECONDS
        caught = 0
        while not caught & 1 << (signal.SIGTERM - 1) and time.monotonic() < deadline:
            status = run("docker", "exec", container, "cat", "/proc/1/status", check=False)
            caught = int(re.findall(r"SigCgt:\s*([0-9a-f]+)", status)[0], 16) if "SigCgt" in status else 0
        run("docker", "stop", "--time", "60", container)
        assert stack.inspect(container)["State"]["ExitCode"] in {0, 143}
    finally:
        run("docker", "rm", "--force", container)


def test_what_is_copied_into_the_image_is_the_same_in_every_build(stack: Stack, docker_compose_file: str) -> None:
    def build() -> list[str]:
        tag = f"{stack.image}-again"
        root = str(Path(docker_compose_file).parent)
        run("docker", "build", "--quiet", "--no-cache-filter", "image", "--tag", tag, root)
        layers: list[str] = json.loads(run("docker", "inspect", "--format", "{{json .RootFS.Layers}}", tag))
        return layers

    first = build()
    time.sleep(1.1)  # the dates of files are seconds
    assert build() == first


def test_stopping_is_graceful(stack: Stack) -> None:
    containers = {service: stack.containers(service)[0] for service in SERVICES}
    stack("stop", *SERVICES)
    try:
        exits = {service: stack.inspect(container)["State"]["ExitCode"] for service, container in containers.items()}
        assert exits == dict.fromkeys(SERVICES, 0)
    finally:
        stack("start", *SERVICES)
    for service in SERVICES:
        stack.until_healthy(service)
