"""`make pin-images`: every image of others gets the digest that its registry has, in all files or in none."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FILES = ("Dockerfile", "docker-compose.yml", "k8s/base/broker.yaml")
DOCKER = """#!/bin/bash
[[ "$1 $2 $3 $4" == "buildx imagetools inspect --format" && $# == 6 ]] || exit 64
[[ $6 != "$REFUSED" ]] || { echo "ERROR: $6: not found" >&2; exit 1; }
printf 'sha256:%s\\n' "$(printf %s "$SALT$6" | sha256sum | cut -c 1-64)"
"""


class Tree:
    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def read(self) -> dict[str, str]:
        return {name: (self.directory / name).read_text() for name in FILES}

    def pin(self, *arguments: str, salt: str = "", refused: str = "") -> subprocess.CompletedProcess[str]:
        path = f"{self.directory / 'bin'}:{os.environ['PATH']}"
        return subprocess.run(
            ["scripts/pin_images.sh", *arguments],
            cwd=self.directory,
            env=os.environ | {"PATH": path, "SALT": salt, "REFUSED": refused},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    for name in (*FILES, "scripts/pin_images.sh"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/docker").write_text(DOCKER)
    (tmp_path / "bin/docker").chmod(0o755)
    return Tree(tmp_path)


def images(files: dict[str, str]) -> list[str]:
    services = yaml.safe_load(files["docker-compose.yml"])["services"]
    found = [service["image"] for service in services.values() if not service["image"].startswith("$")]
    found += [services["migrate"]["build"]["args"]["PYTHON_IMAGE"].partition(":-")[2].removesuffix("}")]
    found += re.findall(r"^ARG PYTHON_IMAGE=(.*)$", files["Dockerfile"], re.MULTILINE)
    found += [
        one["spec"]["image"] for one in yaml.safe_load_all(files["k8s/base/broker.yaml"]) if "image" in one["spec"]
    ]
    return found


def test_every_image_of_others_is_pinned_and_nothing_else_is_changed(tree: Tree) -> None:
    before = tree.read()
    assert tree.pin().returncode == 0
    after = tree.read()
    assert len(images(after)) >= 7
    assert all(re.fullmatch(r"[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}", image) for image in images(after)), images(after)
    unpinned = {name: re.sub(r"@sha256:[0-9a-f]{64}", "", text) for name, text in after.items()}
    assert unpinned == {name: re.sub(r"@sha256:[0-9a-f]{64}", "", text) for name, text in before.items()}
    assert tree.pin("--check").returncode == 0


def test_a_digest_that_is_there_is_renewed(tree: Tree) -> None:
    tree.pin()
    first = images(tree.read())
    tree.pin(salt="a year later")
    second = images(tree.read())
    assert [image.partition("@")[0] for image in first] == [image.partition("@")[0] for image in second]
    assert not set(first) & set(second)


def test_one_that_can_not_be_looked_up_leaves_all_as_it_was(tree: Tree) -> None:
    before = tree.read()
    done = tree.pin(refused="rabbitmq:4-management")
    assert done.returncode == 1
    assert "no digest of rabbitmq:4-management" in done.stderr
    assert tree.read() == before


def test_a_check_lists_what_has_no_digest(tree: Tree) -> None:
    compose = tree.directory / "docker-compose.yml"
    tree.pin()
    compose.write_text(re.sub(r"(image: postgres:17)@\S+", r"\1", compose.read_text()))
    done = tree.pin("--check")
    assert (done.returncode, done.stdout) == (1, "postgres:17\n")
