"""Random histories of two feeds that share articles, with all that feeds do to their ids, links and titles."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from shared.wire.results import Entry
from tests.factories import make_entry

MOST_ITEMS = 6


@dataclass(frozen=True)
class Item:
    """An item of a feed. `id` is what the feed would give as its id if its ids were its items' own."""

    id: str
    link: str
    title: str
    text: str


@dataclass
class Feed:
    """A feed whose items change at random."""

    random: Random
    ids: str
    """`own`, `none`, `one` for all, `positions`, or `random` at each fetch."""
    one_link: bool
    items: list[Item] = field(default_factory=list)
    gone: list[Item] = field(default_factory=list)
    scheme: str = "http"
    made: int = 0

    def change(self, others: list[Item]) -> None:
        """Do something that feeds do. `others`: the items of another feed."""
        changes = (self._change_one, self._change_one, self._move, self._drop_or_return, self._borrow, self._rename_ids)
        change = self.random.choice([self._add, self._add, self._add, *changes])
        change(others)
        del self.items[MOST_ITEMS:]

    def _add(self, _: list[Item]) -> None:
        self._insert(self._new())

    def _change_one(self, _: list[Item]) -> None:
        if not self.items:
            return
        at, random = self.random.randrange(len(self.items)), self.random
        aspect, value = random.choice(
            [
                ("title", random.choice(["a", "b", "c", f"new {random.random()}"])),
                ("text", random.choice(["x", "y", f"text {random.random()}"])),
                ("link", random.choice(["http://x.example/?p=1", "http://x.example/2"])),
                ("id", f"other {random.randrange(3)}"),
            ]
        )
        self.items[at] = replace(self.items[at], **{aspect: value})

    def _move(self, _: list[Item]) -> None:
        self.random.choice([self.random.shuffle, list[Item].reverse])(self.items)

    def _drop_or_return(self, _: list[Item]) -> None:
        if self.gone and self.random.random() < 0.5:
            self._insert(self.random.choice(self.gone))
        elif self.items:
            self.gone.append(self.items.pop(self.random.randrange(len(self.items))))

    def _borrow(self, others: list[Item]) -> None:
        """Add an item of another feed, one that is there already, or one like it: of the same link and title."""
        if known := [*self.items, *others]:
            item = self.random.choice(known)
            twin = replace(item, id=self._new().id, text=self.random.choice(["x", "y", "z"]))
            self._insert(self.random.choice([item, twin]))

    def _rename_ids(self, _: list[Item]) -> None:
        self.scheme = "https" if self.scheme == "http" else "http"

    def _insert(self, item: Item) -> None:
        self.items.insert(self.random.choice([0, len(self.items) // 2, len(self.items)]), item)

    def _new(self) -> Item:
        self.made += 1
        number = f"{self.random.randrange(10**6)}"
        link = "http://x.example/" if self.one_link else f"http://x.example/{number}"
        title = self.random.choice(["a", "b", f"title {number}"])
        return Item(number, link, title, self.random.choice(["x", "y", f"text {number}"]))

    def entries(self) -> list[Entry]:
        """Return what a fetcher reads."""
        return [self._entry(at, item) for at, item in enumerate(self.items)]

    def _entry(self, at: int, item: Item) -> Entry:
        id_ = {
            "own": f"{self.scheme}:{item.id}",
            "none": None,
            "one": "the same",
            "positions": str(at),
            "random": str(self.random.random()),
        }[self.ids]
        given: dict[str, Any] = {} if id_ is None else {"entry_id": id_, "id_is_given": True}
        return make_entry(
            url=item.link,
            title=item.title,
            body=item.text,
            content_hash=hashlib.sha256(f"{item.title}\n{item.text}".encode()).hexdigest(),
            published_at=None,
            **given,
        )


@dataclass(frozen=True)
class Poll:
    """What a feed has at a poll."""

    feed: int
    entries: list[Entry]
    a_day_later: bool
    """Whether a day has passed since the poll before: then everybody reads in full."""


def make_history(seed: int, polls: int = 10) -> Iterator[Poll]:
    """Yield the polls of two feeds, the second one shares items with the first."""
    random = Random(seed)
    ids = random.choice(["own", "own", "own", "none", "one", "positions", "random"])
    feeds = [Feed(random, ids, one_link=random.random() < 0.3), Feed(random, random.choice(["own", ids]), False)]
    for _ in range(polls):
        number = int(random.random() < 0.3)
        feed = feeds[number]
        for _ in range(random.choice([1, 1, 1, 2, 4])):
            feed.change(feeds[1 - number].items)
        yield Poll(number, feed.entries(), random.random() < 0.1)
