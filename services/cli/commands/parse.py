"""The command `feedmill parse`: one feed from a file, a URL or standard input."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from local.terminal import Terminal, print_error
from services.cli.label_words import entities_in_words, with_share
from services.cli.options import AsJson, Utc, Wide
from services.cli.output import Column, Times, console, print_facts, print_table
from shared.observability.display import ascii_json, safe_to_show

if TYPE_CHECKING:
    from services.fetcher.parse import ParsedFeed
    from shared.wire.enrichment import Enrichment
    from shared.wire.results import Entry


def parse(
    source: Annotated[str, typer.Argument(help="A file, a URL, or - for standard input.")],
    as_json: AsJson = False,
    wide: Wide = False,
    utc: Utc = False,
    base_url: Annotated[str | None, typer.Option(help="Where relative links start from.")] = None,
    content_type: Annotated[str | None, typer.Option(help="What HTTP would have said.")] = None,
    enrich: Annotated[
        bool, typer.Option("--enrich", help="Say of each entry what the enricher finds: language, topic, who is named.")
    ] = False,
) -> None:
    """Read one feed as the pipeline would and print its entries. Exit code 1 if it can't be read."""
    from services.admin.feeds import preview

    try:
        if "://" in source:
            parsed = preview.read_url(source, base_url=base_url, content_type=content_type)
        else:
            content = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
            parsed = preview.read_bytes(content, base_url=base_url, content_type=content_type)
    except preview.ReadingFailed as error:
        if as_json:
            print(ascii_json({"error": {"outcome": error.outcome.value, "reason": str(error)}}))
        else:
            Terminal(stderr=True).print(safe_to_show(f"{source}: {error.outcome.value}: {error}", None), soft_wrap=True)
        raise typer.Exit(1) from None
    except OSError as error:
        print_error(f"{source!r} can't be read: {error.strerror}; the URL of a feed begins with http:// or https://")
        raise typer.Exit(1) from None
    missing: Mapping[str, str] = {}
    if enrich:
        parsed, missing = preview.enrich(parsed)
    for part, reason in missing.items():
        Terminal(stderr=True).print(f"without {part}: {safe_to_show(reason)}", style="yellow", soft_wrap=True)
    if as_json:
        print(ascii_json(preview.as_json(parsed)))
    else:
        show(parsed, Times(utc=utc, wide=wide), wide=wide)


def show(parsed: ParsedFeed, times: Times, *, wide: bool = False) -> None:
    """Print what the feed says of itself, its entries as a table, and warnings."""
    from services.admin.feeds.preview import facts_of

    said = {"title": parsed.feed.title or "(a feed without a title)"} | parsed.feed.model_dump() | facts_of(parsed)
    facts = [(name.replace("_", " "), _in_words(value)) for name, value in said.items() if value]
    print_facts([*facts, ("format", f"{parsed.format}, read by the {parsed.tier} tier")])
    console.print()
    columns = (
        Column("published", lambda entry: times(entry.published_at) or "-"),
        Column("title", lambda entry: entry.title, flexible=True),
        Column("quality", lambda entry: entry.content_quality),
        Column("characters", lambda entry: len(entry.body), right=True),
        *(_LABELS if any(entry.enrichment for entry in parsed.entries) else ()),
        Column("flags", lambda entry: ", ".join((*entry.flags, *_found(entry).flags)), flexible=True),
        Column("url", lambda entry: entry.url, below=True),
    )
    print_table(columns, parsed.entries, wide=wide, note=f"{len(parsed.entries)} entries; {times.note}")
    for warning in parsed.warnings:
        console.print(f"warning: {safe_to_show(warning)}", style="yellow", soft_wrap=True)


def _found(entry: Entry) -> Enrichment:
    from shared.wire.enrichment import Enrichment

    return entry.enrichment or Enrichment()


def _named(entry: Entry) -> str | None:
    return entities_in_words([entity.model_dump() for entity in _found(entry).entities or ()])


_LABELS = (
    Column("language", lambda entry: with_share(_found(entry).language, _found(entry).language_confidence)),
    Column("topic", lambda entry: with_share(_found(entry).topic, _found(entry).topic_confidence)),
    Column("named", _named, below=True),
)


def _in_words(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
