"""Pairs for the report of near-duplicates: what happens to a text on its way into feeds, and texts of templates.

`TUNED` are the kinds of edits that thresholds were chosen by. Misses of `LOOKED_AT` were looked at, too, when the
guards were made. `UNSEEN` were written afterwards, and run once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Final

Edit = Callable[[str, Random], str]

_SENTENCE = re.compile(r"(?<=[.!?])\s+")

_SYNONYMS = {
    "said": "stated",
    "big": "large",
    "help": "assist",
    "people": "persons",
    "began": "started",
    "more": "extra",
    "around": "about",
    "injured": "wounded",
    "government": "administration",
    "also": "additionally",
    "attack": "assault",
    "killed": "slain",
    "near": "close",
    "show": "display",
    "police": "officers",
    "country": "nation",
    "says": "states",
    "told": "informed",
    "leader": "head",
    "world": "globe",
    "group": "party",
    "early": "soon",
    "last": "previous",
    "fire": "blaze",
    "area": "region",
    "children": "kids",
    "home": "house",
    "several": "various",
    "troops": "soldiers",
    "after": "following",
    "before": "ahead",
    "month": "weeks",
    "year": "twelvemonth",
    "new": "fresh",
    "south": "southern",
    "north": "northern",
}
_BOILERPLATE = (
    " Sign up for our newsletter and get the best stories of the day in your inbox. This article was first published"
    " by our partner and is reproduced here with permission. All rights reserved."
)


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, roughly."""
    return _SENTENCE.split(text)


def cut(text: str, length: int) -> str:
    """Return the beginning of a text, as feeds cut it: between words, with dots."""
    return text if len(text) <= length else text[:length].rsplit(" ", 1)[0] + " …"


def edit_words(text: str, random: Random, share: float = 0.15) -> str:
    """Replace, drop or double words."""
    words = text.split()
    pool = words[:]
    changed = []
    for word in words:
        if random.random() < share and not any(c.isdigit() for c in word):
            changed += random.choice(([], [random.choice(pool)], [word, random.choice(pool)]))
        else:
            changed.append(word)
    return " ".join(changed)


def reorder(text: str, random: Random) -> str:
    """Exchange sentences behind the first one."""
    first, *others = sentences(text)
    random.shuffle(others)
    return " ".join((first, *others))


def _typos(text: str, random: Random) -> str:
    words = text.split()
    for place, word in enumerate(words):
        if len(word) > 4 and word.isalpha() and random.random() < 0.08:
            at = random.randrange(len(word) - 1)
            words[place] = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    return " ".join(words)


def _synonyms(text: str, _: Random) -> str:
    return " ".join(_SYNONYMS.get(word, word) for word in text.split())


def _drop_sentences(text: str, random: Random) -> str:
    first, *others = sentences(text)
    return " ".join((first, *(each for each in others if random.random() > 0.3)))


def _insert_sentence(text: str, random: Random) -> str:
    parts = sentences(text)
    own = "Our reporter on the ground has spoken with residents who did not want to give their names in print."
    parts.insert(random.randrange(1, len(parts) + 1), own)
    return " ".join(parts)


def _punctuate(text: str, _: Random) -> str:
    text = text.replace('"', "”").replace("'", "’").replace("--", " – ").replace(", ", " , ")
    return text.replace("-", "‐").upper() if len(text) % 5 == 0 else text.replace(". ", ".\n\n")


def _shorten_words(text: str, random: Random) -> str:
    return " ".join(word for word in text.split() if any(c.isdigit() for c in word) or random.random() > 0.1)


TUNED: Final[dict[str, Edit]] = {
    "as it is, cut elsewhere": lambda text, _: text,
    "dateline before": lambda text, _: f"GENEVA, Dec 3 (Agency) - {text}",
    "boilerplate behind": lambda text, _: cut(text, 350) + _BOILERPLATE,
    "15 % of words edited": edit_words,
    "15 % edited, sentences reordered": lambda text, random: reorder(edit_words(text, random), random),
    "punctuation, quotes, case": _punctuate,
}
LOOKED_AT: Final[dict[str, Edit]] = {
    "byline and source": lambda text, _: f"By Ana Marić and Tom Okafor for The Daily Courier | {text} (Source: Agency)",
    "synonyms": _synonyms,
    "typos": _typos,
    "sentences left out": _drop_sentences,
    "a sentence put in": _insert_sentence,
    "a tenth of words left out": _shorten_words,
    "sentences reordered": reorder,
    "left-overs of HTML": lambda text, _: "&lt;p&gt;" + text.replace(". ", ". <br/> &nbsp;") + " [&#8230;]",
}


def _own_lead(text: str, _: Random) -> str:
    own = "It was the talk of the day in the capital, and nobody had seen it coming."
    return " ".join((own, *sentences(text)[1:]))


def _swap_words(text: str, random: Random) -> str:
    words = text.split()
    for place in range(0, len(words) - 1, 9):
        if random.random() < 0.7:
            words[place], words[place + 1] = words[place + 1], words[place]
    return " ".join(words)


UNSEEN: Final[dict[str, Edit]] = {
    "a lead of one's own": _own_lead,
    "begun at the second sentence": lambda text, _: " ".join(sentences(text)[1:]),
    "neighbours exchanged": _swap_words,
    "typos and byline": lambda text, random: f"Reported by our desk in Vienna. {_typos(text, random)}",
    "articles left out": lambda text, _: re.sub(r"\b(?:the|a|an) ", "", text, flags=re.IGNORECASE),
}

_NUMBER = re.compile(r"\d+")
_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


def change_numbers(text: str, random: Random) -> str:
    """Change each number, and each day of the week."""
    text = _NUMBER.sub(lambda found: str(int(found[0][:9]) + random.randrange(1, 9)), text)
    return re.sub("|".join(_DAYS), lambda found: _DAYS[(_DAYS.index(found[0]) + 2) % 7], text)


_PLACES = [
    *("Lisbon", "Oslo", "Lima", "Perth", "Quito", "Turin", "Izmir", "Cairo", "Accra", "Hanoi"),
    *("Osaka", "Leeds", "Basel", "Malmö", "Porto", "Ghent", "Split", "Varna", "Tartu", "Cork"),
]
_CLUBS = [f"{place} {kind}" for place in _PLACES for kind in ("United", "Rovers", "Wanderers")]
_FIRMS = [f"{place} {kind}" for place in _PLACES for kind in ("Steel", "Foods", "Energy", "Insurance")]


def templates(random: Random) -> Iterator[tuple[str, str]]:
    """Yield title and text of articles that automatons write. No two of them are one story."""
    r, place, day = random.randrange, random.choice(_PLACES), random.choice(_DAYS)
    one, two = random.sample(_CLUBS, 2)
    firm, other = random.sample(_FIRMS, 2)
    yield (
        f"Weather for {place}: {day}",
        f"{day} will begin cloudy in {place} with a gentle breeze from the west at {r(5, 40)} km/h. The"
        " temperature rises"
        f" to {r(8, 35)} degrees in the afternoon and falls to {r(-5, 8)} degrees at night. The chance of rain is"
        f" {r(5, 95)} percent. The sun rises at {r(4, 8)}:{r(10, 59)} and sets at {r(16, 22)}:{r(10, 59)}.",
    )
    yield (
        f"M {r(3, 7)}.{r(0, 9)} earthquake - {r(5, 90)} km from {place}",
        f"An earthquake with a magnitude of {r(3, 7)}.{r(0, 9)} struck {r(5, 90)} kilometres from {place} on {day}, the"
        f" geological survey reported. The quake had a depth of {r(5, 200)} kilometres and was felt in several"
        " towns. No"
        " tsunami warning was issued, and there were no immediate reports of damage or casualties.",
    )
    yield (
        f"{one} {r(0, 6)}-{r(0, 6)} {two}",
        f"{one} met {two} on {day} in front of {r(3, 60)},{r(100, 999)} spectators. The final score was"
        f" {r(0, 6)}-{r(0, 6)}"
        f" after {r(0, 3)}-{r(0, 3)} at half time. The home side had {r(30, 70)} percent of possession and"
        f" {r(3, 30)} shots"
        f" on goal. With this result {one} are now at place {r(1, 20)} of the table with {r(1, 80)} points.",
    )
    yield (
        f"{firm} reports results of the {random.choice(('first', 'second', 'third', 'fourth'))} quarter",
        f"{firm} today reported a net income of {r(10, 900)}.{r(0, 9)} million dollars, or {r(1, 9)}.{r(10, 99)}"
        " dollars per"
        f" share, compared with {r(10, 900)}.{r(0, 9)} million dollars in the same quarter of the previous year."
        " Revenue"
        f" came to {r(1, 90)}.{r(0, 9)} billion dollars. The company expects revenue between {r(1, 90)} and {r(1, 90)}"
        " billion dollars for the current quarter, and will host a conference call to discuss the results.",
    )
    yield (
        f"Investor alert: deadline for shareholders of {firm}",
        f"The law firm of {other} reminds investors of {firm} that a class action lawsuit has been filed on"
        " behalf of all"
        " persons who purchased its securities. Investors who suffered a loss may ask the court to be appointed as lead"
        " plaintiff. The complaint alleges that the company made false and misleading statements about its business.",
    )
    yield (
        f"Wetter in {place} am {day}",
        f"In {place} bleibt es heute meist bewölkt bei Höchstwerten um {r(3, 35)} Grad. In der Nacht sinken die"
        " Temperaturen"
        f" auf {r(-9, 9)} Grad, der Wind weht schwach aus Südwest mit {r(4, 40)} Kilometern in der Stunde. Die"
        f" Niederschlagswahrscheinlichkeit liegt bei {r(1, 99)} Prozent, wie der Wetterdienst mitteilte.",
    )
    yield (
        f"Bourse : {firm} en {random.choice(('hausse', 'baisse'))}",
        f"Le titre {firm} a terminé la séance à {r(4, 400)},{r(10, 99)} euros, soit une variation de"
        f" {r(1, 9)},{r(10, 99)} %"
        f" par rapport à la veille. Depuis le début de l'année, le titre a gagné {r(1, 60)} %. Le volume des échanges a"
        f" atteint {r(100, 900)} milliers de titres, contre {r(100, 900)} milliers en moyenne sur le mois écoulé.",
    )
