"""The metrics that say what a process is."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from services.fetcher.settings import FetcherSettings
from shared.build import PROJECT_URL, announce, read_memory_limit, read_version
from shared.settings import read_settings


def test_a_process_names_its_component_and_version() -> None:
    announce("writer")
    assert REGISTRY.get_sample_value("feedmill_build_info", {"component": "writer", "version": read_version()}) == 1


@pytest.mark.parametrize(
    ("said", "limit"),
    [("536870912\n", 536870912), ("max\n", 0), ("9223372036854771712\n", 0), (None, 0)],
)
def test_the_limit_is_what_the_control_group_says(tmp_path: Path, said: str | None, limit: int) -> None:
    file = tmp_path / "memory.max"
    if said is not None:
        file.write_text(said)
    assert read_memory_limit([tmp_path / "elsewhere", file]) == limit


def test_without_a_contact_url_the_user_agent_names_the_projects_page(monkeypatch: pytest.MonkeyPatch) -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    monkeypatch.setenv("FEEDMILL_CONTACT_URL", "")
    assert read_settings(FetcherSettings).contact_url == PROJECT_URL == project["urls"]["Homepage"]
