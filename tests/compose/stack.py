"""A compose project under test: what a person would type, and what they would look at."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

LONGEST_SECONDS = 120.0
LOOK_SECONDS = 0.5


def run(*command: str, check: bool = True, environment: Mapping[str, str] | None = None) -> str:
    """Run a command and return what it said, both streams; an unwanted exit code shows it."""
    done = subprocess.run(
        command,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **(environment or {})},
    )
    assert done.returncode == 0 or not check, f"{command} ended with {done.returncode}:\n{done.stdout}"
    return done.stdout


def why_no_docker() -> str | None:
    """Return what is missing for these tests, if anything."""
    try:
        engine = _ask("version", "--format", "{{.Server.Version}}")
        compose = _ask("compose", "version", "--short")
    except FileNotFoundError:
        return "there is no docker"
    if engine.returncode:
        return f"no Docker engine answers: {engine.stderr.strip()[:200]}"
    if compose.returncode:
        return "there is no Docker Compose v2"
    version = tuple(int(part) for part in compose.stdout.strip().lstrip("v").split("-")[0].split(".")[:2])
    return None if version >= (2, 24) else f"Docker Compose {compose.stdout.strip()} is older than 2.24"


def _ask(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["docker", *words], check=False, capture_output=True, text=True)


@dataclass(frozen=True)
class Stack:
    """A project that is up."""

    compose: Sequence[str]
    """The command line up to the subcommand."""
    project: str
    image: str

    def __call__(self, *arguments: str, check: bool = True, **environment: str) -> str:
        """Run `docker compose …` on the project."""
        return run(*self.compose, *arguments, check=check, environment=environment)

    def query(self, statement: str) -> str:
        """Return what psql in the database's container answers, without its ornaments."""
        return self("exec", "-T", "postgres", "psql", "-U", "feedmill", "-Atc", statement).strip()

    def password(self) -> str:
        """Return the password of the management UI, as the documentation says to find it."""
        return self("exec", "-T", "rabbitmq", "cat", "/run/feedmill/password")

    def count(self) -> dict[str, Any]:
        """Return the farm's own count."""
        code = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:8000/count').read().decode())"
        counted: dict[str, Any] = json.loads(self("exec", "-T", "farm", "python", "-c", code))
        return counted

    def publish(self) -> None:
        """Let new articles appear; wait until the farm counts them."""
        before, deadline = self.count()["expected"], time.monotonic() + LONGEST_SECONDS
        self("kill", "--signal", "USR1", "farm")
        while self.count()["expected"] == before:
            assert time.monotonic() < deadline, self.story("the farm publishes nothing")

    def until_exact(self, *, more_than: int) -> dict[str, Any]:
        """Wait until all that was published is there, more than so many articles; then count by ourselves."""
        deadline = time.monotonic() + LONGEST_SECONDS
        counted: dict[str, Any] = {}
        while time.monotonic() < deadline:
            counted = self.count()
            if counted and counted["expected"] > more_than and counted["lost"] == 0:
                break
            time.sleep(LOOK_SECONDS)
        numbers = {
            name: counted.get(name, -1) for name in ("expected", "delivered", "lost", "duplicated", "unexpected")
        }
        assert numbers["expected"] == numbers["delivered"] > more_than, self.story(numbers)
        assert numbers["lost"] == numbers["duplicated"] == numbers["unexpected"] == 0, self.story(numbers)
        # The same without the farm's help: rows, different articles, and what the attempts say that they brought.
        rows = "SELECT count(*), count(DISTINCT (url, title)), (SELECT sum(items_new) FROM feed_fetch_log)"
        assert self.query(f"{rows} FROM pending_articles") == "|".join([str(numbers["expected"])] * 3)
        return counted

    def containers(self, service: str) -> list[str]:
        """Return the ids of the service's containers that run."""
        return self("ps", "--quiet", service).split()

    def inspect(self, container: str) -> dict[str, Any]:
        """Return what the engine knows of a container."""
        (found,) = json.loads(run("docker", "inspect", container))
        return dict(found)

    def until_healthy(self, service: str, *, containers: int = 1) -> None:
        """Wait until so many containers of the service are healthy."""
        deadline = time.monotonic() + LONGEST_SECONDS
        while time.monotonic() < deadline:
            states = [self.inspect(container)["State"] for container in self.containers(service)]
            if [state.get("Health", {}).get("Status") for state in states] == ["healthy"] * containers:
                return
            time.sleep(LOOK_SECONDS)
        raise AssertionError(self.story({"service": service}))

    def kill_process(self, service: str) -> None:
        """Send SIGKILL to the main process of the service, as the kernel does; `docker kill` would mean "leave it"."""
        (container, *_) = self.containers(service)
        pid = self.inspect(container)["State"]["Pid"]
        run(
            *("docker", "run", "--rm", "--pid=host", "--user=0", "--entrypoint=python", self.image),
            *("-c", f"import os; os.kill({pid}, 9)"),
        )

    def story(self, what: object) -> str:
        """Return what a failed test should show."""
        return f"{what}\n{self('ps', '--all', check=False)}\n{self('logs', '--tail', '40', check=False)}"


def management(stack: Stack, path: str, *, user: str = "feedmill", password: str | None = None) -> Any:
    """Return what the management UI's API says, to its one user unless another is named."""
    port = stack("port", "rabbitmq", "15672").strip()
    who = f"{user}:{stack.password() if password is None else password}".encode()
    request = urllib.request.Request(f"http://{port}/api/{path}")
    request.add_header("Authorization", "Basic " + base64.b64encode(who).decode())
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def left_of(project: str) -> dict[str, list[str]]:
    """Return what there is of a project, by kind."""
    label = f"label=com.docker.compose.project={project}"
    kinds = {"containers": ("ps", "-a"), "volumes": ("volume", "ls"), "networks": ("network", "ls")}
    return {kind: run("docker", *words, "--quiet", "--filter", label).split() for kind, words in kinds.items()}


@contextmanager
def torn_down(stack: Stack) -> Iterator[None]:
    """Take the project down at the end, whatever happened, and see that nothing is left."""
    try:
        yield
    finally:
        stack("--profile", "demo", "--profile", "tools", "down", "--volumes", "--timeout", "60")
        assert left_of(stack.project) == {"containers": [], "volumes": [], "networks": []}
