"""`deploy.sh -n`: manifests on standard output, all else on standard error, nothing needed and nothing changed."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from tests.deploy.conftest import CONTEXTS, ENVIRONMENTS, ROOT, Bench, git

TYPES = ("queue-fetcher", "batch-fetcher")


def path_without(bench: Bench, *missing: str) -> str:
    """Return a PATH with the tools of this machine except some, and without the fake programs."""
    directory = bench.directory / "few tools"
    directory.mkdir()
    for folder in ("/usr/local/bin", "/usr/bin", "/bin", str(Path(shutil.which("kubectl") or "/bin/sh").parent)):
        for tool in Path(folder).iterdir() if Path(folder).is_dir() else ():
            link = directory / tool.name
            if tool.name not in missing and not link.is_symlink():
                link.symlink_to(tool)
    return str(directory)


@pytest.mark.parametrize("environment", ENVIRONMENTS)
@pytest.mark.parametrize("fetch_type", TYPES)
def test_prints_the_manifests_and_nothing_else_without_a_cluster(
    bench: Bench, environment: str, fetch_type: str
) -> None:
    bench.cluster.context = ""
    done = bench.run("-T", fetch_type, "-e", environment, "-n")
    assert done.code == 0, done
    commit = git(bench.project, "rev-parse", "--short=12", "HEAD")
    registry = "" if environment == "dev" else "registry.example.org/mill/"
    assert set(re.findall(r"image: (.*)", done.out)) == {f"{registry}feedmill:{commit}"}
    assert set(re.findall(r"  namespace: (.*)", done.out)) == {ENVIRONMENTS[environment]}
    assert set(re.findall(r"fetch-type: (.*)", done.out)) == {fetch_type}
    kinds = re.findall(r"^kind: (.*)", done.out, re.MULTILINE)
    assert len(kinds) == done.out.count("\n---\n") + 1, "all that is printed is YAML documents"
    assert ("CronJob" in kinds) == (fetch_type == "batch-fetcher")
    assert "A deploy would stop here: kubectl's context is not set, but" in done.err
    assert bench.changes() == []
    assert not [call for call in bench.other_calls if "inspect" not in call]


def test_needs_no_docker_no_remote_no_context_and_works_from_any_directory(bench: Bench) -> None:
    shutil.rmtree(bench.project / ".git")
    git(bench.project, "init", "--quiet")
    git(bench.project, "add", "--all")
    git(bench.project, "commit", "--quiet", "--message", "A clone of nobody")
    path = path_without(bench, "docker", "kubernetes-validate")
    done = bench.run("-T", "queue-fetcher", "-e", "prod", "-n", cwd=Path("/"), path=path)
    assert done.code == 3, done
    assert done.out.startswith("apiVersion: ")
    assert re.findall(r"would stop here: (\S+ \w+ \w+)", done.err) == [
        "commit " + git(bench.project, "rev-parse", "--short=12", "HEAD") + " is",
        "kubectl's context is",
        "the registry can",
    ]
    assert "Reasons for which a deploy would stop: 3.\n" in done.err


def test_does_not_look_at_the_cluster_of_another_environment(bench: Bench) -> None:
    bench.use("staging")
    done = bench.run("-T", "queue-fetcher", "-e", "prod", "-n")
    assert done.code == 0, done
    assert f"kubectl's context is {CONTEXTS['staging']}, but prod is where the context is called prod|" in done.err
    assert [call[0] for call in bench.cluster.calls] == ["kustomize", "kustomize", "config"]


def test_compares_where_the_cluster_answers_and_names_what_would_go(bench: Bench) -> None:
    assert bench.deploy("batch-fetcher").code == 0
    bench.cluster.calls.clear()
    done = bench.run("-T", "queue-fetcher", "-e", "dev", "-n")
    assert done.code == 0, done
    assert "-before, +after" in done.err
    assert "Removed at the end: cronjob/batch" in done.err
    assert "Runs again: job/migrate" in done.err
    assert bench.called("apply")[0].startswith("apply --dry-run=server")
    assert bench.changes() == []
    assert done.err.endswith("would stop: 0.\n")


def test_says_what_the_cluster_would_not_take(bench: Bench) -> None:
    bench.fail("apply --dry-run=server", 'no matches for kind "ScaledObject" in version "keda.sh/v1alpha1"')
    done = bench.run("-T", "queue-fetcher", "-e", "dev", "-n")
    assert done.code == 1
    assert "the cluster would not take the manifests:\nno matches for kind" in done.err
    assert done.out.startswith("apiVersion: ")


def test_a_cluster_that_goes_away_is_not_one_that_refuses(bench: Bench) -> None:
    bench.fail("apply --dry-run=server", "The connection to the server was refused")
    bench.fail("get namespace .*=5s", "The connection to the server was refused")
    done = bench.run("-T", "queue-fetcher", "-e", "dev", "-n")
    assert done.code == 0, "kubernetes-validate has looked at the manifests"
    assert "would stop here: the cluster of context kind-mill does not answer: The connection to the" in done.err
    assert "would not take" not in done.err


def test_says_what_the_cluster_would_not_take_of_the_migration(bench: Bench) -> None:
    assert bench.deploy().code == 0
    assert bench.run("-T", "queue-fetcher", "-e", "dev", "-n").code == 0, "that there is such a Job is no fault"
    bench.fail("create --dry-run=server", 'Error from server (BadRequest): unknown field "spec.tamplate"')
    done = bench.run("-T", "queue-fetcher", "-e", "dev", "-n")
    assert done.code == 1
    assert (
        'the cluster would not take the migration:\nError from server (BadRequest): unknown field "spec.t' in done.err
    )


def test_a_difference_that_can_not_be_shown_is_a_failure(bench: Bench) -> None:
    bench.fail("^diff", "error: the server refuses", code=2)
    done = bench.run("-T", "queue-fetcher", "-e", "dev", "-n")
    assert done.code == 1
    assert "error: the server refuses\nA deploy would stop here: kubectl diff failed (see above)" in done.err


def test_says_which_operators_are_missing_before_there_is_a_namespace(bench: Bench) -> None:
    bench.cluster.objects = {}
    bench.edit("k8s/base/all.yaml", "            - secretRef: {name: people-made-this}\n", "")
    done = bench.run("-T", "queue-fetcher", "-e", "dev", "-n", "-a")
    assert done.err.endswith("would stop: 0.\n")
    assert done.code == 0
    bench.cluster.unknown_kinds = {"ScaledObject"}
    done = bench.run("-T", "queue-fetcher", "-e", "dev", "-n", "-a")
    assert done.code == 1, done
    assert 'the cluster would not take the manifests:\nerror: no matches for kind "ScaledObject"' in done.err
    assert bench.deploy("queue-fetcher", "dev", "-a").code == 1
    assert bench.changes() == []


def test_who_looks_at_the_fields(bench: Bench) -> None:
    """A dry run validates with kubernetes-validate or the server. With neither of them its exit code says so."""
    run = ("-T", "queue-fetcher", "-e", "dev", "-n")
    bench.cluster.context = ""
    done = bench.run(*run)
    assert done.code == 0
    assert "Nobody looked at the manifests' fields" not in done.err
    assert "Fields of custom resources are checked by the cluster only." in done.err
    bench.program("kubernetes-validate", "#!/bin/sh\necho 'replica is not a field'; exit 1\n")
    assert bench.run(*run).err.endswith("deploy.sh: the manifests are wrong:\n  replica is not a field\n")
    (bench.bin / "kubernetes-validate").unlink()
    done = bench.run(*run)
    assert done.code == 3
    assert "Nobody looked at the manifests' fields" in done.err
    bench.use("dev")
    assert bench.run(*run).code == 0, "the server looked at them"


def test_wrong_manifests_are_not_printed(bench: Bench) -> None:
    bench.edit("k8s/base/all.yaml", "name: writer, labels: {feedmill.dev/phase: 3-services}", "name: writer")
    done = bench.run("-T", "queue-fetcher", "-e", "dev", "-n")
    assert (done.code, done.out) == (1, "")
    assert "deployment/writer: the label feedmill.dev/phase must be" in done.err


def test_a_given_tag_is_in_the_manifests(bench: Bench) -> None:
    bench.images.add("registry.example.org/mill/feedmill:1234567")
    bench.use("staging")
    done = bench.run("-T", "queue-fetcher", "-e", "staging", "-n", "-t", "1234567")
    assert set(re.findall(r"image: (.*)", done.out)) == {"registry.example.org/mill/feedmill:1234567"}


@pytest.mark.skipif(not (ROOT / "k8s/overlays/prod/queue-fetcher").is_dir(), reason="the real manifests are not here")
@pytest.mark.parametrize("environment", ENVIRONMENTS)
@pytest.mark.parametrize("fetch_type", TYPES)
def test_the_real_manifests_keep_the_contract(bench: Bench, environment: str, fetch_type: str) -> None:
    shutil.rmtree(bench.project / "k8s")
    shutil.copytree(ROOT / "k8s", bench.project / "k8s")
    bench.cluster.context = ""
    done = bench.run(
        "-T", fetch_type, "-e", environment, "-n", path=os.pathsep.join([str(bench.bin), os.environ["PATH"]])
    )
    assert done.code == 0, done
    assert "kind: Deployment" in done.out
