"""Source types over HTTP and as a command."""

from __future__ import annotations

import json

import httpx
import jsonschema
import pytest
from typer.testing import CliRunner

from services.admin.actor import Scope
from services.cli.__main__ import app
from tests.integration.api.conftest import Caller


async def test_source_types_are_listed_with_the_schema_of_their_settings(api: httpx.AsyncClient) -> None:
    rows = {row["name"]: row for row in (await api.get("/api/sources")).json()["items"]}
    assert rows.keys() >= {"feed", "github_releases"}
    row = rows["github_releases"]
    assert row["package"] == "feedmill"
    assert {"headers", "prereleases"} <= set(row["fields"])
    properties = row["config_schema"]["properties"]
    assert {name for name, one in properties.items() if one.get("writeOnly")} == {"headers", "user", "password"}
    jsonschema.Draft202012Validator.check_schema(row["config_schema"])
    jsonschema.validate({"prereleases": True}, row["config_schema"])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"prereleases": "yes"}, row["config_schema"])
    assert (await api.get("/api/sources/github_releases")).json() == row


async def test_an_unknown_one_is_not_found_and_reading_needs_a_scope(api: httpx.AsyncClient, caller: Caller) -> None:
    answer = await api.get("/api/sources/pigeon")
    assert answer.status_code == 404
    assert "installed: feed, github_releases" in answer.json()["detail"]
    caller.scopes = {Scope.CONSUME}
    assert (await api.get("/api/sources")).status_code == 403


def test_the_command_shows_them_without_any_server() -> None:
    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["sources", *arguments], catch_exceptions=False)
        assert result.exit_code == 0
        return result.stdout

    listed = json.loads(run("--json"))
    assert [row["name"] for row in listed][:2] == ["feed", "github_releases"]
    assert json.loads(run("feed", "--json")) == listed[0]
    assert "prereleases" in run()
    shown = run("github_releases").splitlines()
    assert any(line.startswith("password") and "yes" in line for line in shown)
    assert any(line.startswith("prereleases") and "false" in line for line in shown)
