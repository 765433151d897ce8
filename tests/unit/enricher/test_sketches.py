"""What a sketch keeps of a text, whatever the text is."""

from __future__ import annotations

import pytest

from services.enricher.similarity import load_sketches
from services.enricher.similarity.sketching import HEAD, REST, SLOTS, sketch
from services.enricher.similarity.words import without_stamp, words_of
from services.enricher.text import Text
from shared.wire.enrichment import Enrichment, Sketch, filter_bits

PLAIN = "The council didn't close the harbour's old terminal; \"never\", it said, will 1,000 people re-enter it."


@pytest.mark.parametrize(
    "other",
    [
        PLAIN.upper(),
        PLAIN.replace("'", "’").replace('"', "“"),
        PLAIN.replace(" ", "\u00a0\n "),
        PLAIN.replace("-", " - ").replace(";", " –"),
        PLAIN.replace("1,000", "1000"),
        PLAIN.replace("council", "coun\u00adcil"),
        "".join(chr(ord(c) + 0xFEE0) if "a" <= c <= "z" else c for c in PLAIN),
    ],
)
def test_case_punctuation_quotes_and_width_change_no_words(other: str) -> None:
    assert words_of(other).texts == words_of(PLAIN).texts


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *((text, "12400") for text in ("12,400", "12.400", "12 400", "12\u202f400", "12'400", "12400")),
        *((text, "1234567.5") for text in ("1,234,567.5", "1.234.567,5", "1 234 567,5")),
        *((text, "1.6") for text in ("1.6", "1,6")),
    ],
)
def test_a_number_is_the_same_however_a_country_writes_it(text: str, number: str) -> None:
    words = words_of(f"some {text} tons")
    assert words.texts == ["some", number, "tons"]
    assert words.numbers == [1]


def test_numbers_beside_each_other_stay_two() -> None:
    assert words_of("in 2025 300 ships, 12 40 and 7 1234").texts[1:] == [
        *["2025", "300", "ships", "12", "40", "and", "7", "1234"]
    ]


def test_days_months_and_number_words_are_numbers_in_any_language() -> None:
    words = words_of("Am Montag kamen zwei, le lundi 3, on Monday two in May.")
    assert [words.texts[place] for place in words.numbers] == ["@0", "2", "@0", "3", "@0", "2", "@11"]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        *[("sono sei", "it"), ("son dos", "es"), ("ten boats", "en"), ("12 mai", "fr"), ("5 marca", "pl")],
        *[("sind sechs", None), ("in May", None), ("hari Senin", None)],
    ],
)
def test_a_word_is_a_number_in_its_own_language(text: str, language: str | None) -> None:
    assert words_of(text, language).numbers


@pytest.mark.parametrize(
    ("text", "language"),
    [
        *(("es sei", language) for language in ("de", None, "und")),
        *[("a compra dos navios", "pt"), ("due once more", "en"), ("ten czas", "pl"), ("onze krant", "nl")],
        *[("it may march", "en"), ("mon voisin", "fr"), ("senin pazar", "tr"), ("non mai", "it")],
    ],
)
def test_a_word_of_another_language_is_no_number(text: str, language: str | None) -> None:
    assert not words_of(text, language).numbers


def test_a_roads_number_is_one_number_and_signs_belong_to_their_letter() -> None:
    words = words_of("Stau auf der A2 und М4, सोमवार को เชียงใหม่")
    assert words.texts[3:6:2] == ["a2", "м4"]
    assert words.texts[6:] == ["@0", "को", "เชี", "ย", "ง", "ให", "ม่"]
    assert words.numbers == [3, 5, 6]


def test_a_clock_time_is_one_number_and_left_out_at_the_beginning() -> None:
    assert words_of("Rendez-vous à 10h32").texts == ["rendez", "vous", "à", "10h32"]
    assert without_stamp("Le 4 octobre 2026 à 10h32, Paris. Le taux 3.25").split() == [
        "Le",
        ",",
        "Paris.",
        *["Le", "taux", "3.25"],
    ]
    for kept in ("4 October 2026", "3.25 per cent", "a 29:27 win", "x " * 60 + "10:32"):
        assert without_stamp(kept) == kept


def test_names_are_the_capitalised_words_within_a_sentence() -> None:
    words = words_of("Yesterday Ana Marić met the mayor. Nobody in Split knew. I did")
    assert [words.texts[place] for place in words.names] == ["ana", "marić", "split"]


@pytest.mark.parametrize(
    "text", ["中国人民银行决定下调存款准备金率并公布了新的措施", "รัฐบาลประกาศมาตรการใหม่เพื่อช่วยเหลือประชาชน"]
)
def test_a_script_without_spaces_has_words(text: str) -> None:
    found = sketch("", text)
    assert found
    assert found.count >= len(text) * 0.4


def test_a_long_text_keeps_its_beginning_and_a_sample_of_the_rest() -> None:
    found = sketch(
        "t", " ".join(f"{chr(97 + n % 26)}{'xyz'[n % 3]}{'q' * (n // 26)} {n} Ab{'q' * n}" for n in range(300))
    )
    assert found
    assert (len(found.head), len(found.rest), len(found.numbers)) == (4 * HEAD, 4 * REST, 4 * SLOTS)
    assert found.count > HEAD + REST
    assert len(found.model_dump_json()) < 1500


@pytest.mark.parametrize(
    ("title", "body", "count"),
    [
        ("Taurus: 7 days", "Taurus has it good for 7 days", 2),
        ("Taurus", "x " * 60 + "taurus", 0),
        ("東京の天気", "東京は晴れ", 1),
    ],
)
def test_what_the_title_names_at_the_texts_beginning_is_known(title: str, body: str, count: int) -> None:
    found = sketch(title, body)
    assert found
    assert len(found.told) == 2 * count
    bits = int.from_bytes(found.words, "little")
    told = [int.from_bytes(found.told[n : n + 2], "little") for n in range(0, 2 * count, 2)]
    assert all(bits >> bit & 1 for digest in told for bit in filter_bits(digest))


@pytest.mark.parametrize(
    ("title", "is_telling"),
    [
        ("Council votes to close the old ferry terminal", True),
        ("Weather for Monday", False),
        ("What the city council will decide on Monday evening", False),
        ("Morning briefing", False),
    ],
)
def test_a_title_tells_a_story_if_it_is_long_and_of_no_date(title: str, is_telling: bool) -> None:
    found = sketch(title, "")
    assert found
    assert found.is_telling is is_telling


@pytest.mark.parametrize("text", ["", " \n", "!?…", "😀" * 50])
def test_a_text_without_words_has_no_sketch(text: str) -> None:
    assert sketch(text, text) is None


@pytest.mark.parametrize(
    "text",
    ["a", "a" * 1_000_000, "1" * 100_000, "1." * 50_000, "\ud800 \udfff x y z", "ก" * 4000, "ﷺ" * 4000, "İ" * 4000,
     "a\u0301" * 4000, "שלום 中国 Привет a1b2 " * 200, "<p>&nbsp;</p>" * 300],
)  # fmt: skip
def test_any_text_has_a_sketch_that_travels(text: str) -> None:
    found = sketch(text, text)
    assert found
    sent = Enrichment(sketch=found).model_dump_json()
    assert Enrichment.model_validate_json(sent).sketch == found


def test_each_text_of_a_result_has_its_own() -> None:
    body = f"{PLAIN} They will have to take the long way round."
    texts = [Text("One", body), Text("", ""), Text("Two", body)]
    one, none, two = load_sketches()(texts, [None] * 3)
    assert isinstance(one, Sketch)
    assert none is None
    assert two is not None
    assert (one.head, one.title == two.title) == (two.head, False)
