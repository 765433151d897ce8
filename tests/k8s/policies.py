"""Rules for our manifests as a whole. Each check yields a message for each violation."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator

from tests.k8s import pod_policies
from tests.k8s.manifests import (
    Object,
    Objects,
    Pod,
    all_pods,
    name_of,
    of_kind,
    pods,
    secrets,
    selects,
)

Check = Callable[[Objects], Iterator[str]]

STABLE_LABELS = {"app.kubernetes.io/name", "app.kubernetes.io/component"}
"""The labels that selectors may use. They never change, since a Deployment's selector can't change."""

LABELS = {*STABLE_LABELS, "app.kubernetes.io/part-of", "app.kubernetes.io/managed-by"}
PHASES = {"1-foundation", "2-migrate", "3-services"}
OF_ONE_TYPE = {
    "queue-fetcher": {"feedmill-scheduler", "feedmill-fetcher", "keda-to-broker"},
    "batch-fetcher": {"feedmill-batch"},
}


def images_are_pinned(objects: Objects) -> Iterator[str]:
    images = [(pod.owner, one["image"]) for pod in pods(objects) for one in pod.containers]
    images += [(name_of(one), one["spec"].get("image", "")) for one in of_kind(objects, "RabbitmqCluster")]
    for owner, image in images:
        tag = image.rpartition("/")[2].partition(":")[2]
        if "@sha256:" not in image and (not tag or tag == "latest" or not re.search(r"\d", tag)):
            yield f"{owner}: image {image!r} names no version"
    for one in of_kind(objects, "Cluster"):
        if "major" not in one["spec"].get("imageCatalogRef", {}):
            yield f"{name_of(one)}: names no major version"


def namespace_enforces_it(objects: Objects) -> Iterator[str]:
    for one in of_kind(objects, "Namespace"):
        if one["metadata"]["labels"].get("pod-security.kubernetes.io/enforce") != "restricted":
            yield f"{name_of(one)}: does not enforce the profile restricted"
    if not of_kind(objects, "Namespace"):
        yield "there is no Namespace"


def resources_are_bounded(objects: Objects) -> Iterator[str]:
    found = [(pod.owner, one.get("resources", {})) for pod in pods(objects) for one in pod.containers]
    found += [
        (name_of(one), one["spec"].get("resources", {})) for one in of_kind(objects, "RabbitmqCluster", "Cluster")
    ]
    for one in of_kind(objects, "Pooler"):
        containers = one["spec"].get("template", {}).get("spec", {}).get("containers") or [{}]
        found += [(name_of(one), container.get("resources", {})) for container in containers]
    for owner, resources in found:
        for what in ("cpu", "memory"):
            request, limit = (resources.get(key, {}).get(what) for key in ("requests", "limits"))
            if request is None or limit is None:
                yield f"{owner}: no request or no limit of {what}"
            elif quantity(request) > quantity(limit):
                yield f"{owner}: asks for more {what} than it may have"


def quantity(text: str) -> float:
    """Return a Kubernetes quantity (`250m`, `1Gi`, `"2"`) as a number."""
    match = re.fullmatch(r"([\d.]+)([A-Za-z]*)", str(text))
    assert match, text
    factors = {"": 1, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
    return float(match[1]) * factors[match[2]]


def references_resolve(objects: Objects) -> Iterator[str]:
    """Every secret, key, config map and target that is named is there, or made by an operator."""
    known = secrets(objects)
    config_maps = {one["metadata"]["name"] for one in of_kind(objects, "ConfigMap")}
    for pod in pods(objects):
        for container in pod.containers:
            for source in container.get("envFrom", ()):
                if source["configMapRef"]["name"] not in config_maps:
                    yield f"{pod.owner}: no config map {source['configMapRef']['name']}"
        for name, key in _secret_references(pod):
            if key not in known.get(name, ()):
                yield f"{pod.owner}: no secret {name} with {key}"
    yield from _scaling_resolves(objects, known)
    clusters = {one["metadata"]["name"] for one in of_kind(objects, "Cluster")}
    for one in of_kind(objects, "Pooler"):
        if one["spec"]["cluster"]["name"] not in clusters:
            yield f"{name_of(one)}: no cluster {one['spec']['cluster']['name']}"


def _secret_references(pod: Pod) -> Iterator[tuple[str, str]]:
    for container in pod.containers:
        for variable in container.get("env", ()):
            if reference := variable.get("valueFrom", {}).get("secretKeyRef"):
                yield reference["name"], reference["key"]
    for volume in pod.spec.get("volumes", ()):
        for item in volume.get("secret", {}).get("items", ()):
            yield volume["secret"]["secretName"], item["key"]
        for source in volume.get("projected", {}).get("sources", ()):
            yield from ((source["secret"]["name"], item["key"]) for item in source["secret"]["items"])


def _scaling_resolves(objects: Objects, known: dict[str, set[str]]) -> Iterator[str]:
    deployments = {one["metadata"]["name"] for one in of_kind(objects, "Deployment")}
    authentications = {one["metadata"]["name"] for one in of_kind(objects, "TriggerAuthentication")}
    for one in of_kind(objects, "ScaledObject", "HorizontalPodAutoscaler"):
        if one["spec"]["scaleTargetRef"]["name"] not in deployments:
            yield f"{name_of(one)}: no Deployment {one['spec']['scaleTargetRef']['name']}"
    for one in of_kind(objects, "ScaledObject"):
        for trigger in one["spec"]["triggers"]:
            if trigger["authenticationRef"]["name"] not in authentications:
                yield f"{name_of(one)}: no TriggerAuthentication {trigger['authenticationRef']['name']}"
    for one in of_kind(objects, "TriggerAuthentication"):
        for reference in one["spec"]["secretTargetRef"]:
            if reference["key"] not in known.get(reference["name"], ()):
                yield f"{name_of(one)}: no secret {reference}"


def labels_are_complete(objects: Objects) -> Iterator[str]:
    for one in objects:
        labels = one["metadata"].get("labels", {})
        if not labels.keys() >= LABELS or labels["app.kubernetes.io/part-of"] != "feedmill":
            yield f"{name_of(one)}: lacks {LABELS - labels.keys() or 'the right part-of'}"
        if labels.get("feedmill.dev/phase") not in PHASES:
            yield f"{name_of(one)}: no phase"
        if (one["kind"] == "Job") != (labels.get("feedmill.dev/phase") == "2-migrate"):
            yield f"{name_of(one)}: the phase 2-migrate is for the Job alone"
        name = one["metadata"]["name"]
        for fetch_type, names in OF_ONE_TYPE.items():
            if name in names and labels.get("feedmill.dev/fetch-type") != fetch_type:
                yield f"{name_of(one)}: not labelled as belonging to {fetch_type}"
    for one in of_kind(objects, "Deployment"):
        if (
            one["spec"]["selector"].keys() != {"matchLabels"}
            or set(one["spec"]["selector"]["matchLabels"]) != STABLE_LABELS
        ):
            yield f"{name_of(one)}: selects by labels that may change"
        if not selects(one["spec"]["selector"], one["spec"]["template"]["metadata"]["labels"]):
            yield f"{name_of(one)}: does not select its own pods"


def namespace_is_one(objects: Objects) -> Iterator[str]:
    """Everything is in the namespace that the manifests make, and texts that name a namespace name this one."""
    names = {one["metadata"]["name"] for one in of_kind(objects, "Namespace")}
    for one in objects:
        if one["kind"] != "Namespace" and {one["metadata"].get("namespace")} != names:
            yield f"{name_of(one)}: in another namespace"
    for one in of_kind(objects, "ScaledObject"):
        for trigger in one["spec"]["triggers"]:
            if {trigger["metadata"]["host"].split(".")[1]} != names:
                yield f"{name_of(one)}: asks a broker in another namespace"


def replicas_of(one: Object, objects: Objects) -> int:
    """Return how many pods a Deployment has at least."""
    for scaled in of_kind(objects, "ScaledObject"):
        if scaled["spec"]["scaleTargetRef"]["name"] == one["metadata"]["name"]:
            return int(scaled["spec"]["minReplicaCount"])
    for scaled in of_kind(objects, "HorizontalPodAutoscaler"):
        if scaled["spec"]["scaleTargetRef"]["name"] == one["metadata"]["name"]:
            return int(scaled["spec"]["minReplicas"])
    return int(one["spec"].get("replicas", 1))


def budgets_let_nodes_drain(objects: Objects) -> Iterator[str]:
    """Each Deployment, the broker and the pooler have one budget, and it allows for one pod less."""
    sizes = {one["metadata"]["name"]: replicas_of(one, objects) for one in of_kind(objects, "Deployment")}
    sizes |= {one["metadata"]["name"]: one["spec"]["replicas"] for one in of_kind(objects, "RabbitmqCluster")}
    sizes |= {one["metadata"]["name"]: one["spec"]["instances"] for one in of_kind(objects, "Pooler")}
    budgets = of_kind(objects, "PodDisruptionBudget")
    for owner, labels in all_pods(objects).items():
        its = [one for one in budgets if selects(one["spec"]["selector"], labels)]
        if owner not in sizes:
            if its:
                yield f"{owner}: has a budget, and should have none"
            continue
        if len(its) != 1:
            yield f"{owner}: {len(its)} budgets; more than one can't be judged by the eviction API"
        yield from (
            f"{owner}: its budget never lets a pod go" for one in its if _allowed(one["spec"], sizes[owner]) < 1
        )
    for one in budgets:
        if not any(selects(one["spec"]["selector"], labels) for labels in all_pods(objects).values()):
            yield f"{name_of(one)}: selects nothing"


def _allowed(budget: Object, size: int) -> int:
    """Return how many of `size` healthy pods may be evicted at a time."""
    if "maxUnavailable" in budget:
        return _share(budget["maxUnavailable"], size)
    return size - _share(budget["minAvailable"], size)


def _share(value: str | int, size: int) -> int:
    return math.ceil(int(value.rstrip("%")) * size / 100) if isinstance(value, str) else value


def rollouts_take_nothing_away(objects: Objects) -> Iterator[str]:
    for one in of_kind(objects, "Deployment"):
        rolling = one["spec"].get("strategy", {}).get("rollingUpdate", {})
        if rolling.get("maxUnavailable") != 0 or not rolling.get("maxSurge"):
            yield f"{name_of(one)}: a rollout takes a pod away before the next one is ready"


def one_decides_on_replicas(objects: Objects) -> Iterator[str]:
    scaling = of_kind(objects, "ScaledObject", "HorizontalPodAutoscaler")
    scaled = {one["spec"]["scaleTargetRef"]["name"] for one in scaling}
    for one in of_kind(objects, "Deployment"):
        if ("replicas" in one["spec"]) == (one["metadata"]["name"] in scaled):
            yield f"{name_of(one)}: two decide on its replicas, or neither"
    for one in of_kind(objects, "HorizontalPodAutoscaler"):
        if not 1 <= one["spec"]["minReplicas"] <= one["spec"]["maxReplicas"]:
            yield f"{name_of(one)}: least and most are out of order"
    for one in of_kind(objects, "ScaledObject"):
        if (
            not 1
            <= one["spec"]["minReplicaCount"]
            <= one["spec"]["fallback"]["replicas"]
            <= one["spec"]["maxReplicaCount"]
        ):
            yield f"{name_of(one)}: least, fallback and most are out of order"


def quorums_are_odd(objects: Objects) -> Iterator[str]:
    for one in of_kind(objects, "RabbitmqCluster", "Cluster"):
        size = one["spec"]["replicas" if one["kind"] == "RabbitmqCluster" else "instances"]
        if size not in (1, 3, 5):
            yield f"{name_of(one)}: {size} can't form a majority that survives"
    for one in of_kind(objects, "Cluster"):
        if one["spec"]["instances"] > 1 and one["spec"]["postgresql"].get("synchronous", {}).get("number", 0) < 1:
            yield f"{name_of(one)}: a commit may be lost with the primary"


def network_policies_select(objects: Objects) -> Iterator[str]:
    """Everything is denied, and each pod that a policy speaks of exists."""
    policies = of_kind(objects, "NetworkPolicy")
    known = all_pods(objects).values()
    if not any(
        one["spec"]["podSelector"] == {} and one["spec"].keys() == {"podSelector", "policyTypes"} for one in policies
    ):
        yield "nothing is denied"
    for one in policies:
        selectors = [one["spec"]["podSelector"]]
        for rule in (*one["spec"].get("ingress", ()), *one["spec"].get("egress", ())):
            peers = (*rule.get("from", ()), *rule.get("to", ()))
            selectors += [
                peer["podSelector"] for peer in peers if "podSelector" in peer and "namespaceSelector" not in peer
            ]
        for selector in selectors:
            if not any(selects(selector, labels) for labels in known):
                yield f"{name_of(one)}: {selector} selects nothing"


def jobs_come_to_an_end(objects: Objects) -> Iterator[str]:
    jobs = [(name_of(one), one["spec"]) for one in of_kind(objects, "Job")]
    jobs += [(name_of(one), one["spec"]["jobTemplate"]["spec"]) for one in of_kind(objects, "CronJob")]
    for name, spec in jobs:
        if not {"activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"} <= spec.keys():
            yield f"{name}: may go on for ever, or be kept for ever"
    for one in of_kind(objects, "CronJob"):
        if one["spec"].get("concurrencyPolicy") != "Forbid" or "startingDeadlineSeconds" not in one["spec"]:
            yield f"{name_of(one)}: may run beside itself"


CHECKS: tuple[Check, ...] = (
    images_are_pinned,
    pod_policies.pods_are_restricted,
    namespace_enforces_it,
    resources_are_bounded,
    pod_policies.temporary_files_are_bounded,
    pod_policies.deployments_are_probed,
    pod_policies.tokens_stay_out,
    pod_policies.environment_is_ours_alone,
    pod_policies.secrets_are_referred_to,
    pod_policies.variables_are_expanded,
    references_resolve,
    labels_are_complete,
    namespace_is_one,
    budgets_let_nodes_drain,
    pod_policies.deployments_are_spread,
    rollouts_take_nothing_away,
    one_decides_on_replicas,
    quorums_are_odd,
    network_policies_select,
    jobs_come_to_an_end,
)
