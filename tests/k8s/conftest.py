from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from tests.k8s.manifests import OVERLAYS, Object, render


@pytest.fixture(scope="session", autouse=True)
def _kubectl() -> None:
    """Skip all where nothing can render: Debian 12's own kubectl is older than components."""
    needs = "needs kubectl 1.27 or newer: its kustomize renders k8s/"
    if shutil.which("kubectl") is None:
        pytest.skip(needs)
    done = subprocess.run(["kubectl", "version", "--client", "-o", "json"], capture_output=True, check=False)
    version = json.loads(done.stdout or "{}").get("kustomizeVersion", "v0")
    if int(version.lstrip("v").partition(".")[0]) < 5:
        pytest.skip(needs)


@pytest.fixture(params=OVERLAYS)
def objects(request: pytest.FixtureRequest) -> tuple[Object, ...]:
    return render(request.param)


@pytest.fixture(params=[overlay for overlay in OVERLAYS if overlay.endswith("queue-fetcher")])
def queue_objects(request: pytest.FixtureRequest) -> tuple[Object, ...]:
    """The objects of overlays with schedulers and fetchers."""
    return render(request.param)
