"""Unit tests: the schema of a request that names things, or all of them, allows what its model takes."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, ValidationError

from services.api.models.claims import ReviveRequest
from services.api.models.dead_letters import LettersRequest, PurgeRequest

KEY = "9e107d9d372bb6826bd81d3542a419d6"


@pytest.mark.parametrize(("kind", "names"), [(ReviveRequest, "md5s"), (LettersRequest, "ids"), (PurgeRequest, "ids")])
def test_schema_and_model_agree(kind: type[BaseModel], names: str) -> None:
    schema = Draft202012Validator(kind.model_json_schema())
    good: list[dict[str, Any]] = [{names: [KEY]}, {names: [KEY], "all": False}, {"all": True}, {names: [], "all": True}]
    bad: list[dict[str, Any]] = [
        {},
        {names: []},
        {"all": False},
        {names: [], "all": False},
        {names: [KEY], "all": True},
    ]
    for body in good:
        kind.model_validate(body)
        assert schema.is_valid(body), body
    for body in bad:
        assert not schema.is_valid(body), body
        with pytest.raises(ValidationError):
            kind.model_validate(body)
