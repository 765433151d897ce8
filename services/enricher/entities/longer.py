"""Names that only stand inside a longer one: `日本` in `日本航空`, `France` in `Air-France`."""

from __future__ import annotations

import re

from services.enricher.entities.names import Names, Span, script_of
from services.enricher.entities.style import Style, without_genitive
from services.enricher.entities.vocabulary import LEGAL, TITLES, words_of

KATAKANA = re.compile("[ァ-ヺー-ヿ]")
INSTITUTION = re.compile(
    r"[^\W的の各所名家某]{0,2}大[学學]|銀行|银行|新聞|日报|日報|时报|時報|晚报|航空|证券|證券|電力|中学|高校|항공|은행|대학|일보|신문|전자|증권|방송"
)
"""What makes an organisation of the place before it."""
TRANSCRIBED = re.compile("(?!奥运|奥委|奥林|诺贝|莎士)[奥娜莎莉斯尔诺洛蒂妮]")
"""Letters that go on with a foreign name in Chinese."""
PERSON = re.compile(
    "[^\\W\\d_代人男女県市都府区町村元新前現の]{0,2}(?:監督|氏(?!名)|さん|選手(?!権|村)|首相|容疑者|被告)"
)
"""What makes a person of a family name in Japanese: a title, with a given name or without."""
BEFORE = re.compile(r"([^\W\d_][\w'’]*)[ \u00a0]$")
HYPHEN = re.compile(r"([^\W\d_]\w*)[-‐‑](?:(?:de|du|la|le|en|sur|am|an)[-‐‑])*$")
EVENT = re.compile(r"\b(?:Tour|Stade|Collège|Giro|Comédie|Banque|Banco|Banca|Bank) (?:de|d['’]|of|di)\s?$")
OF = ("de", "d'", "d’", "of", "di")
AFTER = re.compile(r"[ \u00a0]([^\W\d_]\w*)")
ASIDE = words_of(
    "North South East West Northern Southern Eastern Western Central Greater Upper Lower Downtown Northeast Northwest"
    " Southeast Southwest Inner Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April"
    " May June July August September October November December"
)
"""What may stand before a place, and is no part of a name."""
LONGEST = 40
SPACES, HYPHENS = (" ", "\u00a0", "\n"), ("-", "‐", "‑", "\n")


def is_inside(span: Span, style: Style, names: Names) -> bool:
    """Tell if a longer name goes on where the span begins or ends."""
    text, form = style.text, style.text[span.start : span.end]
    script = "LATIN" if form.isascii() else script_of(form)
    if script == "LATIN":
        return _is_joined(span, style, names)
    if script == "KATAKANA":
        beside = text[max(span.start - 1, 0) : span.start], text[span.end : span.end + 1]
        return any(KATAKANA.match(character) for character in beside)
    if span.name.kind != "place":
        return False
    if INSTITUTION.match(text, span.end):
        return True
    if script != "CJK" or form.endswith(("国", "國", "本")):
        return False
    follower = PERSON if style.language == "ja" else TRANSCRIBED
    return bool(len(form) == 2 and follower.match(text, span.end))


def _is_joined(span: Span, style: Style, names: Names) -> bool:
    """Tell if a place ends a longer name of capitalised words, or a common word is part of one."""
    before = style.text[max(span.start - LONGEST, 0) : span.start]
    if span.name.kind == "place":
        hyphen = HYPHEN.search(before) if before[-1:] in HYPHENS else None
        if hyphen and hyphen[1][0].isupper() and hyphen[1] not in names.places and not hyphen[1].isupper():
            return True
        if before.rstrip().endswith(OF) and EVENT.search(before):
            return True
    is_common = bool(span.name.common) and span.name.kind != "technology"
    if not is_common and span.name.kind != "place":
        return False
    if style.language == "de" or style.is_title_case or style.is_upper_case:
        return False
    word = BEFORE.search(before) if before[-1:] in SPACES else None
    if word and _is_part(word[1], names) and not style.begins_sentence(span.start - len(word[0])):
        return True
    after = AFTER.match(style.text, span.end, span.end + LONGEST) if is_common and span.name.kind != "place" else None
    return bool(after and _is_part(after[1], names) and after[1] not in LEGAL)


def _is_part(word: str, names: Names) -> bool:
    """Tell if a word beside a form may belong to the same name."""
    is_name = word[0].isupper() and not word.isupper() and word == without_genitive(word)
    return is_name and word not in ASIDE and word not in TITLES and word not in names.places
