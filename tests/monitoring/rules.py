"""The rules in monitoring/."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
ALERTS = ROOT / "monitoring" / "alerts.yml"
INSTALLATIONS = ROOT / "monitoring" / "installations.yml"


@dataclass(frozen=True)
class Rule:
    """One rule; `said` holds its labels and annotations."""

    kind: str
    name: str
    expression: str
    said: Mapping[str, str]

    def field(self, name: str) -> str | None:
        """Return the value of a label or an annotation."""
        return self.said.get(name)


def read_rules(file: Path = ALERTS) -> list[Rule]:
    """Return all rules of a file in their order."""
    groups = yaml.safe_load(file.read_text(encoding="utf-8"))["groups"]
    return [_rule(rule) for group in groups for rule in group["rules"]]


def _rule(rule: Mapping[str, Any]) -> Rule:
    kind = "alert" if "alert" in rule else "record"
    said = {**rule.get("labels", {}), **rule.get("annotations", {})}
    return Rule(kind, rule[kind], rule["expr"].strip(), said)
