"""What JSON of a request may be, and where the API may be open."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.admin.errors import Invalid
from services.api.access.bodies import MOST_DEPTH, check_json
from services.api.settings import ApiSettings
from shared.errors import ConfigurationError

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5),
    max_leaves=20,
)


@given(VALUES, st.booleans())
def test_json_that_postgresql_can_hold_passes(value: object, ascii_only: bool) -> None:
    check_json(json.dumps(value, ensure_ascii=ascii_only).encode())


@given(VALUES, st.sampled_from(["\0", "\ud800", "\udfff"]))
def test_what_no_text_may_hold_is_found_anywhere(value: object, odd: str) -> None:
    with pytest.raises(Invalid):
        check_json(json.dumps([value, {"a": [f"x{odd}y"]}]).encode())


@given(st.binary(max_size=200))
def test_bytes_pass_or_are_refused(body: bytes) -> None:
    with contextlib.suppress(Invalid):
        check_json(body)


def test_brackets_in_texts_are_no_levels() -> None:
    check_json(json.dumps(["[{" * MOST_DEPTH, '"[' * MOST_DEPTH, "\\"]).encode())
    with pytest.raises(Invalid, match="levels"):
        check_json(b"[" * (MOST_DEPTH + 1))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_an_api_on_loopback_may_be_open(host: str) -> None:
    ApiSettings(api_open=True, api_host=host).require_loopback_if_open()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "feeds.example", ""])
def test_an_api_that_others_reach_is_not_open(host: str) -> None:
    ApiSettings(api_host=host).require_loopback_if_open()
    with pytest.raises(ConfigurationError, match="FEEDMILL_API_OPEN"):
        ApiSettings(api_open=True, api_host=host).require_loopback_if_open()
