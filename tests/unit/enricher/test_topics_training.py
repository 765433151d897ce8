"""Users train models on a CSV of their own."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from services.cli.__main__ import app
from services.enricher.text import Text
from services.enricher.topics import load_topics
from services.enricher.topics.training.texts import BadTexts, read_texts, train

FRUIT, TOOLS = "apple pear plum cherry peach", "hammer saw drill chisel plane"


def a_file(path: Path, *more: str, labels: tuple[str, str] = ("fruit", "tools"), of_each: int = 30) -> Path:
    lines = ["text,label,language"]
    for place in range(of_each):
        for label, words in zip(labels, (FRUIT, TOOLS), strict=True):
            chosen = " ".join(words.split()[place % 3 : place % 3 + 3])
            lines.append(f"{chosen} number {place},{label},en")
    path.write_text("\n".join([*lines, *more]) + "\n", encoding="utf-8")
    return path


def test_a_model_of_ones_own_labels_replaces_the_topics(tmp_path: Path) -> None:
    file, model = a_file(tmp_path / "texts.csv"), tmp_path / "mine.model"
    result = CliRunner().invoke(app, ["enrich", "train", str(file), "--output", str(model)])
    assert result.exit_code == 0, result.output
    assert "accuracy 100.0 %" in result.output
    labels = load_topics(model)([Text("a pear and a plum", ""), Text("the saw", "and a chisel")], ["en", "en"])
    assert [label and label.name for label in labels] == ["fruit", "tools"]


def test_how_good_it_is_is_told_to_programs(tmp_path: Path) -> None:
    file, model = a_file(tmp_path / "texts.csv"), tmp_path / "mine.model"
    result = CliRunner().invoke(app, ["enrich", "train", str(file), "--output", str(model), "--json"])
    told = json.loads(result.stdout)
    assert (told["model"], told["texts"], told["held_out"], told["accuracy"]) == (str(model), 60, 12, 1.0)
    assert [label["label"] for label in told["labels"]] == ["fruit", "tools"]


def test_the_same_texts_give_the_same_bytes(tmp_path: Path) -> None:
    lines = read_texts(a_file(tmp_path / "texts.csv"))
    for name in ("one", "two"):
        train(lines, "a test").model.save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (",fruit,en", "line 62: the text is empty"),
        ("a pear,,en", "line 62: the label is empty"),
        ("a pear,fruit,english!", "line 62: 'english!' is no language"),
        ("a pear, a plum,fruit,en", "line 62: more columns"),
        ("a pear,fruit\x07,en", "line 62: a label has 100 printable characters"),
        ("a pear,vegetables,en", "'vegetables' has 1"),
        ('"a pear,fruit,en', "line 62: unexpected end of data"),
    ],
)
def test_a_line_that_cannot_be_used_is_named(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(BadTexts, match=said):
        read_texts(a_file(tmp_path / "texts.csv", line))


def test_long_texts_are_read_and_other_readers_keep_their_limit(tmp_path: Path) -> None:
    before = csv.field_size_limit()
    lines = read_texts(a_file(tmp_path / "texts.csv", f"{'pear ' * before},fruit,en"))
    assert len(lines[-1].text) > before
    assert csv.field_size_limit() == before


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "line 1: no column text or label"),
        (b"text;label\na;b\n", "line 1: no column text or label"),
        (b"text,label\n", "has 0 label"),
        (b"text,label\n\xff\xfe,x\n", "no text in UTF-8"),
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "texts.csv"
    path.write_bytes(content)
    with pytest.raises(BadTexts, match=said):
        read_texts(path)


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["enrich", "train", str(tmp_path / "none.csv")])
    assert result.exit_code == 1
    assert "No such file" in result.output
