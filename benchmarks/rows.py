"""Rows: a figure beside another one, as a table and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.table import Table


@dataclass(frozen=True)
class Row:
    """One figure of ours beside one of something simpler, taken in the same run.

    Units that end in `/s` are better when greater, times when smaller.
    """

    name: str
    """`subject.case.what`; the same in every run."""
    value: float
    unit: str
    beside: str
    """A description of the other figure."""
    beside_value: float
    goal: float | None = None
    """The goal of the ratio: a minimum for rates, a maximum for everything else."""

    @property
    def ratio(self) -> float | None:
        """Ours ÷ the other; None if the other is 0."""
        return self.value / self.beside_value if self.beside_value else None

    def as_json(self) -> dict[str, str | float | None]:
        """Return the row as it stands in `latest.json`."""
        return {
            "name": self.name,
            "value": round(self.value, 4),
            "unit": self.unit,
            "beside": self.beside,
            "beside_value": round(self.beside_value, 4),
            "ratio": None if self.ratio is None else round(self.ratio, 4),
            "goal": self.goal,
        }


def write_json(rows: Sequence[Row], path: Path) -> None:
    """Write all rows as one JSON list, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".new")
    lines = ",\n".join(f"  {json.dumps(row.as_json(), ensure_ascii=False)}" for row in rows)
    draft.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    draft.replace(path)


def make_table(subject: str, rows: Sequence[Row], title: str) -> Table:
    """Return the rows for a person; the name of their subject is left out."""
    table = Table(title=title, title_justify="left", header_style="bold", box=box.SIMPLE)
    table.add_column("", no_wrap=True)
    for heading in ("ours", "beside", "ratio"):
        table.add_column(heading, justify="right", no_wrap=True, style="bold" if heading == "ratio" else "")
    table.add_column("goal", justify="right", no_wrap=True)
    table.add_column("unit", no_wrap=True)
    table.add_column("beside what", style="dim")
    for row in rows:
        ratio = "–" if row.ratio is None else f"{row.ratio:.2f}"
        name = row.name.removeprefix(f"{subject}.")
        goal = "" if row.goal is None else f"{'≥' if row.unit.endswith('/s') else '≤'} {row.goal:g}"
        table.add_row(name, _short(row.value), _short(row.beside_value), ratio, goal, row.unit, row.beside)
    return table


def _short(value: float) -> str:
    """Return three significant digits, and no exponent."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
