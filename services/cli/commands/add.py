"""The command `feedmill feeds add`: registers a feed, or the feed that a page links to."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from getpass import GetPassWarning
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from local.terminal import Interrupted, Terminal
from services.cli.calls.opening import open_api
from services.cli.options import AsJson, Yes, span
from services.cli.output import console
from shared.errors import ConfigurationError
from shared.observability.display import ascii_json, safe_to_show
from shared.observability.secrets import is_secret_name

if TYPE_CHECKING:
    from services.cli.calls.api import Api

MOST_BYTES = 65_536
"""The most that is read of a file with a password or headers."""

TITLE_CHARACTERS = 200


def add(
    url: Annotated[str, typer.Argument(help="The feed's http(s) URL, or that of a page that links to it.")],
    name: Annotated[str | None, typer.Option(help="A name for people.")] = None,
    interval: Annotated[
        float | None,
        typer.Option(
            parser=span(1), metavar="SPAN", help="Poll exactly this often, without adapting: 90, 90s, 5m, 2h, 1d."
        ),
    ] = None,
    priority: Annotated[int, typer.Option(min=-1000, max=1000, help="Higher goes first when many feeds are due.")] = 0,
    tag: Annotated[list[str] | None, typer.Option(help="A tag, such as news or a/b; repeatable.")] = None,
    header: Annotated[list[str] | None, typer.Option(help="'Name: value', sent with its requests; repeatable.")] = None,
    header_file: Annotated[
        Path | None, typer.Option(help="A file with such lines, for secrets; - is standard input.")
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(help="Log in as NAME (HTTP Basic); asks for the password, unless a file or a variable has it."),
    ] = None,
    password_file: Annotated[
        Path | None, typer.Option(help="A file whose first line is the password; - is standard input.")
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(parser=span(), metavar="SPAN", help="How long a fetch of it may take, redirects included."),
    ] = None,
    check: Annotated[
        bool | None,
        typer.Option(help="Look whether a feed is there. By default only if the URL doesn't say that it is one."),
    ] = None,
    source_type: Annotated[
        str | None, typer.Option(help="What reads it, as `feedmill sources` lists them; else RSS, Atom or JSON Feed.")
    ] = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Register a feed; it is due at once. Its own headers and password go to its own origin only.

    If the URL is a page's, its feeds are looked for: a terminal asks which one, otherwise (`--yes`) the first is
    taken. If the look itself has fetched the feed, that counts as its first poll, and its articles are written.
    """
    from services.cli.settings import CliSettings
    from shared.settings import read_settings

    settings = read_settings(CliSettings)
    _warn_of_secrets(url, user, header or [])
    config = _make_config(
        [*(header or []), *_read_headers(header_file)],
        _read_login(user, password_file, settings.feed_password.get_secret_value()),
        timeout,
    )
    asks = not (yes or as_json) and sys.stdin.isatty() and sys.stdout.isatty()
    body: dict[str, Any] = {"url": url, "name": name, "tags": tag or [], "config": config, "check": check}
    body |= {"interval_seconds": interval, "priority": priority, "choose": "ask" if asks else "first"}
    body |= {"source_type": source_type} if source_type else {}
    with open_api(create=True) as api:
        added = _add(api, body)
    if as_json:
        print(ascii_json(added))
        return
    for note in added["notes"]:
        console.print(safe_to_show(note), soft_wrap=True)
    said = "added as" if added["is_new"] else "is there already, unchanged, as"
    console.print(f"{safe_to_show(added['url'])} {said} feed {added['id']}", soft_wrap=True)


def _add(api: Api, body: dict[str, Any]) -> dict[str, Any]:
    """Return the feed that was added. Of a page with several feeds a person chooses one; that costs no request."""
    from services.cli.calls.failures import Refused

    try:
        added: dict[str, Any] = api.call("POST", "/api/feeds", body=body).json()
    except Refused as refused:
        if not (candidates := refused.problem.get("candidates")):
            raise
        chosen = _choose(candidates)
        body = body | {"url": chosen, "found_at": body["url"], "check": False}
        added = api.call("POST", "/api/feeds", body=body).json()
    return added


def _make_config(
    headers: Sequence[str], credentials: tuple[str, str] | None, timeout_seconds: float | None
) -> dict[str, Any]:
    """Return a feed's own settings as they are stored; `headers` are lines `Name: value`. Not checked further.

    Raises:
        ConfigurationError: a header without a colon.
    """
    config: dict[str, Any] = {}
    if not all(":" in line for line in headers):
        raise ConfigurationError("--header: expected 'Name: value'")
    if headers:
        lines = (line.partition(":") for line in headers)
        config["headers"] = {name.strip(): value.strip() for name, _, value in lines}
    if credentials:
        config["user"], config["password"] = credentials
    if timeout_seconds is not None:
        config["timeout_seconds"] = timeout_seconds
    return config


def _read_login(user: str | None, password_file: Path | None, password: str) -> tuple[str, str] | None:
    """Return name and password; None without a `user`.

    The password comes from the first of these that is there: the file's first line, the rest of NAME:PASSWORD,
    `password` (the environment's), a prompt.

    Raises:
        ConfigurationError: there is a file but no user, or the file can't be read.
    """
    if user is None:
        if password_file is not None:
            raise ConfigurationError("--password-file: whose password? Give --user NAME, too")
        return None
    name, colon, given = user.partition(":")
    if password_file is not None:
        return name, _read(password_file).partition("\n")[0].rstrip("\r")
    if colon or password:
        return name, given if colon else password
    return name, _ask_password()


def _ask_password() -> str:
    """Return what is typed. Raises ConfigurationError if nobody can type."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GetPassWarning)
            typed: str = typer.prompt("password", hide_input=True, default="", show_default=False)
    except typer.Abort:
        if sys.stdin.isatty():
            raise
        raise ConfigurationError(
            "nobody types the password, since this is no terminal: give --password-file or FEEDMILL_FEED_PASSWORD"
        ) from None
    return typed


def _read_headers(header_file: Path | None) -> list[str]:
    """Return the lines `Name: value` of a file without its empty lines. Raises ConfigurationError."""
    return [line for line in _read(header_file).splitlines() if line.strip()] if header_file else []


def _warn_of_secrets(url: str, user: str | None, headers: Sequence[str]) -> None:
    """Warn on standard error of secrets on the command line, and name the safe options.

    Every user of the machine sees them in the process list, and the shell keeps them.
    """
    ways = []
    try:
        if urlsplit(url).password:
            ways.append("the URL's password (--user NAME asks for it, --password-file reads it)")
    except ValueError:
        pass  # no URL: the API says so
    if ":" in (user or ""):
        ways.append("--user NAME:PASSWORD (NAME alone asks for it, --password-file or FEEDMILL_FEED_PASSWORD give it)")
    if any(is_secret_name(line.partition(":")[0]) for line in headers):
        ways.append("--header (--header-file reads it)")
    for way in ways:
        said = f"warning: every user of this machine sees {way} in the process list, and the shell may keep it"
        Terminal(stderr=True).print(said, soft_wrap=True)


def _read(path: Path) -> str:
    """Return the text of a file, or of standard input for `-`."""
    try:
        if str(path) == "-":
            return sys.stdin.read(MOST_BYTES)
        with path.open(encoding="utf-8") as file:
            return file.read(MOST_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise ConfigurationError(f"{path} can't be read: {reason}") from error


def _choose(candidates: list[dict[str, str]]) -> str:
    """Return the URL that a person chooses."""
    for number, one in enumerate(candidates, 1):
        title = safe_to_show(one["title"] or "(no title)", TITLE_CHARACTERS)
        console.print(f"{number}  {title}  {safe_to_show(one['url'])}", soft_wrap=True)
    chosen = candidates[_ask_number("Which feed", len(candidates)) - 1]["url"]
    console.print(f"a page with {len(candidates)} feeds; took {safe_to_show(chosen)}", soft_wrap=True)
    return chosen


def _ask_number(question: str, most: int) -> int:
    """Ask until the answer is a number from 1 to `most`. Not by click's IntRange: newer typers refuse its types."""
    while True:
        try:
            typed = typer.prompt(question, default="1").strip()
        except typer.Abort:  # Ctrl-C or Ctrl-D
            raise Interrupted from None
        if typed.isascii() and typed.isdecimal() and len(typed) < 5 and 1 <= int(typed) <= most:
            return int(typed)
        console.print(f"a number from 1 to {most}, please")
