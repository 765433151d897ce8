"""Labels in words."""

from __future__ import annotations

from typing import Any

from services.cli.label_words import entities_in_words, in_words_of_people


def words(**labels: Any) -> dict[str, Any]:
    return in_words_of_people({"title": "One", **labels})


def test_labels_are_told_with_their_confidence() -> None:
    found = words(
        detected_language="en",
        language_confidence=0.994,
        topic="politics",
        topic_confidence=0.5,
        entities=[
            {"name": "Ada", "kind": "person", "id": "Q7259", "mentions": []},
            {"name": "Paris", "kind": "place", "id": None, "mentions": []},
            {"name": "Bob", "kind": "person", "id": None, "mentions": []},
        ],
        duplicate_of="abc",
        duplicate_kind="text",
        duplicate_score=0.93,
    )
    assert found == {
        "title": "One",
        "detected_language": "en (99 %)",
        "topic": "politics (50 %)",
        "entities": "people: Ada (Q7259), Bob; places: Paris",
        "duplicate_of": "abc",
        "duplicate_kind": "text, 93 % is the same",
    }


def test_what_is_not_known_is_not_told() -> None:
    assert words() == {"title": "One"}
    assert words(detected_language="und", language_confidence=None)["detected_language"] == "the text does not tell"
    assert words(duplicate_kind="address", duplicate_score=None)["duplicate_kind"] == "address"
    assert entities_in_words(()) is None


def test_a_kind_of_a_later_version_is_named_as_it_is() -> None:
    assert entities_in_words([{"name": "X", "kind": "event"}]) == "event: X"
