"""What makes an article the same article, and the same text."""

from __future__ import annotations

import hashlib
import unicodedata

from services.fetcher.parse.text import collapse
from services.fetcher.parse.text.marks import stream_safe

_BREAK = "\n"


def article_md5(url: str, title: str) -> str:
    """Return MD5(url + title) over UTF-8, as 32 lower-case hex digits: the article's identity (DESIGN, section 4).

    A lone surrogate, which UTF-8 cannot hold, counts as `?`.
    """
    return hashlib.md5((url + title).encode("utf-8", "replace"), usedforsecurity=False).hexdigest()


def content_hash(title: str, body: str) -> str:
    """Return SHA-256 of title and body as 64 hex digits; the same for texts that differ only in form.

    Form is Unicode's (NFC is compared) and white space (any run counts as one space). Case does count. More than 30
    combining marks in a run are told apart by their order (`marks`).
    """
    return hash_tidied(collapse(title), collapse(body))


def hash_tidied(title: str, body: str) -> str:
    """Return the content hash of texts that `text.tidy` has been over: their only white space is single."""
    text = f"{title}\n{body.replace(_BREAK, ' ')}"
    if not text.isascii():
        text = unicodedata.normalize("NFC", stream_safe(text))
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
