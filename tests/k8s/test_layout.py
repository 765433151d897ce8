"""Each file is used, overlays of users work, and the page lists all files."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from tests.k8s import pod_policies, policies
from tests.k8s.manifests import OVERLAYS, ROOT, Object, build, environment, find, of_kind, pods, render
from tests.k8s.policies import replicas_of
from tests.k8s.reach import Peer, elsewhere, may_connect

K8S = ROOT / "k8s"
PAGE = ROOT / "docs" / "how-to" / "kubernetes.md"


def overlay_of_ones_own(directory: Path, overlay: str, text: str) -> tuple[Object, ...]:
    """Render a kustomization outside of the repository on top of an overlay, as people and deploy.sh make them."""
    there = os.path.relpath(K8S.resolve(), directory.resolve())  # kustomize takes no absolute paths
    (directory / "kustomization.yaml").write_text(
        f"resources: [{there}/overlays/{overlay}]\n{text.replace('K8S', there)}", encoding="utf-8"
    )
    return build(directory)


def test_every_file_is_used() -> None:
    used = set()
    for path in K8S.rglob("kustomization.yaml"):
        lists = yaml.safe_load(path.read_text(encoding="utf-8"))
        generators = lists.get("configMapGenerator", ())
        files = [name.rpartition("=")[2] for one in generators for name in one.get("files", ())]
        used |= {path, *(path.parent / name for name in (*lists.get("resources", ()), *files))}
    assert {path for path in K8S.rglob("*") if path.suffix in {".yaml", ".json"}} <= used


def test_every_component_is_named_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for component in (K8S / "components").iterdir():
        assert component.name in page


@pytest.mark.parametrize("environment", ["dev", "staging", "prod"])
def test_an_environment_alone_means_the_usual_fetch_type(environment: str) -> None:
    assert build(K8S / "overlays" / environment) == render(f"{environment}/queue-fetcher")


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_another_image_reaches_every_pod(tmp_path: Path, overlay: str) -> None:
    images = {container["image"] for pod in pods(render(overlay)) for container in pod.containers}
    names = {image.rpartition(":")[0] for image in images}
    others = {name: f"other.example/{name.rpartition('/')[2]}" for name in names}
    entries = ", ".join(f'{{name: {name}, newName: {other}, newTag: "1.2.3"}}' for name, other in others.items())
    made = overlay_of_ones_own(tmp_path, overlay, f"images: [{entries}]\n")
    found = {container["image"] for pod in pods(made) for container in pod.containers}
    assert found == {"other.example/feedmill:1.2.3", "other.example/feedmill-enricher:1.2.3"}


@pytest.mark.parametrize("overlay", ["prod/queue-fetcher", "prod/batch-fetcher", "dev/queue-fetcher"])
def test_servers_that_are_there_already_can_be_used(tmp_path: Path, overlay: str) -> None:
    made = overlay_of_ones_own(tmp_path, overlay, "components: [K8S/components/external-servers]\n")
    assert of_kind(made, "RabbitmqCluster", "Cluster", "Pooler", "PodMonitor") == []
    keys = {}
    for pod in pods(made):
        (container,) = pod.spec["containers"]
        for variable in container["env"]:
            if "valueFrom" in variable:
                reference = variable["valueFrom"]["secretKeyRef"]
                assert reference["name"] == "feedmill-servers"
                keys[pod.owner, variable["name"]] = reference["key"]
        assert [volume["name"] for volume in pod.spec["volumes"]] == ["tmp"]
        assert [mount["name"] for mount in container["volumeMounts"]] == ["tmp"]
    assert keys["feedmill-migrate", "FEEDMILL_DATABASE_URL"] == "migrate-url"
    assert set(keys.values()) == {"amqp-url", "database-url", "migrate-url"}
    for check in (
        pod_policies.pods_are_restricted,
        pod_policies.secrets_are_referred_to,
        policies.labels_are_complete,
        policies.budgets_let_nodes_drain,
    ):
        assert list(check(made)) == []


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_a_login_of_the_registry_reaches_every_pod_of_ours(tmp_path: Path, overlay: str) -> None:
    made = overlay_of_ones_own(tmp_path, overlay, "components: [K8S/components/pull-secret]\n")
    for pod in pods(made):
        account = find(made, "ServiceAccount", pod.spec["serviceAccountName"])
        assert account["imagePullSecrets"] == [{"name": "feedmill-registry"}], pod.owner


@pytest.mark.parametrize("overlay", ["prod/queue-fetcher", "prod/batch-fetcher", "dev/queue-fetcher"])
def test_traces_go_to_a_collector_with_one_component(tmp_path: Path, overlay: str) -> None:
    made = overlay_of_ones_own(tmp_path, overlay, "components: [K8S/components/traces]\n")
    ours = [one for one in pods(made) if one.kind != "Job"]
    assert len(ours) > 2
    for one in ours:
        url = urlsplit(environment(one.spec["containers"][0], made)["FEEDMILL_TRACES_URL"])
        assert url.port is not None
        assert url.hostname is not None
        source, namespace = Peer(one.labels), url.hostname.partition(".")[2]
        assert may_connect(made, source, elsewhere(namespace), url.port), one.owner
        assert not may_connect(render(overlay), source, elsewhere(namespace), url.port)
        assert not may_connect(made, source, elsewhere("default"), url.port)


def size(name: str, objects: tuple[Object, ...]) -> str:
    """Return how many pods a Deployment may have, in the page's words."""
    for one in of_kind(objects, "ScaledObject"):
        if one["metadata"]["name"] == name:
            return f"{one['spec']['minReplicaCount']} to {one['spec']['maxReplicaCount']}"
    for one in of_kind(objects, "HorizontalPodAutoscaler"):
        if one["metadata"]["name"] == name:
            return f"{one['spec']['minReplicas']} to {one['spec']['maxReplicas']}"
    return str(replicas_of(find(objects, "Deployment", name), objects))


@pytest.mark.parametrize(("column", "environment"), [(1, "dev"), (2, "staging"), (3, "prod")])
def test_the_page_knows_the_sizes(column: int, environment: str) -> None:
    rows = {
        cells[0]: cells[column]
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("| ") and len(cells := [cell.strip(" `") for cell in line.strip("|").split("|")]) == 4
    }
    objects = render(f"{environment}/queue-fetcher")
    (namespace,) = of_kind(objects, "Namespace")
    assert rows["namespace"] == namespace["metadata"]["name"]
    broker = find(objects, "RabbitmqCluster", "feedmill-broker")["spec"]
    database = find(objects, "Cluster", "feedmill-database")["spec"]
    assert broker["replicas"] == database["instances"]
    assert rows["RabbitMQ, PostgreSQL"].startswith(f"{broker['replicas']} node")
    apart = "requiredDuringSchedulingIgnoredDuringExecution" in broker.get("affinity", {}).get("podAntiAffinity", {})
    assert apart == (database["affinity"]["podAntiAffinityType"] == "required")
    assert apart == ("machine of its own" in rows["RabbitMQ, PostgreSQL"])
    assert rows["PgBouncer"] == str(find(objects, "Pooler", "feedmill-database-pooler-rw")["spec"]["instances"])
    for name in ("scheduler", "fetcher", "enricher", "writer", "api"):
        assert rows["APIs" if name == "api" else f"{name}s"] == size(f"feedmill-{name}", objects)
    scaled, watched = of_kind(objects, "ScaledObject"), of_kind(objects, "ServiceMonitor")
    assert bool(scaled) == bool(watched) == (rows["KEDA, Prometheus"] == "yes")
