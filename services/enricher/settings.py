"""The enricher's settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from services.enricher.parts import Entities, Languages, Missing, Parts, Sketches, Topics
from shared.errors import ConfigurationError
from shared.settings import BrokerSettings, Prefetch, TelemetrySettings


class EnrichSettings(BrokerSettings):
    """What is looked for in texts, and how. `feedmill parse --enrich` reads it, too."""

    enrich: str = Field(
        "language,duplicates,topics,entities", description="What the enricher looks for, comma-separated."
    )

    languages: str = Field(
        "ar,bg,bn,ca,cs,da,de,el,en,es,et,fa,fi,fr,gl,gu,he,hi,hr,hu,hy,id,is,it,ja,ka,kk,kn,ko,lt,lv,mk,ml,mr,ms,nl,no,"
        "pa,pl,pt,ro,ru,sk,sl,sq,sr,sv,sw,ta,te,th,tr,uk,ur,vi,zh",
        description="The languages that are told (ISO 639-1), comma-separated. A text in another gets `und`.",
    )
    topics_model: Path | None = Field(
        None, description="A file that `feedmill enrich train` wrote: its labels in place of IPTC's topics."
    )
    entities: Literal["list", "model"] = Field(
        "list", description="Entities are found by `list`, or by spaCy's models beside it (`model`)."
    )

    def parts(self) -> Parts:
        """Load what is asked for; `missing` tells what is not installed.

        Raises:
            ConfigurationError: there is no such part, or a setting of one is wrong.
        """
        loaders: dict[str, tuple[str, Callable[[], Any]]] = {
            "language": ("languages", self._load_languages),
            "duplicates": ("sketches", self._load_sketches),
            "topics": ("topics", self._load_topics),
            "entities": ("entities", self._load_entities),
        }
        asked = {name.strip().lower() for name in self.enrich.split(",") if name.strip()}
        if unknown := sorted(asked - loaders.keys()):
            raise ConfigurationError(f"FEEDMILL_ENRICH: no part {', '.join(unknown)}; there are {', '.join(loaders)}")
        loaded, missing = dict[str, Any](), dict[str, str]()
        for name in (name for name in loaders if name in asked):
            field, load = loaders[name]
            try:
                loaded[field] = load()
            except Missing as error:
                loaded[field], missing[name] = error.instead, str(error)
            except ImportError as error:
                missing[name] = f"{error.name} is not installed: pip install 'feedmill[enrich]'"
            except OSError as error:  # a full disk, a file that can't be read
                missing[name] = f"its model can't be loaded: {error}"
        return Parts(**loaded, missing=missing)

    def _load_languages(self) -> Languages:
        from services.enricher.language import load_languages

        return load_languages(self.languages)

    def _load_sketches(self) -> Sketches:
        from services.enricher.similarity import load_sketches

        return load_sketches()

    def _load_topics(self) -> Topics:
        from services.enricher.topics import load_topics

        return load_topics(self.topics_model)

    def _load_entities(self) -> Entities:
        from services.enricher.entities import load_entities

        return load_entities(self.entities)


class EnricherSettings(EnrichSettings, TelemetrySettings):
    """Every setting that the enricher reads."""

    enricher_prefetch: Prefetch = Field(
        20, description="Results that the enricher holds unacknowledged, at most: its memory."
    )
