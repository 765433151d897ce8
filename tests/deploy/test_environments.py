"""Whose commit, whose values: releases, shallow clones, and overlays of one's own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.deploy.conftest import Bench, git, write
from tests.deploy.fake_cluster import Object
from tests.deploy.test_checks import PROD, refused


def test_the_image_of_a_release_is_not_built_by_a_deploy(bench: Bench) -> None:
    bench.use("prod")
    git(bench.project, "tag", "v0.2.0")
    said = refused(bench, *PROD)
    assert "there is no image registry.example.org/mill/feedmill:0.2.0, and that of a release is not built" in said
    bench.images.add("registry.example.org/mill/feedmill:0.2.0")
    assert bench.deploy("queue-fetcher", "prod").code == 0


def own_overlay(bench: Bench, rules: str) -> Path:
    """An overlay in a repository of its own, beside the project."""
    place = bench.directory / "infra/mill-eu"
    for fetch_type in ("queue-fetcher", "batch-fetcher"):
        write(
            place / fetch_type / "kustomization.yaml",
            f"resources: ['../../../my project/k8s/overlays/prod/{fetch_type}']\nnamespace: mill-eu\n",
        )
    text = (bench.project / "k8s/overlays/prod/deploy.env").read_text()
    for old, new in (
        ("RULES=prod", f"RULES={rules}"),
        ("NAMESPACE=feedmill", "NAMESPACE=mill-eu"),
        ("CONTEXT=", "CONTEXT=eu|"),
    ):
        assert old in text
        text = text.replace(old, new)
    write(place / "deploy.env", text)
    git(place.parent, "init", "--quiet")
    git(place.parent, "add", "--all")
    git(place.parent, "commit", "--quiet", "--message", "Ours")
    bench.use("prod")
    bench.cluster.context = "eu"
    bench.cluster.objects["namespace/mill-eu"] = Object("Namespace")
    return place


def test_an_overlay_of_ones_own_is_deployed_by_its_path_and_its_rules(bench: Bench) -> None:
    place = own_overlay(bench, "prod")
    arguments = ("-T", "queue-fetcher", "-e", "mill-eu/")
    assert f"in {place} is not pushed (git push" in bench.run("-T", "queue-fetcher", "-e", str(place)).err
    git(place.parent, "init", "--quiet", "--bare", "../infra.git")
    git(place.parent, "remote", "add", "origin", "../infra.git")
    git(place.parent, "push", "--quiet", "origin", "main")
    done = bench.run(*arguments, "-y", cwd=place.parent)
    assert done.code == 2
    assert done.err.startswith("deploy.sh: -y is not for mill-eu: there its name is to be typed")
    assert bench.run(*arguments, cwd=place.parent, answer="prod\n").err.endswith("not confirmed; nothing was changed\n")
    done = bench.run(*arguments, cwd=place.parent, answer="mill-eu\n")
    assert done.code == 0, done
    (record,) = bench.records()
    assert record["environment"] == "mill-eu"
    assert record["manifests"] == git(place, "rev-parse", "HEAD")
    assert record["commit"] == git(bench.project, "rev-parse", "HEAD")
    assert git(bench.project, "tag").startswith("deploy/mill-eu/")
    write(place / "deploy.env", (place / "deploy.env").read_text() + "# Later\n")
    assert f"changes that are not committed in {place} (commit them" in bench.run(*arguments, cwd=place.parent).err


def test_rules_are_those_that_deploy_env_names(bench: Bench) -> None:
    place = own_overlay(bench, "staging")
    done = bench.run("-T", "queue-fetcher", "-e", str(place), "-a", "-y")
    assert done.code == 0, done


@pytest.mark.parametrize("tagged", [True, False])
def test_a_shallow_clone_of_a_release_knows_enough(bench: Bench, tagged: bool) -> None:
    """As CI clones: one commit, a tag, no branch."""
    bench.use("prod")
    git(bench.project, "tag", "--annotate", "v0.2.0", "--message", "A release")
    git(bench.project, "push", "--quiet", "origin", "v0.2.0")
    origin = (bench.directory / "origin.git").as_uri()
    git(bench.directory, "clone", "--quiet", "--depth=1", "--branch=v0.2.0", origin, "clone")
    shutil.rmtree(bench.project / ".git")
    shutil.move(bench.directory / "clone/.git", bench.project / ".git")
    bench.images.add("registry.example.org/mill/feedmill:0.2.0")
    if not tagged:
        git(bench.project, "commit", "--quiet", "--allow-empty", "--message", "Made here")
    done = bench.deploy("queue-fetcher", "prod")
    assert (done.code == 0) == tagged, done
    assert ("is not pushed" in done.err) != tagged
    if tagged:
        assert bench.records()[-1]["image"].startswith("registry.example.org/mill/feedmill:0.2.0@sha256:5e")
        assert "deploy/prod/" in git(bench.directory / "origin.git", "tag")
