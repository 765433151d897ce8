"""Hashes: `article_md5` names an article, `content_hash` tells whether its text has changed."""

from __future__ import annotations

import hashlib
import unicodedata

from services.fetcher.parse.text import collapse
from services.fetcher.parse.text.marks import stream_safe

_BREAK = "\n"


def article_md5(url: str, title: str) -> str:
    """Return MD5(url + title) over UTF-8, as 32 lower-case hex digits: the article's identity.

    A lone surrogate, which UTF-8 cannot hold, counts as `?`.
    """
    return hashlib.md5((url + title).encode("utf-8", "replace"), usedforsecurity=False).hexdigest()


def content_hash(title: str, body: str) -> str:
    """Return SHA-256 of title and body as 64 hex digits. Differences in Unicode's form and in white space don't count.

    Texts are compared in NFC, with one space for each run of white space. Case counts. In a run of more than 30
    combining marks their order counts (`text.marks`).
    """
    return hash_tidied(collapse(title), collapse(body))


def hash_tidied(title: str, body: str) -> str:
    """Return the content hash of texts from `text.tidy`, in which white space is single blanks already."""
    text = f"{title}\n{body.replace(_BREAK, ' ')}"
    if not text.isascii():
        text = unicodedata.normalize("NFC", stream_safe(text))
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
