"""`python -m benchmarks.enrichment [PART…]`: prints how good the parts of the enricher are."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from typing import NamedTuple

PARTS = ("language", "similarity", "topics", "entities")


class Measure(NamedTuple):
    """One line of the report: `language · 70 characters: 99.1 % of 4,200 texts`."""

    name: str
    value: str
    of: str
    """On how much of which data."""


def main(parts: Iterable[str]) -> None:
    """Print the measures of these parts."""
    for part in parts:
        module = importlib.import_module(f"benchmarks.enrichment.{part}")
        for measure in module.evaluate():
            print(f"{part} · {measure.name}: {measure.value} of {measure.of}")


if __name__ == "__main__":
    main(sys.argv[1:] or PARTS)
