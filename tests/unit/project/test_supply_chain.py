"""The build and the release of Feedmill: inputs are pinned, and CI runs the commands of the Makefile."""

from __future__ import annotations

import re
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
LOCKS = sorted(path.name for path in ROOT.glob("requirements*.lock"))
RUN = ("requirements.lock", "requirements-enrich.lock", "requirements-entities.lock")
"""What the images run on (Dockerfile): each has all of the one before."""


def jobs(workflow: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"]
    return found


def steps(workflow: Path) -> list[dict[str, Any]]:
    return [step for job in jobs(workflow).values() for step in job["steps"]]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_run_our_own_commands(workflow: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    called = {name for step in steps(workflow) for name in re.findall(r"\bmake ([a-z-]+)", step.get("run", ""))}
    assert "test" in called
    assert called <= targets


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_take_actions_by_their_commit_and_no_more_rights_than_they_need(workflow: Path) -> None:
    said = yaml.safe_load(workflow.read_text(encoding="utf-8"))
    assert said["permissions"] == {"contents": "read"}
    actions = [step["uses"] for step in steps(workflow) if "uses" in step]
    assert actions
    for action in actions:
        assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", action)
    for name, job in jobs(workflow).items():
        assert "timeout-minutes" in job, name


def locked(name: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9._-]+)==(\S+)", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE))


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_file_has_hashes_and_no_addresses(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    packages = re.split(r"^(?=[a-z0-9._-]+==)", text, flags=re.MULTILINE)[1:]
    assert packages
    assert all("--hash=sha256:" in package for package in packages)
    assert not re.search(r"https?://|index-url|find-links", text)


@pytest.mark.parametrize(
    ("image", "name"),
    [*pairwise(RUN), (RUN[1], "requirements-local.lock"), (RUN[2], "requirements-dev.lock")],
)
def test_a_checkout_runs_what_the_images_run(image: str, name: str) -> None:
    run, here = locked(image), locked(name)
    assert {package: here.get(package) for package in run} == run


def test_the_base_image_has_nothing_of_the_enricher() -> None:
    assert not {"numpy", "py3langid", "spacy"} & locked("requirements.lock").keys()
    assert "spacy" not in locked("requirements-enrich.lock")


def test_the_image_installs_by_hash() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    installs = re.findall(r"pip .*?install(.*?)(?: \\\n &&|\n\n)", dockerfile, re.DOTALL)
    from_locks = [words for words in installs if "--requirement" in words]
    assert [re.findall(r"requirements\S*lock", words) for words in from_locks] == [
        ["requirements-build.lock"],
        ["requirements.lock"],
        ["requirements-enrich.lock"],
        ["requirements-entities.lock"],
    ]
    assert all("--require-hashes" in words and "--only-binary :all:" in words for words in from_locks)


def make(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", "--silent", *words], cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_release_needs_the_same_version_everywhere() -> None:
    done = make("release-notes", "VERSION=99.0.0")
    assert done.returncode
    assert "pyproject.toml's version is not '99.0.0'" in done.stderr


def test_notes_of_a_release_are_its_section_of_the_changelog(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text((ROOT / "Makefile").read_text(encoding="utf-8"))
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.0"\n')
    changelog = tmp_path / "CHANGELOG.md"
    command = ["make", "--silent", "-C", str(tmp_path), "release-notes", "VERSION=1.2.0"]
    changelog.write_text("# Changelog\n\n## Unreleased\n- more\n")
    missing = subprocess.run(command, capture_output=True, text=True, check=False)
    assert missing.returncode
    assert "no section '## 1.2.0'" in missing.stderr
    changelog.write_text("# Changelog\n\n## Unreleased\n- more\n\n## 1.2.0 - 2027-01-02\n- this\n\n## 1.1.0\n- less\n")
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "- this"
