"""JSON schemas of the objects that we send to the API server: plain kinds for several versions, custom resources.

Strict: a field that the schema does not know is an error, where an API server would drop it without a word.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import kubernetes_validate.utils
import yaml
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from tests.k8s.manifests import LOADER, ROOT, Object

VERSIONS = tuple(kubernetes_validate.utils.all_versions()[-4:])
"""The newest Kubernetes versions that the package knows. They cover the supported ones."""

CRDS = ROOT.parent / "shared" / "crd"
"""Custom resource definitions as their projects publish them; they are no part of this repository."""


def problems(one: Object, version: str) -> list[str]:
    """Return the violations of an object of a plain kind."""
    return _told(_plain_validator(one["kind"], one["apiVersion"], version), one)


def custom_problems(one: Object) -> list[str]:
    """Return the violations of a custom resource."""
    schema = custom_schemas()[one["apiVersion"], one["kind"]]
    return _told(Draft202012Validator(schema), one)


def is_custom(one: Object) -> bool:
    """Return whether a kind is not Kubernetes' own: its group is a domain outside of k8s.io."""
    group = one["apiVersion"].rpartition("/")[0]
    return "." in group and not group.endswith(".k8s.io")


def _told(validator: Draft202012Validator, one: Object) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(one)]


@cache
def _plain_validator(kind: str, api_version: str, version: str) -> Draft202012Validator:
    # The file's name: kind, first word of the group, version.
    file = re.sub(r"^([^./]*)(?:\.[^/]*)?/", r"\1-", api_version)
    schema = _read(version, f"{kind.lower()}-{file}.json")
    return Draft202012Validator(schema, registry=_definitions(version))


@cache
def _definitions(version: str) -> Registry[Any]:
    definitions: Resource[Any] = Resource.from_contents(_read(version, "_definitions.json"))
    empty: Registry[Any] = Registry()
    return definitions @ empty


def _read(version: str, name: str) -> Any:
    directory = resources.files(kubernetes_validate) / "kubernetes-json-schema" / f"v{version}-local-strict"
    return json.loads((directory / name).read_text(encoding="utf-8"))


@cache
def custom_schemas() -> dict[tuple[str, str], Object]:
    """Return the schemas of `CRDS` by API version and kind."""
    return {key: schema for path in sorted(CRDS.glob("*.yaml")) for key, schema in _schemas_of(path)}


def _schemas_of(path: Path) -> Iterator[tuple[tuple[str, str], Object]]:
    definition = yaml.load(path.read_text(encoding="utf-8"), Loader=LOADER)["spec"]
    for version in definition["versions"]:
        schema = strict(version["schema"]["openAPIV3Schema"])
        schema["properties"]["metadata"] = {"type": "object"}
        yield (f"{definition['group']}/{version['name']}", definition["names"]["kind"]), schema


def strict(schema: Any) -> Any:
    """Return a structural schema as a JSON schema that refuses unknown fields."""
    if isinstance(schema, list):
        return [strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"], **({"pattern": schema["pattern"]} if "pattern" in schema else {})}
    # Formats are hints here; nullable is a word of OpenAPI.
    made = {key: value for key, value in schema.items() if key not in {"properties", "format", "nullable", "default"}}
    for key in ("items", "additionalProperties", "allOf", "anyOf", "oneOf", "not"):
        if key in made:
            made[key] = strict(made[key])
    if "properties" in schema:
        made["properties"] = {name: strict(part) for name, part in schema["properties"].items()}
        open_ = schema.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in schema
        if not open_ and "type" in schema:
            made["additionalProperties"] = False
    if schema.get("nullable") and isinstance(made.get("type"), str):
        made["type"] = [made["type"], "null"]
    return made
