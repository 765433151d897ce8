"""The compose file against the code: it can't hand on a setting that nobody reads, nor leave one out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic_settings import BaseSettings

from local.farm.service import public_specs
from local.settings import FarmSettings
from services.api.server import DRAIN_SECONDS as API_DRAIN_SECONDS
from services.api.settings import ApiSettings
from services.cli.broker_users import service_rights
from services.cli.settings import CliSettings
from services.enricher.settings import EnricherSettings
from services.fetcher.settings import FetcherSettings
from services.scheduler.settings import SchedulerSettings
from services.writer.settings import WriterSettings
from shared.broker.consumer import DRAIN_SECONDS
from shared.settings import BrokerSettings

ROOT = Path(__file__).parents[2]
SETTINGS: dict[str, type[BaseSettings]] = {
    "scheduler": SchedulerSettings,
    "fetcher": FetcherSettings,
    "enricher": EnricherSettings,
    "writer": WriterSettings,
    "api": ApiSettings,
    "farm": FarmSettings,
}
SECRET = {"FEEDMILL_AMQP_URL", "FEEDMILL_DATABASE_URL"}
"""Whose values stand in files."""

ALSO = {"api": (SchedulerSettings, FetcherSettings, WriterSettings)}
"""What else it reads: it tries feeds and foretells what the services do."""

LENT = {
    "farm": {"FEEDMILL_PREPARED_STATEMENTS", "FEEDMILL_STATEMENT_SECONDS"},
    "api": {"FEEDMILL_API_OPEN"},
}
"""What the class has and the service makes no use of: the API listens for others, so it can't be open."""


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    return found


def seconds(span: str) -> int:
    assert span.endswith("s")
    return int(span[:-1])


@pytest.mark.parametrize("service", SETTINGS)
def test_a_service_is_handed_the_settings_that_it_reads(compose: dict[str, Any], service: str) -> None:
    given = set(compose["services"][service]["environment"])
    classes = (SETTINGS[service], *ALSO.get(service, ()))
    read = {f"FEEDMILL_{name.upper()}" for cls in classes for name in cls.model_fields}
    assert given == read - LENT.get(service, set()) - SECRET | {"FEEDMILL_SECRETS"}


def test_a_service_is_handed_its_own_passwords(compose: dict[str, Any]) -> None:
    (script,) = compose["services"]["passwords"]["command"]
    lines = re.findall(r"^\s*folder (\w+) (\d+) (.*)$", script, re.MULTILINE)
    folders = {name: (group, users) for name, group, users in lines}
    groups = [group for group, _ in folders.values()]
    assert len(set(groups)) == len(groups)
    services = compose["services"]
    for name, folder in {**{name: name for name in SETTINGS}, "feedmill": "command", "migrate": "migrate"}.items():
        assert services[name]["environment"]["FEEDMILL_SECRETS"] == f"/run/feedmill/{folder}"
        assert services[name]["group_add"] == [folders[folder][0]]
        at_broker, at_database = folders[folder][1].split(" ")
        cls = SETTINGS.get(name, CliSettings)
        assert (at_broker != "''") == ("amqp_url" in cls.model_fields), name
        assert (at_database != "''") == ("database_url" in cls.model_fields), name
    users = re.search(r"for user in ([\w ]+);", script)
    assert users is not None
    assert set(users[1].split()) == {"scheduler", "fetcher", "enricher", "writer", "api", "command"}
    assert set(users[1].split()) <= service_rights(BrokerSettings().topology()).keys()


def test_commands_go_by_the_settings_of_the_services(compose: dict[str, Any]) -> None:
    services = compose["services"]
    given = services["feedmill"]["environment"]
    for name in ("scheduler", "fetcher"):
        own = {
            key: value
            for key, value in services[name]["environment"].items()
            if "METRICS" not in key and key != "FEEDMILL_SECRETS"
        }
        assert own.items() <= given.items()


def test_grace_periods_are_longer_than_the_drain(compose: dict[str, Any]) -> None:
    services = compose["services"]
    fetcher = FetcherSettings().longest_fetch_seconds() + DRAIN_SECONDS
    assert seconds(services["fetcher"]["stop_grace_period"]) > fetcher
    assert seconds(services["api"]["stop_grace_period"]) > API_DRAIN_SECONDS + 5
    for name in ("scheduler", "writer"):
        assert seconds(services[name]["stop_grace_period"]) > DRAIN_SECONDS


def test_the_names_of_the_farm_lead_to_it(compose: dict[str, Any]) -> None:
    names = {host for spec in public_specs() for host in (spec.host, spec.moved_host) if host}
    assert set(compose["services"]["farm"]["networks"]["farm"]["aliases"]) == names


def test_fetcher_and_api_reach_the_web_and_the_fetcher_reaches_no_database(compose: dict[str, Any]) -> None:
    services, networks = compose["services"], compose["networks"]
    outside = {name for name, about in networks.items() if not (about or {}).get("internal")}
    assert {name for name in SETTINGS if outside & set(services[name]["networks"])} == {"fetcher", "api"}
    assert "database" not in services["fetcher"]["networks"]


def test_every_service_has_limits_and_bounded_logs_and_no_latest_image(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        assert service["deploy"]["resources"]["limits"]["memory"], name
        assert service["logging"]["options"]["max-size"], name
        assert not service["image"].endswith("latest"), name
        assert ":" in service["image"], name


def test_the_published_port_is_that_of_the_api(compose: dict[str, Any]) -> None:
    api = compose["services"]["api"]
    (published,) = api["ports"]
    assert published == f"127.0.0.1:${{API_PORT:-8080}}:{api['environment']['FEEDMILL_API_PORT']}"
    assert api["environment"]["FEEDMILL_API_HOST"] == "0.0.0.0"


def test_ports_are_bound_to_loopback(compose: dict[str, Any]) -> None:
    ports = [port for service in compose["services"].values() for port in service.get("ports", ())]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_the_example_of_settings_knows_what_the_file_asks_for() -> None:
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    example = (ROOT / ".env.example").read_text(encoding="utf-8")
    asked = set(re.findall(r"\$\{(\w+)", text))
    missing = {name for name in asked if f"#{name}=" not in example}
    assert not missing
