"""Rules for our own pods. Each check yields a message for each violation."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.k8s.manifests import Object, Objects, name_of, of_kind, pods, selects

UID = 10001
"""The image's user."""


def pods_are_restricted(objects: Objects) -> Iterator[str]:
    """The profile `restricted` of Kubernetes' pod security standards, and a file system that can't be written to."""
    for pod in pods(objects):
        yield from (f"{pod.owner}: {wrong}" for wrong in _loose_in_pod(pod.spec))
        for container in pod.containers:
            yield from (f"{pod.owner}: {wrong}" for wrong in _loose_in_container(container))


def _loose_in_pod(spec: Object) -> Iterator[str]:
    context = spec.get("securityContext", {})
    if context.get("runAsNonRoot") is not True or {context.get("runAsUser"), context.get("runAsGroup")} != {UID}:
        yield f"does not run as {UID}"
    if context.get("seccompProfile", {}).get("type") != "RuntimeDefault":
        yield "no seccomp profile"
    if any(spec.get(key) for key in ("hostNetwork", "hostPID", "hostIPC")):
        yield "shares a namespace of its node"
    if any("hostPath" in volume for volume in spec.get("volumes", ())):
        yield "mounts a path of its node"


def _loose_in_container(container: Object) -> Iterator[str]:
    context = container.get("securityContext", {})
    if context.get("allowPrivilegeEscalation") is not False or context.get("privileged"):
        yield "may gain privileges"
    if context.get("readOnlyRootFilesystem") is not True:
        yield "may write to its root file system"
    if context.get("capabilities") != {"drop": ["ALL"]}:
        yield "keeps capabilities"
    if {"runAsUser", "runAsNonRoot", "seccompProfile"} & context.keys():
        yield "a container overrides what its pod says"
    if any("hostPort" in port for port in container.get("ports", ())):
        yield "takes a port of its node"


def temporary_files_are_bounded(objects: Objects) -> Iterator[str]:
    for pod in pods(objects):
        for volume in pod.spec.get("volumes", ()):
            if "emptyDir" in volume and "sizeLimit" not in volume["emptyDir"]:
                yield f"{pod.owner}: {volume['name']} may fill its node's disk"


def deployments_are_probed(objects: Objects) -> Iterator[str]:
    paths = {"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"}
    for pod in pods(objects):
        if pod.kind != "Deployment":
            continue
        (container,) = pod.spec["containers"]
        for probe, path in paths.items():
            if container.get(probe, {}).get("httpGet") != {"path": path, "port": "http"}:
                yield f"{pod.owner}: {probe} does not ask {path}"
        if [port["name"] for port in container.get("ports", ())] not in (["http"], ["http", "api"]):
            yield f"{pod.owner}: has no port named http"


def tokens_stay_out(objects: Objects) -> Iterator[str]:
    accounts = {one["metadata"]["name"]: one for one in of_kind(objects, "ServiceAccount")}
    for account in accounts.values():
        if account.get("automountServiceAccountToken") is not False:
            yield f"{name_of(account)}: hands out its token"
    for pod in pods(objects):
        if pod.spec.get("serviceAccountName") != pod.owner or pod.owner not in accounts:
            yield f"{pod.owner}: has no account of its own"
        if pod.spec.get("automountServiceAccountToken") is not False:
            yield f"{pod.owner}: mounts a token"
    if of_kind(objects, "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"):
        yield "somebody is given rights on the API server"


def environment_is_ours_alone(objects: Objects) -> Iterator[str]:
    """Service links would add variables `FEEDMILL_…` of the cluster's own to our settings."""
    for pod in pods(objects):
        if pod.spec.get("enableServiceLinks") is not False:
            yield f"{pod.owner}: gets a variable for each Service"


def secrets_are_referred_to(objects: Objects) -> Iterator[str]:
    yield from (f"{name_of(one)}: a secret among the manifests" for one in of_kind(objects, "Secret"))
    for one in of_kind(objects, "ConfigMap"):
        for key, value in one.get("data", {}).items():
            if re.search(r"PASSWORD|SECRET|TOKEN|_URL$", key) and key != "FEEDMILL_CONTACT_URL":
                yield f"{name_of(one)}: {key} belongs into a secret"
            if _credentials(value):
                yield f"{name_of(one)}: {key} holds credentials"
    for pod in pods(objects):
        for container in pod.containers:
            for variable in container.get("env", ()):
                value = variable.get("value", "")
                if _credentials(value) or (value and re.search(r"PASSWORD|USERNAME", variable["name"])):
                    yield f"{pod.owner}: {variable['name']} holds credentials"


def variables_are_expanded(objects: Objects) -> Iterator[str]:
    """The kubelet leaves `$(NAME)` as it is where NAME is not defined further up."""
    for pod in pods(objects):
        for container in pod.containers:
            known: set[str] = set()
            for variable in container.get("env", ()):
                for name in re.findall(r"\$\((\w+)\)", variable.get("value", "")):
                    if name not in known:
                        yield f"{pod.owner}: {variable['name']} refers to {name}, which is not defined before it"
                known.add(variable["name"])


def _credentials(value: str) -> bool:
    """Return whether a URL holds a password that is not a reference."""
    match = re.search(r"://[^/@]*:([^/@]*)@", value)
    return match is not None and not re.fullmatch(r"\$\(\w+\)", match[1])


def deployments_are_spread(objects: Objects) -> Iterator[str]:
    for pod in pods(objects):
        if pod.kind != "Deployment":
            continue
        constraints = pod.spec.get("topologySpreadConstraints", ())
        keys = {one["topologyKey"] for one in constraints if selects(one["labelSelector"], pod.labels)}
        if keys != {"kubernetes.io/hostname", "topology.kubernetes.io/zone"}:
            yield f"{pod.owner}: is not spread over nodes and zones, or by labels that it does not have"
