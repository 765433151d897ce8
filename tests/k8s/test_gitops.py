"""docs/how-to/gitops.md: its kustomization renders, in the order that the page tells, and nothing in it is made up."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from services.cli.broker_users import service_rights
from shared.settings import BrokerSettings
from tests.k8s import pod_policies, policies
from tests.k8s.manifests import ROOT, Object, build, find, name_of, of_kind, pods

PAGE = (ROOT / "docs" / "how-to" / "gitops.md").read_text(encoding="utf-8")
EXAMPLES = [list(yaml.safe_load_all(text)) for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]
OURS = r"https://git\.example/feedmill//(\S+)\?ref=v[0-9.]+"
PHASES = {"1-foundation": None, "2-migrate": "1", "3-services": "2"}


def rendered(directory: Path, tool: str, fetch_type: str) -> tuple[Object, ...]:
    """Render the page's kustomization, with this checkout in place of a release."""
    (text,) = (found for found in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if "resources:" in found)
    there = os.path.relpath(ROOT.resolve(), directory.resolve())
    text = re.sub(OURS, rf"{there}/\1", text).replace("components/argocd", f"components/{tool}")
    (directory / "kustomization.yaml").write_text(text.replace("queue-fetcher", fetch_type), encoding="utf-8")
    return build(directory)


@pytest.mark.parametrize("fetch_type", ["queue-fetcher", "batch-fetcher"])
@pytest.mark.parametrize("tool", ["argocd", "flux"])
def test_the_pages_kustomization_is_complete(tmp_path: Path, tool: str, fetch_type: str) -> None:
    made = rendered(tmp_path, tool, fetch_type)
    for pod in pods(made):
        (container,) = pod.spec["containers"]
        assert re.fullmatch(r"registry\.example\.org/feedmill(-enricher)?@sha256:[0-9a-f]{64}", container["image"])
        assert find(made, "ServiceAccount", pod.spec["serviceAccountName"])["imagePullSecrets"]
    (settings,) = (one for one in of_kind(made, "ConfigMap") if name_of(one).startswith("ConfigMap/feedmill-config-"))
    assert settings["data"]["FEEDMILL_CONTACT_URL"].startswith("https://")
    host = settings["data"]["FEEDMILL_API_HOSTS"].partition(",")[0]
    (ingress,) = of_kind(made, "Ingress")
    assert [ingress["spec"]["rules"][0]["host"]] == ingress["spec"]["tls"][0]["hosts"] == [host]
    for check in (pod_policies.pods_are_restricted, policies.references_resolve, policies.labels_are_complete):
        assert list(check(made)) == []


@pytest.mark.parametrize("fetch_type", ["queue-fetcher", "batch-fetcher"])
def test_argo_cd_syncs_phase_by_phase_and_runs_the_migration_between(tmp_path: Path, fetch_type: str) -> None:
    made = rendered(tmp_path, "argocd", fetch_type)
    for one in made:
        annotations = one["metadata"].get("annotations", {})
        phase = one["metadata"]["labels"]["feedmill.dev/phase"]
        assert annotations.get("argocd.argoproj.io/sync-wave") == PHASES[phase], name_of(one)
        is_hook = annotations.get("argocd.argoproj.io/hook") == "Sync"
        assert is_hook == (annotations.get("argocd.argoproj.io/hook-delete-policy") == "BeforeHookCreation")
        assert is_hook == (one["kind"] == "Job"), name_of(one)


def test_flux_replaces_a_job_that_has_changed_and_finds_the_one_that_has_not(tmp_path: Path) -> None:
    job = find(rendered(tmp_path, "flux", "queue-fetcher"), "Job", "feedmill-migrate")
    assert job["metadata"]["annotations"]["kustomize.toolkit.fluxcd.io/force"] == "enabled"
    assert "ttlSecondsAfterFinished" not in job["spec"]


def test_the_page_names_all_users_and_makes_secrets_as_they_are_read() -> None:
    (secret,) = (one for example in EXAMPLES for one in example if one["kind"] == "ExternalSecret")
    users = set(service_rights(BrokerSettings().topology())) - {"command"}  # that is Compose's
    assert all(f"`{user}`" in PAGE for user in users)
    data: dict[str, Any] = secret["spec"]["target"]["template"]["data"]
    assert secret["metadata"]["name"] == f"feedmill-broker-user-{data['username']}"
    assert set(data) == {"username", "password"}


def test_the_application_and_flux_read_the_same_directory() -> None:
    by_kind = {one["apiVersion"].partition("/")[0]: one for example in EXAMPLES for one in example}
    assert by_kind["argoproj.io"]["spec"]["source"]["path"] == "prod"
    assert by_kind["kustomize.toolkit.fluxcd.io"]["spec"]["path"] == "./prod"
