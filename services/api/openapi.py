"""What FastAPI does not put into the OpenAPI document by itself: the model of problems, and nulls in examples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI

from services.api.problems import Problem

SCHEMAS = "#/components/schemas/"

Schema = dict[str, Any]


def describe(app: FastAPI) -> None:
    """Complete the app's OpenAPI document."""
    write = app.openapi

    def openapi() -> dict[str, Any]:
        is_written = app.openapi_schema is not None
        document = write()
        if not is_written:
            _complete(document)
        return document

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way


def _complete(document: dict[str, Any]) -> None:
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    problem = Problem.model_json_schema(ref_template=f"{SCHEMAS}{{model}}")
    schemas |= {**problem.pop("$defs"), "Problem": problem}
    for schema in schemas.values():
        _add_nulls(schema.get("example"), schema, schemas)
    for name, schema in schemas.items():
        if name.startswith("Page_"):
            row = _resolve(schema["properties"]["items"]["items"], schemas)
            schema["example"] = {"items": [row["example"]] if "example" in row else [], "next": None}
    for content in _contents(document):
        examples = [content.get("example"), *(each.get("value") for each in content.get("examples", {}).values())]
        for example in examples:
            _add_nulls(example, content.get("schema", {}), schemas)


def _contents(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for path in document["paths"].values():
        for operation in path.values():
            for holder in (operation.get("requestBody", {}), *operation["responses"].values()):
                yield from holder.get("content", {}).values()


def _add_nulls(example: Any, schema: Schema, schemas: dict[str, Schema]) -> None:
    """Give each object in an example the required fields that are null: FastAPI leaves every null out."""
    schema = _resolve(schema, schemas)
    for branch in schema.get("anyOf", ()):
        _add_nulls(example, branch, schemas)
    if isinstance(example, list):
        for item in example:
            _add_nulls(item, schema.get("items", {}), schemas)
    elif isinstance(example, dict):
        for name, of in schema.get("properties", {}).items():
            if name in example:
                _add_nulls(example[name], of, schemas)
            elif name in schema.get("required", ()) and {"type": "null"} in of.get("anyOf", ()):
                example[name] = None


def _resolve(schema: Schema, schemas: dict[str, Schema]) -> Schema:
    return schemas[schema["$ref"].removeprefix(SCHEMAS)] if "$ref" in schema else schema
