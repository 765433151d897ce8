"""The model: a table of weights, a row per feature and a column per topic, and what its scores are worth."""

from __future__ import annotations

import hashlib
import json
import math
import zipfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from services.enricher.topics.features import BUCKETS

VERSION = 2

MOST_LABELS = 500
_MOST_BYTES = (MOST_LABELS + 4) * BUCKETS
"""Of a file, unfolded: 130 MB."""

Scores = NDArray[np.float32]


class BadModel(Exception):
    """A file is no model that this version can use. The message says why."""


@dataclass(frozen=True)
class Model:
    """What text of which topic looks like."""

    labels: tuple[str, ...]
    weights: NDArray[np.int8]
    """(BUCKETS, labels)."""
    scale: float
    """What a weight of 1 is worth."""
    bias: Scores
    temperatures: Mapping[str, float]
    """What scores are divided by to be the logarithms of odds, by language (ISO 639-1); in others it has no say. The
    empty name: of any language."""
    threshold: float
    """A label below this confidence is not given."""
    made_from: str = ""

    def scores(self, found: Collection[int]) -> Scores:
        """Return the score of each label for a text with these features."""
        if not found:
            return self.bias
        summed = self.weights[np.fromiter(found, np.intp, len(found))].sum(axis=0, dtype=np.int32)
        return np.asarray(summed * (self.scale / math.sqrt(len(found))) + self.bias, dtype=np.float32)

    def temperature(self, language: str | None) -> float | None:
        """Return the temperature of a language; None if the model does not know it."""
        return self.temperatures.get(language or "", self.temperatures.get(""))

    def save(self, path: Path) -> None:
        """Write it to a file: the same model gives the same bytes."""
        said = {
            "version": VERSION,
            "labels": self.labels,
            "scale": self.scale,
            "temperatures": dict(sorted(self.temperatures.items())),
            "threshold": self.threshold,
            "made_from": self.made_from,
        }
        about = np.frombuffer(json.dumps(said, ensure_ascii=False).encode(), dtype=np.uint8)
        digest = np.frombuffer(_digest(about, self.weights, self.bias), dtype=np.uint8)
        with path.open("wb") as file:  # a name without .npz would get one
            np.savez_compressed(file, about=about, weights=self.weights, bias=self.bias, sha256=digest)

    @classmethod
    def load(cls, path: Path) -> Model:
        """Read it from a file.

        Raises:
            BadModel: it is no model, of another version, or damaged.
            OSError: the file can't be read.
        """
        try:
            _check_size(path)
            with np.load(path, allow_pickle=False) as file:
                about, weights, bias, digest = (file[name] for name in ("about", "weights", "bias", "sha256"))
            said: dict[str, Any] = json.loads(about.tobytes())
            if said["version"] != VERSION:
                raise BadModel(f"it is of version {said['version']}, and this feedmill reads version {VERSION}")
            if digest.tobytes() != _digest(about, weights, bias):
                raise BadModel("its checksum is wrong: the file is damaged")
            model = cls(
                labels=tuple(said["labels"]),
                weights=weights,
                scale=said["scale"],
                bias=bias,
                temperatures=said["temperatures"],
                threshold=said["threshold"],
                made_from=said["made_from"],
            )
        except (ValueError, KeyError, TypeError, EOFError, MemoryError, zipfile.BadZipFile) as error:
            raise BadModel("it was not written by `feedmill enrich train`") from error
        if weights.shape != (BUCKETS, len(model.labels)) or weights.dtype != np.int8:
            raise BadModel("its table has another form than this feedmill's")
        return model


def _check_size(path: Path) -> None:
    """Refuse a file that unfolds to more than any model. What it says of itself bounds what is read of it."""
    with zipfile.ZipFile(path) as parts:
        if sum(part.file_size for part in parts.infolist()) > _MOST_BYTES:
            raise BadModel(f"it unfolds to more than {_MOST_BYTES:,} bytes")


def _digest(*arrays: NDArray[Any]) -> bytes:
    return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).digest()
