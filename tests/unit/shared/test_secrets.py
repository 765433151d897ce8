"""Credentials are masked wherever they stand; all other text stays as it is."""

from __future__ import annotations

import re
import time
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.observability.secrets import is_secret_name, mask_credentials, mask_within

NAMES = re.split(
    r"\s+",
    """token feed_token feedToken FEEDTOKEN private_token access_token id_token oauth_token authtoken client_secret
    secret api-key api_key apikey apiKey X-Api-Key key rss.key passkey password passwd passphrase pwd pass pw
    user[password] X-Amz-Signature X-Amz-Credential X-Amz-Security-Token X-Goog-Signature
    AWSAccessKeyId Key-Pair-Id sig signature
    auth authkey hmac jwt session sessionid session_id PHPSESSID sid sslpassword cookie""",
)

ORDINARY = (
    "id",
    "page",
    "author",
    "keyword",
    "keywords",
    "monkey",
    "q",
    "feed",
    "user",
    "format",
    "side",
    "design",
    "passage",
)

# What can stand in front of the @ of a URL and still be a URL to a library; the S keeps it apart from the rest.
SECRETS = st.text(
    st.characters(
        min_codepoint=0x21, max_codepoint=0x2FFF, exclude_characters="/?#@&;%\\", exclude_categories=["Z", "C"]
    ),
    min_size=3,
    max_size=12,
).map(lambda text: f"S{text}S")


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_a_secrets_by_its_words(name: str) -> None:
    assert is_secret_name(name)
    for url in (
        f"http://h.example/?{name}=hunter2&x=1",
        f"http://h.example/x#a=1&{name}=hunter2",
        f"a=1;{name}=hunter2",
    ):
        shown = mask_credentials(url)
        assert "hunter2" not in shown
        assert shown.startswith(url.partition(name)[0])
    assert mask_credentials(f"/?a=1&amp;{name}=hunter2&amp;b=2").endswith("=***&amp;b=2")


@pytest.mark.parametrize("name", ORDINARY)
def test_other_names_are_not(name: str) -> None:
    assert not is_secret_name(name)


@given(secret=SECRETS, name=st.sampled_from(NAMES))
def test_a_secret_never_shows(secret: str, name: str) -> None:
    nested = quote(f"https://u:{secret}@h.example/?{name}={secret}", safe="")
    for text in (
        f"http://{secret}@h.example/x",
        f"http://user:{secret}@h.example/x",
        f"http://u:p{secret}:{secret}@h.example?x",
        f"amqp://u:{secret}/{secret}@h.example/vhost",
        f"could not fetch 'http://u:{secret}@h.example/': refused",
        f"http://h.example/?{name}={secret}",
        f"http://h.example/?a={secret[:1]}&{name}={secret}#f",
        f"http://h.example/#{name}={secret}&x=1",
        f"http://h.example/?x=1;{name}={secret};y=2",
        f"http://h.example/?%{ord(name[0]):02x}{name[1:]}={secret}",
        f"host=h {name}={secret} user=u",
        f"http://h.example/?url=http://u:{secret}@h2.example/",
        f"http://h.example/?url={nested}&x=1",
        f"http://h.example/?url={quote(nested, safe='')}&x=1",
        f"//u:{secret}@h.example/x",
    ):
        shown = mask_credentials(text)
        assert secret not in shown, text
        assert quote(secret, safe="") not in shown, text
        assert "***" in shown


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("""http://u"s:p'w@h/x""", "http://***@h/x"),
        ("http://me:pa/ss?w#rd@h/x", "http://***@h/x"),
        ("x at http://a.example:80/@me and //b.example/@you", None),
        ("http://[::1]:8080/x@y, file:///a@b", None),
        ("password: expected a text; the key is missing, a token = 3 words", None),
        ("headers.Authorization: this header is not a feed's to set", None),
        ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
        ("host=h password='my secret' user=u", "host=h password=*** user=u"),
        (
            'Failing row: {"user": "me", "password": "hun\\"ter2", "n": 1}',
            'Failing row: {"user": "me", "password": "***", "n": 1}',
        ),
        ("{'api_key': 'hunter2'", "{'api_key': \"***\""),
        (
            "http://h/?url=https%3A%2F%2Fh2%2F%3Ftoken%3Dabc%26x%3D1",
            "http://h/?url=https%3A%2F%2Fh2%2F%3Ftoken%3D***%26x%3D1",
        ),
    ],
)
def test_secrets_are_masked_and_other_text_is_not(text: str, masked: str | None) -> None:
    assert mask_credentials(text) == (masked or text)


def test_members_are_masked_by_their_names_and_texts_by_what_is_in_them() -> None:
    value = {
        "password": "hunter2",
        "urls": ["http://u:hunter2@h/"],
        "n": 3,
        "none": None,
        "error": ValueError("key=hunter2"),
    }
    assert mask_within(value) == {
        "password": "***",
        "urls": ["http://***@h/"],
        "n": 3,
        "none": None,
        "error": "key=***",
    }


@pytest.mark.parametrize(
    "unit",
    ["a", "//", "amqp://", "http://a:b", "%2f%2f", "token=", '"a":', '"a":"', "a.", " a", "&a=", "token='", ";a", "\\"],
)
def test_masking_takes_time_linear_to_the_text(unit: str) -> None:
    text = unit * (300_000 // len(unit)) + " @ = : % //"
    start = time.thread_time()
    mask_credentials(text)
    assert time.thread_time() - start < 5
