"""Reads seed files. A file with a feed that can't be registered is refused whole: its author is there to mend it."""

from __future__ import annotations

import io
import ipaddress
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from services.admin.feeds.tags import clean_tag, merge_tags
from services.admin.registry import NewFeed, check_feed
from services.admin.subscriptions.model import BadList, Listed
from services.admin.subscriptions.reading import open_list
from services.admin.subscriptions.rules import Skipped, check_listed
from shared.errors import ConfigurationError
from shared.wire.jobs import DEFAULT_SOURCE_TYPE

DEFAULT = "default"
"""The name that stands for this package's own file."""

MAX_YAML_BYTES = 4 * 1024 * 1024
YAML_ENDINGS = (".yaml", ".yml")

ANY_NETWORK = (ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("::/0"))

Seed = tuple[Listed, dict[str, JsonValue]]
"""A feed as the file has it, and its own settings (`source_config`)."""


def read_seeds(file: str) -> list[NewFeed]:
    """Return the feeds of a seed file, each once, with its URL as it is registered.

    Raises:
        ConfigurationError: the file, or a feed in it, can't be used; names file, line and reason.
    """
    try:
        name, content = _open(file)
        is_yaml = name.lower().endswith(YAML_ENDINGS)
        found = _read_yaml(content) if is_yaml else ((one, {}) for one in open_list(io.BytesIO(content)).read())
        return list(_check(found))
    except BadList as error:
        raise ConfigurationError(
            f"the seed file {file} (FEEDMILL_SEED_FILE): {error}. Nothing of it was loaded: mend that line, or unset"
            " FEEDMILL_SEED_FILE, and start again"
        ) from None


def _open(file: str) -> tuple[str, bytes]:
    try:
        if file == DEFAULT:
            return "default.yaml", (files(__package__) / "default.yaml").read_bytes()
        return file, Path(file).read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"the seed file {file} (FEEDMILL_SEED_FILE) can't be read: {error.strerror}. Name a file that is there, or"
            " unset it"
        ) from error


def _check(seeds: Iterable[Seed]) -> Iterator[NewFeed]:
    urls = set()
    for listed, config in seeds:
        # Which addresses may be fetched is for the fetchers to say; `feedmill migrate` may have other settings.
        feed = check_listed(listed, ANY_NETWORK)
        if isinstance(feed, Skipped):
            raise BadList(listed.line, f"{feed.url[:200]!r}: {feed.detail}" if feed.url else feed.detail)
        feed = replace(feed, config=config)
        try:
            check_feed(feed)
        except ConfigurationError as error:
            raise BadList(listed.line, str(error)) from None
        if feed.url not in urls:
            urls.add(feed.url)
            yield feed


class _Feed(BaseModel):
    """One feed of a YAML file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    url: str
    name: Annotated[str, Field(max_length=300)] = ""
    tags: Annotated[list[str], Field(max_length=32)] = []
    site_url: str = ""
    source_type: str = DEFAULT_SOURCE_TYPE
    config: dict[str, JsonValue] = {}


def _read_yaml(content: bytes) -> Iterator[Seed]:
    if len(content) > MAX_YAML_BYTES:
        raise BadList(1, f"more than {MAX_YAML_BYTES // 2**20} MiB of YAML: write it as OPML")
    try:
        loader = yaml.SafeLoader(content)
        for node in _nodes(loader.get_single_node()):
            line = node.start_mark.line + 1
            yield _read_feed(loader.construct_document(node), line)
    except (yaml.MarkedYAMLError, yaml.reader.ReaderError) as error:
        mark = getattr(error, "problem_mark", None)
        raise BadList(mark.line + 1 if mark else 1, f"the YAML can't be read: {_reason(error)}") from None
    except RecursionError:
        raise BadList(1, "the YAML is nested too deep") from None


def _nodes(root: yaml.Node | None) -> list[yaml.Node]:
    """Return the nodes of the feeds: of a list, or of the list `feeds` of a mapping."""
    listed = root
    if isinstance(root, yaml.MappingNode):
        listed = next((value for key, value in root.value if key.value == "feeds"), None)
    if not isinstance(listed, yaml.SequenceNode):
        line = root.start_mark.line + 1 if root else 1
        raise BadList(line, "expected `feeds:` with a list of feeds, each a URL or a mapping with `url`")
    return list(listed.value)


def _read_feed(given: object, line: int) -> Seed:
    try:
        feed = _Feed.model_validate({"url": given} if isinstance(given, str) else given)
        tags = merge_tags((), map(clean_tag, feed.tags))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise BadList(line, f"{where}: {first['msg']}" if where else f"a feed: {first['msg']}") from None
    except ConfigurationError as error:
        raise BadList(line, str(error)) from None
    if not _can_be_stored(feed):
        raise BadList(line, "a character or a number that the database can't store")
    return Listed(line, feed.url, feed.name, tuple(tags), feed.site_url, feed.source_type), feed.config


def _can_be_stored(feed: _Feed) -> bool:
    try:
        text = json.dumps(feed.model_dump(), ensure_ascii=False, allow_nan=False)
        return "\\u0000" not in text and bool(text.encode())
    except ValueError:  # a lone surrogate, or infinity
        return False


def _reason(error: Exception) -> str:
    return str(getattr(error, "problem", None) or getattr(error, "reason", None) or error)[:200]
