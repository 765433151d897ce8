from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.servers.identity import choose_ports
from tests.compose.stack import Stack, run, torn_down, why_no_docker

ROOT = Path(__file__).parent.parent.parent

# A day within minutes, as in the demo: no rule is switched off.
QUICK = {
    "FEEDMILL_HOST_MIN_INTERVAL_SECONDS": "0.1",
    "FEEDMILL_FAST_DELAY_SECONDS": "2",
    "FEEDMILL_CLAIM_SECONDS": "20",
    "DEMO_INTERVAL_SECONDS": "2",
    "DEMO_WAVES": "0",
}


@pytest.fixture(scope="package")
def docker_compose_project_name() -> str:
    return f"feedmill-test-{secrets.token_hex(4)}"


@pytest.fixture(scope="package")
def image(docker_compose_project_name: str) -> str:
    """The image under test, by a name of its own: a developer's `feedmill:dev` is left alone."""
    return f"{docker_compose_project_name}:a"


@pytest.fixture(scope="package")
def docker_compose_file() -> str:
    return str(ROOT / "docker-compose.yml")


@pytest.fixture(scope="package")
def docker_compose_command(tmp_path_factory: pytest.TempPathFactory, image: str) -> str:
    api, management, amqp, postgres = choose_ports([0, 0, 0, 0])
    net = f"10.213.{secrets.randbelow(200) + 20}"
    name, _, tag = image.partition(":")
    settings = QUICK | {
        "FEEDMILL_IMAGE": name,
        "FEEDMILL_TAG": tag,
        "API_PORT": str(api),
        "RABBITMQ_MANAGEMENT_PORT": str(management),
        "RABBITMQ_PORT": str(amqp),
        "POSTGRES_PORT": str(postgres),
        "FARM_SUBNET": f"{net}.0/26",
        "FARM_ADDRESS": f"{net}.10",
    }
    file = tmp_path_factory.mktemp("compose") / "env"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return f"docker compose --env-file {file}"


@pytest.fixture(scope="package")
def stack_to_be(
    docker_compose_command: str, docker_compose_file: str, docker_compose_project_name: str, image: str
) -> Iterator[Stack]:
    """The project before it is up; pytest-docker does not clean up after a start that failed."""
    reason = why_no_docker()
    if reason is not None:
        pytest.skip(reason)
    command = [*docker_compose_command.split(), "-f", docker_compose_file, "-p", docker_compose_project_name]
    stack = Stack(command, docker_compose_project_name, image)
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("FEEDMILL_", "COMPOSE_", "DEMO_", "FARM_"))]:
            patch.delenv(name)  # a developer's own would change the project under test
        try:
            with torn_down(stack):
                yield stack
        finally:
            repository = image.partition(":")[0]
            for built in run("docker", "images", "--quiet", "--filter", f"reference={repository}").split():
                run("docker", "image", "rm", "--force", built, check=False)  # two tags may be one image


@pytest.fixture(scope="package")
def docker_setup(stack_to_be: Stack) -> list[str]:
    return ["--profile demo up --detach --build --wait"]


@pytest.fixture(scope="package")
def docker_cleanup() -> list[str]:
    return []  # `stack_to_be` does, and looks


@pytest.fixture(scope="package")
def stack(stack_to_be: Stack, docker_services: object) -> Stack:
    """The project, up and healthy: every article of the farm is there."""
    return stack_to_be
