"""Which jobs are traced, and by which names attributes go."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from opentelemetry.sdk.trace import TracerProvider

from shared.observability.otlp import ATTRIBUTES, JOBS_PER_SECOND, MOST_AT_ONCE, JobTracer

ROOT = Path(__file__).parents[3]


def test_all_jobs_of_a_small_installation_are_traced_and_of_a_large_one_one_a_second() -> None:
    now = 0.0
    tracer = JobTracer(TracerProvider(shutdown_on_exit=False).get_tracer("test"), lambda: now)
    assert sorted(tracer.pick(3)) == [0, 1, 2]
    most = int(MOST_AT_ONCE)
    assert len(tracer.pick(500)) == most - 3
    assert list(tracer.pick(500)) == []
    picked: list[int] = []
    for _ in range(100):
        now += 1 / JOBS_PER_SECOND
        picked += tracer.pick(500)
    assert len(picked) == 100
    assert max(picked) > most  # not always the first ones
    now += 3600
    assert len(tracer.pick(500)) == most


def test_every_attribute_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "traces.md").read_text(encoding="utf-8")
    section = page.partition("## Attributes")[2]
    assert set(re.findall(r"^\| `([a-z._]+)`", section, re.MULTILINE)) == set(ATTRIBUTES.values())


def test_every_attribute_has_a_name() -> None:
    used = set()
    for path in [*ROOT.glob("services/**/*.py"), *ROOT.glob("shared/**/*.py")]:
        text = path.read_text(encoding="utf-8")
        for call in ast.walk(ast.parse(text)) if "span" in text else ():
            if isinstance(call, ast.Call) and getattr(call.func, "attr", "") in {"start", "note", "root"}:
                used |= {keyword.arg for keyword in call.keywords}
    assert used - {None, "at", "kind", "links", "parent"} == set(ATTRIBUTES)
