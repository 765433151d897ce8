"""From the bytes of a file to clean text: its encoding, line breaks, and characters that no list may hold.

The encoding is decided as for feeds (`services.fetcher.parse.text.charset`), but from the whole file, in blocks: the
byte order mark; zero bytes; valid UTF-8, whatever the declaration says; the declaration; letters that are frequent in a
language; windows-1252.
"""

from __future__ import annotations

import codecs
import io
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import BinaryIO

from services.admin.subscriptions.model import BadList, Flaws
from services.fetcher.parse.document import strip_illegal
from services.fetcher.parse.text.charset import decode

MAX_BYTES = 512 * 1024 * 1024
BLOCK_BYTES = 65_536
SAMPLE_BYTES = 65_536

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16: it begins with the same two bytes
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_ZEROS = ((re.compile(rb"(?:[\t\n\r -~]\x00){4}"), "utf-16-le"), (re.compile(rb"(?:\x00[\t\n\r -~]){4}"), "utf-16-be"))
_ARCHIVES = {b"PK\x03\x04": "a ZIP archive", b"\x1f\x8b": "a gzip archive", b"%PDF": "a PDF document"}
_DECLARED = re.compile(rb"<\?xml[^>]{0,200}?encoding\s*=\s*[\"']\s*([A-Za-z0-9._:+-]+)")
_STRAYS = {0xDC00 + byte: bytes([byte]).decode("cp1252", "replace") for byte in range(0x80, 0x100)}


class Source:
    """A file that can be read as text more than once.

    Args:
        file: at its beginning; `seekable` makes it one that can be read twice.
        flaws: where those of its encoding are noted.

    Raises:
        BadList: it is too large, or an archive.
    """

    def __init__(self, file: BinaryIO, flaws: Flaws) -> None:
        self._file = file
        if self._file.seek(0, io.SEEK_END) > MAX_BYTES:
            raise BadList(1, f"the file has more than {MAX_BYTES // 2**20} MiB: split it")
        self._file.seek(0)
        head = self._file.read(SAMPLE_BYTES)
        for magic, what in _ARCHIVES.items():
            if head.startswith(magic):
                raise BadList(1, f"this is {what}: unpack it, and give the list within")
        self._start = 0
        self.encoding = self._find_encoding(head, flaws)

    def blocks(self, flaws: Flaws) -> Iterator[str]:
        """Yield the text in pieces; every line ends with LF, and characters that XML does not allow are left out."""
        self._file.seek(self._start)
        make_decoder = codecs.getincrementaldecoder(self.encoding)
        decoder = make_decoder("surrogateescape" if self.encoding == "utf-8" else "replace")
        newlines = io.IncrementalNewlineDecoder(None, translate=True)
        line, more = 1, True
        while more:
            data = self._file.read(BLOCK_BYTES)
            more = bool(data)
            text = newlines.decode(decoder.decode(data, not more), final=not more)
            text = text if text.isascii() else text.translate(_STRAYS)
            clean = strip_illegal(text.replace("\0", ""))  # NUL by itself, since a file may hold nothing else
            if len(clean) < len(text):
                flaws.note("control characters were left out", partial(_line_of, line, text, clean))
            line += text.count("\n")
            yield clean

    def _find_encoding(self, head: bytes, flaws: Flaws) -> str:
        for mark, encoding in _MARKS:
            if head.startswith(mark):
                self._start = len(mark)
                return encoding
        for pattern, encoding in _ZEROS:
            if pattern.match(head):
                return encoding
        declared = _DECLARED.search(head[:1024])
        label = declared[1].decode("ascii").lower() if declared else ""
        line, window = self._find_stray()
        if window is None:
            if label not in {"", "utf-8", "utf8"} and not self._is_ascii:
                flaws.note(f"the file is declared as {label[:40]} and read as utf-8, which it is", lambda: 1)
            return "utf-8"
        prolog = declared[0] + b'"?>' if declared else b""
        read = decode(prolog + window, None)
        if read.warnings or not label:
            flaws.note(f"bytes that are no UTF-8: the file is read as {read.encoding}", lambda: line)
        return read.encoding

    def _find_stray(self) -> tuple[int, bytes | None]:
        """Return where the file stops being UTF-8: the line, and the bytes from its beginning on; None: nowhere."""
        self._file.seek(0)
        decoder = codecs.getincrementaldecoder("utf-8")()
        line, at, self._is_ascii = 1, 0, True
        while True:
            data = self._file.read(BLOCK_BYTES)
            try:
                decoder.decode(data, final=not data)
            except UnicodeDecodeError:
                break
            if not data:
                return line, None
            self._is_ascii = self._is_ascii and data.isascii()
            line, at = line + data.count(b"\n"), at + len(data)
        self._file.seek(at)
        window = self._file.read(SAMPLE_BYTES + BLOCK_BYTES)
        if not window:  # the file ends within a character
            self._file.seek(max(at - SAMPLE_BYTES, 0))
            return line, self._file.read()
        first = _first_stray(window)
        return line + window.count(b"\n", 0, first), window[window.rfind(b"\n", 0, first) + 1 :]


def _first_stray(data: bytes) -> int:
    """Return where `data`, which may begin within a character, stops being UTF-8."""
    begun = next((n for n, byte in enumerate(data[:4]) if not 0x80 <= byte < 0xC0), 0)
    try:
        data[begun:].decode()
    except UnicodeDecodeError as error:
        return begun + error.start
    return 0


def _line_of(line: int, text: str, clean: str) -> int:
    """Return the line of the first character of `text` that is not in `clean`, if the text begins in `line`."""
    low, high = 0, len(clean)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if text[:middle] == clean[:middle] else (low, middle - 1)
    return line + text.count("\n", 0, low)


@contextmanager
def seekable(file: BinaryIO) -> Iterator[BinaryIO]:
    """Yield `file`, or a temporary copy of what can be read from a pipe; of an endless one as much as is refused."""
    if file.seekable():
        yield file
        return
    with tempfile.TemporaryFile() as copy:
        while copy.tell() <= MAX_BYTES and (data := file.read(BLOCK_BYTES)):
            copy.write(data)
        copy.seek(0)
        yield copy
