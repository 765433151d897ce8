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
