from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.fetcher.http.http1 import BadResponse, Head, ResponseReader, content_length, is_chunked, parse_head


def arriving(data: bytes, sizes: list[int]) -> Callable[[], bytes]:
    """Return a connection that gives `data` in pieces of these sizes, the last one as often as needed."""
    rest = [data]

    def receive() -> bytes:
        size = sizes.pop(0) if len(sizes) > 1 else sizes[0]
        piece, rest[0] = rest[0][:size], rest[0][size:]
        return piece

    return receive


def read(data: bytes, sizes: list[int]) -> tuple[Head, bytes] | str:
    reader = ResponseReader(arriving(data, sizes))
    try:
        head = reader.read_head()
        return head, b"".join(reader.read_body(head))
    except BadResponse as error:
        return str(error).partition(":")[0].partition("starts")[0]


FRAMINGS = [
    b"HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 5\r\n\r\nhello, and more",
    b"HTTP/1.1 103\r\n\r\nHTTP/1.1 200\nTransfer-Encoding: chunked\n\n3;x=y\r\nhel\r\n2\nlo\n0\r\n\r\n",
    b"HTTP/1.0 200 fine\r\n\r\nuntil the end",
    b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloworld\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
    b"HTTP/1.1 200 OK\r\nA",
    b"HTTQ/1.1 200 OK\r\n\r\n",
]


@pytest.mark.parametrize("data", FRAMINGS)
@given(sizes=st.lists(st.integers(1, 30), min_size=1))
def test_how_an_answer_is_cut_in_pieces_changes_nothing(data: bytes, sizes: list[int]) -> None:
    assert read(data, sizes) == read(data, [len(data)])


@given(st.binary(max_size=300), st.integers(1, 50))
def test_whatever_arrives_is_an_answer_or_a_bad_one(noise: bytes, size: int) -> None:
    for start in (b"", b"HTTP/1.1 ", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"):
        read(start + noise, [size])


@given(st.lists(st.binary(min_size=1, max_size=100)), st.integers(1, 50))
def test_chunks_are_put_together_again(chunks: list[bytes], size: int) -> None:
    body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
    found = read(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body, [size])
    assert found == (Head(200, [(b"Transfer-Encoding", b"chunked")]), b"".join(chunks))


@pytest.mark.parametrize(
    ("lines", "fields"),
    [
        (b"A: b\r\nC:d", [(b"A", b"b"), (b"C", b"d")]),
        (b"A\t : \t b \t", [(b"A", b"b")]),
        (b"A:\r\nA: b: c", [(b"A", b""), (b"A", b"b: c")]),
        (b"A: b\r\n c\r\n\td\r\nE: f", [(b"A", b"b c d"), (b"E", b"f")]),
        (b"no header\r\n: nameless\r\nno name: x\r\nA: b", [(b"A", b"b")]),
        (b"A: b\x01c\r\nD: e\x7f\r\nF: g\rh\r\nI: \xe9\tj", [(b"I", b"\xe9\tj")]),
    ],
)
def test_header_lines_are_read_as_far_as_they_are_any(lines: bytes, fields: list[tuple[bytes, bytes]]) -> None:
    assert parse_head(b"HTTP/1.1 200 OK\r\n" + lines) == Head(200, fields)


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (b"HTTP/1.1 200 OK", 200),
        (b"HTTP/1.0 404", 404),
        (b"HTTP/1.1  999 \xff ", 999),
        (b"HTTP/2 200", 200),
        (b"HTTP/1.1 2000 OK", None),
        (b"HTTP/1.1 099 OK", None),
        (b"HTTP/1.1200 OK", None),
        (b"http/1.1 200 OK", None),
    ],
)
def test_a_status_line_has_a_version_and_three_digits(line: bytes, status: int | None) -> None:
    if status is None:
        with pytest.raises(BadResponse, match="no HTTP"):
            parse_head(line)
    else:
        assert parse_head(line).status == status


@pytest.mark.parametrize(
    ("values", "length"),
    [
        ([], None),
        ([b"5"], 5),
        ([b"5", b"5, 5"], 5),
        ([b"007"], 7),
        *(([bad], -1) for bad in (b"", b"+5", b"5.0", b"\xb2", b"9" * 19)),
    ],
)
def test_a_content_length_is_one_number(values: list[bytes], length: int | None) -> None:
    head = Head(200, [(b"content-LENGTH", value) for value in values])
    if length == -1:
        with pytest.raises(BadResponse, match="no length"):
            content_length(head)
    else:
        assert content_length(head) == length


@pytest.mark.parametrize(("values", "chunked"), [([], False), ([b"identity"], False), ([b"chunked", b"CHUNKED"], True)])
def test_chunked_is_the_only_transfer_coding(values: list[bytes], chunked: bool) -> None:
    assert is_chunked(Head(200, [(b"Transfer-Encoding", value) for value in values])) is chunked
