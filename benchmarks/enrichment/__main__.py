"""`python -m benchmarks.enrichment [PART…] [--json]`: prints how good the parts of the enricher are."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table

from services.enricher.parts import Missing

PARTS = ("language", "similarity", "topics", "entities")


class Measure(NamedTuple):
    """One line of the report: `language · 70 characters: 99.1 % of 4,200 texts`."""

    name: str
    value: str
    of: str
    """On how much of which data."""


class Lacking(Exception):
    """A part can't be measured; says which package or data it lacks."""


def main() -> int:
    """Print the measures of the parts that are asked for; return 1 if one of them can't be measured."""
    options = _parse_arguments()
    console, lacks = Console(width=None if sys.stdout.isatty() else 140), dict[str, str]()
    found: dict[str, list[dict[str, str]]] = {}
    if options.conll:
        from benchmarks.enrichment import conll

        console.print(_make_table(map(Measure._make, conll.evaluate(options.conll)), "entities on labelled texts"))
        return 0
    for part in options.parts or PARTS:
        start = time.monotonic()
        try:
            measures = list(_evaluate(part))
        except Lacking as error:
            lacks[part] = str(error)
            print(f"{part} is not measured: {error}", file=sys.stderr)
            continue
        found[part] = [measure._asdict() for measure in measures]
        if not options.json:
            console.print(_make_table(measures, f"{part} ({time.monotonic() - start:.0f} s)"))
    if options.json:
        print(json.dumps({"parts": found, "not_measured": lacks}, ensure_ascii=False, indent=2))
    return 1 if lacks else 0


def _evaluate(part: str) -> Iterable[Measure]:
    """Return the measures of a part. Its module's `evaluate()` yields named tuples of name, value and data.

    Raises:
        Lacking: a package, a model or a file is not there.
    """
    name = f"benchmarks.enrichment.{part}"
    evaluate: Callable[[], Iterable[tuple[str, str, str]]]
    try:
        evaluate = importlib.import_module(name).evaluate
        return [Measure(*measure) for measure in evaluate()]
    except Missing as error:
        raise Lacking(str(error)) from error
    except ModuleNotFoundError as error:
        if error.name == name:
            raise Lacking("this version has no measure of it") from error
        raise Lacking(f"the package of the module {error.name} is not installed: make setup") from error
    except FileNotFoundError as error:
        raise Lacking(f"{error.filename} is not there") from error
    except LookupError as error:
        if type(error) is not LookupError:  # a data set of NLTK that is not there raises just this
            raise
        raise Lacking(" ".join(str(error).split())[:300]) from error


def _make_table(measures: Iterable[Measure], title: str) -> Table:
    table = Table(title=title, title_justify="left", header_style="bold", box=box.SIMPLE)
    table.add_column("", no_wrap=True)
    table.add_column("found", justify="right", style="bold")
    table.add_column("of what", style="dim")
    for measure in measures:
        table.add_row(measure.name, measure.value, measure.of)
    return table


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.enrichment",
        description="Prints how good the enricher's labels are, on data that installed packages bring.",
    )
    parser.add_argument("parts", nargs="*", metavar="part", choices=[[], *PARTS], help=", ".join(PARTS))
    parser.add_argument(
        "--conll", nargs="+", metavar="LANGUAGE=FILE", help="measure entities on these files in CoNLL's format, instead"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
