"""The source types that are installed, and the settings that a feed of each may have."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

from services.admin.errors import NotFound
from services.fetcher.sources import GROUP, SourceType, load_source_types


def list_source_types() -> list[dict[str, Any]]:
    """Return a row for each source type, by name: its package, and its settings as a JSON Schema.

    Secrets of the settings are marked `writeOnly`.

    Raises:
        ConfigurationError: a package can't be used, as `load_source_types`.
    """
    installed = load_source_types()
    packages = {point.name: point.dist for point in entry_points(group=GROUP)}
    return [
        {
            "name": name,
            "summary": installed[name].summary,
            "package": package.name if (package := packages.get(name)) else "",
            "version": package.version if package else "",
            "fields": list(installed[name].config.model_fields),
            "config_schema": config_schema(installed[name]),
        }
        for name in sorted(installed)
    ]


def show_source_type(name: str) -> dict[str, Any]:
    """Return the row of one source type. Raises NotFound, which says which ones there are."""
    rows = list_source_types()
    found = next((row for row in rows if row["name"] == name), None)
    if found is None:
        known = ", ".join(row["name"] for row in rows)
        raise NotFound(f"the source type {name[:50]!r} is not installed here (installed: {known})")
    return found


def config_schema(source: SourceType[Any]) -> dict[str, Any]:
    """Return the JSON Schema of `source_config` for feeds of this type."""
    schema: dict[str, Any] = source.config.model_json_schema()
    for name, field in source.config.model_fields.items():
        if not field.repr:
            schema["properties"][name]["writeOnly"] = True
    return schema
