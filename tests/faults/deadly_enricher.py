"""An enricher that dies of some articles, as of a bug in a library. Run as `python -m tests.faults.deadly_enricher`."""

from __future__ import annotations

import os
from collections.abc import Sequence

from services.enricher.__main__ import serve
from services.enricher.parts import Label, Parts
from services.enricher.settings import EnricherSettings
from services.enricher.text import Text
from shared.service import run_service

DEADLY = "deadly"
"""In the title of an article that the process dies of."""


class DeadlySettings(EnricherSettings):
    """The settings of an enricher with such a part."""

    def parts(self) -> Parts:
        """Return a part that tells English."""
        return Parts(languages=tell_or_die)


def tell_or_die(texts: Sequence[Text]) -> list[Label | None]:
    """Return that all texts are English, if the process lives on."""
    if any(DEADLY in text.title for text in texts):
        os._exit(139)
    return [Label("en", 1.0) for _ in texts]


if __name__ == "__main__":
    run_service("enricher", DeadlySettings, serve)
