"""Our policies hold for every environment, and each of them can fail."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.k8s import pod_policies, policies
from tests.k8s.manifests import Object, find, of_kind, render
from tests.k8s.policies import CHECKS, Check

Break = Callable[[list[Object]], Any]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_policy_holds(objects: tuple[Object, ...], check: Check) -> None:
    assert list(check(objects)) == []


def pod_spec(objects: list[Object], name: str = "feedmill-fetcher") -> Any:
    return find(objects, "Deployment", name)["spec"]["template"]["spec"]


def container(objects: list[Object], name: str = "feedmill-fetcher") -> Any:
    return pod_spec(objects, name)["containers"][0]


def spec(objects: list[Object], kind: str, name: str) -> Any:
    return find(objects, kind, name)["spec"]


def labels(objects: list[Object], kind: str, name: str) -> Any:
    return find(objects, kind, name)["metadata"]["labels"]


def drop(objects: list[Object], kind: str, name: str) -> None:
    objects.remove(find(objects, kind, name))


def another_budget(objects: list[Object]) -> None:
    second = copy.deepcopy(find(objects, "PodDisruptionBudget", "feedmill-writer"))
    second["metadata"]["name"] = "again"
    objects.append(second)


BROKEN: list[tuple[Check, Break]] = [
    (policies.images_are_pinned, lambda o: container(o).update(image="feedmill")),
    (policies.images_are_pinned, lambda o: container(o).update(image="feedmill:latest")),
    (policies.images_are_pinned, lambda o: container(o).update(image="registry.example:5000/feedmill")),
    (
        policies.images_are_pinned,
        lambda o: spec(o, "RabbitmqCluster", "feedmill-broker").update(image="rabbitmq:management"),
    ),
    (policies.images_are_pinned, lambda o: spec(o, "Cluster", "feedmill-database").pop("imageCatalogRef")),
    (pod_policies.pods_are_restricted, lambda o: pod_spec(o)["securityContext"].update(runAsUser=0)),
    (pod_policies.pods_are_restricted, lambda o: pod_spec(o)["securityContext"].pop("runAsNonRoot")),
    (pod_policies.pods_are_restricted, lambda o: pod_spec(o)["securityContext"].pop("seccompProfile")),
    (pod_policies.pods_are_restricted, lambda o: pod_spec(o).update(hostNetwork=True)),
    (
        pod_policies.pods_are_restricted,
        lambda o: pod_spec(o)["volumes"].append({"name": "x", "hostPath": {"path": "/"}}),
    ),
    (pod_policies.pods_are_restricted, lambda o: container(o)["securityContext"].pop("allowPrivilegeEscalation")),
    (pod_policies.pods_are_restricted, lambda o: container(o)["securityContext"].pop("readOnlyRootFilesystem")),
    (
        pod_policies.pods_are_restricted,
        lambda o: container(o)["securityContext"]["capabilities"].update(add=["NET_RAW"]),
    ),
    (pod_policies.pods_are_restricted, lambda o: container(o)["securityContext"].update(runAsUser=0)),
    (pod_policies.pods_are_restricted, lambda o: container(o)["ports"][0].update(hostPort=8000)),
    (policies.namespace_enforces_it, lambda o: drop(o, "Namespace", "feedmill")),
    (
        policies.namespace_enforces_it,
        lambda o: labels(o, "Namespace", "feedmill").update({"pod-security.kubernetes.io/enforce": "baseline"}),
    ),
    (policies.resources_are_bounded, lambda o: container(o)["resources"]["limits"].pop("memory")),
    (policies.resources_are_bounded, lambda o: container(o)["resources"]["requests"].update(cpu="3")),
    (policies.resources_are_bounded, lambda o: spec(o, "RabbitmqCluster", "feedmill-broker").pop("resources")),
    (policies.resources_are_bounded, lambda o: spec(o, "Pooler", "feedmill-database-pooler-rw").pop("template")),
    (pod_policies.temporary_files_are_bounded, lambda o: pod_spec(o)["volumes"][0].update(emptyDir={})),
    (pod_policies.deployments_are_probed, lambda o: container(o).pop("startupProbe")),
    (pod_policies.deployments_are_probed, lambda o: container(o)["livenessProbe"]["httpGet"].update(path="/readyz")),
    (pod_policies.deployments_are_probed, lambda o: container(o)["ports"][0].update(name="metrics")),
    (
        pod_policies.tokens_stay_out,
        lambda o: find(o, "ServiceAccount", "feedmill-fetcher").pop("automountServiceAccountToken"),
    ),
    (pod_policies.tokens_stay_out, lambda o: pod_spec(o).pop("automountServiceAccountToken")),
    (pod_policies.tokens_stay_out, lambda o: pod_spec(o).pop("serviceAccountName")),
    (pod_policies.tokens_stay_out, lambda o: o.append({"kind": "ClusterRole", "metadata": {"name": "all"}})),
    (pod_policies.environment_is_ours_alone, lambda o: pod_spec(o).pop("enableServiceLinks")),
    (pod_policies.secrets_are_referred_to, lambda o: o.append({"kind": "Secret", "metadata": {"name": "broker"}})),
    (
        pod_policies.secrets_are_referred_to,
        lambda o: of_kind(o, "ConfigMap")[0]["data"].update(FEEDMILL_AMQP_URL="amqp://broker/"),
    ),
    (
        pod_policies.secrets_are_referred_to,
        lambda o: of_kind(o, "ConfigMap")[0]["data"].update(PROXY="http://me:secret@proxy"),
    ),
    (
        pod_policies.secrets_are_referred_to,
        lambda o: container(o)["env"][2].update(value="amqp://feedmill:secret@broker/"),
    ),
    (
        pod_policies.secrets_are_referred_to,
        lambda o: container(o)["env"].append({"name": "RABBITMQ_PASSWORD", "value": "secret"}),
    ),
    (pod_policies.variables_are_expanded, lambda o: container(o)["env"].reverse()),
    (pod_policies.variables_are_expanded, lambda o: container(o)["env"].pop(0)),
    (policies.references_resolve, lambda o: container(o)["envFrom"][0]["configMapRef"].update(name="feedmill-config")),
    (policies.references_resolve, lambda o: container(o)["env"][0]["valueFrom"]["secretKeyRef"].update(key="user")),
    (
        policies.references_resolve,
        lambda o: pod_spec(o, "feedmill-writer")["volumes"][1]["secret"].update(secretName="feedmill-ca"),
    ),
    (policies.references_resolve, lambda o: drop(o, "Deployment", "feedmill-fetcher")),
    (policies.references_resolve, lambda o: drop(o, "Deployment", "feedmill-api")),
    (policies.references_resolve, lambda o: drop(o, "TriggerAuthentication", "feedmill-broker")),
    (policies.references_resolve, lambda o: drop(o, "Cluster", "feedmill-database")),
    (policies.labels_are_complete, lambda o: labels(o, "Deployment", "feedmill-fetcher").pop("feedmill.dev/phase")),
    (
        policies.labels_are_complete,
        lambda o: labels(o, "Deployment", "feedmill-fetcher").pop("feedmill.dev/fetch-type"),
    ),
    (policies.labels_are_complete, lambda o: labels(o, "Service", "feedmill-metrics").pop("app.kubernetes.io/part-of")),
    (
        policies.labels_are_complete,
        lambda o: spec(o, "Deployment", "feedmill-writer")["selector"]["matchLabels"].update(version="1"),
    ),
    (
        policies.namespace_is_one,
        lambda o: find(o, "ScaledObject", "feedmill-writer")["metadata"].update(namespace="default"),
    ),
    (
        policies.namespace_is_one,
        lambda o: spec(o, "ScaledObject", "feedmill-writer")["triggers"][0]["metadata"].update(
            host="http://feedmill-broker.feedmill-staging.svc:15672/"
        ),
    ),
    (policies.budgets_let_nodes_drain, lambda o: drop(o, "PodDisruptionBudget", "feedmill-writer")),
    (policies.budgets_let_nodes_drain, another_budget),
    (
        policies.budgets_let_nodes_drain,
        lambda o: find(o, "PodDisruptionBudget", "feedmill-writer").update(
            spec={"minAvailable": 2, "selector": spec(o, "PodDisruptionBudget", "feedmill-writer")["selector"]}
        ),
    ),
    (
        policies.budgets_let_nodes_drain,
        lambda o: spec(o, "PodDisruptionBudget", "feedmill-fetcher").update(maxUnavailable="0%"),
    ),
    (
        policies.budgets_let_nodes_drain,
        lambda o: spec(o, "PodDisruptionBudget", "feedmill-broker")["selector"]["matchLabels"].update({"app": "x"}),
    ),
    (pod_policies.deployments_are_spread, lambda o: pod_spec(o)["topologySpreadConstraints"].pop()),
    (
        pod_policies.deployments_are_spread,
        lambda o: pod_spec(o)["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"].update(app="fetcher"),
    ),
    (
        policies.rollouts_take_nothing_away,
        lambda o: spec(o, "Deployment", "feedmill-writer")["strategy"]["rollingUpdate"].update(maxUnavailable=1),
    ),
    (policies.one_decides_on_replicas, lambda o: spec(o, "Deployment", "feedmill-fetcher").update(replicas=2)),
    (policies.one_decides_on_replicas, lambda o: spec(o, "Deployment", "feedmill-api").update(replicas=2)),
    (
        policies.one_decides_on_replicas,
        lambda o: spec(o, "HorizontalPodAutoscaler", "feedmill-api").update(minReplicas=7),
    ),
    (policies.one_decides_on_replicas, lambda o: spec(o, "Deployment", "feedmill-scheduler").pop("replicas")),
    (policies.one_decides_on_replicas, lambda o: spec(o, "ScaledObject", "feedmill-fetcher").update(minReplicaCount=0)),
    (policies.quorums_are_odd, lambda o: spec(o, "RabbitmqCluster", "feedmill-broker").update(replicas=2)),
    (policies.quorums_are_odd, lambda o: spec(o, "Cluster", "feedmill-database")["postgresql"].pop("synchronous")),
    (policies.network_policies_select, lambda o: drop(o, "NetworkPolicy", "default-deny")),
    (
        policies.network_policies_select,
        lambda o: spec(o, "NetworkPolicy", "feedmill-writer")["podSelector"]["matchLabels"].update(app="writer"),
    ),
    (
        policies.network_policies_select,
        lambda o: spec(o, "NetworkPolicy", "feedmill-writer")["egress"][0]["to"][0].update(
            podSelector={"matchLabels": {"app": "rabbitmq"}}
        ),
    ),
    (policies.jobs_come_to_an_end, lambda o: spec(o, "Job", "feedmill-migrate").pop("activeDeadlineSeconds")),
    (policies.jobs_come_to_an_end, lambda o: spec(o, "CronJob", "feedmill-batch").update(concurrencyPolicy="Allow")),
]


@pytest.mark.parametrize(("check", "damage"), BROKEN)
def test_the_policy_can_fail(check: Check, damage: Break) -> None:
    overlay = "prod/batch-fetcher" if "CronJob" in damage.__code__.co_consts else "prod/queue-fetcher"
    changed = copy.deepcopy(list(render(overlay)))
    damage(changed)
    assert list(check(changed))


def test_each_policy_is_seen_to_fail() -> None:
    assert {check for check, _ in BROKEN} == set(CHECKS)
