from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from hashlib import md5, sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.writer.articles.identity import MAX_BRIEF, Document, entry_key, identify, other_name
from services.writer.articles.rows import MAX_UPDATES, Ledger, Row
from shared.wire.results import Entry
from tests.factories import make_entry


def entry(id_: str | None, title: str = "t", text: str = "", link: str = "http://x.example/") -> Entry:
    named = md5((link + title).encode()).hexdigest()
    return make_entry(
        url=link,
        title=title,
        body=text,
        md5=named,
        entry_id=id_ or link,
        id_is_given=id_ is not None,
        content_hash=sha256(f"{title}\n{text}".encode()).hexdigest(),
    )


class Memory:
    """A ledger that is stored between polls, and of which a poll reads what the writer's statement reads."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.writes = 0

    def poll(self, *entries: Entry, feed: int = 1) -> list[str]:
        return self.batch([entries], feed=feed)[0]

    def batch(self, documents: Sequence[Sequence[Entry]], feed: int = 1) -> list[list[str]]:
        entries = [e for document in documents for e in document]
        titles, keys = {e.md5 for e in entries}, {entry_key(e) for e in entries} - {None}
        ledger = Ledger(
            row
            for row in self.rows.values()
            if {row.name, row.title_md5} & titles or (row.feed_id == feed and row.key in keys)
        )
        found = []
        for document in documents:
            found.append(identify(ledger, Document.of(feed, document)))
            for e, name in reversed([*zip(document, found[-1], strict=True)]):
                if ledger.rows[name].feed_id == feed:
                    ledger.put(ledger.rows[name].show(e))
        for name, row in ledger.rows.items():
            before = self.rows.get(name)
            changed = before is not None and (row.content_hash, row.title_md5) != (
                before.content_hash,
                before.title_md5,
            )
            self.writes += before is not None and row != before
            self.rows[name] = row._replace(
                updates=row.updates + changed, is_brief=row.is_brief and before in {None, row}
            )
        return found

    def see_again_tomorrow(self) -> None:
        self.rows = {name: row._replace(is_brief=False) for name, row in self.rows.items()}


@pytest.fixture
def memory() -> Memory:
    return Memory()


def test_an_article_is_named_for_its_first_link_and_title_and_keeps_that_name(memory: Memory) -> None:
    first = entry("1", "it is 10:00")
    assert memory.poll(first) == [first.md5]
    for hour in range(100):
        assert memory.poll(entry("1", f"it is {hour}:30")) == [first.md5]
    assert memory.rows[first.md5].updates == MAX_UPDATES


def test_another_link_is_another_article(memory: Memory) -> None:
    names = {*memory.poll(entry("1", link="http://x.example/1")), *memory.poll(entry("1", link="http://x.example/2"))}
    assert len(names) == 2


@pytest.mark.parametrize("entry_id", ["", "http://x.example/", entry(None).md5])
def test_an_id_that_the_feed_did_not_give_is_no_key(entry_id: str) -> None:
    assert entry_key(entry(None).model_copy(update={"entry_id": entry_id})) is None


def test_an_id_that_an_older_fetcher_took_from_the_feed_is_a_key() -> None:
    assert entry_key(entry("7")) == entry_key(entry("7").model_copy(update={"id_is_given": False})) is not None


def test_without_an_id_another_title_is_another_article(memory: Memory) -> None:
    assert [memory.poll(entry(None, title)) for title in "aba"] == [[entry(None, title).md5] for title in "aba"]


def test_a_guid_and_link_that_all_entries_share_are_ignored(memory: Memory) -> None:
    one, two, three = (entry("http://x.example/", title) for title in "abc")
    assert memory.poll(one, two) == [one.md5, two.md5]
    assert memory.poll(three) == [three.md5]  # what was learnt is kept
    assert memory.poll(three, two, one) == [three.md5, two.md5, one.md5]
    assert memory.writes == 0


def test_an_id_that_turns_out_to_be_reused_gives_every_entry_after_a_change_of_title_too(memory: Memory) -> None:
    old, new = entry("same", "a"), entry("same", "b")
    assert memory.poll(old) == memory.poll(new) == [old.md5]
    names = memory.poll(old, new)
    assert names[1] == old.md5 != names[0]
    assert memory.poll(new, old) == names[::-1]


def test_two_ids_and_texts_under_one_link_and_title_are_two_articles_in_any_order(memory: Memory) -> None:
    one, two = entry("1", text="up"), entry("2", text="down")
    names = memory.poll(one, two)
    assert names == [one.md5, other_name(two)]
    assert memory.poll(two, one) == names[::-1]
    assert memory.poll(two) == names[1:]
    assert memory.poll(entry("2", "another title", "down again"), entry("1", text="up again")) == names[::-1]


def test_of_two_ids_with_one_text_there_is_one_article(memory: Memory) -> None:
    assert len({*memory.poll(entry("1", text="a"), entry("2", text="a"))}) == 1


def test_the_same_text_as_a_neighbour_had_before_is_an_article_of_its_own(memory: Memory) -> None:
    memory.poll(entry("1", "Investigating", "we look into it"))
    both = memory.poll(entry("1", "Investigating", "it is the disk"), entry("2", "Investigating", "we look into it"))
    assert len(set(both)) == 2


def test_an_id_that_is_new_is_another_article_if_the_document_shows_that_ids_last(memory: Memory) -> None:
    anchor = entry("0", "other")
    first = memory.poll(anchor, entry("1", text="up"))
    second = memory.poll(anchor, entry("2", text="down"))
    assert first[0] == second[0]
    assert first[1] != second[1]


def test_ids_that_change_with_each_fetch_make_no_articles(memory: Memory) -> None:
    ids = map(str, itertools.count())
    names = set()
    for number in range(40):
        names.update(memory.poll(entry(next(ids), "a", "same"), entry(next(ids), "b", f"at {number} o'clock")))
    assert names == {entry("", "a").md5, entry("", "b").md5}
    assert memory.writes <= MAX_UPDATES + 1


def test_two_entries_under_one_link_and_title_whose_ids_change_stay_two_articles(memory: Memory) -> None:
    ids = map(str, itertools.count())
    names = {n for _ in range(9) for n in memory.poll(entry(next(ids), text="a"), entry(next(ids), text="b"))}
    assert len(names) == 2
    names |= {n for at in range(99) for n in memory.poll(entry(next(ids), text=f"a{at}"), entry(next(ids), text="b"))}
    assert len(names) == 2


def test_an_advertisement_with_a_new_id_each_time_among_lasting_ids_is_bounded(memory: Memory) -> None:
    anchor = entry("0", "other")
    names = {n for at in range(200) for n in memory.poll(anchor, entry(f"ad-{at}", text=f"buy {at}"))}
    assert len(names) <= MAX_BRIEF + 2


def test_incidents_that_stand_in_the_feed_for_days_are_not_bounded(memory: Memory) -> None:
    anchor = entry("0", "other")
    names = set()
    for number in range(3 * MAX_BRIEF):
        names.update(memory.poll(anchor, entry(f"i{number}", "Investigating", f"incident {number}")))
        memory.see_again_tomorrow()
    assert len(names) == 3 * MAX_BRIEF + 1


def test_incidents_of_a_day_are_not_bounded_where_one_that_is_known_stands_beside_the_new_one(memory: Memory) -> None:
    shown = [entry(f"i{number}", "Investigating", f"incident {number}") for number in range(3 * MAX_BRIEF)]
    names = {name for first in range(2 * MAX_BRIEF) for name in memory.poll(*shown[first : first + MAX_BRIEF + 1])}
    assert len(names) == len(shown)


@pytest.mark.parametrize("corrected", [False, True])
def test_ids_that_are_positions_in_the_document_are_ignored(memory: Memory, corrected: bool) -> None:
    articles: set[str] = set()
    for newest in range(5, 40):
        texts = [f"{newest}" if corrected and place == 2 else "" for place in range(5)]
        document = [entry(str(place), f"title {newest - place}", text) for place, text in enumerate(texts)]
        articles.update(e.md5 for e in document)
        assert memory.poll(*document) == memory.poll(*document) == [e.md5 for e in document]
    assert {*memory.rows} == articles


def test_ids_that_change_once_beside_a_new_entry_double_nothing_when_texts_are_corrected(memory: Memory) -> None:
    def item(scheme: str, n: int, text: str = "") -> Entry:
        return entry(f"{scheme}://x.example/?p={n}", f"title {n}", text, link=f"http://x.example/{n}")

    memory.poll(*(item("http", n) for n in range(8)))
    memory.poll(*(item("https", n) for n in range(9)))
    memory.poll(*(item("https", n, "corrected") for n in range(9)))
    assert len(memory.rows) == 9


def test_an_entry_whose_name_another_article_here_bears_is_not_lost(memory: Memory) -> None:
    memory.poll(entry("0", "one", "0"), entry("2", "one", "2"))
    memory.poll(entry("3", "one", "3"), entry("1", "one", "1"))  # all ids are new: these may be the two of before
    assert len({*memory.poll(entry("2", "one", "2"), entry("1", "two", "1"))}) == 2


def test_a_row_without_a_key_goes_to_the_entry_with_its_text_else_to_the_first(memory: Memory) -> None:
    one, two = entry("1", text="up"), entry("2", text="down")
    memory.rows = {two.md5: Row(two.md5, 1, two.md5, two.content_hash, None)}
    assert memory.poll(one, two) == [other_name(one), two.md5]
    assert memory.rows[two.md5].key == entry_key(two)
    memory.rows = {two.md5: Row(two.md5, 1, two.md5, "of old", None)}
    assert memory.poll(one, two) == [one.md5, other_name(two)]
    memory.writes = 0
    memory.poll(one, two)
    assert memory.writes == 0


def test_another_feeds_article_is_the_same_one_and_its_key_is_left_alone(memory: Memory) -> None:
    theirs = entry("theirs", text="long")
    memory.poll(theirs, feed=1)
    assert memory.poll(entry("ours", text="short"), feed=2) == [theirs.md5]
    assert memory.poll(entry(None, text="short"), feed=2) == [theirs.md5]
    assert memory.writes == 0


def test_feeds_that_print_the_same_two_entries_agree_on_which_is_which(memory: Memory) -> None:
    one, two = entry("1", text="up"), entry("2", text="down")
    names = memory.poll(one, two, feed=1)
    shorter = entry("2", text="do"), entry("1", text="u")
    assert memory.poll(*shorter, feed=2) == names[::-1]


def test_a_second_feed_that_still_prints_the_former_title_brings_nothing(memory: Memory) -> None:
    memory.poll(entry("1", "draft"), feed=1)
    memory.poll(entry("1", "final"), feed=1)
    for title in ("draft", "final"):
        assert memory.poll(entry("1", title), feed=2) == [entry("1", "draft").md5]


def test_thousands_of_entries_with_one_link_and_title_take_no_longer_than_others(memory: Memory) -> None:
    def seconds(entries: list[Entry]) -> float:
        began = time.process_time()
        assert len({*memory.poll(*entries), *memory.poll(*entries[::-1])}) == len(entries)
        return time.process_time() - began

    usual = seconds([entry(f"u{n}", f"title {n}", f"{n}") for n in range(4000)])
    assert seconds([entry(f"a{n}", text=f"{n}") for n in range(4000)]) < 5 * usual + 1
    assert seconds([entry("same", f"another {n}") for n in range(4000)]) < 5 * usual + 1


# Any sequence of polls: what an entry really is is known here, and must be found.

ARTICLE = st.integers(0, 7)
SHOWN = st.tuples(ARTICLE, st.integers(0, 2), st.integers(0, 2))  # which, its title, its text
POLLS = st.lists(st.lists(SHOWN, max_size=5, unique_by=lambda shown: shown[0]), max_size=8)


@given(POLLS)
def test_with_lasting_ids_every_entry_is_one_article(polls: list[list[tuple[int, int, int]]]) -> None:
    memory, anchor = Memory(), entry("anchor", "anchor", link="http://x.example/anchor")
    names: dict[int, str] = {}
    memory.poll(anchor)
    for poll in polls:
        shown = [entry(str(which), f"title {title}", f"{which} {text}") for which, title, text in poll]
        found = memory.poll(*shown, anchor)
        for (which, _, _), name in zip(poll, found, strict=False):
            assert names.setdefault(which, name) == name
    assert len(set(names.values())) == len(names)


@given(POLLS)
def test_with_ids_that_change_every_link_and_title_is_one_article(polls: list[list[tuple[int, int, int]]]) -> None:
    memory, ids = Memory(), map(str, itertools.count())
    for poll in polls:
        shown = [entry(next(ids), f"title {which}", f"{which} {text}") for which, _, text in poll]
        assert memory.poll(*shown) == [one.md5 for one in shown]


@given(st.lists(st.sets(ARTICLE, min_size=2), max_size=12))
def test_with_one_id_for_all_every_title_is_one_article(polls: list[set[int]]) -> None:
    memory = Memory()
    for poll in polls:
        shown = [entry("same", f"title {which}") for which in poll]
        assert memory.poll(*shown) == [one.md5 for one in shown]


@given(POLLS, st.sampled_from(["lasting", "none", "changing", "one"]))
def test_several_results_in_a_batch_are_the_same_as_one_after_the_other(
    polls: list[list[tuple[int, int, int]]], kind: str
) -> None:
    ids = map(str, itertools.count())
    id_of: dict[str, Callable[[int], str | None]] = {
        "lasting": str,
        "none": lambda _: None,
        "changing": lambda _: next(ids),
        "one": lambda _: "same",
    }
    documents = [
        [entry(id_of[kind](which), f"title {which % 3} {title}", f"{which} {text}") for which, title, text in poll]
        for poll in polls
    ]
    one, other = Memory(), Memory()
    assert [one.poll(*document) for document in documents] == other.batch(documents)
    assert one.rows.keys() == other.rows.keys()
    for name, row in one.rows.items():
        assert row._replace(updates=0, is_brief=True) == other.rows[name]._replace(updates=0, is_brief=True)


@given(POLLS)
def test_writing_the_same_document_again_writes_nothing(polls: list[list[tuple[int, int, int]]]) -> None:
    memory = Memory()
    for poll in polls:
        shown = [entry(str(which), f"title {title}", f"{which} {text}") for which, title, text in poll]
        names = memory.poll(*shown)
        memory.writes = 0
        assert memory.poll(*shown) == names
        assert memory.writes == 0
