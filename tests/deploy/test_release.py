"""A tag becomes a release: what the workflow pushes is what deploy.sh then finds, by one name."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.conftest import ROOT, Bench, git

REGISTRY = "registry.example.org/mill"
JOBS: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]
MAKE = f"""#!/bin/bash
for word; do [[ $word != *=* ]] || export "${{word?}}"; done
cd '{ROOT}'; [ "$1" != image ] || exec /usr/bin/make image IMAGE="$IMAGE" TAG="$TAG"
"""
DOCKER = """#!/bin/bash
images=DIRECTORY/images
case "$*" in
  login*) cat >/dev/null ;;
  buildx*) { grep -qxF "${@: -1}" "$images" && echo sha256:5e; } || { echo "${@: -1}: not found" >&2; exit 1; } ;;
  build*) while [ $# -gt 0 ]; do [ "$1" != --tag ] || echo "$2" >>"$images.built"; shift; done ;;
  push*) grep -qxF "$2" "$images.built" && echo "$2" >>"$images" ;;
  inspect*) echo "${@: -1}" | sed 's/:[^:]*$/@sha256:5e/' ;;
  *) exit 64 ;;
esac
"""


def run_step(bench: Bench, job: str, name: str, given: dict[str, str]) -> None:
    """Run the commands of one step as the workflow's shell does."""
    (script,) = [step["run"] for step in JOBS[job]["steps"] if step.get("name", "").startswith(name)]
    environment = os.environ | {"PATH": f"{bench.bin}:{os.environ['PATH']}", "TMPDIR": str(bench.tmp)} | given
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=bench.project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done


@pytest.mark.skipif(not Path("/usr/bin/make").exists(), reason="make is not installed")
def test_a_tag_in_ci_becomes_an_image_and_prod_runs_it(bench: Bench) -> None:
    bench.use("prod")
    bench.program("make", MAKE)
    bench.program("docker", DOCKER.replace("DIRECTORY", str(bench.directory)))
    bench.program("gh", "#!/bin/sh\n")
    git(bench.project, "tag", "v0.2.0")
    git(bench.project, "push", "--quiet", "origin", "v0.2.0")
    assert yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())[True]["push"]["tags"] == [
        "v[0-9]+.[0-9]+.[0-9]+"
    ]
    where = {"TAG": "v0.2.0", "IMAGE": f"{REGISTRY}/feedmill", "REGISTRY": REGISTRY}
    where |= {"REGISTRY_USER": "ci", "REGISTRY_PASSWORD": "secret"}
    assert JOBS["release"]["env"] == {"IMAGE": "${{ vars.REGISTRY }}/feedmill", "TAG": "${{ github.ref_name }}"}
    run_step(bench, "release", "Build the image", where)
    run_step(bench, "release", "Push it", where)
    (bench.project / "notes.md").write_text("Notes\n")
    run_step(bench, "release", "Make the release", where)
    lines = yaml.safe_load((bench.project / "body.md").read_text().partition("\n\n    ")[2].replace("\n    ", "\n"))
    assert lines["images"][1] == {
        "name": "feedmill-enricher",
        "newName": f"{REGISTRY}/feedmill-enricher",
        "digest": "sha256:5e",
    }
    assert f"{REGISTRY}/feedmill-enricher-models:0.2.0" in (bench.directory / "images").read_text()

    # The next job begins with a clone of its own, as actions/checkout makes it.
    assert JOBS["deploy"]["needs"] == "release"
    origin = (bench.directory / "origin.git").as_uri()
    shutil.rmtree(bench.project / ".git")
    for name in ("notes.md", "body.md", "feedmill-sbom.cdx.json"):
        (bench.project / name).unlink()
    git(bench.directory, "clone", "--quiet", "--depth=1", "--branch=v0.2.0", origin, "clone")
    shutil.move(bench.directory / "clone/.git", bench.project / ".git")
    deploy = where | {"FETCH_TYPE": "batch-fetcher", "KUBECONFIG": str(bench.directory / "config")}
    run_step(bench, "deploy", "Deploy the image", deploy | {"KUBECONFIG_TEXT": "kind: Config"})
    (record,) = bench.records()
    assert record["image"] == f"{REGISTRY}/feedmill:0.2.0@sha256:5e"
    assert record["outcome"] == "deployed"
    assert git(bench.project, "rev-parse", "v0.2.0^{commit}") == record["commit"]
    assert not [call for call in bench.other_calls if "build" in call]
