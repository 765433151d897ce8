"""The version of the reader: digests of an other one's entries are not recognised, since it may read them otherwise."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from importlib.resources.abc import Traversable
from unicodedata import unidata_version

import feedparser

from shared.wire.jobs import DIGEST_BYTES


@cache
def reader_version() -> str:
    """Return the version as hex digits: a digest of the reader's sources, so that nobody has to remember to raise it.

    It is computed once. Python's version and feedparser's count too.
    """
    message = files("shared.wire") / "results.py"
    return hash_sources([files("services.fetcher.parse"), message], (*sys.version_info[:2], feedparser.__version__))


def hash_sources(sources: list[Traversable], others: tuple[object, ...]) -> str:
    """Return a digest of the Python files in `sources` by their names, and of `others`."""
    digest = blake2b(repr((others, unidata_version)).encode(), digest_size=DIGEST_BYTES)
    for source in sources:
        for name, text in _python_files(source, source.name):
            digest.update(f"\0{name}\0{len(text)}\0".encode() + text)
    return digest.hexdigest()


def _python_files(source: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    if source.is_dir():
        for inner in sorted(source.iterdir(), key=lambda one: one.name):
            yield from _python_files(inner, f"{name}/{inner.name}")
    elif name.endswith(".py"):
        yield name, source.read_bytes()
