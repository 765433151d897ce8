"""The commands `feedmill token …`: who may use the API."""

from __future__ import annotations

from typing import Annotated

import typer

from services.admin.actor import Scope
from services.cli.calls.opening import open_api
from services.cli.options import AsJson, Utc, Wide, span
from services.cli.output import Column, Times, console, print_table
from shared.errors import ConfigurationError
from shared.observability.display import ascii_json

app = typer.Typer(help="Tokens: who may use the API, and for what.", no_args_is_help=True)

NEVER = "never"


def _lifetime(text: str) -> float | None:
    return None if text.strip().lower() == NEVER else span(60)(text)


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="A name for people.")],
    scope: Annotated[
        list[Scope],
        typer.Option(help="What it may do; repeatable. `write` includes `read`, `admin` all."),
    ],
    expires: Annotated[str, typer.Option(metavar="SPAN", help="When it ends: 90d, 12h, or never.")] = "365d",
    as_json: AsJson = False,
) -> None:
    """Make a token, and print it: it is shown once. The first one is made beside the database."""
    try:
        seconds = _lifetime(expires)
    except typer.BadParameter as error:
        raise typer.BadParameter(f"{error}, or {NEVER}", param_hint="--expires") from None
    body = {"name": name, "scopes": scope, "lifetime_seconds": None if seconds is None else int(seconds)}
    with open_api(create=True) as api:
        made = api.call("POST", "/api/tokens", body=body).json()
    if as_json:
        print(ascii_json(made))
        return
    until = f"until {made['expires_at']}" if made["expires_at"] else "until it is revoked"
    typer.echo(f"token {made['id']} ({name}) may {', '.join(made['scopes'])} {until}; it is shown once:", err=True)
    print(made["token"])


@app.command("list")
def list_(
    every: Annotated[bool, typer.Option("--all", help="Also those that were revoked or have expired.")] = False,
    wide: Wide = False,
    utc: Utc = False,
    as_json: AsJson = False,
) -> None:
    """List tokens."""
    from services.api.models.access import TokenRow

    with open_api() as api:
        rows = [row.model_dump() for row in api.rows("/api/tokens", TokenRow)]
    rows = [row for row in rows if every or row["state"] == "good"]
    if as_json:
        print(ascii_json(rows))
        return
    times = Times(utc=utc, wide=wide)
    columns = (
        Column("id", right=True),
        Column("name", flexible=True),
        Column("token", lambda row: f"{row['prefix']}_…"),
        Column("scopes", lambda row: ", ".join(row["scopes"])),
        Column("state"),
        Column("expires", lambda row: times(row["expires_at"]) or NEVER),
        Column("last used", lambda row: times(row["last_used_at"])),
        Column("made by", "created_by", flexible=True),
    )
    print_table(columns, rows, wide=wide, note=f"{len(rows)} tokens; {times.note}")


@app.command()
def revoke(
    tokens: Annotated[list[str], typer.Argument(help="Ids, names, or beginnings such as fm_0a1b2c3d.")],
    as_json: AsJson = False,
) -> None:
    """Revoke tokens; they and their logins end within seconds."""
    from services.api.models.access import TokenRow

    with open_api() as api:
        rows = [row for row in api.rows("/api/tokens", TokenRow) if row.state != "revoked"]
        revoked = []
        for token in tokens:
            found = [row for row in rows if token in {str(row.id), row.name, row.prefix}]
            if len(found) != 1:
                reason = "several tokens are called that: give an id" if found else "there is no such token"
                raise ConfigurationError(f"{token}: {reason} (`feedmill token list`)")
            revoked.append(api.call("DELETE", f"/api/tokens/{found[0].id}").json())
            if not as_json:
                console.print(f"token {found[0].id} ({found[0].name}) was revoked")
    if as_json:
        print(ascii_json(revoked))
