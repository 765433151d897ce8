"""What the pages tell people to type runs: what looks as it stands, what acts as a dry run."""

from __future__ import annotations

import re
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.compose.stack import Stack
from tests.runbook import commands_in, has_placeholder, read_page

LOOKS = re.compile(
    r"docker compose (ps|logs|stats|images)\b"
    r"|docker compose run --rm --no-deps feedmill (status|doctor|hosts|pending|dead list)"
    r"( dead| list)?( --.*)?$"
    r"|docker compose exec (-T )?rabbitmq (rabbitmqctl (-q )?(list_|cluster_)|df )"
    r"|docker compose exec rabbitmq (rabbitmq-diagnostics |rabbitmq-plugins list|rabbitmq-queues check)"
    r'|docker compose exec (-T )?postgres (df |pg_dump |psql -U feedmill -c "SELECT )'
    r"|docker compose exec [a-z]+ (date|python -m services.cli.health|feedmill parse)\b"
)

ACTS = re.compile(r"docker compose (up|start|stop|restart) [^&|;]+$")

MAY_END_WITH = {"doctor": {0, 1, 3}, "status --health": {0, 1}}
"""`doctor` does not like the settings of these tests, and farms have bad feeds."""


def lines(kind: re.Pattern[str]) -> list[str]:
    """Return the lines of the pages that are of a kind."""
    pages = (read_page(page) for page in ("alerts", "operate"))
    return list(dict.fromkeys(one for page in pages for one in commands_in(page, "docker compose") if kind.match(one)))


IN_A_POD = re.compile(
    r"kubectl -n feedmill exec (?:deploy/feedmill-|svc/feedmill-)?([a-z-]+?)(?:-rw|-server-0)?(?: -c [a-z]+)? -- (.+)"
)
CONTAINERS = {"feedmill-broker": "rabbitmq", "database": "postgres"}


def lines_in_pods() -> list[str]:
    """Return what the pages let run in pods of Kubernetes, for the same containers here; `feedmill` has run already.

    Of the fetcher's and the API's containers only the fetcher's reach the farm.
    """
    pages = (read_page(page) for page in ("alerts", "operate"))
    found = [one for page in pages for line in commands_in(page, "kubectl") for one in IN_A_POD.findall(line)]
    typed = [
        f"docker compose exec {CONTAINERS.get(pod, pod)} {command.replace('psql feedmill', 'psql -U feedmill')}"
        for pod, command in found
    ]
    return [line for line in dict.fromkeys(typed) if LOOKS.match(line) and "exec api feedmill parse" not in line]


def type_into_shell(stack: Stack, line: str, directory: Path) -> str | None:
    """Return what is wrong with a line as somebody types it, if anything. There is no terminal here, hence `-T`."""
    typed = re.sub(r"\bexec (?!-T)", "exec -T ", line).replace("docker compose", shlex.join(stack.compose))
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", typed],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    may = next((codes for words, codes in MAY_END_WITH.items() if line.endswith(words)), {0})
    if done.returncode in may and "Traceback" not in done.stdout + done.stderr:
        return None
    return f"{line} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"


def what_fails(stack: Stack, typed: list[str], directory: Path) -> str:
    """Type lines, two at a time; those that fail once more, alone, as a person would. Return what is still wrong."""
    with ThreadPoolExecutor(2) as pool:
        said = dict(zip(typed, pool.map(lambda line: type_into_shell(stack, line, directory), typed), strict=True))
    again = [type_into_shell(stack, line, directory) for line, wrong in said.items() if wrong]
    return "\n\n".join(wrong for wrong in again if wrong)


def test_what_looks_runs_as_it_stands_in_the_pages(stack: Stack, tmp_path: Path) -> None:
    feed = stack.query("SELECT url FROM feeds WHERE last_success_at IS NOT NULL ORDER BY id LIMIT 1")
    typed = [line.replace("URL", feed) for line in dict.fromkeys(lines(LOOKS) + lines_in_pods())]
    assert len(typed) > 20
    typed = [line for line in typed if not has_placeholder(line)]
    assert not (wrong := what_fails(stack, typed, tmp_path)), wrong


def test_compose_takes_what_starts_and_stops(stack: Stack, tmp_path: Path) -> None:
    """It does all but act."""
    typed = [line.replace("docker compose", "docker compose --dry-run", 1) for line in lines(ACTS)]
    assert len(typed) > 5
    assert not (wrong := what_fails(stack, typed, tmp_path)), wrong
