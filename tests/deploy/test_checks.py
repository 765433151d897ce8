"""The checks in their order: each stops with a sentence of its own, before anything was built or changed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.deploy.conftest import Bench, git, write
from tests.deploy.test_dry_run import path_without

PROD = ("-T", "queue-fetcher", "-e", "prod")
DEV = ("-T", "queue-fetcher", "-e", "dev")


def refused(bench: Bench, *arguments: str) -> str:
    done = bench.run(*arguments, answer="prod\n")
    assert done.code == 1, done
    assert bench.changes() == []
    assert not [call for call in bench.other_calls if "inspect" not in call]
    assert done.err.startswith("deploy.sh: ")
    return done.err.removeprefix("deploy.sh: ")


# One way to break each check, in the order of the checks.
def dirty(bench: Bench) -> None:
    write(bench.project / "left over", "")


def unpushed(bench: Bench) -> None:
    bench.commit(push=False)


def wrong_context(bench: Bench) -> None:
    bench.cluster.context = "non-prod"


@pytest.mark.parametrize(
    ("context", "fits"),
    [
        ("prod", True),
        ("arn:aws:eks:eu:1:cluster/feedmill-prod", True),
        ("gke_mill_eu_feedmill-prod", True),
        ("not-feedmill-prod", False),
        ("feedmill-prod-old", False),
    ],
)
def test_which_contexts_are_prod(bench: Bench, context: str, fits: bool) -> None:
    bench.use("prod")
    bench.cluster.context = context
    assert ("but prod is where the context" not in bench.run(*PROD, "-n").err) == fits


def wrong_manifests(bench: Bench) -> None:
    bench.edit("k8s/overlays/prod/deploy.env", "BRANCH=main", "BRANCH=main branch")
    bench.edit("k8s/base/all.yaml", "feedmill.dev/phase: 2-migrate", "feedmill.dev/phase: 2")


def missing_secret(bench: Bench) -> None:
    del bench.cluster.objects["secret/people-made-this"]


def refusing_server(bench: Bench) -> None:
    bench.fail("apply --dry-run=server")


def no_image(bench: Bench) -> None:
    bench.program("docker", "#!/bin/sh\necho 'unauthorized: who are you?' >&2; exit 1\n")


BREAKS: list[tuple[Callable[[Bench], None], str]] = [
    (wrong_manifests, "the manifests are wrong:\n  k8s/overlays/prod/deploy.env: BRANCH: String should match pattern"),
    (dirty, "there are changes that are not committed"),
    (unpushed, "is not pushed (git push; if somebody else pushed it: git fetch)"),
    (wrong_context, "kubectl's context is non-prod, but prod is where the context is called prod|"),
    (
        missing_secret,
        "secrets are missing in the namespace feedmill (docs/how-to/kubernetes.md):\nError from server (NotFound): ",
    ),
    (refusing_server, "the cluster would not take the manifests:\nit failed"),
    (no_image, "the registry can't be asked for registry.example.org/mill/feedmill:"),
]


def test_each_check_stops_and_the_first_one_speaks(bench: Bench) -> None:
    """All broken at once, then mended one after the other: the sentences come in the order of the checks."""
    for number in range(len(BREAKS)):
        bench.use("prod")
        git(bench.project, "reset", "--quiet", "--hard", "origin/main")
        git(bench.project, "clean", "--quiet", "--force")
        committed = {wrong_manifests}
        bench.cluster.faults.clear()
        for break_it, _ in BREAKS[number:]:
            if break_it in committed:
                break_it(bench)
        if git(bench.project, "status", "--porcelain"):
            git(bench.project, "commit", "--quiet", "--all", "--message", "Broken")
            git(bench.project, "push", "--quiet", "--force", "origin", "main")
        for break_it, _ in reversed(BREAKS[number:]):  # the tree last: the commit would take it along
            if break_it not in committed:
                break_it(bench)
        said = refused(bench, *PROD)
        assert BREAKS[number][1] in said
        assert not [sentence for _, sentence in BREAKS[number + 1 :] if sentence in said]
        git(bench.project, "reset", "--quiet", "--hard", git(bench.project, "rev-list", "--max-parents=0", "HEAD"))
        git(bench.project, "push", "--quiet", "--force", "origin", "main")


@pytest.mark.parametrize("tool", ["kubectl", "git"])
def test_a_missing_tool_is_named_first(bench: Bench, tool: str) -> None:
    dirty(bench)
    done = bench.run(*DEV, "-n", path=path_without(bench, tool))
    assert f"{tool}: command not found" in done.err


def test_without_docker_a_deploy_stops(bench: Bench) -> None:
    (bench.bin / "docker").unlink()
    done = bench.run(*DEV, answer="y\n", path=f"{bench.bin}:{path_without(bench, 'docker')}")
    assert "docker: command not found\ndeploy.sh: the image could not be built" in done.err
    assert bench.changes() == []


def test_prod_takes_commits_of_its_branch_only(bench: Bench) -> None:
    bench.use("prod")
    bench.commit(push=False)
    git(bench.project, "push", "--quiet", "origin", "HEAD:refs/heads/idea")
    assert "is pushed, but not to the branch main, from which alone prod is deployed" in refused(bench, *PROD)
    bench.use("staging")
    assert bench.deploy("queue-fetcher", "staging").code == 0


def test_dirty_and_unpushed_trees_are_for_those_who_ask(bench: Bench) -> None:
    bench.commit(push=False)
    assert "is not pushed" in refused(bench, *DEV)
    dirty(bench)
    assert "changes that are not committed" in refused(bench, *DEV)
    first = bench.deploy("queue-fetcher", "dev", "-a")
    assert first.code == 0, first
    write(bench.project / "left over", "other text")
    second = bench.deploy("queue-fetcher", "dev", "-a")
    images = [call.split()[3] for call in bench.other_calls if call.startswith("docker build")]
    assert len(set(images)) == 2, "each state of the tree has a tag of its own"
    assert all("-dirty-" in image for image in images)
    assert second.code == 0


def test_a_context_and_a_cluster_are_needed(bench: Bench) -> None:
    bench.fail("get namespace", "The connection to the server localhost:8080 was refused")
    assert "the cluster of context kind-mill does not answer: The connection" in refused(bench, *DEV)
    bench.cluster.context = ""
    assert "kubectl's context is not set, but dev is where the context is called" in refused(bench, *DEV)


def test_all_wrong_values_are_said_at_once_without_secrets(bench: Bench) -> None:
    write(
        bench.project / "k8s/overlays/dev/deploy.env",
        "# A comment\n\nCONTEXT=kind-(\nNAMESPACE=feedmill-dev\nBRANCH=\nFOUNDATION_SECONDS=ten\nMIGRATE_SECONDS=0\n"
        "ROLLOUT_SECONDS=1.5\nSURPRISE=1\nexport PATH=/nowhere\n$(touch executed)\n",
    )
    bench.edit(
        "k8s/overlays/dev/queue-fetcher/kustomization.yaml",
        "[FEEDMILL_FETCH_THREADS=32]",
        "[FEEDMILL_FETCH_THREADS=hunter2, FEEDMILL_TREADS=4, FEEDMILL_KEEP_HTML=perhaps, FEEDMILL_MAX_RETRIES=1.5, "
        "FEEDMILL_TICK_SECONDS=.5, FEEDMILL_AMQP_URL=hunter2, FEEDMILL_LOG_LEVEL=DEBUG]",
    )
    bench.commit()
    said = refused(bench, *DEV)
    env = "k8s/overlays/dev/deploy.env"
    lines = [line.strip() for line in said.splitlines()]
    assert lines[0] == "the manifests are wrong:"
    integer = "Input should be a valid integer, unable to parse string as an integer"
    assert set(lines[1:10]) == {
        f"{env}: SURPRISE: Extra inputs are not permitted",
        f"{env}: export PATH: Extra inputs are not permitted",
        f"{env}: $(touch executed): Extra inputs are not permitted",
        f"{env}: CONTEXT: Input should be a valid regular expression",
        f"{env}: RULES: Field required",
        f"{env}: BRANCH: Field required",
        f"{env}: FOUNDATION_SECONDS: {integer}",
        f"{env}: MIGRATE_SECONDS: Input should be greater than or equal to 1",
        f"{env}: ROLLOUT_SECONDS: {integer}",
    }
    unknown, wrong = (line.split(": ", 1)[1] for line in lines[10:])
    assert unknown == "FEEDMILL_TREADS is not a setting (docs/reference/configuration.md lists them)"
    assert {part.split(": ")[0] for part in wrong.split("; ")} == {
        "FEEDMILL_KEEP_HTML",
        "FEEDMILL_FETCH_THREADS",
        "FEEDMILL_MAX_RETRIES",
        "FEEDMILL_AMQP_URL",
    }
    assert f"FEEDMILL_FETCH_THREADS: {integer};" in wrong
    assert "hunter2" not in said
    assert not (bench.project / "executed").exists()


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            "namespace: feedmill-dev",
            "namespace: feedmill",
            "deployment/writer: is in the namespace feedmill, and deploy.env",
        ),
        (
            "part-of: feedmill",
            "part-of: mill",
            "deployment/writer: the label app.kubernetes.io/part-of must be feedmill",
        ),
        ("/../queue-fetcher", "/../batch-fetcher", "cronjob/batch: is labelled feedmill.dev/fetch-type=batch-fetcher"),
        ("/../queue-fetcher", "/../base", "no object is labelled feedmill.dev/fetch-type=queue-fetcher"),
        (
            "[FEEDMILL_FETCH_THREADS=32]",
            "[FEEDMILL_API_HOSTS=writer.other.svc]",
            ": writer.other.svc, and deploy.env says feedmill-dev",
        ),
        ("newName: feedmill", "newName: mill", "feedmill's image must be in them, from one registry"),
    ],
)
def test_manifests_that_break_the_contract(bench: Bench, old: str, new: str, sentence: str) -> None:
    bench.edit("k8s/overlays/dev/queue-fetcher/kustomization.yaml", old, new)
    bench.commit()
    assert sentence in refused(bench, *DEV)


def test_images_of_others_need_a_fixed_tag(bench: Bench) -> None:
    bench.edit("k8s/base/all.yaml", "spec: {replicas: 3}", "spec: {replicas: 3, image: 'rabbitmq:latest'}")
    bench.commit()
    assert "image rabbitmq:latest: has no fixed tag" in refused(bench, *DEV)


def test_manifests_that_do_not_render(bench: Bench) -> None:
    bench.edit("k8s/base/kustomization.yaml", "all.yaml", "al.yaml")
    bench.commit()
    assert "k8s/overlays/dev/queue-fetcher can't be rendered" in refused(bench, *DEV)


def test_an_image_without_a_registry_is_for_dev_only(bench: Bench) -> None:
    bench.use("prod")
    bench.edit("k8s/overlays/prod/queue-fetcher/kustomization.yaml", "registry.example.org/mill/feedmill", "feedmill")
    bench.commit()
    assert "the image feedmill has no registry in its name, where prod could pull it from" in refused(bench, *PROD)


@pytest.mark.parametrize(
    ("says", "missing"),
    [
        ("ERROR: registry.example.org/mill/feedmill:TAG: not found", True),
        ("manifest unknown: manifest unknown", True),
        ("Error: MANIFEST_UNKNOWN: manifest for mill/feedmill:TAG not found", True),
        ("failed to resolve reference: registry.example.org/mill/feedmill:TAG: not found", True),
        ("NAME_UNKNOWN: repository name not known to registry", True),
        ("", False),
        ("error getting credentials: exec: docker-credential-desktop: executable file not found in $PATH", False),
        ("dial tcp: lookup registry.example.org: host not found", False),
        ("denied: requested access to the resource is denied", False),
    ],
)
def test_missing_is_what_the_registry_says_is_missing(bench: Bench, says: str, missing: bool) -> None:
    bench.use("prod")
    says = says.replace("TAG", git(bench.project, "rev-parse", "--short=12", "HEAD"))
    bench.program("docker", f"#!/bin/sh\nprintf %s '{says}' >&2; exit 1\n")
    done = bench.run(*PROD, "-n")
    assert ("would be built and pushed" in done.err) == missing, done
    assert ("the registry can't be asked for" in done.err) != missing
    assert (says or "it gives no answer") in done.err or missing


def test_a_registry_that_does_not_answer_in_time_can_not_be_asked(bench: Bench) -> None:
    bench.use("prod")
    bench.program("timeout", "#!/bin/sh\necho 'manifest unknown' >&2; exit 124\n")
    assert "the registry can't be asked for" in refused(bench, *PROD)


def test_an_image_that_is_named_must_be_there(bench: Bench) -> None:
    bench.use("prod")
    said = refused(bench, *PROD, "-t", "v1.0.0-rc1")
    assert (
        "there is no image registry.example.org/mill/feedmill:1.0.0-rc1, and one that is named by -t is not built"
        in said
    )


@pytest.mark.parametrize(
    ("environment", "answer"), [("dev", "n\n"), ("dev", ""), ("prod", "y\n"), ("prod", "Prod\n"), ("prod", "")]
)
def test_without_the_right_answer_nothing_changes(bench: Bench, environment: str, answer: str) -> None:
    bench.use(environment)
    done = bench.run("-T", "queue-fetcher", "-e", environment, answer=answer)
    assert done.code == 1
    assert done.err.endswith("deploy.sh: not confirmed; nothing was changed\n")
    assert bench.changes() == []
    assert not [call for call in bench.other_calls if "push" in call]
