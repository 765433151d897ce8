"""Deploys that succeed: the order of calls, the objects left behind, and switching the fetch type."""

from __future__ import annotations

import re

import pytest

from tests.deploy.conftest import Bench, git
from tests.deploy.fake_cluster import Object


def test_the_steps_of_a_deploy_in_their_order(bench: Bench) -> None:
    done = bench.deploy()
    assert done.code == 0, done
    common = re.compile(
        r" --(context|namespace|timeout|ignore-not-found|from-literal)\S*| on \S+, process \d+| -f \S+| -l"
    )
    verbs = [
        re.sub(r"\d{8}-\d{6}-\d{3}", "TIME", common.sub("", " ".join(call)))
        for call in bench.cluster.calls
        if call[0] in ("apply", "wait", "rollout", "diff", "delete", "create") and "fetch-type" not in " ".join(call)
    ]
    assert verbs == [
        "apply --dry-run=server feedmill.dev/phase!=2-migrate",
        "create --dry-run=server feedmill.dev/phase=2-migrate",
        "diff feedmill.dev/phase!=2-migrate",
        "create configmap feedmill-deploy-lock",
        "apply feedmill.dev/phase=1-foundation",
        "wait cluster.v1.postgresql.cnpg.io/database --for=condition=Ready",
        "wait cluster.v1.postgresql.cnpg.io/database --for=jsonpath={.status.phase}=Cluster in healthy state",
        "wait rabbitmqcluster.v1beta1.rabbitmq.com/broker --for=jsonpath={.status.observedGeneration}=1",
        "rollout status statefulset/broker-server",
        "wait rabbitmqcluster.v1beta1.rabbitmq.com/broker --for=condition=AllReplicasReady",
        "delete job app.kubernetes.io/part-of=feedmill,feedmill.dev/phase=2-migrate",
        "apply feedmill.dev/phase=2-migrate",
        "wait job/migrate --for=condition=complete",
        "apply feedmill.dev/phase=3-services",
        "rollout status deployment/fetcher",
        "rollout status deployment/writer",
        "create configmap feedmill-deploy-TIME",
        "delete configmap feedmill-deploy-lock",
    ]
    commit = git(bench.project, "rev-parse", "HEAD")
    (record,) = bench.records()
    assert record["outcome"] == "deployed"
    assert record["commit"] == commit
    assert record["image"] == f"feedmill:{commit[:12]}"
    assert record["type"] == "queue-fetcher"
    assert [call.split()[:2] for call in bench.other_calls] == [
        ["docker", "image"],
        ["docker", "build"],
        ["kind", "load"],
    ]
    assert git(bench.project, "tag") == "", "dev leaves no tags"


def test_prod_pushes_the_image_and_a_tag_of_git(bench: Bench) -> None:
    bench.use("prod")
    done = bench.deploy("queue-fetcher", "prod")
    assert done.code == 0, done
    assert [call.split()[1] for call in bench.other_calls] == ["buildx", "build", "push", "buildx"]
    tag = git(bench.project, "tag")
    assert re.fullmatch(r"deploy/prod/\d{8}-\d{6}-\d{3}", tag)
    assert tag in git(bench.directory / "origin.git", "tag")
    assert git(bench.project, "rev-parse", f"{tag}^{{commit}}") == git(bench.project, "rev-parse", "HEAD")
    assert "Deployed: queue-fetcher, registry.example.org/mill/feedmill:" in done.out


def test_an_image_that_is_there_is_not_built(bench: Bench) -> None:
    bench.use("staging")
    bench.images.add("registry.example.org/mill/feedmill:v1")
    assert bench.deploy("queue-fetcher", "staging", "-t", "v1").code == 0
    assert [call.split()[1] for call in bench.other_calls] == ["buildx"]


def test_build_only_builds_and_touches_no_cluster(bench: Bench) -> None:
    bench.use("prod")
    done = bench.run("-T", "queue-fetcher", "-e", "prod", "-b", "-t", "v2")
    assert done.code == 0, done
    assert [call[0] for call in bench.cluster.calls] == ["kustomize"] * 2
    (call,) = bench.other_calls
    commit = git(bench.project, "rev-parse", "HEAD")
    assert (
        f"docker build --tag registry.example.org/mill/feedmill:v2 --label org.opencontainers.image.revision={commit}"
        in call
    )


def test_a_version_tag_names_the_image(bench: Bench) -> None:
    git(bench.project, "tag", "--annotate", "v0.2.0", "--message", "A release")
    git(bench.project, "tag", "deploy/prod/20260101-000000")
    done = bench.run("-T", "queue-fetcher", "-e", "dev", "-n")
    assert "image: feedmill:0.2.0\n" in done.out, "the name that CI gives it"


def test_yes_asks_nothing(bench: Bench) -> None:
    done = bench.run("-T", "queue-fetcher", "-e", "dev", "-y")
    assert done.code == 0
    assert "[y/N]" not in done.out


def test_the_first_deploy_makes_the_namespace_and_waits_for_operators_secrets(bench: Bench) -> None:
    bench.cluster.objects = {}
    bench.edit("k8s/base/all.yaml", "            - secretRef: {name: people-made-this}\n", "")
    bench.commit()
    bench.fail("get secret .*database-app", 'Error from server (NotFound): secrets "database-app" not found')
    done = bench.deploy()
    assert done.code == 1, done
    assert "Everything is new: there is no namespace feedmill-dev." in done.out
    assert "secrets are missing in the namespace feedmill-dev" in done.err
    bench.cluster.objects["secret/database-app"] = Object("Secret")
    assert bench.deploy().code == 0


def test_switching_the_type_leaves_nothing_of_the_other(bench: Bench) -> None:
    assert bench.deploy("queue-fetcher").code == 0
    before = set(bench.cluster.objects)
    done = bench.deploy("batch-fetcher")
    assert done.code == 0, done
    now = set(bench.cluster.objects)
    assert before - now == {"deployment/fetcher", "scaledobject/fetcher"}
    assert "cronjob/batch" in now
    assert "deployment/writer" in now
    removed = [call for call in bench.called("delete") if "fetcher" in call]
    last_wait = max(i for i, call in enumerate(bench.cluster.calls) if call[:2] == ["rollout", "status"])
    first_removal = min(i for i, call in enumerate(bench.cluster.calls) if " ".join(call) in removed)
    assert first_removal > last_wait, "the other type goes when this one is up"
    assert all("--cascade=foreground --timeout=600s" in call for call in removed)
    assert bench.deploy("queue-fetcher").code == 0
    assert "cronjob/batch" not in bench.cluster.objects


def test_ctrl_c_ends_a_deletion_that_hangs(bench: Bench) -> None:
    assert bench.deploy("queue-fetcher").code == 0
    bench.fail("delete deployment/fetcher", code=0, interrupt=True)
    done = bench.deploy("batch-fetcher")
    assert done.code == 130, done
    assert "Rolling back" not in done.out
    assert bench.records()[-1]["outcome"] == "incomplete"


def test_a_changed_foundation_is_waited_for_in_its_new_generation(bench: Bench) -> None:
    assert bench.deploy().code == 0
    bench.program("sleep", f"#!/bin/sh\necho sleep $* >>'{bench.directory}/other_calls'\n")
    bench.edit("k8s/base/all.yaml", "replicas: 3", "replicas: 5")
    bench.commit()
    assert bench.deploy().code == 0
    assert any("{.status.observedGeneration}=2 " in call for call in bench.called("wait"))
    assert "sleep 0" not in bench.other_calls, "the database did not change"
    bench.edit("k8s/base/all.yaml", "instances: 3", "instances: 2")
    bench.commit()
    assert bench.deploy().code == 0
    assert "sleep 0" in bench.other_calls


def test_a_job_that_somebody_made_of_the_cron_job_is_waited_for(bench: Bench) -> None:
    assert bench.deploy("batch-fetcher").code == 0
    labels = {"app.kubernetes.io/part-of": "feedmill", "feedmill.dev/fetch-type": "batch-fetcher"}
    bench.cluster.objects["job/by-hand"] = Object("Job", labels, owned=True)
    bench.cluster.objects["pod/by-hand-1"] = Object("Pod", labels, owned=True)
    policy = labels | {"feedmill.dev/phase": "1-foundation"}
    bench.cluster.objects["networkpolicy/batch"] = Object("NetworkPolicy", policy)
    assert bench.deploy("queue-fetcher").code == 0
    deleted = [call.split()[1] for call in bench.called("delete") if "--cascade=foreground" in call]
    assert deleted == ["job/by-hand", "cronjob/batch", "networkpolicy/batch"]


def test_orphans_that_stay_are_said_and_nothing_is_rolled_back(bench: Bench) -> None:
    assert bench.deploy("queue-fetcher").code == 0
    bench.fail("delete deployment/fetcher", "Error from server (Forbidden): you may not")
    done = bench.deploy("batch-fetcher")
    assert done.code == 1
    assert "deploy.sh: batch-fetcher is up, but objects of queue-fetcher could not be removed" in done.err
    assert "Rolling back" not in done.out
    assert bench.records()[-1]["outcome"] == "incomplete"


def test_a_server_that_can_not_list_does_not_look_like_one_that_has_nothing(bench: Bench) -> None:
    assert bench.deploy("queue-fetcher").code == 0
    bench.fail("^get .*deployments.* -l app", "The connection to the server was refused")
    done = bench.deploy("batch-fetcher")
    assert done.code == 1
    assert "deploy.sh: what is there can't be listed (see above)" in done.err


def test_objects_that_a_former_release_had_are_named_and_left(bench: Bench) -> None:
    labels = {"app.kubernetes.io/part-of": "feedmill"}
    left = {"deployment/enricher": "Deployment", "lease/old": "Lease"}  # manifests have Deployments, and no Leases
    for key, kind in left.items():
        bench.cluster.objects[key] = Object(kind, labels)
    bench.cluster.objects["persistentvolumeclaim/data"] = Object("PersistentVolumeClaim", labels, owned=True)
    done = bench.deploy()
    said = [line for line in done.out.splitlines() if line.startswith("No longer in the manifests, left alone: ")]
    assert [line.split(": ")[1].split()[0] for line in said] == list(left)
    assert left.keys() <= bench.cluster.objects.keys()


def test_kinds_that_can_not_be_listed_are_said(bench: Bench) -> None:
    bench.fail(
        "get .*leases", 'Error from server (Forbidden): leases is forbidden: User "ci" cannot list resource "leases" in'
    )
    bench.cluster.objects["lease/old"] = Object("Lease")
    assert "not looked at, since they can't be listed: leases\n" in bench.deploy().err


def test_generated_config_maps_stay_as_long_as_something_refers_to_them(bench: Bench) -> None:
    manifests = bench.project / "k8s/overlays/dev/queue-fetcher/kustomization.yaml"
    made: list[str] = []
    for threads in range(3):
        text = manifests.read_text()
        manifests.write_text(re.sub(r"THREADS=\d+", f"THREADS={threads + 1}", text))
        bench.commit()
        assert bench.deploy().code == 0
        made += sorted({key for key in bench.cluster.objects if "feedmill-settings-" in key}.difference(made))
        if threads == 0:
            bench.cluster.objects["configmap/feedmill-settings-people"] = Object(
                "ConfigMap", {"app.kubernetes.io/part-of": "feedmill"}
            )
            made.append("configmap/feedmill-settings-people")
    there = {key for key in bench.cluster.objects if "feedmill-settings-" in key}
    assert there == set(made), "the writer's former revisions refer to them"
    bench.cluster.objects["deployment/writer"].former.clear()
    assert bench.deploy().code == 0
    there = {key for key in bench.cluster.objects if "feedmill-settings-" in key}
    assert there == {"configmap/feedmill-settings-people", made[-1]}


def test_two_deploys_at_a_time_are_one_too_many(bench: Bench) -> None:
    bench.cluster.objects["configmap/feedmill-deploy-lock"] = Object(
        "ConfigMap", data={"holder": "somebody on a laptop, process 7", "since": "noon"}
    )
    done = bench.deploy()
    assert done.code == 1
    assert "another deploy is under way: somebody on a laptop, process 7, since noon\n" in done.err
    assert "If that process has ended, the deploy is dead (it is now 2" in done.err
    assert "kubectl delete configmap feedmill-deploy-lock --context=kind-mill --namespace=feedmill-dev" in done.err
    assert not bench.called("apply", "-f")
    assert "configmap/feedmill-deploy-lock" in bench.cluster.objects, "it is somebody else's"


def test_a_signal_while_the_lock_is_made_leaves_no_lock(bench: Bench) -> None:
    bench.fail("create configmap feedmill-deploy-lock", code=0, interrupt=True)
    done = bench.deploy()
    assert done.code == 130
    assert bench.called("create", "configmap", "feedmill-deploy-lock")
    assert "configmap/feedmill-deploy-lock" not in bench.cluster.objects


def test_twenty_records_are_kept(bench: Bench) -> None:
    for number in range(20):
        labels = {"feedmill.dev/record": "deploy"}
        bench.cluster.objects[f"configmap/feedmill-deploy-1{number:02}"] = Object("ConfigMap", labels)
    assert bench.deploy().code == 0
    kept = [key for key, one in bench.cluster.objects.items() if one.labels.get("feedmill.dev/record")]
    assert len(kept) == 20
    assert "configmap/feedmill-deploy-100" not in kept


def test_users_of_the_broker_are_given_a_password_once_and_nobody_sees_it(bench: Bench) -> None:
    del bench.cluster.objects["secret/broker-user-writer"]
    first = bench.deploy()
    assert first.code == 0, first
    made = bench.cluster.objects["secret/broker-user-writer"].data
    assert made["username"] == "writer"
    assert re.fullmatch(r"[\w-]{32}", made["password"])
    assert made["password"] not in first.all + str(bench.cluster.calls)
    created = [call for call in bench.changes() if "secret" in call or "phase=2-migrate" in call]
    assert "create secret generic broker-user-writer" in created[0], "before the Job that makes the user"
    assert bench.deploy().code == 0
    assert bench.cluster.objects["secret/broker-user-writer"].data == made


def test_a_password_that_can_not_be_kept_stops_the_deploy_before_the_migration(bench: Bench) -> None:
    del bench.cluster.objects["secret/broker-user-writer"]
    bench.fail("create secret", "Error from server (Forbidden): no")
    run = bench.deploy()
    assert run.code == 1
    assert "the secret broker-user-writer can't be made: Error from server (Forbidden): no" in run.err
    assert "job/migrate" not in bench.cluster.objects


DIGEST = "sha256:" + "5e" * 32
REGISTRY = """#!/bin/bash
case "$*" in
  "push "*) echo "$2" >>"DIRECTORY/images" ;;
  "buildx imagetools inspect"*)
    grep -qxF "${@: -1}" "DIRECTORY/images" || { echo "ERROR: ${@: -1}: not found" >&2; exit 1; }
    SAYS ;;
esac
"""


@pytest.mark.parametrize("is_there", [True, False])
def test_prod_names_its_image_by_the_digest_that_the_registry_has(bench: Bench, is_there: bool) -> None:
    bench.use("prod")
    bench.program("docker", REGISTRY.replace("DIRECTORY", str(bench.directory)).replace("SAYS", f"echo {DIGEST}"))
    image = f"registry.example.org/mill/feedmill:{git(bench.project, 'rev-parse', '--short=12', 'HEAD')}"
    if is_there:
        bench.images.add(image)
    done = bench.deploy("queue-fetcher", "prod")
    assert done.code == 0, done
    for name in ("deployment/writer", "deployment/fetcher", "job/migrate"):
        assert f"{image}@{DIGEST}" in bench.cluster.objects[name].spec
    assert bench.records()[-1]["image"] == f"{image}@{DIGEST}"


@pytest.mark.parametrize("says", ["echo unauthorized >&2; exit 1", "echo nothing-like-it", "true"])
def test_prod_is_not_deployed_without_a_digest(bench: Bench, says: str) -> None:
    bench.use("prod")
    bench.program("docker", REGISTRY.replace("DIRECTORY", str(bench.directory)).replace("SAYS", says))
    done = bench.deploy("queue-fetcher", "prod")
    assert done.code == 1
    assert "the registry can't be asked for registry.example.org/mill/feedmill:" in done.err
    assert not [call for call in bench.changes() if "apply" in call]


def test_prod_is_told_which_images_of_others_have_a_tag_only(bench: Bench) -> None:
    bench.edit("k8s/base/all.yaml", "spec: {replicas: 3}", "spec: {replicas: 3, image: 'rabbitmq:4.3.4-management'}")
    bench.commit()
    for environment, told in (("dev", False), ("prod", True)):
        bench.use(environment)
        done = bench.run("-T", "queue-fetcher", "-e", environment, "-n")
        assert ("Not pinned by a digest" in done.err) == told
    assert "(make pin-images): rabbitmq:4.3.4-management\n" in done.err
    bench.edit("k8s/base/all.yaml", "4.3.4-management", f"4.3.4-management@{DIGEST}")
    bench.commit()
    assert "Not pinned by a digest" not in bench.run("-T", "queue-fetcher", "-e", "prod", "-n").err
