"""The private servers: real ones, stopped, killed and found again."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from local.servers import PrivatePostgres, PrivateRabbitMQ, Servers, cluster, delete_servers, private_servers
from local.servers.cluster import MEMORY, delete_cluster, find_account, place_cluster, place_in_memory
from local.servers.identity import FIRST_STARTS, PostgresIdentity, start_on_free_ports
from shared.errors import ConfigurationError

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root changes to other users for the servers")
ROOT = Path(__file__).parents[3]
# A run that leaves a message and a row, says how it can be recognised, and waits to be killed.
DOOMED_RUN = """
import sys, threading
from pathlib import Path
from tests.integration.local.test_private_servers import describe, leave_traces
from local.servers import private_servers
with private_servers(Path(sys.argv[1])) as servers:
    leave_traces(servers)
    print(describe(servers), flush=True)
    threading.Event().wait()
"""


@dataclass(frozen=True)
class KilledRun:
    directory: Path
    description: dict[str, Any]


def describe(servers: Servers) -> str:
    pids = servers.rabbitmq.process_ids() + servers.postgres.process_ids()
    return json.dumps({"amqp_url": servers.amqp_url, "database_url": servers.database_url, "pids": pids})


def leave_traces(servers: Servers) -> None:
    manage(servers, "PUT", "/queues/feedmill/kept", durable=True, arguments={"x-queue-type": "quorum"})
    publish(servers)
    with psycopg.connect(servers.database_url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")


def publish(servers: Servers) -> None:
    message = {"properties": {"delivery_mode": 2}, "routing_key": "kept", "payload": "42"}
    answer = manage(servers, "POST", "/exchanges/feedmill/amq.default/publish", **message, payload_encoding="string")
    assert answer == {"routed": True}


def count_messages(servers: Servers) -> int:
    """Count by taking each message and giving it back: unlike the totals this is never late."""
    request = {"count": 100, "ackmode": "ack_requeue_true", "encoding": "auto"}
    return len(manage(servers, "POST", "/queues/feedmill/kept/get", **request))


def manage(servers: Servers, method: str, path: str, **body: object) -> Any:
    auth = (servers.rabbitmq.identity.user, servers.rabbitmq.identity.password)
    answer = httpx.request(method, servers.management_url + "/api" + path, auth=auth, json=body, trust_env=False)
    answer.raise_for_status()
    return answer.json() if answer.content else None


def read_row(servers: Servers) -> object:
    with psycopg.connect(servers.database_url) as connection:
        return connection.execute("SELECT answer FROM kept").fetchone()


def is_running(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def find_processes(mark: str) -> list[str]:
    """Return the command lines of all live processes that name this path in their command or environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                text = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            except (OSError, PermissionError):
                continue
            if mark.encode() in text:
                found.append(text.replace(b"\0", b" ").decode(errors="replace")[:200])
    return found


@pytest.fixture(scope="module")
def killed_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KilledRun]:
    directory = tmp_path_factory.mktemp("run") / "servers"
    argv = [sys.executable, "-c", DOOMED_RUN, str(directory)]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        description = run.stdout.readline()
        run.send_signal(signal.SIGKILL)
    try:
        assert description, "the run ended before its servers were there"
        yield KilledRun(directory, json.loads(description))
    finally:
        delete_servers(directory)


@pytest.fixture(scope="module")
def servers(killed_run: KilledRun) -> Iterator[Servers]:
    with private_servers(killed_run.directory) as running:
        yield running
        pids = running.rabbitmq.process_ids() + running.postgres.process_ids()
    assert len(pids) == 3, "the node, its epmd, and PostgreSQL"
    assert not any(map(is_running, pids))
    assert not find_processes(str(killed_run.directory.parent))


def test_servers_of_a_killed_run_are_ended_and_their_data_found_again(killed_run: KilledRun, servers: Servers) -> None:
    assert not any(map(is_running, killed_run.description["pids"]))
    assert servers.amqp_url == killed_run.description["amqp_url"]
    assert servers.database_url == killed_run.description["database_url"]
    assert count_messages(servers) == 1
    assert read_row(servers) == (42,)


def test_broker_that_was_killed_starts_again_with_its_messages_on_the_same_port(servers: Servers) -> None:
    publish(servers)
    servers.rabbitmq.kill()
    assert not servers.rabbitmq.is_running()
    assert servers.rabbitmq.process_ids() == []

    servers.rabbitmq.start()

    assert servers.rabbitmq.amqp_url() == servers.amqp_url
    assert count_messages(servers) == 2


def test_database_that_was_killed_starts_again_with_its_rows_on_the_same_port(servers: Servers) -> None:
    with closing(psycopg.connect(servers.database_url)) as busy:
        backend = busy.info.backend_pid
        servers.postgres.kill()
        assert not is_running(backend)

    servers.postgres.start()

    assert servers.postgres.database_url() == servers.database_url
    assert read_row(servers) == (42,)


def uid_of(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("Uid:"))


@as_root
def test_no_server_of_root_runs_as_root_nor_can_it_be_read_by_others(servers: Servers) -> None:
    rabbitmq, postgres = (pwd.getpwnam(name).pw_uid for name in ("rabbitmq", "postgres"))
    assert {uid_of(pid) for pid in servers.rabbitmq.process_ids()} == {rabbitmq}
    assert {uid_of(pid) for pid in servers.postgres.process_ids()} == {postgres}
    data = servers.rabbitmq.directory / "cluster" / "data"
    assert data.stat().st_mode & 0o777 == 0o700
    assert {path.lstat().st_uid for path in data.rglob("*")} == {rabbitmq}


@as_root
def test_a_node_that_ran_as_root_keeps_its_data(servers: Servers) -> None:
    before = count_messages(servers)
    servers.rabbitmq.stop()
    directory = servers.rabbitmq.directory
    former = directory / "mnesia"
    shutil.move(directory / "cluster" / "data" / "mnesia", former)
    for path in (former, *former.rglob("*")):
        os.chown(path, 0, 0)
    again = PrivateRabbitMQ(directory)
    again.start()
    try:
        assert again.amqp_url() == servers.amqp_url
        assert count_messages(servers) == before
        assert not former.exists()
    finally:
        again.stop()
        servers.rabbitmq.start()


@as_root
def test_without_a_user_of_its_own_the_node_runs_as_we_do(tmp_path: Path) -> None:
    assert find_account(tmp_path / "data", "nobody-of-that-name") is None
    assert place_cluster(tmp_path, "nobody-of-that-name").parent == tmp_path


def test_data_to_be_thrown_away_is_in_memory_if_there_is_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "MEMORY_BYTES", 0)
    place_in_memory(tmp_path / "new")
    place = place_cluster(tmp_path / "new")
    assert place.parent == MEMORY
    delete_cluster(tmp_path / "new")
    assert not place.exists()
    kept = place_cluster(tmp_path, "nobody-of-that-name")
    place_in_memory(tmp_path)
    assert place_cluster(tmp_path, "nobody-of-that-name") == kept
    monkeypatch.setattr(cluster, "MEMORY_BYTES", 2**80)
    place_in_memory(tmp_path / "large")
    assert not (tmp_path / "large").exists()


def test_virtual_hosts_and_databases_of_their_own_come_and_go(servers: Servers) -> None:
    name = 'with "quotes"/slash'
    servers.rabbitmq.create_vhost(name)
    servers.postgres.create_database("other")
    with closing(psycopg.connect(servers.postgres.database_url("other"))) as connection:
        assert connection.execute("SELECT current_database()").fetchone() == ("other",)
        servers.postgres.drop_database("other")  # in spite of the connection
    servers.rabbitmq.delete_vhost(name)
    assert [vhost["name"] for vhost in manage(servers, "GET", "/vhosts")] == ["feedmill"]


def test_queue_totals_of_the_management_api_are_fresh(servers: Servers) -> None:
    before = count_messages(servers)
    publish(servers)
    deadline = time.monotonic() + 30
    while manage(servers, "GET", "/queues/feedmill/kept").get("messages_ready") != before + 1:
        assert time.monotonic() < deadline, "the totals do not follow"


def test_everything_listens_on_the_loopback_address_only(servers: Servers) -> None:
    ports = {port for name, port in servers.rabbitmq.identity if name.endswith("port")}
    ports |= {servers.postgres.identity.port}
    assert len(ports) == 6
    listening: dict[str, set[int]] = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text(encoding="ascii").splitlines()[1:]:
            address, port = line.split()[1].split(":")
            if line.split()[3] == "0A" and int(port, 16) in ports:
                listening[address] = listening.get(address, set()) | {int(port, 16)}
    loopback_6 = "00000000000000000000000001000000"  # epmd adds it by itself
    assert listening.pop("0100007F") == ports
    assert set(listening) <= {loopback_6}


def test_second_user_of_a_directory_is_told_who_holds_it(killed_run: KilledRun, servers: Servers) -> None:
    assert servers.rabbitmq.is_running()
    for second in (
        lambda: private_servers(killed_run.directory).__enter__(),
        lambda: delete_servers(killed_run.directory),
    ):
        with pytest.raises(ConfigurationError, match=rf"in use by another process \(pid {os.getpid()}, "):
            second()


@as_root
def test_cluster_stands_elsewhere_if_the_servers_user_cannot_reach_the_directory(tmp_path: Path) -> None:
    directory = tmp_path / "closed" / "servers"
    (directory / "postgres").mkdir(parents=True)
    directory.parent.chmod(0o700)

    target = place_cluster(directory / "postgres")

    assert target.parent == Path("/var/lib")
    assert (directory / "postgres" / "cluster").readlink() == target
    assert target.stat().st_mode & 0o777 == 0o711
    delete_servers(directory)
    assert not directory.exists()
    assert not target.exists()


@pytest.mark.parametrize(("faults", "starts"), [(1, 2), (9, FIRST_STARTS)])
def test_a_first_start_whose_port_somebody_took_is_made_again_on_another(
    tmp_path: Path, faults: int, starts: int
) -> None:
    started: list[int] = []
    with ExitStack() as others:

        def start() -> None:
            port = identities[-1].port
            started.append(port)
            if len(started) <= faults:
                others.enter_context(socket.create_server(("127.0.0.1", port)))
                raise ConfigurationError("could not listen")

        def take() -> PostgresIdentity:
            identities.append(PostgresIdentity.take(tmp_path))
            return identities[-1]

        identities: list[PostgresIdentity] = []
        with nullcontext() if faults < FIRST_STARTS else pytest.raises(ConfigurationError):
            start_on_free_ports(take, start)
    assert len(set(started)) == len(started) == starts


def test_server_that_cannot_start_is_an_error_that_shows_its_log(tmp_path: Path) -> None:
    postgres = PrivatePostgres(tmp_path / "servers" / "postgres", durable=False)
    postgres.start()
    postgres.stop(fast=True)
    settings = postgres.directory / "cluster" / "data" / "postgresql.conf"
    settings.write_text("no_such_setting = 1\n", encoding="utf-8")

    with pytest.raises(
        ConfigurationError, match=r"PostgreSQL ended with status 1 .*postgres\.log(?s:.*)no_such_setting"
    ):
        postgres.start()

    assert postgres.process_ids() == []
    delete_servers(tmp_path / "servers")
