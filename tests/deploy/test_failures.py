"""Deploys that fail half-way: the former version runs again, the reason is printed, and a record is left."""

from __future__ import annotations

import copy
import re
import time

import pytest

from tests.deploy.conftest import Bench, Run, git
from tests.deploy.fake_cluster import Object

FIRST_RELEASE: dict[str, Object] = {}
"""The objects after a first deploy. They are the same for every test, so they are made once."""


@pytest.fixture
def running(bench: Bench) -> Bench:
    """A first release runs; the next one changes writer and settings."""
    if not FIRST_RELEASE:
        assert bench.deploy().code == 0
        objects = bench.cluster.objects.items()
        FIRST_RELEASE.update({key: one for key, one in objects if not key.startswith("configmap/feedmill-deploy")})
    bench.cluster.objects = copy.deepcopy(FIRST_RELEASE)
    bench.edit("k8s/base/all.yaml", "args: [writer]", "args: [writer, --new]")
    bench.edit("k8s/overlays/dev/queue-fetcher/kustomization.yaml", "THREADS=32", "THREADS=64")
    bench.commit()
    return bench


def specs(bench: Bench) -> dict[str, str]:
    """Return all objects that run, without the migration and our records."""
    objects = bench.cluster.objects.items()
    return {key: one.spec for key, one in objects if one.applied and not key.startswith("job/")}


def deploy_that_goes_back(bench: Bench, call: str, sentence: str) -> Run:
    """Deploy while this call fails: the reason is printed, the former version runs, and the record says so."""
    before = specs(bench)
    bench.fail(call)
    done = bench.deploy()
    assert done.code == 1, done
    assert sentence in done.err
    assert specs(bench) == before
    assert bench.records()[-1]["outcome"] == "rolled-back"
    return done


def applied_as_before(bench: Bench) -> list[str]:
    calls = [" ".join(call) for call in bench.cluster.calls]
    return re.findall(r"^apply -f \S+/before/(\S+)", "\n".join(calls), re.MULTILINE)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ("apply deployment/writer", "the cluster did not take all objects of 3-services"),
        ("rollout status deployment/fetcher", "deployment/fetcher failed, or was not ready within 300 s"),
        ("rollout status deployment/writer", "deployment/writer failed, or was not ready within 300 s"),
    ],
)
def test_services_go_back_to_what_they_were(running: Bench, call: str, sentence: str) -> None:
    done = deploy_that_goes_back(running, call, sentence)
    assert applied_as_before(running) == ["3-services", "1-foundation"][: len(applied_as_before(running))] != []
    assert "Rolled back: what ran before runs. Migrations are not undone" in done.out
    assert sentence in running.records()[-1]["reason"]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ("apply cluster/database", "the cluster did not take all objects of 1-foundation"),
        ("wait rabbitmqcluster", "rabbitmqcluster.v1beta1.rabbitmq.com/broker failed, or was not ready within 600 s"),
        ("apply job/migrate", "the cluster did not take all objects of 2-migrate"),
        ("wait job/migrate", "job/migrate failed, or was not ready within 300 s"),
        ("delete job", "the former migration can't be removed"),
    ],
)
def test_before_the_services_there_is_no_need_to_touch_them(running: Bench, call: str, sentence: str) -> None:
    deploy_that_goes_back(running, call, sentence)
    assert "3-services" not in applied_as_before(running)


def test_a_migration_that_fails_is_not_waited_for_to_the_end(running: Bench) -> None:
    """kubectl waits for one condition at a time: between two waits the other one is looked at."""
    running.fail("wait job/migrate", "error: timed out waiting for the condition on jobs/migrate", times=2)
    assert running.deploy().code == 0
    running.commit()
    running.fail("wait job/migrate", "error: timed out waiting for the condition on jobs/migrate", times=99)
    done = running.deploy()
    assert done.code == 1
    assert len([call for call in running.called("wait") if "job/" in call]) == 60, "300 s by 5 s"


@pytest.mark.parametrize("interrupt", [False, True])
def test_a_migration_does_not_go_on_after_its_deploy(running: Bench, interrupt: bool) -> None:
    running.fail("wait job/migrate", code=0 if interrupt else 1, interrupt=interrupt)
    done = running.deploy()
    assert "job/migrate is suspended: it tries no more" in done.out
    assert running.cluster.objects["job/migrate"].suspended
    running.fail("wait job/migrate")
    running.fail("^patch job/migrate", "Error from server (Forbidden): you may not")
    done = running.deploy()
    assert "job/migrate could not be suspended and may go on: Error from server (Forbidden)" in done.err
    assert running.records()[-1]["outcome"] == "rollback-failed"


def test_new_services_go_before_the_new_foundation_that_they_need(bench: Bench) -> None:
    labels = "{feedmill.dev/phase: 1-foundation, feedmill.dev/fetch-type: queue-fetcher}"
    manifests = bench.project / "k8s/queue-fetcher/all.yaml"
    policy = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: fetcher, labels: LABELS}\n"
    manifests.write_text(manifests.read_text() + "---\n" + policy.replace("LABELS", labels))
    bench.commit()
    bench.fail("rollout status deployment/writer")
    done = bench.deploy()
    assert done.code == 1, done
    services, policies = [call for call in bench.called("delete") if "--cascade=foreground --timeout=600s" in call]
    assert "deployment/fetcher" in services
    assert policies.startswith("delete networkpolicy/fetcher ")
    assert set(specs(bench)) == {"namespace/feedmill-dev", "cluster/database", "rabbitmqcluster/broker"}


def test_what_can_not_be_applied_as_it_was_is_named(running: Bench) -> None:
    running.fail("rollout status deployment/writer")
    running.fail("^apply -f .*before/3-services", "error: it can't be")
    done = running.deploy()
    assert done.code == 1
    assert "error: it can't be\n" in done.err
    assert running.records()[-1]["outcome"] == "rollback-failed"


def test_a_cluster_that_goes_away_leaves_a_lock_and_a_word_about_it(running: Bench) -> None:
    gone = "The connection to the server 10.0.0.1:6443 was refused"
    running.fail("rollout status deployment/writer", gone)
    running.fail("^(apply -f .*before|create|delete|get)", gone, times=99)
    running.cluster.faults.reverse()
    running.cluster.faults[0].call = "before/|create configmap feedmill-deploy-2|^delete|^get (events|pods|deployment)"
    done = running.deploy()
    assert done.code == 1
    assert f"the lock stays, and keeps others from deploying ({gone}). Once the cluster answers:\n" in done.err
    assert "  kubectl delete configmap feedmill-deploy-lock --context=kind-mill --namespace=feedmill-dev\n" in done.err
    assert "no record could be left in the cluster: at=" in done.err
    assert "configmap/feedmill-deploy-lock" in running.cluster.objects


@pytest.mark.parametrize(("times", "outcome"), [(3, "rolled-back"), (99, None)])
def test_the_way_back_waits_for_a_cluster_that_is_away(running: Bench, times: int, outcome: str | None) -> None:
    gone = "The connection to the server 10.0.0.1:6443 was refused"
    before = specs(running)
    running.fail("get namespace .*=5s", gone, times=times)  # not the check, which asks with =10s
    running.fail("rollout status deployment/writer", gone)
    done = running.deploy()
    assert done.code == 1
    assert (running.records()[-1]["outcome"] if running.records() else None) == outcome
    assert (specs(running) == before) == (outcome is not None)
    assert (f"nothing is rolled back: the cluster does not answer ({gone}). Once it" in done.err) == (not outcome)


def test_objects_that_nobody_knows_the_former_state_of_are_named(running: Bench) -> None:
    running.cluster.objects["scaledobject/fetcher"].applied = False
    running.cluster.objects["deployment/writer"].applied = False
    done = running.deploy()
    assert done.code == 0, done
    said = [line.rpartition(" ")[2] for line in done.out.splitlines() if "a rollback leaves it" in line]
    assert said == ["deployment/writer", "scaledobject.v1alpha1.keda.sh/fetcher"]


def test_cron_jobs_have_no_revisions_and_are_applied_as_they_were(bench: Bench) -> None:
    assert bench.deploy("batch-fetcher").code == 0
    before = specs(bench)
    bench.edit("k8s/batch-fetcher/all.yaml", "*/5 * * * *", "0 * * * *")
    bench.commit()
    bench.fail("rollout status deployment/writer")
    assert bench.deploy("batch-fetcher").code == 1
    assert specs(bench) == before


def test_a_switch_that_fails_leaves_the_old_type_alone_and_takes_the_new_one_away(bench: Bench) -> None:
    assert bench.deploy("queue-fetcher").code == 0
    before = specs(bench)
    bench.fail("rollout status deployment/writer")
    assert bench.deploy("batch-fetcher").code == 1
    assert specs(bench) == before
    assert "deployment/fetcher" in before
    assert not [call for call in bench.called("delete") if "fetch-type=queue-fetcher" in call]


def test_a_first_deploy_that_fails_keeps_what_holds_data(bench: Bench) -> None:
    bench.fail("rollout status deployment/writer")
    assert bench.deploy().code == 1
    assert set(specs(bench)) == {"namespace/feedmill-dev", "cluster/database", "rabbitmqcluster/broker"}


@pytest.mark.parametrize("call", ["wait rabbitmqcluster", "wait job/migrate", "rollout status deployment/writer"])
def test_ctrl_c_rolls_back_too(running: Bench, call: str) -> None:
    before = specs(running)
    running.fail(call, code=0, interrupt=True)
    done = running.deploy()
    assert done.code == 130, done
    assert "deploy.sh: interrupted" in done.err
    assert specs(running) == before
    assert running.records()[-1]["outcome"] == "rolled-back"
    assert running.records()[-1]["reason"] == "interrupted"


def test_why_is_said_with_events_logs_and_the_exit_code(running: Bench) -> None:
    running.fail("rollout status deployment/writer")
    running.cluster.replies["get pods"] = (
        "NAME READY STATUS RESTARTS AGE\nfetcher-1 0/1 Error 0 1m\n"
        "writer-1 0/1 CrashLoopBackOff 2 1m\nwriter-2 1/1 Running 0 1m\n"
    )
    running.cluster.replies["get pod writer-1"] = 'writer: {} before: {"terminated":{"exitCode":78}}\n'
    running.cluster.replies["get events"] = "Warning BackOff pod/writer-1\n"
    running.cluster.replies["logs writer-1"] = "FEEDMILL_FETCH_THREADS: not a number\n"
    done = running.deploy()
    assert "== Why deployment/writer is not ready" in done.out
    why = done.out[done.out.index("== Why") : done.out.index("== Rolling back")]
    assert "writer-1 0/1 CrashLoopBackOff" in why
    assert "fetcher-1" not in why
    assert '"exitCode":78' in why
    assert "FEEDMILL_FETCH_THREADS: not a number" in why
    assert "Warning BackOff" in why


def test_why_is_said_of_the_database(running: Bench) -> None:
    kind = "cluster.v1.postgresql.cnpg.io/database"
    running.fail(f"wait {kind}")
    running.cluster.replies[f"get {kind} -o jsonpath={{range"] = "Ready False: catalog missing\n"
    done = running.deploy()
    assert f"== Why {kind} is not ready\nReady False: catalog missing\n" in done.out


def test_a_rollback_that_fails_says_so(running: Bench) -> None:
    running.fail("rollout status deployment/writer", times=2)
    done = running.deploy()
    assert done.code == 1
    assert "the rollback failed too" in done.err
    assert "Rolled back" not in done.out
    assert running.records()[-1]["outcome"] == "rollback-failed"


def test_a_deploy_that_fails_leaves_no_tag_in_git(bench: Bench) -> None:
    bench.use("prod")
    bench.fail("rollout status")
    assert bench.deploy("queue-fetcher", "prod").code == 1
    assert git(bench.project, "tag") == ""
    assert git(bench.directory / "origin.git", "tag") == ""


@pytest.mark.parametrize(
    ("program", "sentence"), [("docker", "could not be built"), ("kind", "could not be loaded into the cluster")]
)
def test_an_image_that_can_not_be_had_stops_before_anything_changes(bench: Bench, program: str, sentence: str) -> None:
    (bench.directory / f"{program}-fails").touch()
    done = bench.deploy()
    assert done.code == 1
    assert sentence in done.err
    assert not [call for call in bench.changes() if "apply" in call]
    assert bench.records() == []


def test_ctrl_c_ends_a_push_that_hangs(bench: Bench) -> None:
    bench.use("prod")
    hangs = "[ $1 != push ] || { kill -INT $PPID; exec sleep 50; }"
    bench.program("docker", f"#!/bin/sh\n{hangs}\n[ $1 != buildx ] || {{ echo manifest unknown >&2; exit 1; }}\n")
    started = time.monotonic()
    done = bench.deploy("queue-fetcher", "prod")
    assert done.code == 130, done
    assert time.monotonic() - started < 40
    assert not [call for call in bench.changes() if "apply" in call]


def test_what_can_not_be_read_could_not_be_rolled_back(bench: Bench) -> None:
    bench.fail("get -f", "Error from server (Forbidden): you may not")
    done = bench.deploy()
    assert "Forbidden): you may not\ndeploy.sh: what is there can't be read, so it could not be rolled back" in done.err
    assert not [call for call in bench.changes() if "apply" in call]
