"""Commands with only one of the two servers given, and what `feedmill up` hands to its processes."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from local.addresses import _psql_service, psql_command
from local.settings import LocalSettings
from local.supervisor import all_processes
from services.api.settings import ApiSettings
from services.cli.__main__ import app
from services.cli.commands.up import _api_process, _with_ports
from shared.errors import ConfigurationError
from shared.settings import TelemetrySettings


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


def test_the_database_alone_is_enough_for_feeds_articles_and_migrations(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEEDMILL_DATABASE_URL", database_url)
    monkeypatch.delenv("FEEDMILL_AMQP_URL", raising=False)
    assert "0 feeds" in run("feeds", "list")
    assert "0 shown" in run("pending", "list")
    assert "up to date" in run("migrate")
    for command in (["status"], ["dead", "list"]):
        with pytest.raises(ConfigurationError, match="FEEDMILL_AMQP_URL is not set"):
            run(*command)


def test_the_broker_alone_is_enough_for_dead_letters(amqp_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEEDMILL_AMQP_URL", amqp_url)
    monkeypatch.delenv("FEEDMILL_DATABASE_URL", raising=False)
    assert "0 dead letters" in run("dead", "list")
    with pytest.raises(ConfigurationError, match="FEEDMILL_DATABASE_URL is not set"):
        run("feeds", "list")


def test_the_psql_command_of_private_servers_needs_no_password_on_the_command_line(
    database_url: str, tmp_path: Path
) -> None:
    settings = LocalSettings(home=tmp_path, amqp_url=None, database_url=None)
    (tmp_path / "up").mkdir()
    (tmp_path / "up" / "pg_service.conf").write_text(_psql_service(database_url))
    said = subprocess.run(
        f"{psql_command(settings)} --no-psqlrc --tuples-only --command 'SELECT count(*) + 42 FROM feeds'",
        shell=True,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.strip() == "42"


OWN_ADDRESS = "127.83.1.1"
"""Nobody else takes ports of it, as connections of other tests do of 127.0.0.1."""


def test_processes_take_the_given_metrics_port_and_the_next_ones() -> None:
    with socket.create_server((OWN_ADDRESS, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=f"port {port} of scheduler can't be used"):
            _with_ports(all_processes(), TelemetrySettings(metrics_host=OWN_ADDRESS, metrics_port=port))
    environments = [
        p.environment
        for p in _with_ports(all_processes(), TelemetrySettings(metrics_host=OWN_ADDRESS, metrics_port=port))
    ]
    assert environments == [{"FEEDMILL_METRICS_PORT": str(port + n)} for n in range(3)]
    assert [p.environment for p in _with_ports(all_processes(), TelemetrySettings())] == [{}] * 3


def test_the_api_takes_another_port_than_8080_if_that_is_taken_and_nobody_asked_for_it() -> None:
    with socket.create_server((OWN_ADDRESS, 0)) as taken:
        port = taken.getsockname()[1]
        by_default = ApiSettings.model_construct({"api_host"}, api_host=OWN_ADDRESS, api_port=port)
        assert _api_process(by_default, None).environment["FEEDMILL_API_PORT"] == "0"
        with pytest.raises(ConfigurationError, match=f"port {port} of the API can't be used.*--api-port"):
            _api_process(by_default, port)
        with pytest.raises(ConfigurationError, match=f"port {port} of the API"):
            _api_process(ApiSettings(api_host=OWN_ADDRESS, api_port=port), None)
    environment = _api_process(ApiSettings(api_host=OWN_ADDRESS, api_port=port), None).environment
    assert environment["FEEDMILL_API_PORT"] == str(port)


@pytest.mark.parametrize(("host", "is_open"), [("127.0.0.1", "true"), ("localhost", "true"), ("0.0.0.0", None)])
def test_the_api_is_open_only_on_loopback(host: str, is_open: str | None) -> None:
    process = _api_process(ApiSettings(api_host=host, api_port=0), None)
    assert process.environment.get("FEEDMILL_API_OPEN") == is_open
