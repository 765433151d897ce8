"""How well languages are told: translated messages of Django, and example sentences of spaCy.

Neither was used to fit anything. Django's were looked at when thresholds were chosen; spaCy's were not.
"""

from __future__ import annotations

import gettext
import importlib
import pkgutil
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np
import spacy.lang

from benchmarks.enrichment.__main__ import Measure
from services.enricher.language import load_languages
from services.enricher.language.deciding import RARER
from services.enricher.parts import Label
from services.enricher.settings import EnrichSettings
from services.enricher.text import Text
from shared.wire.enrichment import UNDETERMINED

LEAST = 25
"""Characters of a message that counts as a sentence."""

CUTS = (20, 40, 70)
FOLDERS = {"no": "nb", "zh": "zh_Hans"}
OTHERS = (
    "af",
    "ast",
    "az",
    "br",
    "cy",
    "dsb",
    "eo",
    "eu",
    "fy",
    "ga",
    "gd",
    "hsb",
    "ia",
    "io",
    "kab",
    "lb",
    "tk",
    "uz",
)
"""Languages in Latin letters that are not asked for."""

_PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|%[sd]|\{\w+\}|<[^>]*>")

Detect = Callable[[Sequence[Text]], Sequence[Label]]


class Case(NamedTuple):
    """A sentence and its language."""

    text: str
    language: str


class Outcome(NamedTuple):
    """What was said of a case."""

    case: Case
    label: Label


def evaluate() -> Iterator[Measure]:
    """Measure accuracy with and without labels of feeds, what other languages are taken for, and speed."""
    wanted = EnrichSettings().languages.split(",")
    detect = load_languages(",".join(wanted))
    common = [language for language in wanted if language not in RARER]
    rarer = [case for language in wanted if language in RARER for case in messages(language)]
    sentences = [case for language in common for case in messages(language)]
    yield from accuracies("Django's messages", sentences, detect)
    yield from accuracies("rarer languages", rarer, detect)
    yield calibration(told(detect, [cut for size in CUTS for cut in cut_to(sentences, size)]))
    yield from confusions(told(detect, list(cut_to(sentences + rarer, 40))))
    yield from accuracies("spaCy's examples", [case for language in wanted for case in examples(language)], detect)
    strange = told(detect, [case for language in OTHERS for case in messages(language)])
    und = sum(outcome.label.name == UNDETERMINED for outcome in strange)
    yield Measure(
        "`und` for languages not asked for", percent(und, len(strange)), f"{len(strange)} messages in {len(OTHERS)}"
    )
    yield from speeds(detect, [case.text for case in cut_to(sentences, 70)])


def messages(language: str) -> Iterator[Case]:
    """Return Django's messages in a language, without their placeholders."""
    folder = FOLDERS.get(language, language) if language != "en" else "de"  # its keys are English
    seen = set[str]()
    for path in sorted(Path(str(files("django"))).glob(f"**/locale/{folder}/LC_MESSAGES/django.mo")):
        for key, message in read_catalogue(path).items():
            if key in ("", message):  # the catalogue's head, or not translated
                continue
            text = " ".join(_PLACEHOLDER.sub(" ", key if language == "en" else message).split())
            if len(text) >= LEAST and text not in seen:
                seen.add(text)
                yield Case(text, language)


def read_catalogue(path: Path) -> dict[str, str]:
    """Return the messages of a catalogue, of plural forms the first."""
    with path.open("rb") as file:
        catalogue: dict[str | tuple[str, int], str] = vars(gettext.GNUTranslations(file))["_catalog"]
    return {key if isinstance(key, str) else key[0]: message for key, message in reversed(catalogue.items())}


def examples(language: str) -> Iterator[Case]:
    """Return spaCy's example sentences in a language, if it has some."""
    folder = FOLDERS.get(language, language).partition("_")[0]
    if any(module.name == folder for module in pkgutil.iter_modules(spacy.lang.__path__)):
        try:
            module = importlib.import_module(f"spacy.lang.{folder}.examples")
        except ModuleNotFoundError:
            return
        yield from (Case(sentence, language) for sentence in module.sentences)


def accuracies(name: str, sentences: Sequence[Case], detect: Detect) -> Iterator[Measure]:
    """Measure each length, without a label and with a right and a wrong one."""
    claims: dict[str, Callable[[Case], str | None]] = {
        "no label": lambda _: None,
        "right label": lambda case: case.language,
        "wrong label": lambda case: "en-US" if case.language != "en" else "de",
    }
    for size in (*CUTS, None):
        cases = list(cut_to(sentences, size)) if size else sentences
        languages = len({case.language for case in cases})
        for claim, label_of in claims.items():
            outcomes = told(detect, cases, label_of)
            labelled = [outcome for outcome in outcomes if outcome.label.name != UNDETERMINED]
            right = sum(outcome.label.name == outcome.case.language for outcome in labelled)
            yield Measure(
                f"{name}, {f'{size} characters' if size else 'whole'}, {claim}",
                f"{percent(right, len(cases))} right, {percent(len(labelled), len(cases))} labelled,"
                f" {percent(len(labelled) - right, len(labelled))} of these wrong",
                f"{len(cases)} in {languages} languages",
            )


def cut_to(sentences: Iterable[Case], size: int) -> Iterator[Case]:
    """Return the beginnings of those that are long enough."""
    return (Case(case.text[:size], case.language) for case in sentences if len(case.text) >= size * 0.9)


def told(
    detect: Detect, cases: Sequence[Case], label_of: Callable[[Case], str | None] = lambda _: None
) -> list[Outcome]:
    """Return what is said of each case by itself."""
    return [Outcome(case, detect([Text(case.text, "", (), label_of(case))])[0]) for case in cases]


def calibration(outcomes: Iterable[Outcome]) -> Measure:
    """Measure how far confidence is from the share that is right, over ten bins (ECE)."""
    labelled = [outcome for outcome in outcomes if outcome.label.name != UNDETERMINED]
    sure = np.array([outcome.label.confidence for outcome in labelled])
    right = np.array([outcome.label.name == outcome.case.language for outcome in labelled])
    bins = np.minimum((sure * 10).astype(int), 9)
    error = sum(abs((sure[bins == b] - right[bins == b]).sum()) for b in range(10)) / len(labelled)
    return Measure("calibration error (ECE)", f"{error:.3f}", f"{len(labelled)} labels at 20, 40 and 70 characters")


def confusions(outcomes: Sequence[Outcome]) -> Iterator[Measure]:
    """Measure which languages are taken for which most often, at 40 characters without a label."""
    all_of = Counter(outcome.case.language for outcome in outcomes)
    wrong = Counter(
        (outcome.case.language, outcome.label.name)
        for outcome in outcomes
        if outcome.label.name not in (UNDETERMINED, outcome.case.language)
    )
    for (language, other), count in wrong.most_common(12):
        yield Measure(f"{language} taken for {other}, 40 characters", percent(count, all_of[language]), "its messages")


def speeds(detect: Detect, texts: Sequence[str]) -> Iterator[Measure]:
    """Measure texts per second of CPU time, one and fifty at a time."""
    for size in (1, 50):
        some = [Text(text, "", ()) for text in texts[::4]]
        batches = [some[first : first + size] for first in range(0, len(some), size)]
        seconds = min(cpu_seconds(detect, batches) for _ in range(5))
        yield Measure(f"texts/s, {size} at a time", f"{len(some) / seconds:,.0f}", "beginnings of 70 characters")


def cpu_seconds(detect: Detect, batches: Sequence[Sequence[Text]]) -> float:
    """Return the CPU time of all of them."""
    began = time.process_time()
    for batch in batches:
        detect(batch)
    return time.process_time() - began


def percent(part: int, whole: int) -> str:
    """Return a share in %."""
    return f"{100 * part / max(whole, 1):.2f} %"
