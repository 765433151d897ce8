"""The reader's version follows its sources."""

from __future__ import annotations

from pathlib import Path

from services.fetcher.parse.known.version import hash_sources, reader_version


def test_the_version_changes_with_a_file_and_with_what_is_installed(tmp_path: Path) -> None:
    folder = tmp_path / "reader"
    (folder / "inner").mkdir(parents=True)
    (folder / "a.py").write_text("a = 1")
    (folder / "inner" / "b.py").write_text("b = 1")
    versions = [hash_sources([folder], ("6.0",))]
    for change in (
        lambda: (folder / "inner" / "b.py").write_text("b = 2"),
        lambda: (folder / "a.py").rename(folder / "c.py"),
        lambda: (folder / "d.py").write_text(""),
    ):
        change()
        versions.append(hash_sources([folder], ("6.0",)))
    versions.append(hash_sources([folder], ("6.1",)))
    assert len(set(versions)) == 5
    (folder / "a.pyc").write_text("compiled")
    assert hash_sources([folder], ("6.1",)) == versions[-1]


def test_the_version_is_the_same_each_time() -> None:
    assert reader_version() == reader_version()
    assert len(reader_version()) == 16
