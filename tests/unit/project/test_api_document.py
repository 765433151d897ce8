"""The API's OpenAPI document is complete and true by itself, and docs/reference/api.md lists its operations."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from jsonschema import Draft202012Validator

from tests.api_document import PUBLIC, Operation, operations, read_document, table_rows

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "reference" / "api.md"
ALL = list(operations())
each_operation = pytest.mark.parametrize("operation", ALL, ids=lambda operation: operation.label)

Schema = dict[str, Any]


def contents_of(operation: Operation) -> list[tuple[str, str, Schema]]:
    """Return what, media type and schema with example: of the body, and of the answers of success."""
    body = operation.content.get("requestBody", {}).get("content", {})
    answers = [
        (f"answer {status}", kind, content)
        for status, answer in operation.content["responses"].items()
        if status.startswith("2")
        for kind, content in answer.get("content", {}).items()
    ]
    return [*(("body", kind, content) for kind, content in body.items()), *answers]


def resolve(schema: Schema) -> Schema:
    name = schema.get("$ref", "").removeprefix("#/components/schemas/")
    return read_document()["components"]["schemas"][name] if name else schema


def examples_of(content: Schema) -> list[Any]:
    """Return the examples of a media type, its own or those of its schema."""
    for of in (content, resolve(content.get("schema", {}))):
        if "example" in of:
            return [of["example"]]
        if of.get("examples"):
            found = of["examples"]
            return [example["value"] for example in found.values()] if isinstance(found, dict) else list(found)
    schema = resolve(content.get("schema", {}))
    for branch in schema.get("anyOf", ()):  # such as a body that may be left out
        if found := examples_of({"schema": branch}):
            return found
    if schema.get("type") == "array":
        return [[example] for example in examples_of({"schema": schema["items"]})]
    return []


def test_the_document_is_of_openapi_3_1_and_valid() -> None:
    assert read_document()["openapi"].startswith("3.1.")
    schemathesis.openapi.from_dict(read_document()).validate()
    names = set(read_document()["components"]["schemas"])
    assert set(re.findall(r"'#/components/schemas/([^']+)'", str(read_document()))) <= names


def test_every_operation_has_a_name_of_its_own() -> None:
    for names in ([op.content["operationId"] for op in ALL], [op.content["summary"] for op in ALL]):
        assert [name for name, count in Counter(names).items() if count > 1] == []


@each_operation
def test_an_operation_is_described(operation: Operation) -> None:
    assert operation.content["summary"]
    assert not operation.content["summary"].endswith(".")
    assert re.fullmatch(r"[a-z_]+", operation.content["operationId"])
    assert len(operation.content["tags"]) == 1
    assert any(status.startswith(("2", "3")) for status in operation.content["responses"])


@each_operation
def test_an_operation_has_examples_and_they_are_true(operation: Operation) -> None:
    for what, kind, content in contents_of(operation):
        examples = examples_of(content)
        assert examples, f"{operation.label}: {what} ({kind}) has no example"
        if kind == "application/json":
            schema = content["schema"] | {"components": read_document()["components"]}
            for example in examples:
                Draft202012Validator(schema).validate(example)


@each_operation
def test_an_operation_declares_its_problems(operation: Operation) -> None:
    refusals = {status: answer for status, answer in operation.content["responses"].items() if status >= "4"}
    assert set(refusals) >= {"400", "401", "403", "422", "429", "503"}
    for status, answer in refusals.items():
        assert "application/problem+json" in answer["content"], f"{operation.label}: {status}"
    assert "404" in refusals or "{" not in operation.path


@each_operation
def test_an_operation_says_that_it_needs_a_token(operation: Operation) -> None:
    assert bool(operation.content.get("security")) == (operation.scope != PUBLIC)


def test_every_operation_is_documented_as_it_is() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("\n## Operations\n")[2].partition("\n## ")[0]
    rows = table_rows()
    documented = [line for line in section.splitlines() if line.startswith("| `")]
    assert sorted(documented) == sorted(rows), "\n".join([f"{PAGE.name} should hold:", *rows])
