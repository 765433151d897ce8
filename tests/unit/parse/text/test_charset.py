from __future__ import annotations

import pytest

from tests.unit.parse.feeds import read, rss


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "iso-8859-1", "windows-1252", "utf-16", "utf-16-le"])
def test_the_declared_encoding_is_read(encoding: str) -> None:
    text = rss("<item><title>Café</title></item>").replace('"1.0"', f'"1.0" encoding="{encoding}"')
    parsed = read(text.encode(encoding))
    assert (parsed.entries[0].title, parsed.warnings) == ("Café", ())


def test_the_http_charset_goes_before_the_declaration() -> None:
    text = rss("<item><title>Привет</title></item>").replace('"1.0"', '"1.0" encoding="iso-8859-1"')
    parsed = read(text.encode("windows-1251"), "text/xml; charset=windows-1251")
    assert parsed.entries[0].title == "Привет"


def test_windows_1252_is_read_right_under_any_western_label() -> None:
    for label in ("iso-8859-1", "us-ascii", "utf-8", "no-such-charset"):
        text = rss("<item><title>“Café” – 5 €</title></item>").replace('"1.0"', f'"1.0" encoding="{label}"')
        assert read(text.encode("windows-1252")).entries[0].title == "“Café” – 5 €"


def test_utf_8_is_read_right_under_a_wrong_label_with_a_warning() -> None:
    parsed = read(rss("<item><title>“Café”</title></item>").encode(), "application/xml; charset=ISO-8859-1")
    assert parsed.entries[0].title == "“Café”"
    assert parsed.warnings == ("the body is labelled ISO-8859-1 and read as utf-8",)


def test_a_stray_byte_does_not_spoil_a_utf_8_feed() -> None:
    body = rss("<item><title>Größe größer am größten</title></item>").encode() + b"<!-- \x93 -->"
    assert read(body).entries[0].title == "Größe größer am größten"


def test_a_utf_16_label_on_single_bytes_is_not_believed() -> None:
    text = rss("<item><title>Café</title></item>").replace('"1.0"', '"1.0" encoding="utf-16"')
    assert read(text.encode()).entries[0].title == "Café"


# Texts in their own encodings

FRENCH = "L’été à la plage : garçons, œuvres et cafés à 5 €"
POLISH = "Zażółć gęślą jaźń, powiedział premier w środę"
CZECH = "Příliš žluťoučký kůň úpěl ďábelské ódy"
TURKISH = "Türkiye’de şiddetli yağış bekleniyor, ığdır"
RUSSIAN = "Президент подписал закон о новых правилах, которые вступят в силу в понедельник"
UKRAINIAN = "Уряд ухвалив рішення про підтримку місцевих громад і шкіл"
GREEK = "Η κυβέρνηση ανακοίνωσε τα νέα μέτρα για την οικονομία"
HEBREW = "הממשלה הודיעה על תוכנית חדשה לשיפור החינוך בארץ"
ARABIC = "أعلنت الحكومة عن خطة جديدة لتحسين التعليم في البلاد"
THAI = "รัฐบาลประกาศแผนใหม่เพื่อปรับปรุงการศึกษาในประเทศ"
JAPANESE = "政府は新しい計画を発表し、教育の改善に取り組むことになりました"
SIMPLIFIED = "政府宣布了一项新的计划，以改善全国的教育，我们在这里可以看到他们的工作"
TRADITIONAL = "政府宣布了一項新的計劃，以改善全國的教育，我們在這裡可以看到他們的工作"
KOREAN = "정부는 교육을 개선하기 위한 새로운 계획을 발표했다고 밝혔습니다"
VIETNAMESE = "Chính phủ công bố kế hoạch mới"

DECLARED = [
    (FRENCH, "utf-8"),
    (FRENCH, "utf-8-sig"),
    (FRENCH, "windows-1252"),
    (FRENCH.replace("’", "'"), "iso-8859-15"),
    (FRENCH, "macintosh"),
    (POLISH, "iso-8859-2"),
    (POLISH, "windows-1250"),
    (CZECH, "iso-8859-2"),
    (TURKISH, "windows-1254"),
    (RUSSIAN, "windows-1251"),
    (RUSSIAN, "koi8-r"),
    (RUSSIAN, "iso-8859-5"),
    (RUSSIAN, "cp866"),
    (UKRAINIAN, "koi8-u"),
    (GREEK, "iso-8859-7"),
    (GREEK, "windows-1253"),
    (HEBREW, "windows-1255"),
    (HEBREW, "iso-8859-8"),
    (ARABIC, "windows-1256"),
    (THAI, "tis-620"),
    (VIETNAMESE, "utf-8"),
    (JAPANESE, "shift_jis"),
    (JAPANESE, "euc-jp"),
    (JAPANESE, "iso-2022-jp"),
    (SIMPLIFIED, "gb2312"),
    (SIMPLIFIED, "gbk"),
    (SIMPLIFIED, "gb18030"),
    (TRADITIONAL, "big5"),
    (KOREAN, "euc-kr"),
    (RUSSIAN, "utf-16"),
    (RUSSIAN, "utf-16-le"),
    (JAPANESE, "utf-16-be"),
    (FRENCH, "utf-32"),
    (FRENCH, "utf-32-le"),
    (FRENCH.replace("’", "'").replace("€", "F").replace("œ", "oe"), "cp500"),
    (FRENCH.replace("’", "'").replace("€", "F").replace("œ", "oe"), "cp037"),
]


def feed(text: str, label: str | None) -> str:
    declared = f' encoding="{label}"' if label else ""
    body = rss(f"<item><title>{text}</title><description>{text}. {text}</description></item>")
    return body.replace('"1.0"', f'"1.0"{declared}', 1)


@pytest.mark.parametrize(("text", "encoding"), DECLARED)
def test_a_declared_encoding_is_read_without_a_warning(text: str, encoding: str) -> None:
    parsed = read(feed(text, encoding).encode(encoding))
    assert (parsed.entries[0].title, parsed.warnings) == (text, ())


@pytest.mark.parametrize(("text", "encoding"), [pair for pair in DECLARED if pair[1] not in {"cp500", "iso-2022-jp"}])
def test_the_http_header_alone_is_enough(text: str, encoding: str) -> None:
    assert read(feed(text, None).encode(encoding), f'text/xml; charset="{encoding}"').entries[0].title == text


GUESSED = [
    (FRENCH, "windows-1252"),
    (RUSSIAN, "windows-1251"),
    (RUSSIAN, "koi8-r"),
    (RUSSIAN, "iso-8859-5"),
    (RUSSIAN, "cp866"),
    (UKRAINIAN, "windows-1251"),
    (UKRAINIAN, "koi8-u"),
    (GREEK, "windows-1253"),
    (HEBREW, "windows-1255"),
    (ARABIC, "windows-1256"),
    (THAI, "cp874"),
    (JAPANESE, "shift_jis"),
    (JAPANESE, "euc-jp"),
    (SIMPLIFIED, "gb2312"),
    (SIMPLIFIED, "gb18030"),
    (TRADITIONAL, "big5"),
    (KOREAN, "euc-kr"),
    (RUSSIAN, "utf-16-le"),
    (JAPANESE, "utf-16-be"),
    (GREEK, "utf-32-be"),
]


@pytest.mark.parametrize("label", [None, "utf-8", "iso-8859-1", "us-ascii", "no-such-charset"])
@pytest.mark.parametrize(("text", "encoding"), GUESSED)
def test_without_a_true_label_the_letters_tell(text: str, encoding: str, label: str | None) -> None:
    assert read(feed(text, label).encode(encoding)).entries[0].title == text


def test_a_wrong_label_is_told() -> None:
    parsed = read(feed(RUSSIAN, "utf-8").encode("koi8-r"))
    assert parsed.warnings == ("the body is labelled utf-8 and read as koi8-u",)


def test_a_byte_order_mark_goes_before_header_and_declaration() -> None:
    for encoding in ("utf-8-sig", "utf-16", "utf-32"):
        body = feed(RUSSIAN, "windows-1251").encode(encoding)
        assert read(body, "text/xml; charset=koi8-r").entries[0].title == RUSSIAN


def test_the_header_goes_before_the_declaration_unless_it_cannot_be() -> None:
    assert (
        read(feed(RUSSIAN, "koi8-r").encode("windows-1251"), "text/xml; charset=windows-1251").entries[0].title
        == RUSSIAN
    )
    assert read(feed(JAPANESE, "euc-jp").encode("euc-jp"), "text/xml; charset=shift_jis").entries[0].title == JAPANESE
    assert read(feed(RUSSIAN, "utf-8").encode(), "text/xml; charset=windows-1251").entries[0].title == RUSSIAN


def test_byte_order_marks_in_the_middle_are_dropped() -> None:
    body = "\ufeff<?xml version='1.0'?>\n\ufeff" + rss("<item><title>\ufeffa\ufeffb</title></item>")[21:]
    parsed = read(body)
    assert (parsed.tier, parsed.entries[0].title) == ("strict", "ab")


def test_utf_7_is_never_read() -> None:
    body = "<rss><channel><item><title>+ADw-script+AD4-</title></item></channel></rss>"
    assert read(body, "text/xml; charset=utf-7").entries[0].title == "+ADw-script+AD4-"


def test_utf_8_taken_for_latin_1_is_put_right_where_it_is_certain() -> None:
    twice = FRENCH.encode().decode("latin-1")
    assert read(feed(twice, "utf-8")).entries[0].title == FRENCH
    for certain in ("SÃO PAULO", "Ã la carte", "naïve Â"):
        assert read(feed(certain, "utf-8")).entries[0].title == certain


def test_a_western_text_is_never_taken_for_another() -> None:
    for text in (FRENCH, "Größe", "Ñandú", "À É Î Õ Ü", "5 € – “ça va?”", "å ä ö"):
        assert read(feed(text, "iso-8859-1").encode("windows-1252")).entries[0].title == text


# UTF-8 under whatever label

LABELS = """
    iso-8859-1 iso-8859-2 iso-8859-5 iso-8859-15 windows-1250 windows-1251 windows-1252 windows-1256 tis-620 koi8-r
    macintosh cp866 gb2312 gbk gb18030 hz-gb-2312 big5 shift_jis euc-jp iso-2022-jp euc-kr us-ascii utf-16
    no-such-charset
    """.split()  # noqa: SIM905


@pytest.mark.parametrize("label", LABELS)
def test_valid_utf_8_beyond_ascii_is_utf_8_whatever_its_label(label: str) -> None:
    for text in (*dict(DECLARED), "“q”", "Café", "naïve"):
        assert read(feed(text, label).encode()).entries[0].title == text
        assert read(feed(text, None).encode(), f"text/xml; charset={label}").entries[0].title == text


@pytest.mark.parametrize("encoding", ["gb18030", "big5", "shift_jis", "euc-jp", "euc-kr"])
def test_a_short_text_that_could_be_utf_8_too_is_in_the_encoding_of_its_label(encoding: str) -> None:
    """All pieces of up to eight characters, of which some are valid UTF-8 by accident (`一` is `һ`)."""
    text = {"gb18030": SIMPLIFIED, "big5": TRADITIONAL, "euc-kr": KOREAN}.get(encoding, JAPANESE)
    for length in (1, 2, 3, 4, 8):
        for start in range(len(text) - length):
            piece = text[start : start + length].strip() or text
            body = rss(f"<item><title>{piece}</title></item>").replace('"1.0"', f'"1.0" encoding="{encoding}"', 1)
            assert read(body.encode(encoding)).entries[0].title == piece


@pytest.mark.parametrize("label", [None, "utf-8", "iso-8859-1", "gb2312"])
def test_a_replacement_character_of_the_feeds_own_is_valid_utf_8(label: str | None) -> None:
    for text in ("a \ufffd b", "Caf\ufffd \ufffd\ufffd", "“q” \ufffd"):
        assert read(feed(text, label).encode()).entries[0].title == text
    assert read(feed("“Café” \ufffd", label).encode("utf-8-sig")).entries[0].title == "“Café” \ufffd"


@pytest.mark.parametrize("label", ["iso-8859-1", "windows-1251", "gb18030", "shift_jis"])
def test_a_stray_byte_does_not_make_utf_8_what_its_label_says(label: str) -> None:
    body = feed(SIMPLIFIED + RUSSIAN, label).encode() + b"<!-- \x93 -->"
    assert read(body).entries[0].title == SIMPLIFIED + RUSSIAN


def test_iso_2022_jp_is_told_by_its_escapes_where_the_label_lies() -> None:
    for label in (None, "utf-8", "shift_jis", "iso-2022-jp"):
        assert read(feed(JAPANESE, label).encode("iso-2022-jp")).entries[0].title == JAPANESE


@pytest.mark.parametrize(
    ("label", "text", "encoding"),
    [
        ("x-sjis", JAPANESE, "shift_jis"),
        ("windows-31j", JAPANESE, "cp932"),
        ("x-euc-jp", JAPANESE, "euc-jp"),
        ("x-gbk", SIMPLIFIED, "gbk"),
        ("x-x-big5", TRADITIONAL, "big5"),
        ("windows-949", KOREAN, "cp949"),
        ("windows-874", THAI, "cp874"),
        ("x-cp1250", POLISH, "cp1250"),
        ("win-1250", POLISH, "cp1250"),
        ("cp-1250", POLISH, "cp1250"),
        ("iso-8859-8-i", HEBREW, "iso-8859-8"),
    ],
)
def test_a_label_may_be_spelt_as_browsers_know_it(label: str, text: str, encoding: str) -> None:
    parsed = read(feed(text, label).encode(encoding))
    assert (parsed.entries[0].title, parsed.warnings) == (text, ())
