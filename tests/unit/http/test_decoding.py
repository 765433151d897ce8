from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import Callable, Iterator

import brotli  # type: ignore[import-untyped]
import pytest
from backports import zstd

from services.fetcher.http.decoding import ACCEPT_ENCODING, FREE_BYTES, BodyBroken, BodyTooLarge, decode_body

TEXT = b"<rss>" + b"news " * 1000 + b"</rss>"
ZEROS = b"\0" * 10_000_000


def gzipped(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)  # it is part of tests' names, which each of several workers must find alike


def raw_deflate(data: bytes) -> bytes:
    stream = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return stream.compress(data) + stream.flush()


def wide_zstd(data: bytes) -> bytes:
    """Return a stream whose reader would have to remember 16 MiB."""
    stream = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: 24})
    return stream.compress(data) + stream.flush()


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzipped,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstd.compress,
}


def pieces_of(wire: bytes, size: int) -> Iterator[bytes]:
    return (wire[start : start + size] for start in range(0, len(wire), size))


def test_all_that_can_be_undone_is_offered() -> None:
    assert ACCEPT_ENCODING == "gzip, deflate, br, zstd"


@pytest.mark.parametrize("size", [1, 7, 100_000])
@pytest.mark.parametrize(
    ("encoding", "wire"),
    [
        ("", TEXT),
        ("identity", TEXT),
        ("X-GZIP", gzipped(TEXT)),
        ("deflate", raw_deflate(TEXT)),
        *((name, pack(TEXT)) for name, pack in PACKERS.items()),
        ("gzip, gzip", gzipped(gzipped(TEXT))),
        ("br, identity, GZIP", gzipped(brotli.compress(TEXT))),
        ("gzip, zstd, br", brotli.compress(zstd.compress(gzipped(TEXT)))),
    ],
)
def test_it_undoes_what_was_offered_piece_by_piece(encoding: str, wire: bytes, size: int) -> None:
    assert decode_body(pieces_of(wire, size), encoding, 100_000) == (TEXT, len(wire))


@pytest.mark.parametrize(("encoding", "pack"), [("gzip", gzipped), ("zstd", zstd.compress)])
def test_all_members_of_a_body_are_read_wherever_they_are_cut(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    wire = pack(TEXT) + pack(b"second") + pack(b"third")
    for size in (1, 7, len(wire)):
        assert decode_body(pieces_of(wire, size), encoding, 100_000)[0] == TEXT + b"secondthird"
    with pytest.raises(BodyBroken, match="more than 1000 parts"):
        decode_body([pack(b"") * 1001], encoding, 100_000)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd"])
def test_garbage_behind_the_end_is_let_go_but_not_for_ever(encoding: str) -> None:
    packed = PACKERS[encoding](TEXT)
    assert decode_body([packed, b"garbage"], encoding, 100_000)[0] == TEXT
    assert decode_body([packed + b"garbage"], encoding, 100_000)[0] == TEXT
    with pytest.raises(BodyTooLarge):
        decode_body([packed, *[b"g" * 10_000] * 100], encoding, 100_000)


@pytest.mark.parametrize("encoding", ["", *PACKERS, "gzip, br"])
def test_an_empty_body_is_empty_in_any_encoding(encoding: str) -> None:
    assert decode_body([], encoding, 10) == (b"", 0)
    assert decode_body([b""], encoding, 10) == (b"", 0)


@pytest.mark.parametrize("layers", [[name] for name in PACKERS] + [["gzip", "gzip"], ["br", "zstd", "gzip"]])
def test_a_bomb_stops_at_the_limit_and_takes_little_room(layers: list[str]) -> None:
    wire = ZEROS
    for name in layers:
        wire = PACKERS[name](wire)
    unread = iter([wire, b"never read"])
    tracemalloc.start()
    with pytest.raises(BodyTooLarge):
        decode_body(unread, ", ".join(layers), 100_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert next(unread) == b"never read"
    assert peak < 3_000_000


def test_a_layer_in_between_is_limited_too() -> None:
    wire = gzipped(gzipped(TEXT) + ZEROS)
    with pytest.raises(BodyTooLarge, match="its gzip layer"):
        decode_body([wire], "gzip, gzip", 100_000)


def test_a_plain_body_over_the_limit_is_refused_and_one_at_the_limit_is_not() -> None:
    assert decode_body([b"x" * 1000], "", 1000)[0] == b"x" * 1000
    with pytest.raises(BodyTooLarge):
        decode_body([b"x" * 1000, b"x"], "", 1000)


@pytest.mark.parametrize("encoding", PACKERS)
def test_a_body_that_is_cut_short_is_broken(encoding: str) -> None:
    with pytest.raises(BodyBroken, match="cut short"):
        decode_body([PACKERS[encoding](TEXT)[:-3]], encoding, 100_000)


@pytest.mark.parametrize(
    ("encoding", "wire", "reason"),
    [
        ("deflate", TEXT, "no deflate stream"),
        ("br", TEXT, "no br stream"),
        ("zstd", TEXT, "no zstd stream"),
        ("gzip", gzipped(TEXT)[:-8] + b"\0" * 8, "no gzip stream"),
        ("compress", TEXT, "'compress' was not offered"),
        ("br", brotli.compress(TEXT) + b"garbage", "no br stream"),
        ("gzip, gzip, gzip, gzip", TEXT, "encoded 4 times"),
        ("zstd", wide_zstd(TEXT), "no zstd stream"),
        ("zstd", bytes.fromhex("28b52ffd00a8000000"), "no zstd stream"),  # a window of 2 GiB
    ],
)
def test_a_body_that_is_not_what_it_says_is_broken(encoding: str, wire: bytes, reason: str) -> None:
    with pytest.raises(BodyBroken, match=reason):
        decode_body([wire], encoding, 100_000)


@pytest.mark.parametrize("size", [1, 100_000])
def test_a_body_that_is_announced_as_gzip_and_is_not_is_taken_as_it_is(size: int) -> None:
    assert decode_body(pieces_of(TEXT, size), "gzip", 100_000) == (TEXT, len(TEXT))
    assert decode_body(pieces_of(gzipped(TEXT), size), "gzip, gzip", 100_000)[0] == TEXT
    assert decode_body([b"<"], "gzip", 100_000) == (b"<", 1)


@pytest.mark.parametrize(
    ("encoding", "wire"),
    [
        ("", gzipped(TEXT)),
        ("gzip", gzipped(gzipped(TEXT))),
        ("br", brotli.compress(gzipped(TEXT))),
    ],
)
def test_gzip_that_was_not_announced_is_undone_once(encoding: str, wire: bytes) -> None:
    assert decode_body(pieces_of(wire, 5), encoding, 100_000) == (TEXT, len(wire))
    with pytest.raises(BodyTooLarge):
        decode_body([gzipped(ZEROS)], "", 100_000)


def test_room_is_asked_for_once_before_a_large_body_is_held() -> None:
    asked: list[int] = []
    limit = 2 * FREE_BYTES
    decode_body([b"x" * FREE_BYTES], "", limit, lambda: asked.append(1))
    assert asked == []
    decode_body([b"x" * FREE_BYTES, b"x", b"x"], "", limit, lambda: asked.append(1))
    assert asked == [1]
