"""How workers of pytest-xdist share the tests (`make test` starts three of them).

All workers share one RabbitMQ and one PostgreSQL (tests/servers.py). A module's tests stay together, and so do the
modules of a package that share a fixture, and those that kill servers, which have a pair of their own. Modules with
whole processes come first and small unit tests last, so that all workers end at about the same time. Of three, one
begins at the other end: what computes runs beside what mostly waits.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

ROOT = Path(__file__).parent.parent
LONGEST_FIRST = (
    "compose",
    "faults",
    "browser",
    "e2e",
    "manners",
    "integration",
    "deploy",
    "contract",
    "monitoring",
    "k8s",
    "unit",
)
SHARING = ("browser", "compose", "faults", "manners")
"""Packages whose modules share one fixture: they go to one worker."""


class ByModule(LoadFileScheduling):  # type: ignore[misc]  # no types where it comes from
    """Hands out a module at a time, or a whole package of those that share."""

    def _assign_work_unit(self, node: WorkerController) -> None:
        if len(self.nodes) > 2 and node is self.nodes[-1]:
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)

    def _split_scope(self, nodeid: str) -> str:
        package = nodeid.split("/")[1]
        return package if package in SHARING else nodeid.partition("::")[0]


def order(item: pytest.Item) -> int:
    """Return the place of an item's package in the order in which workers take modules."""
    package = item.path.relative_to(ROOT / "tests").parts[0]
    return LONGEST_FIRST.index(package) if package in LONGEST_FIRST else 0
