"""Broker and database are never taken back: what a deploy does when one of them is slow, or fails later."""

from __future__ import annotations

import pytest

from scripts.deploy.manifests import is_older
from tests.deploy.conftest import Bench
from tests.deploy.test_failures import applied_as_before, running, specs

__all__ = ["running"]


def upgrade_broker(bench: Bench) -> None:
    bench.edit("k8s/base/all.yaml", "spec: {replicas: 3}", "spec: {replicas: 3, image: 'rabbitmq:4.4.0-management'}")
    bench.commit()


@pytest.mark.parametrize("interrupt", [False, True])
def test_a_broker_upgrade_that_is_slow_is_never_taken_back(running: Bench, interrupt: bool) -> None:
    upgrade_broker(running)
    before = specs(running)
    running.fail("wait rabbitmqcluster", "timed out", code=0 if interrupt else 1, interrupt=interrupt)
    done = running.deploy()
    assert done.code == (130 if interrupt else 1)
    now = specs(running)
    assert "4.4.0" in now["rabbitmqcluster/broker"]
    assert {key: now[key] for key in before if key != "rabbitmqcluster/broker"} == {
        key: spec for key, spec in before.items() if key != "rabbitmqcluster/broker"
    }
    assert applied_as_before(running) == []
    assert "nothing is rolled back: rabbitmqcluster.v1beta1.rabbitmq.com/broker is as this deploy made it" in done.err
    assert "Once it is ready, deploy again, the same or a mended release." in done.err
    assert running.records()[-1]["outcome"] == "stopped"
    assert running.deploy().code == 0, "it goes on"
    running.edit("k8s/base/all.yaml", "rabbitmq:4.4.0", "rabbitmq:4.3.10")
    running.commit()
    dry = running.run("-T", "queue-fetcher", "-e", "dev", "-n")
    assert (
        "A deploy would stop here: an older image than it runs with may not read its data: rabbitmqcluster" in dry.err
    )
    assert "/broker rabbitmq:4.4.0-management\n" in dry.err
    running.cluster.calls.clear()
    done = running.deploy()
    assert done.code == 1
    assert "an older image than it runs with may not read its data" in done.err
    assert running.changes() == []
    assert "4.4.0" in specs(running)["rabbitmqcluster/broker"]


def test_a_broker_that_was_upgraded_stays_when_a_service_fails(running: Bench) -> None:
    upgrade_broker(running)
    before = specs(running)
    running.fail("rollout status deployment/writer")
    done = running.deploy()
    assert done.code == 1
    now = specs(running)
    assert "4.4.0" in now.pop("rabbitmqcluster/broker")
    before.pop("rabbitmqcluster/broker")
    assert now == before
    assert "Not taken back, since it holds data: rabbitmqcluster.v1beta1.rabbitmq.com/broker\n" in done.out
    assert running.records()[-1]["outcome"] == "rolled-back"


@pytest.mark.parametrize(
    ("image", "than", "older"),
    [
        ("rabbitmq:4.3.10-management", "rabbitmq:4.4.0-management@sha256:5e", True),
        ("rabbitmq:4.4.0-management", "rabbitmq:4.3.10-management", False),
        ("major:17", "major:18", True),
        ("major:17", "ghcr.io/cloudnative-pg/postgresql:17.6-minimal-trixie", False),
        ("major:17", "ghcr.io/cloudnative-pg/postgresql:18.1-minimal-trixie", True),
        ("rabbitmq:4", "major:None", False),
    ],
)
def test_what_an_older_image_is(image: str, than: str, older: bool) -> None:
    assert is_older(image, than) == older
