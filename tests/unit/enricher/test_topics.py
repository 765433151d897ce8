"""Topics: what words, categories and addresses tell, and what is done about a model that is none."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from services.enricher.text import Text
from services.enricher.topics import DEFAULT_MODEL, load_topics
from services.enricher.topics import taxonomy as t
from services.enricher.topics.classifier import TITLE, Classifier
from services.enricher.topics.model import BadModel, Model
from services.enricher.topics.sections import topics_named
from shared.errors import ConfigurationError


@pytest.mark.parametrize(
    ("category", "topic"),
    [
        ("Sport", t.SPORT),
        ("Sport/Fußball", t.SPORT),
        ("News > Politics", t.POLITICS),
        ("Wirtschaft", t.ECONOMY),
        ("ECONOMÍA", t.ECONOMY),
        ("Технологии", t.SCIENCE),
        ("スポーツ", t.SPORT),
        ("经济", t.ECONOMY),
        ("الرياضة", t.SPORT),
        ("Arts & Culture", t.ARTS),
        ("medtop:15000000", t.SPORT),
        ("20000002", None),
        ("medtop:04000000", t.ECONOMY),
        ("World", None),
        ("", None),
        ("x" * 10_000, None),
    ],
)
def test_a_category_names_its_topic(category: str, topic: str | None) -> None:
    assert topics_named((category,)) == ([topic] if topic else [])


def test_a_section_is_enough_where_the_language_is_not_known() -> None:
    topics = load_topics()
    (label,) = topics([Text("Ойын нәтижесі", "", categories=("Спорт",))], ["kk"])
    assert label is not None
    assert label.name == t.SPORT


def test_the_address_names_a_section() -> None:
    topics = load_topics()
    (label,) = topics([Text("Tulos", "", sections=("urheilu",))], ["fi"])
    assert label is not None
    assert label.name == t.SPORT


def test_words_tell_the_topic_in_several_languages() -> None:
    topics = load_topics()
    texts = {
        "en": "The striker scored twice as the champions won the league match 3-0 in front of their fans",
        "de": "Bundesliga: Der Trainer lobt die Mannschaft nach dem Sieg gegen den Meister, zwei Tore im Finale",
        "es": "El equipo gana el partido de fútbol con dos goles del delantero en la final del campeonato",
    }
    labels = topics([Text(text, "") for text in texts.values()], list(texts))
    assert [label and label.name for label in labels] == [t.SPORT] * len(texts)


@pytest.mark.parametrize("text", ["", "!!!", "???", "12345", "Hm"])
def test_a_text_that_says_nothing_has_no_topic(text: str) -> None:
    assert load_topics()([Text(text, "")], ["en"]) == [None]


def test_a_language_that_the_model_does_not_know_has_no_topic_by_words() -> None:
    assert load_topics()([Text("football match goal striker", "")], ["fi"]) == [None]


def test_a_file_that_is_no_model_is_said_to_be_none(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    path.write_text("text,label\n")
    with pytest.raises(ConfigurationError, match="is no model of topics"):
        load_topics(path)
    with pytest.raises(ConfigurationError, match="No such file"):
        load_topics(tmp_path / "none.npz")


def test_a_damaged_model_is_not_used(tmp_path: Path) -> None:
    with np.load(DEFAULT_MODEL) as file:
        arrays = dict(file)
    arrays["weights"][5, 0] += 1
    path = tmp_path / "model.npz"
    np.savez(path, **arrays)
    with pytest.raises(BadModel, match="checksum"):
        Model.load(path)


def test_a_file_that_unfolds_without_end_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("weights.npy", bytes(200_000_000))
    with pytest.raises(BadModel, match="unfolds to more than"):
        Model.load(path)


@pytest.mark.parametrize("count", [10**12, -1])
def test_a_table_that_claims_more_than_it_has_is_refused(tmp_path: Path, count: int) -> None:
    head = f"{{'descr': '|i1', 'fortran_order': False, 'shape': ({count}, 17), }}".encode()
    path = tmp_path / "model.npz"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("about.npy", b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head)
    with pytest.raises(BadModel):
        Model.load(path)


def test_the_same_model_is_the_same_bytes(tmp_path: Path) -> None:
    Model.load(DEFAULT_MODEL).save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == DEFAULT_MODEL.read_bytes()


def test_the_shipped_model_is_small() -> None:
    assert DEFAULT_MODEL.stat().st_size <= 5_000_000


def test_a_title_is_not_lost_among_the_words_of_the_body() -> None:
    title, body = "Storm warning: heavy rain and snow expected", "People said so on Tuesday. They will meet again."
    model = Model.load(DEFAULT_MODEL)
    plain, weighed = (Classifier(replace(model, threshold=0.0), weight) for weight in (0.0, TITLE))
    before, after = (each.topic(Text(title, body), "en") for each in (plain, weighed))
    assert before
    assert after
    assert after.name == before.name == "weather"
    assert after.confidence > before.confidence
