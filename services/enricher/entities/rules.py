"""People and organisations that no list has, told by how they are written: `Angela Merkel`, `University of Ghana`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from services.enricher.entities import context, unspaced
from services.enricher.entities.names import Name, Names, Span
from services.enricher.entities.style import Style, without_genitive
from services.enricher.entities.vocabulary import DIRECT, FIRST, LAST, LEGAL, TITLES, words_of

MOST_WORDS = 400
"""So many capitalised words of a text are looked at."""
CAPITALISED = re.compile(r"(?<![\w.])[^\W\d_a-zß-öø-ÿа-яёα-ω][^\W_]*(?:['’-][^\W\d_]+)*")
PARTICLES = (
    "van (?:den? |der )?|von (?:de[rn] )?|de (?:la |los )?|d[aiou] |dos |das |del |della |te[rn] |bin |ibn |al |el |zu "
)
AFTER = re.compile(rf" (?:{PARTICLES})?$")
"""What may stand between two words of a person's name."""
JOINED = re.compile(r" (?:and |& |(?:of|for|de|des|du|del|für) (?:the |la |l['’])?)?$")
"""What may stand between two words of an organisation's name."""
_SLAVIC = (
    *(("a", ""), ("em", ""), ("iem", ""), ("owi", ""), ("ovi", "")),
    *(("y", "a"), ("ę", "a"), ("ą", "a"), ("ie", "a")),
)
_CYRILLIC = (
    *(("а", ""), ("у", ""), ("ом", ""), ("ем", "й"), ("я", "й"), ("ю", "й"), ("я", "ь"), ("ю", "ь"), ("ем", "ь")),
    *(("ы", "а"), ("е", "а"), ("у", "а"), ("ой", "а"), ("и", "я"), ("ю", "я"), ("ей", "я")),
)


def _by_last_letter(endings: Sequence[tuple[str, str]]) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for ending, more in endings:
        found.setdefault(ending[-1], []).append((ending, more))
    return found


ENDINGS = {
    **dict.fromkeys(("pl", "cs", "sk", "hr", "sl"), _by_last_letter(_SLAVIC)),
    **dict.fromkeys(("ru", "uk", "bg", "sr"), _by_last_letter(_CYRILLIC)),
}
"""What given names end in, and what they end in without it, by the last letter."""
NO_GIVEN = {"it": words_of("Alla Dalla Della Nella Sulla La"), "es": words_of("La Las Los"), "fr": words_of("La Les")}
"""Given names elsewhere that are small words of a language."""
SAINTS = words_of("St St. Saint Sankt Sainte Sint San Santa Santo")
"""What begins the name of a church, a town or a hospital."""
OF_ORGANISATIONS = LAST | FIRST | DIRECT
ARTICLES = words_of("The De Het Een Der Die Das Den Det La Le Les El Los Las Il Lo Gli")
OF = re.compile(r" (?:of|de|des|du|del|della|dei|di|da|do|dos|das|für|for|van|d['’])(?: (?:the|la|los|las|l['’]))? ?$")


def find(style: Style, names: Names, listed: frozenset[int]) -> Iterator[Span]:
    """Yield the people and organisations of a text; they may overlap.

    Args:
        style: the text.
        names: the list.
        listed: where in the text places, organisations and technologies of the list begin.
    """
    words = [match for match in islice(CAPITALISED.finditer(style.text), MOST_WORDS) if match[0][0].isupper()]
    said = [word[0] for word in words]
    for place, (word, after) in enumerate(zip(said, [*said[1:], ""], strict=False)):
        if word in TITLES or (after in names.family and word not in LAST) or _is_given(word, style, names):
            yield from _person(style, names, words, place)
        if word in OF_ORGANISATIONS:
            yield from _organisation(style, names, words, place)
    yield from context.find(style, names, words, said, listed)
    if not style.text.isascii():
        yield from unspaced.find(style.text, style.language, names)


def _is_given(word: str, style: Style, names: Names) -> bool:
    """Tell if a word is a given name, in a language with cases also with an ending."""
    if word in names.given:
        return word not in NO_GIVEN.get(style.language or "", ())
    endings = ENDINGS.get(style.language or "")
    if not endings or len(word) < 5:
        return False
    of_letter = endings.get(word[-1], ())
    return any(word.endswith(end) and (word[: -len(end)] + more) in names.given for end, more in of_letter)


def _person(style: Style, names: Names, words: Sequence[re.Match[str]], place: int) -> Iterator[Span]:
    is_titled = words[place][0] in TITLES and not _is_given(words[place][0], style, names)
    end = _extend(style.text, words, place, 3)
    first = place + is_titled
    first += first < end and words[first][0] in TITLES
    while end > first and (words[end][0] in LAST or words[end][0] in TITLES):
        end -= 1
    if end < first + (not is_titled) or not all(_may_name(m[0], names) for m in words[first : end + 1]):
        return
    if is_titled:
        is_name = words[first][0] in names.given or _is_rare(words[first][0], names)
        is_sure = is_name and not style.is_title_case and not style.is_upper_case
    else:
        is_sure = _is_full_name(style, names, words[first], words[end])
    if is_sure:
        start = words[first].start()
        said = without_genitive(style.text[start : words[end].end()])
        yield Span(start, start + len(said), Name("person", said))


def _is_full_name(style: Style, names: Names, first: re.Match[str], last: re.Match[str]) -> bool:
    """Tell if a given name and what follows it are a person's, and no common words or places."""
    is_family = without_genitive(last[0]) in names.family
    if first[0] in SAINTS:
        return False
    if not _is_given(first[0], style, names):
        is_rare = _is_rare(first[0], names) and first[0] not in names.taken
        return is_family and is_rare and style.tells(first.start())
    if first[0] in names.taken:
        return is_family and last[0].lower() not in names.words and not style.is_upper_case
    if is_family or first[0].lower() in names.words:
        return is_family and not style.is_upper_case
    return _is_rare(without_genitive(last[0]), names)


def _extend(text: str, words: Sequence[re.Match[str]], place: int, most: int) -> int:
    """Return the last of the words that belong to the same name as this one."""
    end = place
    while end + 1 < len(words) and end - place < most:
        between = text[words[end].end() : words[end + 1].start()]
        if words[end][0] != without_genitive(words[end][0]):
            break
        if between.startswith(". ") and (len(words[end][0]) == 1 or words[end][0] in TITLES):
            between = between[1:]
        if between != " " and not AFTER.match(between):
            break
        end += 1
    return end


def _may_name(word: str, names: Names) -> bool:
    """Tell if a word can be a part of a person's name."""
    if word in names.given or word in names.family or len(word) == 1:
        return True
    return without_genitive(word).lower() not in names.words and not word.isupper()


def _is_rare(word: str, names: Names) -> bool:
    """Tell if a word is neither a common one nor a place's name."""
    return word.lower() not in names.words and word not in names.places


def _organisation(style: Style, names: Names, words: Sequence[re.Match[str]], place: int) -> Iterator[Span]:
    word, text = words[place], style.text
    is_blind = style.language == "de" and word[0] not in LEGAL
    if style.is_upper_case or (style.is_title_case and word[0] not in LEGAL):
        return
    start = end = place
    after = words[place + 1] if place + 1 < len(words) else None
    if word[0] in FIRST and after and not is_blind and OF.match(text[word.end() : after.start()]):
        end = _end_of_organisation(text, words, place + 1, 4)
        start -= bool(
            start
            and words[start - 1][0] not in ARTICLES
            and text[words[start - 1].end() : word.start()] == " "
            and _is_joined(text, words[start - 1], word)
        )
    elif word[0] in DIRECT and after and text[word.end() : after.start()] == " ":
        if style.language not in {"de", "nl"}:
            end = _end_of_organisation(text, words, place + 1, 3)
        elif after[0] in names.places:
            end = place + 1
    if word[0] in LAST and end == place and not is_blind:
        while start and place - start < 5 and _is_joined(text, words[start - 1], words[start]):
            start -= 1
        while start < place and style.begins_sentence(words[start].start()) and _is_filler(words[start][0], names):
            start += 1
    if start == end or words[start][0] in TITLES:
        return
    first = words[start].start()
    said = without_genitive(text[first : words[end].end()])
    yield Span(first, first + len(said), Name("organisation", said))


def _end_of_organisation(text: str, words: Sequence[re.Match[str]], place: int, most: int) -> int:
    """Return the last of the words that belong to an organisation's name, this one being sure."""
    end = place
    while end + 1 < len(words) and end - place < most:
        between = text[words[end].end() : words[end + 1].start()]
        if between != " " and not (OF.match(between) and len(between) < 8):
            break
        end += 1
    return end


def _is_filler(word: str, names: Names) -> bool:
    """Tell if a word begins a sentence, and no name."""
    return word in ARTICLES or word.lower() in names.words


def _is_joined(text: str, word: re.Match[str], after: re.Match[str]) -> bool:
    """Tell if two capitalised words may belong to one organisation's name."""
    return bool(JOINED.match(text[word.end() : after.start()])) and word[0] == without_genitive(word[0])
