from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from services.writer.articles.canonical import address_digest, duplicate_keys
from services.writer.articles.identity import Document
from services.writer.articles.listing import MAX_LISTED, ListedEntry, Listing, match
from services.writer.articles.relisting import relist
from services.writer.articles.rows import Ledger, Row
from tests.factories import make_entry

LISTED = st.builds(
    ListedEntry.of,
    st.binary(min_size=8, max_size=8),
    st.binary(min_size=16, max_size=16).map(bytes.hex),
    st.integers(0, 2**63 - 1).map(lambda number: 2 * number),
    has_lasting_id=st.booleans(),
)


@given(st.binary(min_size=8, max_size=8), st.lists(LISTED, max_size=5))
def test_a_listing_is_read_as_it_was_stored(context: bytes, entries: list[ListedEntry]) -> None:
    listing = Listing(context, tuple(entries), None)
    assert Listing.unpack(*listing.pack(), full_at=None) == listing


@given(LISTED)
def test_a_flag_changes_no_address(entry: ListedEntry) -> None:
    assert entry.without_lasting_id()[:2] == entry[:2]
    assert entry.without_lasting_id().address == entry.address
    assert not entry.without_lasting_id().has_lasting_id


def test_what_a_result_knows_is_matched_by_digest() -> None:
    one, two = (ListedEntry.of(bytes([n]) * 8, f"{n:032x}", n * 2, has_lasting_id=False) for n in (1, 2))
    listing = Listing(b"context.", (one, two), None)
    assert [known.listed for known in match(listing, two.digest + one.digest + two.digest)] == [one, two]
    (forgotten,) = match(listing, b"unknown!")
    assert forgotten.listed.name not in {one.name, two.name}
    assert [known.listed.name for known in match(None, one.digest)] == [forgotten.listed.name]


ADDRESSES = st.builds(
    "{}://{}x.example/{}{}{}".format,
    st.sampled_from(["http", "https"]),
    st.sampled_from(["", "www.", "m."]),
    st.sampled_from(["", "a", "a/", "a/amp", "a.amp.html", "b"]),
    st.sampled_from(["", "?", "?p=1", "?p=2", "?p=1&utm_source=rss", "?utm_source=rss", "?b=1&p=1", "?p=1&b=1"]),
    st.sampled_from(["", "#x", "#!/x"]),
)


@given(ADDRESSES, ADDRESSES)
def test_addresses_that_make_no_duplicates_have_one_digest(one: str, other: str) -> None:
    if duplicate_keys([one], [0]) and not duplicate_keys([one, other], [0]):
        assert address_digest(one) == address_digest(other)


def test_addresses_that_differ_have_other_digests() -> None:
    addresses = [f"http://x.example/{path}" for path in ("", "a", "b", "?p=1", "?p=2", "a?p=1")]
    assert len({address_digest(address) for address in addresses}) == len(addresses)


def test_a_feed_with_too_many_entries_is_not_listed() -> None:
    entries = [make_entry(number) for number in range(MAX_LISTED + 1)]
    ledger = Ledger(Row(entry.md5, 1, entry.md5, entry.content_hash) for entry in entries)
    names = [entry.md5 for entry in entries]

    def listed(count: int) -> Listing | None:
        digests = b"context." + b"".join(n.to_bytes(8, "big") for n in range(1, count + 1))
        return relist(None, Document.of(1, entries[:count]), names[:count], digests, ledger, set())

    assert listed(MAX_LISTED + 1) is None
    assert len((listed(MAX_LISTED) or Listing(b"", (), None)).entries) == MAX_LISTED


def test_an_article_with_another_key_than_the_entry_is_not_listed() -> None:
    entry = make_entry(1, entry_id="1", id_is_given=True)
    for key, count in ((Document.of(1, [entry]).keys[0], 1), (UUID(int=1).hex, 0), (None, 0)):
        ledger = Ledger([Row(entry.md5, 1, entry.md5, entry.content_hash, key)])
        found = relist(None, Document.of(1, [entry]), [entry.md5], b"context." + b"digest..", ledger, set())
        assert len(found.entries if found else ()) == count
