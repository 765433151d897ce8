"""Source types."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue

EXAMPLE: dict[str, JsonValue] = {
    "name": "github_releases",
    "summary": "releases of a repository: https://api.github.com/repos/OWNER/NAME/releases",
    "package": "feedmill",
    "version": "0.1.0",
    "fields": ["headers", "user", "password", "timeout_seconds", "prereleases", "tags"],
    "config_schema": {
        "type": "object",
        "properties": {"password": {"type": "string", "writeOnly": True}, "prereleases": {"type": "boolean"}},
    },
}


class SourceTypeRow(BaseModel):
    """A source type that is installed where the API runs. Fetchers need the same packages."""

    model_config = ConfigDict(json_schema_extra={"example": EXAMPLE})

    name: Annotated[str, Field(description="As a feed's `source_type` has it.")]
    summary: str
    package: str
    version: str
    fields: Annotated[list[str], Field(description="The names of a feed's own settings.")]
    config_schema: Annotated[
        dict[str, Any], Field(description="JSON Schema of a feed's `source_config`; secrets are `writeOnly`.")
    ]
