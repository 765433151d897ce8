"""The options of deploy.sh: it starts nothing on wrong usage, whatever tools the machine has."""

from __future__ import annotations

import subprocess

import pytest

from tests.deploy.conftest import ROOT

PROD = ("-T", "queue-fetcher", "-e", "prod")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(ROOT / "deploy.sh"), *arguments]
    return subprocess.run(command, cwd="/", env={"PATH": "/bin:/usr/bin"}, capture_output=True, text=True, check=False)


def test_help_lists_every_option_on_standard_output() -> None:
    done = run("-h")
    assert (done.returncode, done.stderr) == (0, "")
    assert all(f"  -{letter} " in done.stdout for letter in "Tenbtayh")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "-T must be queue-fetcher or batch-fetcher"),
        (("-T", "fetcher", "-e", "dev"), "-T must be queue-fetcher or batch-fetcher"),
        (("-T", "queue-fetcher"), "-e must be dev, staging, prod, or the path of an overlay"),
        (
            ("-T", "queue-fetcher", "-e", "production"),
            f"-e: {ROOT}/k8s/overlays/production is not the directory of an env",
        ),
        (("-T", "queue-fetcher", "-e", "./nowhere"), "-e: there is no directory ./nowhere"),
        (("-T", "queue-fetcher", "-e", "/tmp"), "-e: /tmp is not the directory of an environment, with deploy.env and"),
        (("-T",), "-T needs a value"),
        (("-x",), "there is no option -x"),
        ((*PROD, "extra"), 'what is "extra"?'),
        ((*PROD, "-n", "-b"), "-n and -b exclude each other"),
        ((*PROD, "-a"), "-a is not for prod: what runs there must be in the repository"),
        ((*PROD, "-n", "-a"), "-a is not for prod"),
        ((*PROD, "-y"), "-y is not for prod: there its name is to be typed"),
        ((*PROD, "-t", "latest"), "-t latest: what means another image tomorrow can't be rolled back to"),
        ((*PROD, "-t", "a b"), "-t: a tag is made of letters, digits, _ . and -"),
        ((*PROD, "-t", "x'; rm"), "-t: a tag is made of"),
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_code_2(arguments: tuple[str, ...], sentence: str) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"deploy.sh: {sentence}")
    assert done.stderr.count("\n") == 1
