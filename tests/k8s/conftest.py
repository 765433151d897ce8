from __future__ import annotations

import shutil

import pytest

from tests.k8s.manifests import OVERLAYS, Object, render


@pytest.fixture(scope="session", autouse=True)
def _kubectl() -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("needs kubectl: its kustomize renders k8s/")


@pytest.fixture(params=OVERLAYS)
def objects(request: pytest.FixtureRequest) -> tuple[Object, ...]:
    return render(request.param)


@pytest.fixture(params=[overlay for overlay in OVERLAYS if overlay.endswith("queue-fetcher")])
def queue_objects(request: pytest.FixtureRequest) -> tuple[Object, ...]:
    """Those with schedulers and fetchers."""
    return render(request.param)
