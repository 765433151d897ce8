"""The settings that hold in this environment, for people."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from services.enricher.settings import EnricherSettings
from services.fetcher.settings import FetcherSettings
from services.scheduler.settings import SchedulerSettings
from services.writer.settings import WriterSettings
from shared.observability.display import safe_to_show
from shared.observability.secrets import MASK, is_secret_name
from shared.settings import FeedmillSettings, read_settings

SERVICES: tuple[type[FeedmillSettings], ...] = (SchedulerSettings, FetcherSettings, EnricherSettings, WriterSettings)
"""Of the services behind the API, as this process's environment has them."""

MOST_CHARACTERS = 500


@dataclass(frozen=True)
class Setting:
    """One setting."""

    variable: str
    value: str
    """Without credentials; "" for none."""
    default: str
    is_set: bool
    """Whether the environment or a file of secrets has it."""
    description: str


@dataclass(frozen=True)
class Group:
    """Settings that stand in one class."""

    title: str
    settings: list[Setting]


def settings_in_force(classes: Collection[type[FeedmillSettings]]) -> list[Group]:
    """Return the settings of these classes and of those that they inherit from, each once.

    Raises:
        ConfigurationError: some can't be read.
    """
    values = {
        name: (found, name in found.model_fields_set)
        for found in map(read_settings, classes)
        for name in type(found).model_fields
    }
    groups: dict[str, list[Setting]] = {}
    for owner, name in _owned(classes):
        found, is_set = values[name]
        field = type(found).model_fields[name]
        groups.setdefault(owner.__name__.removesuffix("Settings"), []).append(
            Setting(
                f"FEEDMILL_{name.upper()}",
                _shown(name, getattr(found, name)),
                _shown(name, field.default),
                is_set,
                field.description or "",
            )
        )
    return [Group(title, sorted(settings, key=lambda setting: setting.variable)) for title, settings in groups.items()]


def _owned(classes: Collection[type[FeedmillSettings]]) -> Iterator[tuple[type, str]]:
    """Yield each field with the class that defines it: what several services read comes first."""
    seen: set[str] = set()
    defined = {owner: list(vars(owner).get("__annotations__", {})) for cls in classes for owner in cls.__mro__}
    shared_first = sorted(defined, key=lambda owner: not owner.__module__.startswith("shared."))
    for owner in shared_first:
        for name in defined[owner]:
            if name not in seen and any(name in cls.model_fields for cls in classes):
                seen.add(name)
                yield owner, name


def _shown(name: str, value: Any) -> str:
    if value is None or value == "":
        return ""
    return MASK if is_secret_name(name) else safe_to_show(value, MOST_CHARACTERS)
