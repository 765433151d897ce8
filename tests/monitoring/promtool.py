"""Prometheus's own tool evaluates rules over series."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed (Debian package prometheus)")


def run_promtool(*arguments: str) -> str:
    """Return what promtool prints; fail with it if it fails."""
    assert PROMTOOL
    done = subprocess.run([PROMTOOL, *arguments], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@dataclass(frozen=True)
class Expected:
    """In this minute, this alert fires once in each of these namespaces, of those that a regular expression matches."""

    alert: str
    minute: int
    firing: Sequence[str]
    among: str = ".*"


def check(
    rules: Sequence[Path], series: Mapping[str, str], expected: Sequence[Expected], directory: Path, minutes: int = 1
) -> None:
    """Evaluate rules over series with a value every so many minutes. `""` is a namespace that is not there."""
    test = {
        "interval": f"{minutes}m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [_expression(one) for one in expected],
    }
    file = directory / "test.json"  # JSON is YAML
    given = {"rule_files": [str(rule) for rule in rules], "evaluation_interval": f"{minutes}m", "tests": [test]}
    file.write_text(json.dumps(given), encoding="utf-8")
    run_promtool("test", "rules", str(file))


def _expression(expected: Expected) -> dict[str, object]:
    firing = f'ALERTS{{alertname=~"{expected.alert}",alertstate="firing",namespace=~"{expected.among}"}}'
    return {
        "expr": f"count by (namespace, alertname) ({firing})",
        "eval_time": f"{expected.minute}m",
        "exp_samples": [
            {"labels": f'{{alertname="{expected.alert}"' + (f',namespace="{one}"}}' if one else "}"), "value": 1}
            for one in expected.firing
        ],
    }
