"""The API's own description, as it is published."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from services.api.app import make_app
from services.api.resources import Resources, open_database
from services.api.settings import ApiSettings
from tests.integration.api.conftest import Caller

METHODS = ("get", "post", "put", "patch", "delete")


class Operation(NamedTuple):
    """One of the document's."""

    method: str
    path: str
    content: dict[str, Any]

    @property
    def label(self) -> str:
        return f"{self.method.upper()} {self.path}"


@cache
def read_document() -> dict[str, Any]:
    """Return the OpenAPI document. Nothing is connected to."""
    settings = ApiSettings()
    return make_app(Resources(settings, open_database(settings)), Caller().authenticate).openapi()


def operations() -> Iterator[Operation]:
    for path, item in read_document()["paths"].items():
        for method in METHODS:
            if method in item:
                yield Operation(method, path, item[method])
