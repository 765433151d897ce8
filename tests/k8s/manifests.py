"""The objects that kustomize renders for an environment and a fetch type, and queries over them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from services.cli.broker_users import service_rights
from shared.settings import BrokerSettings

ROOT = Path(__file__).parents[2]
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""A tenth of the time, where PyYAML was built with it: the custom resources' definitions are megabytes."""

OVERLAYS = tuple(
    f"{environment}/{fetch_type}"
    for environment in ("dev", "staging", "prod")
    for fetch_type in ("queue-fetcher", "batch-fetcher")
)

Object = dict[str, Any]
Objects = Sequence[Object]


@cache
def render(overlay: str) -> tuple[Object, ...]:
    """Return the objects of `k8s/overlays/<overlay>`. Copy before you change one: they are rendered once."""
    return build(ROOT / "k8s" / "overlays" / overlay)


def build(directory: Path) -> tuple[Object, ...]:
    """Return the objects that kustomize renders from a directory."""
    done = subprocess.run(["kubectl", "kustomize", str(directory)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return tuple(yaml.load_all(done.stdout, Loader=LOADER))


def of_kind(objects: Objects, *kinds: str) -> list[Object]:
    return [one for one in objects if one["kind"] in kinds]


def find(objects: Objects, kind: str, name: str) -> Object:
    (found,) = (one for one in of_kind(objects, kind) if one["metadata"]["name"] == name)
    return found


def name_of(one: Object) -> str:
    return f"{one['kind']}/{one['metadata']['name']}"


@dataclass(frozen=True)
class Pod:
    """The template of one of our pods, and its owner."""

    owner: str
    kind: str
    labels: Mapping[str, str]
    spec: Object

    @property
    def containers(self) -> list[Object]:
        return [*self.spec.get("initContainers", ()), *self.spec["containers"]]


def pods(objects: Objects) -> Iterator[Pod]:
    """Yield the pods that our own workloads make."""
    for one in of_kind(objects, "Deployment", "Job"):
        yield _pod(one, one["spec"]["template"])
    for one in of_kind(objects, "CronJob"):
        yield _pod(one, one["spec"]["jobTemplate"]["spec"]["template"])


def _pod(owner: Object, template: Object) -> Pod:
    return Pod(owner["metadata"]["name"], owner["kind"], template["metadata"]["labels"], template["spec"])


def operator_pods(objects: Objects) -> dict[str, dict[str, str]]:
    """Return the labels that the operators give the pods of our custom resources.

    RabbitMQ: internal/metadata/label.go of the Cluster Operator. CloudNativePG: "Predefined labels" of its docs.
    """
    found = {}
    for one in of_kind(objects, "RabbitmqCluster"):
        name = one["metadata"]["name"]
        found[name] = {
            "app.kubernetes.io/name": name,
            "app.kubernetes.io/component": "rabbitmq",
            "app.kubernetes.io/part-of": "rabbitmq",
        }
    for one in of_kind(objects, "Cluster"):
        name = one["metadata"]["name"]
        found[name] = {"cnpg.io/cluster": name, "cnpg.io/podRole": "instance", "app.kubernetes.io/name": "postgresql"}
    for one in of_kind(objects, "Pooler"):
        found[one["metadata"]["name"]] = {
            "cnpg.io/cluster": one["spec"]["cluster"]["name"],
            "cnpg.io/podRole": "pooler",
            "cnpg.io/poolerName": one["metadata"]["name"],
            "app.kubernetes.io/name": "postgresql",
        }
    return found


def all_pods(objects: Objects) -> dict[str, Mapping[str, str]]:
    """Return the labels of every pod of the namespace, by its owner."""
    return {**{pod.owner: pod.labels for pod in pods(objects)}, **operator_pods(objects)}


def secrets(objects: Objects) -> dict[str, set[str]]:
    """Return the secrets that the operators make for our custom resources, and deploy.sh for the broker's users.

    With the keys that we rely on.
    """
    users = service_rights(BrokerSettings().topology())
    found = {f"feedmill-broker-user-{name}": {"username", "password"} for name in users}
    for one in of_kind(objects, "RabbitmqCluster"):
        found[f"{one['metadata']['name']}-default-user"] = {"username", "password", "host", "port", "connection_string"}
    for one in of_kind(objects, "Cluster"):
        found[f"{one['metadata']['name']}-app"] = {"username", "password", "dbname", "host", "port", "uri"}
        found[f"{one['metadata']['name']}-ca"] = {"ca.crt", "ca.key"}
    return found


def services(objects: Objects) -> set[str]:
    """Return the names by which servers can be reached: those of the operators' Services."""
    names = {one["metadata"]["name"] for one in of_kind(objects, "RabbitmqCluster", "Pooler")}
    for one in of_kind(objects, "Cluster"):
        names |= {f"{one['metadata']['name']}-{kind}" for kind in ("rw", "ro", "r")}
    return names


def selects(selector: Object, labels: Mapping[str, str]) -> bool:
    """Return whether a label selector takes these labels; an empty one takes all."""
    if any(labels.get(key) != value for key, value in selector.get("matchLabels", {}).items()):
        return False
    for term in selector.get("matchExpressions", ()):
        value, values = labels.get(term["key"]), term.get("values", ())
        fits = {
            "In": value in values,
            "NotIn": value not in values,
            "Exists": value is not None,
            "DoesNotExist": value is None,
        }
        if not fits[term["operator"]]:
            return False
    return True


def environment(container: Object, objects: Objects) -> dict[str, str]:
    """Return a container's variables; those from secrets as words, `$(NAME)` expanded as the kubelet does."""
    found: dict[str, str] = {}
    for source in container.get("envFrom", ()):
        found |= find(objects, "ConfigMap", source["configMapRef"]["name"])["data"]
    for variable in container.get("env", ()):
        value = variable.get("value", "from-a-secret")
        for name in [one["name"] for one in container["env"]]:
            if name in found:
                value = value.replace(f"$({name})", found[name])
        found[variable["name"]] = value
    return found
