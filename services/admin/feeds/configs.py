"""Pure: a feed's own settings (`source_config`), as people give them and see them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from services.admin.errors import Invalid
from services.fetcher.http.options import BadOptions, RequestConfig, read_config
from shared.observability.display import safe_to_show
from shared.observability.secrets import MASK, is_secret_name, mask_within

MAX_CHARACTERS = 65_536
"""Of a feed's settings as JSON."""


def check_config(source_type: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a feed's settings as they are stored.

    Raises:
        Invalid: the source type is not installed, or a setting is unknown, or its value can't be used.
    """
    from services.fetcher.sources import find_source_type  # the readers of feeds: a list of feeds needs none

    try:
        source = find_source_type(source_type)
    except BadOptions as error:
        raise Invalid(str(error), "body.source_type") from None
    if unknown := sorted(set(config) - set(source.config.model_fields)):
        known = ", ".join(source.config.model_fields)
        raise Invalid(
            f"config.{safe_to_show(unknown[0], 50)}: there is no such setting; there are {known}", "body.config"
        )
    if _holds(config, MASK):
        raise Invalid(f"config: {MASK} stands for a secret that is not shown; leave it out to keep it", "body.config")
    try:
        source.read_config(config)
        text = json.dumps(config, allow_nan=False, ensure_ascii=False)
        text.encode()
    except BadOptions as error:
        raise Invalid(f"config.{error}", "body.config") from None
    except ValueError:
        raise Invalid("config: it has an infinite number, or half a character (surrogate)", "body.config") from None
    if "\\u0000" in text:
        raise Invalid("config: a text holds the character NUL", "body.config")
    if len(text) > MAX_CHARACTERS:
        raise Invalid(f"config: it has {len(text)} characters; at most {MAX_CHARACTERS} are taken", "body.config")
    return dict(config)


def _holds(value: Any, text: str) -> bool:
    if isinstance(value, Mapping):
        return any(_holds(item, text) for item in value.values())
    return isinstance(value, str) and value == text


def merge_config(config: Mapping[str, Any], changes: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return settings with changes merged into them (RFC 7396): null takes a setting away, or all of them."""
    if changes is None:
        return {}
    merged = dict(config)
    for name, value in changes.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, dict):
            inner = merged.get(name)
            merged[name] = merge_config(inner if isinstance(inner, dict) else {}, value)
        else:
            merged[name] = value
    return merged


def config_for(config: dict[str, Any], origin: str, url: str) -> dict[str, Any]:
    """Return the settings of a feed at `url` that a page at `origin` led to.

    Headers and credentials for one origin are not given to another one. The same holds for redirects.
    """
    own = read_config(RequestConfig, config).for_url(origin, url)
    if own.headers or own.credentials:
        return config
    return {name: value for name, value in config.items() if name not in {"headers", "user", "password"}}


def mask_config(source_type: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a feed's settings to be shown: without headers' values, passwords, and what its type calls a secret."""
    if not config:
        return {}
    from services.fetcher.sources import find_source_type

    try:
        schema: type[RequestConfig] = find_source_type(source_type).config
        secret = _secret_names(schema)
    except (BadOptions, ValueError):
        secret = frozenset()
    shown = {name: MASK if name in secret or is_secret_name(name) else value for name, value in config.items()}
    if isinstance(shown.get("headers"), dict):
        shown["headers"] = dict.fromkeys(shown["headers"], MASK)
    masked: dict[str, Any] = mask_within(shown)
    return masked


@cache
def _secret_names(schema: type[RequestConfig]) -> frozenset[str]:
    """Return the settings that a source type calls secrets."""
    properties = schema.model_json_schema().get("properties", {})
    return frozenset(name for name, schema in properties.items() if _is_write_only(schema))


def _is_write_only(schema: Mapping[str, Any]) -> bool:
    return bool(schema.get("writeOnly")) or any(map(_is_write_only, schema.get("anyOf", ())))
