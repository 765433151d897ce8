"""kubectl takes the lines that the pages tell people to type, and the objects that they name are in the manifests."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.k8s.manifests import Object, render
from tests.runbook import commands_in, has_placeholder, read_page

LINES = list(
    dict.fromkeys(line for page in ("alerts", "operate", "monitor") for line in commands_in(read_page(page), "kubectl"))
)

OBJECTS: list[Object] = [*render("prod/queue-fetcher"), *render("prod/batch-fetcher")]
SHORT = {"deploy": "Deployment", "svc": "Service", "job": "Job"}
OPERATORS = {
    ("pod", "feedmill-broker-server-0"): {"rabbitmq"},
    ("pod", "feedmill-broker-server-1"): {"rabbitmq"},
    ("pod", "feedmill-database-1"): {"postgres", "plugin-barman-cloud"},
    ("pod", "feedmill-database-2"): {"postgres", "plugin-barman-cloud"},
    ("service", "feedmill-broker"): set(),
    ("service", "feedmill-database-rw"): {"postgres"},
}
"""What the operators make of the manifests, with its containers."""

LABELS_OF_OTHERS = {
    "app.kubernetes.io/name=feedmill-broker",
    "app.kubernetes.io/name=kube-state-metrics",
    "cnpg.io/cluster=feedmill-database",
}


def named() -> set[tuple[str, str]]:
    """Return kind and name of all there is, in small letters."""
    return {(one["kind"].lower(), one["metadata"]["name"]) for one in OBJECTS} | OPERATORS.keys()


def labels() -> set[str]:
    """Return the labels of our objects and their pods."""
    found = [one["metadata"].get("labels", {}) for one in OBJECTS]
    for one in OBJECTS:
        template = one.get("spec", {}).get("jobTemplate", one).get("spec", {}).get("template", {})
        found.append(template.get("metadata", {}).get("labels", {}) if isinstance(template, dict) else {})
    return {f"{key}={value}" for each in found for key, value in each.items()} | LABELS_OF_OTHERS


@pytest.mark.parametrize("line", LINES)
def test_what_a_line_names_is_there(line: str) -> None:
    ours = line.partition(" -- ")[0]
    assert " -n feedmill " in ours or " -A " in ours
    for kind, name in re.findall(r"(?<![\w.])(deploy|deployment|svc|cronjob|scaledobject|job)/([a-z0-9-]+)", ours):
        assert (SHORT.get(kind, kind).lower(), name) in named()
    for kind, name in re.findall(r"(?:get|scale|annotate|delete) ([a-z]+?)s?(?:\.[a-z.]+)? (feedmill[a-z0-9-]*)", ours):
        assert (kind, name) in named()
    for pod in re.findall(r"(?:exec|logs) (feedmill-[a-z0-9-]+)", ours):
        assert ("pod", pod) in named()
    for name, container in re.findall(r"(feedmill-[a-z0-9-]+) -c ([a-z-]+)", ours):
        assert any(container in containers for (_, one), containers in OPERATORS.items() if one == name)
    for label in re.findall(r"-l '?([a-z./-]+=[a-z-]+)", ours):
        assert label in labels()


# What comes after `--` is not kubectl's.
READ_BY_KUBECTL = list(dict.fromkeys(line.partition(" -- ")[0] for line in LINES if not has_placeholder(line)))


@pytest.mark.parametrize("line", READ_BY_KUBECTL)
def test_kubectl_takes_a_line_before_it_asks_the_server(line: str, tmp_path: Path) -> None:
    """No server answers: kubectl has read all words, and its input, when it says so."""
    (tmp_path / "config").write_text("{}")
    nowhere = f"kubectl --kubeconfig={tmp_path / 'config'} --server=http://127.0.0.1:1 --request-timeout=5s"
    typed = line.replace("kubectl", nowhere, 1) + (" -- true" if " exec " in line else "")
    done = subprocess.run(["bash", "-c", typed], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode
    assert re.search(r"connection (to the server .+ was )?refused", done.stderr), done.stderr
    assert not re.search(r"unknown (short)?flag|unknown command|Usage:", done.stderr), done.stderr
