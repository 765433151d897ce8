"""What a feed logs in with, for `feedmill feeds add`: from a prompt, a file or the environment.

The command line is no place for it: every user of the machine sees it in the process list, and the shell keeps it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import typer

from local.terminal import Terminal
from shared.errors import ConfigurationError
from shared.observability.secrets import is_secret_name

MOST_BYTES = 65_536
"""Of a file with a password or headers."""


def read_login(user: str | None, password_file: Path | None, password: str) -> tuple[str, str] | None:
    """Return name and password, None without a `user`.

    The password is the first line of the file, else the rest of NAME:PASSWORD, else `password` (the environment's),
    else what is typed.

    Raises:
        ConfigurationError: a file with nobody to log in, or one that can't be read.
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
    return name, typer.prompt("password", hide_input=True, default="", show_default=False)


def read_headers(header_file: Path | None) -> list[str]:
    """Return the lines `Name: value` of a file; empty lines are left out.

    Raises:
        ConfigurationError: it can't be read.
    """
    return [line for line in _read(header_file).splitlines() if line.strip()] if header_file else []


def warn_of_secrets(url: str, user: str | None, headers: Sequence[str]) -> None:
    """Tell a person, on standard error, which secrets they have put on the command line."""
    ways = []
    try:
        if urlsplit(url).password:
            ways.append("the URL's password (--user NAME asks for it, --password-file reads it)")
    except ValueError:
        pass  # no URL, which is said elsewhere
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
