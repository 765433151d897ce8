"""The API's own description, as it is published, and who may ask for what.

`python -m tests.api_document` prints the rows of docs/reference/api.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from fastapi import Request

from services.admin.actor import Actor
from services.api.app import make_app
from services.api.resources import Resources, open_database
from services.api.settings import ApiSettings

METHODS = ("get", "post", "put", "patch", "delete")
PUBLIC = "–"


class Operation(NamedTuple):
    """One of the document's."""

    method: str
    path: str
    content: dict[str, Any]

    @property
    def label(self) -> str:
        return f"{self.method.upper()} {self.path}"

    @property
    def scope(self) -> str:
        """The scope that its token needs, `any` or `PUBLIC` if it needs none."""
        needs = self.content.get("security")
        if needs is None:
            return PUBLIC
        return next((" or ".join(scopes) for need in needs for scopes in need.values() if scopes), "any")


@cache
def read_document() -> dict[str, Any]:
    """Return the OpenAPI document. Nothing is connected to."""
    settings = ApiSettings()
    return make_app(Resources(settings, open_database(settings)), _nobody).openapi()


def operations() -> Iterator[Operation]:
    for path, item in read_document()["paths"].items():
        for method in METHODS:
            if method in item:
                yield Operation(method, path, item[method])


def table_rows() -> list[str]:
    """Return the rows that docs/reference/api.md must hold, by subject."""
    found = sorted(operations(), key=lambda operation: (operation.content["tags"], operation.path, operation.method))
    return [f"| `{each.label}` | {each.scope} | {each.content['summary']} |" for each in found]


async def _nobody(_request: Request) -> Actor:
    raise AssertionError
