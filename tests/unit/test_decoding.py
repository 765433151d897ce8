from __future__ import annotations

import gzip
import zlib

import pytest

from services.fetcher.decoding import BodyBroken, BodyTooLarge, decode_body

TEXT = b"<rss>" + b"news " * 1000 + b"</rss>"


def raw_deflate(data: bytes) -> bytes:
    stream = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return stream.compress(data) + stream.flush()


@pytest.mark.parametrize(
    ("encoding", "wire"),
    [
        ("", TEXT),
        ("identity", TEXT),
        ("gzip", gzip.compress(TEXT)),
        ("X-GZIP", gzip.compress(TEXT)),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", raw_deflate(TEXT)),
    ],
)
def test_it_undoes_what_was_offered_piece_by_piece(encoding: str, wire: bytes) -> None:
    pieces = [wire[start : start + 7] for start in range(0, len(wire), 7)]
    assert decode_body(pieces, encoding, 100_000) == (TEXT, len(wire))


def test_all_members_of_a_gzip_body_are_read_wherever_they_are_cut() -> None:
    wire = gzip.compress(TEXT) + gzip.compress(b"second") + gzip.compress(b"third")
    for size in (1, 7, len(wire)):
        pieces = [wire[start : start + size] for start in range(0, len(wire), size)]
        assert decode_body(pieces, "gzip", 100_000)[0] == TEXT + b"secondthird"


def test_garbage_behind_the_end_is_let_go_but_not_for_ever() -> None:
    assert decode_body([gzip.compress(TEXT), b"garbage"], "gzip", 100_000)[0] == TEXT
    with pytest.raises(BodyTooLarge):
        decode_body([gzip.compress(TEXT), *[b"g" * 10_000] * 100], "gzip", 100_000)


def test_an_empty_body_is_empty_in_any_encoding() -> None:
    assert decode_body([], "gzip", 10) == (b"", 0)


def test_a_bomb_stops_at_the_limit() -> None:
    unread = iter([gzip.compress(b"\0" * 50_000_000), b"never read"])
    with pytest.raises(BodyTooLarge):
        decode_body(unread, "gzip", 1000)
    assert next(unread) == b"never read"


def test_a_plain_body_over_the_limit_is_refused_and_one_at_the_limit_is_not() -> None:
    assert decode_body([b"x" * 1000], "", 1000)[0] == b"x" * 1000
    with pytest.raises(BodyTooLarge):
        decode_body([b"x" * 1000, b"x"], "", 1000)


@pytest.mark.parametrize(
    ("encoding", "wire"),
    [("gzip", gzip.compress(TEXT)[:-20]), ("gzip", TEXT), ("br", TEXT), ("gzip, gzip", gzip.compress(TEXT))],
)
def test_a_body_that_is_cut_short_or_not_what_it_says_is_broken(encoding: str, wire: bytes) -> None:
    with pytest.raises(BodyBroken):
        decode_body([wire], encoding, 100_000)
