from __future__ import annotations

from services.fetcher.parse.identity import article_md5, content_hash


def test_the_md5_is_that_of_url_and_title_in_utf_8() -> None:
    assert article_md5("https://example.org/1", "Café") == "aae86cac024ecb3394c06cac98638c55"
    assert article_md5("", "") == "d41d8cd98f00b204e9800998ecf8427e"


def test_the_content_hash_ignores_unicode_form_and_white_space() -> None:
    assert content_hash("Cafe\u0301", "one  two\nthree ") == content_hash("Café", "one two three")


def test_the_content_hash_tells_case_and_the_place_of_the_title() -> None:
    assert content_hash("a", "b") != content_hash("A", "b")
    assert content_hash("a b", "") != content_hash("a", "b")
    assert len(content_hash("", "")) == 64


def test_lone_surrogates_do_no_harm() -> None:
    assert len(article_md5("\ud800", "\udfff")) == 32
    assert len(content_hash("\ud800", "\udfff")) == 64
