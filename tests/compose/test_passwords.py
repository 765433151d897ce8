"""The quick start's passwords: made up at the first start, each known to its user; none of an older version stays."""

from __future__ import annotations

import re
import urllib.error
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from local.servers.identity import choose_ports
from services.cli.broker_users import Rights, service_rights
from shared.settings import BrokerSettings
from tests.compose.stack import Stack, management, torn_down

ROOT = Path(__file__).parents[2]
needs_engine = pytest.mark.e2e

PORTS = ("API_PORT", "RABBITMQ_MANAGEMENT_PORT", "RABBITMQ_PORT", "POSTGRES_PORT")
BEFORE = """
services:
  rabbitmq:
    image: rabbitmq:4-management
    hostname: rabbitmq
    environment: {RABBITMQ_DEFAULT_USER: feedmill, RABBITMQ_DEFAULT_PASS: feedmill}
    volumes: ["rabbitmq:/var/lib/rabbitmq"]
    healthcheck: {test: ["CMD", "bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/5672"], interval: 1s, retries: 120}
  postgres:
    image: postgres:17
    environment: {POSTGRES_USER: feedmill, POSTGRES_PASSWORD: feedmill, POSTGRES_DB: feedmill}
    volumes: ["postgres:/var/lib/postgresql/data"]
    healthcheck: {test: [CMD, pg_isready, --host, 127.0.0.1, --username, feedmill], interval: 1s, retries: 120}
volumes: {rabbitmq: {}, postgres: {}}
"""
"""The two servers of the version that had one password for all."""


def test_no_password_stands_in_the_files() -> None:
    for name in ("docker-compose.yml", ".env.example", "README.md", "docs/how-to/compose.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert not re.search(r"feedmill, feedmill|feedmill:feedmill|PASSWORD:?-?=?\s*feedmill", text), name
        assert not re.search(r"PASSWORD:-[^}]", text), f"{name}: a default password"


@needs_engine
def test_the_documented_commands_show_passwords_that_work(stack: Stack) -> None:
    assert management(stack, "whoami")["name"] == "feedmill"
    database = stack("exec", "-T", "postgres", "cat", "/run/feedmill/password")
    assert len(database) >= 32
    assert database != stack.password()
    port = stack("port", "postgres", "5432").strip().rpartition(":")[2]
    with psycopg.connect(f"postgresql://feedmill:{database}@127.0.0.1:{port}/feedmill") as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    for password in ("feedmill", "guest", ""):
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(f"postgresql://feedmill:{password}@127.0.0.1:{port}/feedmill")
    for user, password in (("feedmill", "feedmill"), ("guest", "guest"), ("fetcher", stack.password())):
        with pytest.raises(urllib.error.HTTPError, match="401"):
            management(stack, "whoami", user=user, password=password)


@needs_engine
def test_each_service_is_a_user_of_its_own_with_the_rights_of_its_room(stack: Stack) -> None:
    settings = BrokerSettings(fast_delay_seconds=2)
    wanted = {
        name: rights
        for name, rights in service_rights(settings.topology()).items()
        if name in {"scheduler", "fetcher", "enricher", "writer", "api", "command"}
    }
    keys: dict[str, dict[str, str]] = {name: {} for name in wanted}
    for one in management(stack, "topic-permissions"):
        keys[one["user"]][one["exchange"]] = one["write"]
    found = {
        one["user"]: Rights(one["configure"], one["write"], one["read"], keys[one["user"]])
        for one in management(stack, "permissions")
        if one["user"] != "feedmill"
    }
    assert found == wanted
    for service in ("scheduler", "fetcher", "enricher", "writer"):
        assert {
            one["user"]
            for one in management(stack, "connections")
            if service in one["client_properties"].get("connection_name", "")
        } == {service}


@needs_engine
@pytest.mark.parametrize("service", ["scheduler", "fetcher", "enricher", "writer", "api", "farm"])
def test_a_service_can_read_its_own_passwords_only(stack: Stack, service: str) -> None:
    files = stack("exec", "-T", service, "sh", "-c", "find /run/feedmill -type f 2>/dev/null || true").split()
    assert files
    assert {file.split("/")[3] for file in files} == {service}
    (container, *_) = stack.containers(service)
    assert not [name for name in stack.inspect(container)["Config"]["Env"] if re.search(r"://[^/]*@|PASSWORD", name)]


@pytest.fixture
def volumes_from_before(stack: Stack, tmp_path: Path) -> Iterator[Stack]:
    """A project that has the volumes of the version before, with a row in one and a user of somebody's in the other."""
    project = f"{stack.project}-before"
    (tmp_path / "before.yml").write_text(BEFORE)
    before = Stack(["docker", "compose", "-f", str(tmp_path / "before.yml"), "-p", project], project, stack.image)
    now = Stack([*stack.compose[:-1], project], project, stack.image)
    with torn_down(now):
        before("up", "--detach", "--wait")
        before("exec", "-T", "postgres", "psql", "-U", "feedmill", "-c", "CREATE TABLE kept AS SELECT 42 AS answer")
        before("exec", "-T", "rabbitmq", "rabbitmqctl", "add_vhost", "kept")
        before("down")
        yield now


@needs_engine
def test_volumes_of_the_version_before_are_used_on_with_new_passwords(
    volumes_from_before: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = dict(zip(PORTS, map(str, choose_ports([0] * len(PORTS))), strict=True)) | {"FARM_SUBNET": "10.212.89.0/26"}
    for name, value in beside.items():  # the other project has those of the file
        monkeypatch.setenv(name, value)
    stack = volumes_from_before
    assert '"queues"' in stack("run", "--rm", "-T", "feedmill", "status", "--json")
    assert stack.query("SELECT answer FROM kept") == "42"
    assert {one["name"] for one in management(stack, "vhosts")} == {"/", "kept"}
    with pytest.raises(urllib.error.HTTPError, match="401"):
        management(stack, "whoami", password="feedmill")
