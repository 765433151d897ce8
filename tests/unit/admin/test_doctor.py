"""What a finding is worth, and which settings are found wrong."""

from __future__ import annotations

from typing import Any

import pytest

from services.admin.doctor.broker import judge_levels, judge_nodes
from services.admin.doctor.findings import (
    EXIT_CODES,
    Finding,
    Severity,
    judge_clock,
    judge_disk,
    judge_open_files,
    judge_schema,
    judge_version,
    well,
    worst_of,
)
from services.admin.doctor.settings import check_settings
from services.admin.health.diagnosis import QueueLevel
from services.fetcher.settings import FetcherSettings
from services.scheduler.settings import SchedulerSettings
from services.writer.settings import WriterSettings
from shared.broker.topology import Topology
from shared.settings import BrokerSettings

OK, WARNING, ERROR = Severity
CLASSES = (SchedulerSettings, FetcherSettings, WriterSettings)
GIB = 2**30


def check(monkeypatch: pytest.MonkeyPatch, **variables: str) -> list[Finding]:
    environment = {f"FEEDMILL_{name}": value for name, value in variables.items()}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return list(check_settings({"PATH": "/bin", **environment}, CLASSES))


def test_the_exit_code_is_that_of_the_worst_finding() -> None:
    findings = [well("a", "b"), Finding("c", WARNING, "d", "e")]
    assert worst_of(findings) is WARNING
    assert worst_of([*findings, Finding("f", ERROR, "g", "h")]) is ERROR
    assert worst_of([]) is OK
    assert EXIT_CODES == {OK: 0, ERROR: 1, WARNING: 3}


@pytest.mark.parametrize(
    ("ahead", "severity"),
    [(2.0, OK), (-2.0, OK), (2.1, WARNING), (-60.0, WARNING), (60.1, ERROR), (-86400.0, ERROR)],
)
def test_a_clock_may_be_off_by_two_seconds(ahead: float, severity: Severity) -> None:
    assert judge_clock(ahead).severity is severity


@pytest.mark.parametrize(
    ("version", "severity"), [("3.9.29", ERROR), ("3.10.8", OK), ("4.1.0", OK), ("3.10", OK), ("?", ERROR)]
)
def test_versions_are_compared_by_number(version: str, severity: Severity) -> None:
    assert judge_version("RabbitMQ", version, "3.10").severity is severity


def test_a_distribution_s_version_is_understood() -> None:
    assert judge_version("PostgreSQL", "15.18 (Debian 15.18-0+deb12u1)", "14").severity is OK


@pytest.mark.parametrize(("applied", "severity"), [(15, ERROR), (16, OK), (17, WARNING)])
def test_an_old_schema_is_an_error_and_a_newer_one_a_warning(applied: int, severity: Severity) -> None:
    assert judge_schema(applied, 16).severity is severity


@pytest.mark.parametrize(("free", "severity"), [(2 * GIB, OK), (2 * GIB - 1, WARNING), (GIB // 4 - 1, ERROR)])
def test_a_disk_needs_room(free: int, severity: Severity) -> None:
    assert judge_disk("/data", free, 100 * GIB).severity is severity


@pytest.mark.parametrize(("limit", "severity"), [(564, OK), (563, WARNING)])
def test_a_fetcher_needs_open_files(limit: int, severity: Severity) -> None:
    assert judge_open_files(limit, threads=64, jobs=400).severity is severity


def test_settings_that_fit_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = check(monkeypatch, LOG_LEVEL="DEBUG", SECRETS="")
    assert (found.severity, found.found) == (OK, "2 variables are set, and all of them fit")


def test_a_variable_that_nobody_reads_is_named_with_the_nearest_one(monkeypatch: pytest.MonkeyPatch) -> None:
    typo, strange = check(monkeypatch, FETCH_THREAD="3", SUNSHINE="fine")
    assert (typo.severity, typo.advice) == (WARNING, "do you mean FEEDMILL_FETCH_THREADS?")
    assert "remove it" in strange.advice


def test_each_wrong_value_is_named_once_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    found = check(monkeypatch, LOG_LEVEL="LOUD", AMQP_URL="amqp://me:sec@ret@host/")
    assert [finding.severity for finding in found] == [ERROR, ERROR]
    said = " ".join(finding.found for finding in found)
    assert "FEEDMILL_LOG_LEVEL: " in said
    assert "percent-encoded" in said
    assert "sec@ret" not in said


@pytest.mark.parametrize(
    ("variables", "severity", "named"),
    [
        ({"CLAIM_SECONDS": "30"}, ERROR, "FEEDMILL_CLAIM_SECONDS (30) is over before a fetch may be"),
        ({"CLAIM_SECONDS": "50"}, WARNING, "leaves a job no time to wait"),
        ({"FETCHER_PREFETCH": "80", "FETCHER_SHARDS": "21"}, WARNING, "less than 4 for each of 21 shards"),
        ({"FETCHER_PREFETCH": "63"}, WARNING, "some threads never have work"),
        ({"MIN_POLL_SECONDS": "600", "MAX_POLL_SECONDS": "300"}, ERROR, "FEEDMILL_MIN_POLL_SECONDS (600) is more"),
    ],
)
def test_settings_that_contradict_each_other_are_found(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], severity: Severity, named: str
) -> None:
    (found,) = check(monkeypatch, **variables)
    assert found.severity is severity
    assert named in found.found
    assert found.advice


@pytest.mark.parametrize(
    "variables",
    [
        {"CLAIM_SECONDS": "51"},
        {"FETCHER_PREFETCH": "84", "FETCHER_SHARDS": "21"},
        {"FETCHER_PREFETCH": "64"},
        {"MIN_POLL_SECONDS": "300", "MAX_POLL_SECONDS": "300"},
    ],
)
def test_settings_that_just_fit_together_are_fine(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    assert [finding.severity for finding in check(monkeypatch, **variables)] == [OK]


def levels(topology: Topology, **changes: QueueLevel | None) -> dict[str, QueueLevel | None]:
    return {queue.name: QueueLevel(0, 1) for queue in topology.queues} | {
        name.replace("_", "."): level for name, level in changes.items()
    }


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"writer": None}, "not declared: writer"),
        ({"fetcher_12": QueueLevel(0, 0)}, "shards beyond FEEDMILL_FETCHER_SHARDS (12): fetcher.12"),
        ({"fetcher_03": QueueLevel(2, 0)}, "messages wait and nobody reads: fetcher.03"),
        ({"writer_dead": QueueLevel(2, 0)}, "2 dead letters in writer.dead"),
    ],
)
def test_queues_that_are_not_as_they_should_be_are_found(changes: dict[str, QueueLevel | None], named: str) -> None:
    topology = BrokerSettings().topology()
    assert list(judge_levels(levels(topology), topology)) == []
    (found,) = judge_levels(levels(topology, **changes), topology)
    assert (found.severity, found.found) == (WARNING, named)
    assert found.advice


@pytest.mark.parametrize(
    ("node", "severity"),
    [
        ({}, OK),
        ({"mem_alarm": True}, ERROR),
        ({"disk_free_alarm": True}, ERROR),
    ],
)
def test_an_alarm_of_the_broker_is_an_error(node: dict[str, Any], severity: Severity) -> None:
    assert worst_of(judge_nodes([{"name": "rabbit@a", "running": True}, {"name": "rabbit@b", **node}])) is severity
