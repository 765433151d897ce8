"""Loads the seed file at the start, for `feedmill migrate` and `feedmill up`."""

from __future__ import annotations

from collections.abc import Callable

from services.cli.settings import CliSettings


def load_seed_file(database_url: str, settings: CliSettings, say: Callable[[str], object]) -> None:
    """Register the feeds of FEEDMILL_SEED_FILE, if one is set, and say how many are new.

    Raises:
        ConfigurationError: the file can't be used; nothing of it was loaded.
    """
    if not settings.seed_file:
        return
    from services.admin.seeds import load_seeds

    done = load_seeds(database_url, settings.seed_file)
    say(f"seed file {settings.seed_file}: {done.listed} feeds, {done.added} added now")
