"""The command `feedmill sources`: the source types that are installed."""

from __future__ import annotations

import json
from typing import Annotated, Any
from urllib.parse import quote

import typer

from services.cli.calls.opening import open_api
from services.cli.options import AsJson, Wide
from services.cli.output import Column, console, print_facts, print_table
from shared.observability.display import ascii_json


def sources(
    name: Annotated[str | None, typer.Argument(help="Only this one, with each of its settings.")] = None,
    as_json: AsJson = False,
    wide: Wide = False,
) -> None:
    """Show the source types that are installed, and their feeds' own settings (with --json a JSON Schema)."""
    with open_api(database=False) as api:
        if name is not None:
            row = api.get(f"/api/sources/{quote(name, safe='')}", dict[str, Any])
            print(ascii_json(row)) if as_json else _show(row, wide=wide)
            return
        rows = list(api.rows("/api/sources", dict[str, Any]))
    if as_json:
        print(ascii_json(rows))
        return
    columns = (
        Column("name"),
        Column("summary", flexible=True),
        Column("package", lambda row: f"{row['package']} {row['version']}"),
        Column("settings", lambda row: ", ".join(row["fields"]), below=True),
    )
    print_table(columns, rows, wide=wide)


def _show(row: dict[str, Any], *, wide: bool) -> None:
    print_facts([("name", row["name"]), ("reads", row["summary"]), ("package", f"{row['package']} {row['version']}")])
    console.print()
    properties = row["config_schema"].get("properties", {})
    columns = (
        Column("setting", lambda one: one[0]),
        Column("kind", lambda one: _kind(one[1])),
        Column("default", lambda one: json.dumps(one[1]["default"]) if one[1].get("default") is not None else ""),
        Column("secret", lambda one: "yes" if one[1].get("writeOnly") else ""),
        Column("expected", lambda one: one[1].get("description", ""), flexible=True),
    )
    print_table(columns, list(properties.items()), wide=wide)


def _kind(schema: dict[str, Any]) -> str:
    kinds = [option.get("type", "") for option in schema.get("anyOf", [schema])]
    return " or ".join(kind for kind in kinds if kind not in {"", "null"})
