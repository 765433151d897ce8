"""Tells the languages of a feed's entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from services.enricher.language.deciding import Priors, Shares, to_shares
from services.enricher.language.labels import read_label
from services.enricher.language.model import NO_LANGUAGE, Floats, Model, Sizes
from services.enricher.language.sampling import pieces
from services.enricher.language.scripts import ALONE, LANGUAGES, LATIN, find_script
from services.enricher.parts import Label
from services.enricher.text import Text
from shared.errors import ConfigurationError
from shared.wire.enrichment import UNDETERMINED

LEAST_CONFIDENCE = 0.55
_LEAST_OF_SHORT = 0.8
_SHORT = 30
"""Below this confidence a text has no language; a higher one is asked of texts of fewer letters, since names and loan
words look like any language."""

_LEAST_LETTERS = 3
_LEAST_DISTINCT = 9
"""Every text of a few words has so many different characters; noise has not."""

_DISSENT = 0.9
_MOST_DISSENT = 1 / 3
"""Where more than this share of a text is surely in another language than the whole, it is in no single one."""

_SURE = 0.995
"""The confidence of a script that one language is written in."""

NOWHERE = Label(UNDETERMINED, 0.0)


class Reading(NamedTuple):
    """What a text alone tells."""

    log_odds: Shares
    shares: Shares
    letters: int
    mixed: bool


def load_languages(wanted: str) -> Detector:
    """Load what tells these languages (ISO 639-1, comma-separated) apart.

    Raises:
        ConfigurationError: one of them is not known.
        ImportError: py3langid is not installed.
    """
    model = Model()
    read = {code: read_label(code) for code in (code.strip().lower() for code in wanted.split(",")) if code}
    known = sorted({*model.languages, *ALONE} - {NO_LANGUAGE})
    if unknown := sorted(code for code, language in read.items() if language not in known):
        raise ConfigurationError(
            f"FEEDMILL_LANGUAGES: {', '.join(unknown)} can't be told; there are {', '.join(known)}"
        )
    return Detector(model, Priors(model.languages, frozenset(filter(None, read.values()))))


@dataclass(frozen=True)
class Detector:
    """Tells which language each text is in; `und` where it doesn't show."""

    model: Model
    priors: Priors

    def __call__(self, texts: Sequence[Text]) -> list[Label]:
        """Return the language of each text of one feed."""
        readings = [self._read(text) for text in texts]
        known = [reading.shares for reading in readings if isinstance(reading, Reading) and not reading.mixed]
        total = np.sum(known, axis=0) if known else np.zeros(len(self.model.languages))
        return [
            self._decide(reading, read_label(text.label), total, len(known))
            if isinstance(reading, Reading)
            else reading
            for text, reading in zip(texts, readings, strict=True)
        ]

    def _read(self, text: Text) -> Reading | Label:
        """Return what the text alone tells; a label if nothing else counts: by its script, or for want of words."""
        read = pieces(text)
        whole = " ".join(read)
        script, letters, is_pure = find_script(whole)
        if script is None or letters < _LEAST_LETTERS or len(set(whole)) < min(2 + letters // 4, _LEAST_DISTINCT):
            return NOWHERE
        if script != LATIN and len(LANGUAGES[script]) == 1:
            language = LANGUAGES[script][0]
            return Label(language, _SURE) if language in self.priors.wanted else NOWHERE
        if not is_pure and script == LATIN:
            read = [" ".join(word for word in piece.split() if _is_latin(word)) for piece in read]
        fits, sizes = self.model.fit(read)
        log_odds = self.priors.read(fits.sum(axis=0), int(sizes.sum()), script)
        shares = to_shares(log_odds)
        return Reading(log_odds, shares, letters, len(read) > 1 and self._is_mixed(fits, sizes, shares, script))

    def _is_mixed(self, fits: Floats, sizes: Sizes, shares: Shares, script: str) -> bool:
        """Return whether a good part of the pieces is surely in another language than all of them."""
        log_odds = self.priors.read(fits, sizes, script)
        others = log_odds.argmax(axis=1) != shares.argmax()
        if not others.any():  # most texts
            return False
        dissents = others & (to_shares(log_odds).max(axis=1) >= _DISSENT)
        return bool(sizes[dissents].sum() > _MOST_DISSENT * sizes.sum())

    def _decide(self, reading: Reading, claimed: str | None, total: Shares, count: int) -> Label:
        """Return the language by the text, the feed's label and the feed's other entries."""
        if reading.mixed:
            return NOWHERE
        others, count = np.maximum(total - reading.shares, 0), count - 1
        shares = reading.shares
        if claimed or count:
            shares = to_shares(reading.log_odds + self.priors.of_feed(claimed, others, count))
        best = int(shares.argmax())
        least = LEAST_CONFIDENCE if reading.letters >= _SHORT else _LEAST_OF_SHORT
        if shares[best] < least or not self.priors.is_wanted[best]:
            return NOWHERE
        return Label(self.model.languages[best], float(shares[best]))


@lru_cache(10_000)  # words recur, and each takes as long as a text
def _is_latin(word: str) -> bool:
    return word.isascii() or find_script(word).script == LATIN
