"""What a list of feeds consists of, and what can be wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from shared.errors import FeedmillError
from shared.wire.jobs import DEFAULT_SOURCE_TYPE

MAX_NAME_CHARACTERS = 300
"""A longer name of a feed is cut."""


class Format(StrEnum):
    """How a list is written."""

    OPML = "opml"
    CSV = "csv"
    LIST = "list"


@dataclass(frozen=True, slots=True)
class Listed:
    """A feed as a list has it; nothing of it is checked yet."""

    line: int
    """Where it begins; the first line is 1."""
    url: str
    """Empty if the list has a feed here without a URL."""
    name: str = ""
    tags: tuple[str, ...] = ()
    """In the form that `clean_tag` returns, each once."""
    site_url: str = ""
    source_type: str = DEFAULT_SOURCE_TYPE


class BadList(FeedmillError):
    """The file is no list, or is broken in a way that may hide feeds. Nothing was imported.

    Args:
        line: where it is broken.
        reason: why it can't be read on.
        salvageable: whether feeds can be read from it all the same (`open_list(salvage=True)`).
    """

    def __init__(self, line: int, reason: str, *, salvageable: bool = False) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line = line
        self.salvageable = salvageable
        self.feeds_before = 0
        """How many feeds stand before that line."""


@dataclass(slots=True)
class Flaw:
    """Something wrong with a file that was repaired without a loss, or that loses no feed."""

    line: int
    """Where it is first."""
    text: str
    count: int = 1


@dataclass
class Flaws:
    """The flaws of a file, each kind once."""

    by_text: dict[str, Flaw] = field(default_factory=dict)

    def note(self, text: str, line: Callable[[], int]) -> None:
        """Count a flaw; `line` is asked only for the first of its kind."""
        if flaw := self.by_text.get(text):
            flaw.count += 1
        else:
            self.by_text[text] = Flaw(line(), text)

    @property
    def in_order(self) -> list[Flaw]:
        """The flaws by line."""
        return sorted(self.by_text.values(), key=lambda flaw: flaw.line)


def clean_name(text: str, url: str, line: int, flaws: Flaws) -> str:
    """Return a feed's name on one line; nothing if it only repeats the URL."""
    name = " ".join(text.split())
    if len(name) > MAX_NAME_CHARACTERS:
        flaws.note(f"a name with more than {MAX_NAME_CHARACTERS} characters was cut", lambda: line)
        name = name[:MAX_NAME_CHARACTERS].rstrip()
    return "" if name == url.strip() else name
