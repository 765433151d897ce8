from __future__ import annotations

import httpx
import pytest
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from shared.errors import ConfigurationError
from shared.observability.telemetry import STALLED_AFTER_SECONDS, Health, serve_telemetry


class FakeClock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_metrics_are_what_prometheus_reads() -> None:
    with serve_telemetry(Health(), "127.0.0.1", 0) as port:
        answer = httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False)
    names = {family.name for family in text_string_to_metric_families(answer.text)}
    assert "process_cpu_seconds" in names
    assert answer.headers["content-type"].startswith("text/plain")


def test_a_service_is_healthy_while_its_main_loop_beats() -> None:
    clock = FakeClock()
    health = Health(clock)
    with serve_telemetry(health, "127.0.0.1", 0) as port:
        url = f"http://127.0.0.1:{port}/healthz"
        clock.now = STALLED_AFTER_SECONDS
        assert httpx.get(url, trust_env=False).status_code == 200
        clock.now += 1
        stalled = {"ok": False, "failures": {"main_loop": "stalled"}, "warnings": {}}
        assert httpx.get(url, trust_env=False).json() == stalled
        health.beat()
        assert httpx.get(url, trust_env=False).status_code == 200


def test_a_service_is_ready_when_every_check_passes() -> None:
    health = Health()
    problem: list[str] = ["no session with the broker"]
    health.add_check("broker", lambda: problem[0] if problem else None)
    health.add_check("database", lambda: None)
    with serve_telemetry(health, "127.0.0.1", 0) as port:
        url = f"http://127.0.0.1:{port}/readyz"
        waiting = httpx.get(url, trust_env=False)
        assert (waiting.status_code, waiting.json()["failures"]) == (503, {"broker": "no session with the broker"})
        assert REGISTRY.get_sample_value("feedmill_ready") == 0
        problem.clear()
        assert httpx.get(url, trust_env=False).status_code == 200
        assert REGISTRY.get_sample_value("feedmill_ready") == 1


def test_a_warning_is_shown_and_changes_no_status() -> None:
    health = Health()
    health.add_check("broker", lambda: None)
    health.add_warning("silence", lambda: "no news")
    health.add_warning("other", lambda: None)
    with serve_telemetry(health, "127.0.0.1", 0) as port:
        for page in ("healthz", "readyz"):
            answer = httpx.get(f"http://127.0.0.1:{port}/{page}", trust_env=False)
            assert answer.status_code == 200
            assert answer.json() == {"ok": True, "failures": {}, "warnings": {"silence": "no news"}}


def test_an_unknown_path_is_404_and_lists_the_pages() -> None:
    with serve_telemetry(Health(), "127.0.0.1", 0) as port:
        answer = httpx.get(f"http://127.0.0.1:{port}/nothing?x=1", trust_env=False)
    assert (answer.status_code, "/metrics" in answer.text) == (404, True)


def test_a_service_without_checks_is_still_starting() -> None:
    assert Health().failures() == {"service": "starting"}


def test_a_taken_port_is_an_error_at_start() -> None:
    with serve_telemetry(Health(), "127.0.0.1", 0) as port:
        second = serve_telemetry(Health(), "127.0.0.1", port)
        with pytest.raises(ConfigurationError, match="in use"):
            second.__enter__()
