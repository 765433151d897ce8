"""Tells the languages of a feed's entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from services.enricher.language.deciding import Priors, Shares, to_shares
from services.enricher.language.labels import read_label
from services.enricher.language.model import Floats, Model
from services.enricher.language.sampling import pieces
from services.enricher.language.scripts import LANGUAGES, LATIN, find_script
from services.enricher.parts import Label
from services.enricher.text import Text
from shared.errors import ConfigurationError
from shared.wire.enrichment import UNDETERMINED

LEAST_CONFIDENCE = 0.6
_LEAST_OF_SHORT = 0.8
_SHORT = 30
"""Below this confidence a text has no language; a higher one is asked of texts of fewer letters, since names and loan
words look like any language."""

_LEAST_LETTERS = 3
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
        Missing: py3langid is not installed.
    """
    model = Model()
    read = {code: read_label(code) for code in (code.strip().lower() for code in wanted.split(",")) if code}
    if unknown := sorted(code for code, language in read.items() if language not in model.languages):
        known = ", ".join(language for language in model.languages if len(language) == 2)
        raise ConfigurationError(f"FEEDMILL_LANGUAGES: {', '.join(unknown)} can't be told; there are {known}")
    return Detector(model, Priors(model.languages, frozenset(filter(None, read.values()))))


@dataclass(frozen=True)
class Detector:
    """Tells which language each text is in; `und` where it doesn't show."""

    model: Model
    priors: Priors

    def __call__(self, texts: Sequence[Text]) -> list[Label]:
        """Return the language of each text of one feed."""
        readings = [self._read(text) for text in texts]
        known = [reading.shares for reading in readings if reading and not reading.mixed]
        total = np.sum(known, axis=0) if known else np.zeros(len(self.model.languages))
        return [
            self._decide(reading, read_label(text.label), total, len(known)) if reading else NOWHERE
            for text, reading in zip(texts, readings, strict=True)
        ]

    def _read(self, text: Text) -> Reading | None:
        """Return what the text alone tells; None if it has no words, or words in several scripts."""
        read = pieces(text)
        script, letters = find_script(" ".join(read))
        if script is None or letters < _LEAST_LETTERS:
            return None
        if script != LATIN and len(LANGUAGES[script]) == 1:
            return self._only(LANGUAGES[script][0], letters)
        fits = [self.model.fit(piece) for piece in read]
        log_odds = self.priors.read(sum_of([fit for fit, _ in fits]), sum(size for _, size in fits), script)
        shares = to_shares(log_odds)
        return Reading(log_odds, shares, letters, len(fits) > 1 and self._is_mixed(fits, shares, script))

    def _only(self, language: str, letters: int) -> Reading:
        shares = np.full(len(self.model.languages), (1 - _SURE) / (len(self.model.languages) - 1))
        shares[self.model.languages.index(language)] = _SURE
        return Reading(np.log(shares), shares, max(letters, _SHORT), mixed=False)

    def _is_mixed(self, fits: Sequence[tuple[Floats, int]], shares: Shares, script: str) -> bool:
        """Return whether a good part of the pieces is surely in another language than all of them."""
        dissent = 0
        for fit, length in fits:
            own = to_shares(self.priors.read(fit, length, script))
            if own.argmax() != shares.argmax() and own.max() >= _DISSENT:
                dissent += length
        return dissent > _MOST_DISSENT * sum(length for _, length in fits)

    def _decide(self, reading: Reading, claimed: str | None, total: Shares, count: int) -> Label:
        """Return the language by the text, the feed's label and the feed's other entries."""
        if reading.mixed:
            return NOWHERE
        others, count = np.maximum(total - reading.shares, 0), count - 1
        shares = to_shares(reading.log_odds + self.priors.of_feed(claimed, others, count))
        best = int(shares.argmax())
        least = LEAST_CONFIDENCE if reading.letters >= _SHORT else _LEAST_OF_SHORT
        if shares[best] < least or not self.priors.is_wanted[best]:
            return NOWHERE
        return Label(self.model.languages[best], float(shares[best]))


def sum_of(fits: Sequence[Floats]) -> Floats:
    """Return the sum of what several pieces fit."""
    return fits[0] if len(fits) == 1 else np.sum(fits, axis=0)
