"""The commands `feedmill enrich …`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from local.terminal import print_error
from services.cli.options import AsJson
from services.cli.output import Column, console, print_table
from shared.observability.display import ascii_json

FIGURES = ("accuracy", "held_out", "given", "given_right")

app = typer.Typer(help="Models of the enricher.", no_args_is_help=True)


@app.command()
def train(
    file: Annotated[Path, typer.Argument(help="A CSV with the columns text, label and, if it likes, language.")],
    output: Annotated[Path, typer.Option(help="Where to write the model.")] = Path("topics-model.npz"),
    as_json: AsJson = False,
) -> None:
    """Train a model of topics on your own labels, and say how good it is."""
    try:
        from services.enricher.topics.training import texts
    except ImportError:
        print_error("numpy is not installed: pip install 'feedmill[enrich]'")
        raise typer.Exit(1) from None
    try:
        lines = texts.read_texts(file)
        trained = texts.train(lines, f"{len(lines)} texts of {file.name}")
        trained.model.save(output)
    except OSError as error:
        print_error(f"{error.filename}: {error.strerror}")
        raise typer.Exit(1) from None
    if as_json:
        shown = {"model": str(output.resolve()), "texts": len(lines), "threshold": trained.model.threshold}
        labels = [seen._asdict() for seen in trained.labels]
        print(ascii_json(shown | {name: getattr(trained, name) for name in FIGURES} | {"labels": labels}))
        return
    columns = (
        Column("label", "label", flexible=True),
        Column("held out", "texts"),
        Column("recall %", lambda row: f"{100 * row['recall']:.0f}"),
        Column("precision %", lambda row: "" if row["precision"] is None else f"{100 * row['precision']:.0f}"),
    )
    print_table(columns, [seen._asdict() for seen in trained.labels])
    console.print(
        f"accuracy {100 * trained.accuracy:.1f} % on {trained.held_out} of {len(lines)} texts, held out; "
        f"from confidence {trained.model.threshold} on {100 * trained.given:.0f} % have a label, and "
        f"{100 * trained.given_right:.1f} % of those are right"
    )
    console.print(f"written to {output}: set FEEDMILL_TOPICS_MODEL={output.resolve()}")
