"""How many near-duplicates are found, and how many articles are called one wrongly: `make eval ARGS=similarity`.

News texts are those of the Lee corpus, which the package gensim brings. A feed has each cut at some length. Then comes
another feed's version, cut at another length and edited, or a fresh text, or one of a template. Texts and kinds of
edits are split: thresholds were chosen by one half of the texts and by the kinds `TUNED`. Misses of the other half were
looked at, too, so the fairest lines are those of kinds that were written later. `templates.tsv` has templates of which
no two articles are one matter; misses of the second ones were looked at after their first run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, files
from itertools import combinations
from pathlib import Path
from random import Random
from typing import NamedTuple

from benchmarks.enrichment.__main__ import Measure
from benchmarks.enrichment.edits import LOOKED_AT, TUNED, UNSEEN, change_numbers, cut, templates
from benchmarks.enrichment.edits_again import AGAIN, LATER
from services.enricher.similarity.sketching import sketch
from services.enricher.similarity.words import words_of
from services.writer.articles.similar import LEAST_SHARED, decide
from services.writer.articles.sketched import Sketched

CORPUS = ("lee_background.cor", "lee.cor")
LENGTHS = (200, 280, 400, 600, 800, 1200, 4000)
"""At how many characters feeds cut."""

OF_EACH_TEMPLATE = 150

GROUPS = {
    "kinds tuned on": TUNED,
    "kinds looked at": LOOKED_AT | UNSEEN | AGAIN,
    "kinds written after the rule": LATER,
}
TEMPLATES = Path(__file__).with_name("templates.tsv")


class Case(NamedTuple):
    """An article that comes after those of the index."""

    kind: str
    title: str
    body: str
    original: int | None
    """The place of the article that it is a duplicate of; None: it is none of any."""


def evaluate() -> Iterator[Measure]:
    """Yield recall and false positives, of both halves."""
    texts = news()
    if not texts:
        yield Measure("not measured", "gensim, which brings the texts, is not installed", "0 texts")
        return
    for name, half in (("tuned on", texts[::2]), ("looked at", texts[1::2])):
        yield from _measure(name, half)
    yield from _measure_templates()


def news() -> list[str]:
    """Return news texts; none if the package is not installed."""
    try:
        paths = [path for path in files("gensim") or () if path.name in CORPUS]
    except PackageNotFoundError:
        return []
    return [line.strip() for path in sorted(paths) for line in path.read_text(encoding="latin-1").splitlines()]


class Index:
    """Articles, found as the writer finds them."""

    def __init__(self, articles: Iterable[tuple[str, str]]) -> None:
        self.articles = [_sketched(place, *article) for place, article in enumerate(articles)]
        self._holders: dict[int, list[int]] = defaultdict(list)
        for place, article in enumerate(self.articles):
            for key in article.held:
                self._holders[key].append(place)

    def find(self, case: Case) -> int | None:
        """Return the first article that the case is a duplicate of."""
        sketched = _sketched(-1, case.title, case.body)
        found = {place for key in sketched.wanted for place in self._holders.get(key, ())}
        return next((place for place in sorted(found) if decide(sketched, self.articles[place])), None)


def _sketched(feed: int, title: str, body: str, language: str = "en") -> Sketched:
    found = sketch(title, body, language)
    assert found
    return Sketched(feed, feed, found)


def _measure(name: str, texts: Sequence[str]) -> Iterator[Measure]:
    random = Random(len(texts))
    stored, fresh = texts[: len(texts) * 2 // 3], texts[len(texts) * 2 // 3 :]
    originals = [cut(text, random.choice(LENGTHS)) for text in stored]
    index = Index((title_of(text), original) for text, original in zip(stored, originals, strict=True))
    for group, edits in GROUPS.items():
        found = total = with_share = 0
        for kind, edit in edits.items():
            cases = [
                Case(
                    kind,
                    random.choice((title_of(text), f"Exclusive: {random.choice(fresh)[:40]}")),
                    cut(edit(text, random), random.choice(LENGTHS)),
                    place,
                )
                for place, text in enumerate(stored)
            ]
            hits = sum(index.find(case) is not None for case in cases)  # the corpus has some stories twice
            found, total = found + hits, total + len(cases)
            with_share += sum(_have_share(originals[case.original or 0], case.body) for case in cases)
            yield Measure(f"texts {name}, {kind}", f"{hits / len(cases):.1%} found", f"{len(cases)} altered")
        of = f"{total:,} altered; {with_share:,} have a fifth in common"
        yield Measure(f"texts {name}, {group}, all", f"{found / total:.1%} found", of)
    numbered = [
        Case("numbers", title_of(text), change_numbers(cut(text, 800), random), None)
        for text in stored
        if change_numbers(text[:190], random) != text[:190]
    ]
    yield _wrong(name, "other numbers", Index((title_of(text), cut(text, 800)) for text in stored), numbered)
    yield _wrong(name, "fresh", index, [Case("fresh", title_of(text), text, None) for text in fresh])
    automatons = [article for _ in range(OF_EACH_TEMPLATE) for article in templates(random)]
    half = len(automatons) // 2
    yield _wrong(name, "templates", Index(automatons[:half]), [Case("", *each, None) for each in automatons[half:]])


def _have_share(one: str, other: str) -> bool:
    """Whether two texts have a fifth of the shorter one in common: two cuts of one story may have nothing."""
    first, second = (set(zip(*(words_of(text).texts[n:] for n in range(3)), strict=False)) for text in (one, other))
    return len(first & second) >= max(LEAST_SHARED, min(len(first), len(second)) / 5)


def _measure_templates() -> Iterator[Measure]:
    """Compare each two articles of one template."""
    flagged, pairs = defaultdict[str, int](int), defaultdict[str, int](int)
    for line in TEMPLATES.read_text(encoding="utf-8").splitlines():
        group, language, title, body, *fills = line.split("\t")
        articles = [
            _sketched(feed, title.format(*fill), body.format(*fill), language)
            for feed, fill in enumerate(each.split("|") for each in fills)
        ]
        for one, other in combinations(articles, 2):
            pairs[group] += 1
            flagged[group] += decide(one, other) is not None
    for group, count in pairs.items():
        yield Measure(f"templates of many languages, {group} ones", f"{flagged[group]} flagged", f"{count} pairs")


def _wrong(name: str, kind: str, index: Index, cases: Sequence[Case]) -> Measure:
    flagged = sum(index.find(case) is not None for case in cases)
    return Measure(
        f"texts {name}, {kind}", f"{flagged / len(cases):.2%} flagged", f"{len(cases):,} that are no duplicates"
    )


def title_of(text: str) -> str:
    """Return a title: the corpus has none."""
    return " ".join(text.split()[:9])
