"""What a process says that it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from shared.build import announce, read_memory_limit, read_version


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
