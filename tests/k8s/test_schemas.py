"""Every object is one that an API server takes, for each version in support and each custom resource's schema."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.k8s.manifests import Object, find, name_of, render
from tests.k8s.schemas import CRDS, VERSIONS, custom_problems, custom_schemas, is_custom, problems

needs_crds = pytest.mark.skipif(not CRDS.is_dir(), reason=f"needs the custom resources' definitions in {CRDS}")


@pytest.mark.parametrize("version", VERSIONS)
def test_plain_objects_are_valid(objects: tuple[Object, ...], version: str) -> None:
    assert {
        name_of(one): problems(one, version) for one in objects if not is_custom(one) and problems(one, version)
    } == {}


@needs_crds
def test_custom_resources_are_valid(objects: tuple[Object, ...]) -> None:
    assert {name_of(one): custom_problems(one) for one in objects if is_custom(one) and custom_problems(one)} == {}


@needs_crds
def test_every_kind_of_custom_resource_has_a_schema() -> None:
    kinds = {(one["apiVersion"], one["kind"]) for one in render("prod/queue-fetcher") if is_custom(one)}
    assert len(kinds) >= 7
    assert kinds <= set(custom_schemas())


def set_at(one: Object, path: str, value: Any) -> Object:
    changed = copy.deepcopy(one)
    *way, last = path.split("/")
    inner: Any = changed
    for step in way:
        inner = inner[int(step)] if step.isdecimal() else inner[step]
    inner[last] = value
    return changed


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec/replica", 2),  # misspelt
        ("spec/replicas", "two"),
        ("spec/template/spec/containers/0/livenessprobe", {}),
        ("spec/template/spec/containers/0/resources/limit", {}),
    ],
)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_wrong_field_of_a_plain_object_is_found(version: str, path: str, value: Any) -> None:
    deployment = find(render("prod/queue-fetcher"), "Deployment", "feedmill-scheduler")
    assert problems(set_at(deployment, path, value), version)


@needs_crds
@pytest.mark.parametrize(
    ("kind", "name", "path", "value"),
    [
        ("RabbitmqCluster", "feedmill-broker", "spec/replica", 3),
        ("RabbitmqCluster", "feedmill-broker", "spec/rabbitmq/additionalConf", ""),
        ("RabbitmqCluster", "feedmill-broker", "spec/replicas", -1),
        ("Cluster", "feedmill-database", "spec/postgresql/synchronous/method", "all"),
        ("Cluster", "feedmill-database", "spec/postgresql/parameters/max_connections", 100),  # a string it must be
        ("Pooler", "feedmill-database-pooler-rw", "spec/pgbouncer/poolMode", "statement"),
        ("ScaledObject", "feedmill-fetcher", "spec/maxReplicas", 12),
        ("ScaledObject", "feedmill-fetcher", "spec/triggers/0/metadata/value", 400),
        ("TriggerAuthentication", "feedmill-broker", "spec/secretTargetRef/0/secret", "x"),
        ("ServiceMonitor", "feedmill", "spec/endpoint", []),
        ("PodMonitor", "feedmill-database", "spec/podMetricsEndpoints/0/ports", "metrics"),
    ],
)
def test_a_wrong_field_of_a_custom_resource_is_found(kind: str, name: str, path: str, value: Any) -> None:
    assert custom_problems(set_at(find(render("prod/queue-fetcher"), kind, name), path, value))
