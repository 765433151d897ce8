"""What columns of articles mean, in words for people."""

from __future__ import annotations

from collections.abc import Sequence

FLAGS = {
    "title_guessed": "the feed gives no title: this is the beginning of the text, or the URL",
    "title_cut": "the title was too long, and was cut",
    "body_cut": "the text was too long, and was cut",
    "html_cut": "the HTML was too long, and was cut",
    "date_guessed": "the date is counted from the fetch (`yesterday`), or its year or day is missing",
    "date_ambiguous": "the date does not tell day from month",
    "date_clamped": "the feed gives a date in the future: the time of the fetch replaces it",
    "enrichment_failed": "the enricher could not make it out",
    "enrichment_skipped": "the enricher had no time for it",
    "text_cut": "the enricher read the beginning only",
}

UNSURE = {
    "date_guessed": "guessed",
    "date_ambiguous": "day or month first?",
    "date_clamped": "in the future, so corrected",
}
"""Why a date is not sure, in few words."""

QUALITY = {
    "full": "the whole text",
    "summary": "a summary",
    "stub": "a few words",
    "title_only": "a title alone",
}

STATES = {
    "new": ("new", "nobody was given it yet"),
    "back": ("back", "released, changed or failed; it is given out again next"),
    "claimed": ("claimed", "a consumer holds it"),
    "lease expired": ("lease expired", "its consumer went silent; it is given out again next"),
    "waiting for retry": ("waiting for retry", "a consumer reported a failure"),
    "dead": ("dead", "no consumer is given it any more"),
}

KINDS = {
    "address": "the same page under another address",
    "title": "the same title",
    "text": "nearly the same text",
}
"""What tells a duplicate."""


def flags_in_words(flags: Sequence[str]) -> list[str]:
    """Return what the flags of an article say."""
    return [FLAGS.get(flag, flag) for flag in flags]


def why_unsure(flags: Sequence[str]) -> str | None:
    """Return why the date of publication is not sure; None: it is as the feed says."""
    return next((why for flag, why in UNSURE.items() if flag in flags), None)


def is_md5(text: str) -> bool:
    """Return whether this is an article's key."""
    return len(text) == 32 and all(character in "0123456789abcdef" for character in text)
