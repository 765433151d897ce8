"""Labelled texts are read as others write them."""

from __future__ import annotations

from pathlib import Path

from benchmarks.enrichment import conll


def test_words_are_joined_and_their_labels_have_places(tmp_path: Path) -> None:
    path = tmp_path / "news.conll"
    path.write_text("0\tAngela\tB-PER\n1\tMerkel\tI-PER\n2\t,\tO\n3\tBerlin\tB-LOC\n\n#x\n0\tEU\tB-ORG\n")
    ((text, spans),) = conll.read(path, "de")
    assert text == "Angela Merkel, Berlin\nEU"
    assert {(text[start:end], kind) for start, end, kind in spans} == {
        ("Angela Merkel", "person"),
        ("Berlin", "place"),
        ("EU", "organisation"),
    }


def test_what_is_found_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "news.conll"
    path.write_text("Talks O\nin O\nSweden B-LOC\nwith O\nZorblatt B-PER\n")
    everything, person, *_, place = conll.evaluate([f"en={path}"])
    assert (everything.value, everything.of) == ("precision 100.0%, recall 50.0%, F1 66.7%", "2 mentions")
    assert (person.of, place.of) == ("1 mentions", "1 mentions")
