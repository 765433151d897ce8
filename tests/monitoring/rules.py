"""What monitoring/alerts.yml says, read without a YAML library: its layout is regular, and tests hold it to that."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
ALERTS = ROOT / "monitoring" / "alerts.yml"

_RULE = re.compile(r"^      - (alert|record): (\S+)\n(.*?)(?=^      [-#] |^  - |\n\n|\Z)", re.MULTILINE | re.DOTALL)
_EXPRESSION = re.compile(r"^        expr: (?:\|-\n((?:          .*\n)+)|(.*)\n)", re.MULTILINE)


@dataclass(frozen=True)
class Rule:
    """One rule, as far as tests look at it; `text` is all of it."""

    kind: str
    name: str
    expression: str
    text: str

    def field(self, name: str) -> str | None:
        """Return the value of a field that stands on one line."""
        found = re.search(rf"^ +{name}: (.+)$", self.text, re.MULTILINE)
        return found and found.group(1).strip('"')


def read_rules() -> list[Rule]:
    """Return all rules in their order."""
    rules = []
    for kind, name, text in _RULE.findall(ALERTS.read_text(encoding="utf-8") + "\n"):
        found = _EXPRESSION.search(text + "\n")
        assert found is not None, name
        rules.append(Rule(kind, name, (found.group(1) or found.group(2)).strip(), text))
    return rules
