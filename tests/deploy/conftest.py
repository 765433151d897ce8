"""Fixtures: a project that deploy.sh can deploy, a remote that has its commits, and a fake cluster."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.fake_cluster import PROGRAM, FakeCluster, Fault, Object, served

ROOT = Path(__file__).parent.parent.parent
KUBECTL = shutil.which("kubectl")

ENVIRONMENTS = {"dev": "feedmill-dev", "staging": "feedmill-staging", "prod": "feedmill"}
CONTEXTS = {"dev": "kind-mill", "staging": "feedmill-staging", "prod": "admin@feedmill-prod"}

ENGINE_STUB = """#!/bin/bash
echo "NAME $*" >>"DIRECTORY/other_calls"
case "$*" in *" inspect "*)
    grep -qxF "${@: -1}" "DIRECTORY/images" || { echo "ERROR: ${@: -1}: not found" >&2; exit 1; }
    echo sha256:$(printf 5e%.0s {1..32}) ;;
  push*) echo "$2" >>"DIRECTORY/images" ;;
esac
[ ! -e "DIRECTORY/NAME-fails" ] || { echo "NAME failed" >&2; exit 1; }
"""

BASE = """
apiVersion: v1
kind: Namespace
metadata: {name: feedmill, labels: {feedmill.dev/phase: 1-foundation}}
---
apiVersion: rabbitmq.com/v1beta1
kind: RabbitmqCluster
metadata: {name: broker, labels: {feedmill.dev/phase: 1-foundation}}
spec: {replicas: 3}
---
apiVersion: postgresql.cnpg.io/v1
kind: Cluster
metadata: {name: database, labels: {feedmill.dev/phase: 1-foundation}}
spec: {instances: 3}
---
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, labels: {feedmill.dev/phase: 2-migrate}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: migrate
          image: feedmill
          args: [migrate]
          env: [{name: FEEDMILL_DATABASE_URL, valueFrom: {secretKeyRef: {name: database-app, key: uri}}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: writer, labels: {feedmill.dev/phase: 3-services}}
spec:
  selector: {matchLabels: {app: writer}}
  template:
    metadata: {labels: {app: writer}}
    spec:
      containers:
        - name: writer
          image: feedmill
          args: [writer]
          envFrom:
            - secretRef: {name: people-made-this}
            - configMapRef: {name: feedmill-settings}
            - secretRef: {name: not-needed, optional: true}
          env:
            - {name: FEEDMILL_WRITER_LINGER_SECONDS, value: "0.5"}
            - {name: BROKER_PASSWORD, valueFrom: {secretKeyRef: {name: broker-user-writer, key: password}}}
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: fetcher, labels: {feedmill.dev/phase: 3-services, feedmill.dev/fetch-type: queue-fetcher}}
spec:
  selector: {matchLabels: {app: fetcher}}
  template:
    metadata: {labels: {app: fetcher}}
    spec: {containers: [{name: fetcher, image: feedmill, args: [fetcher]}]}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: fetcher, labels: {feedmill.dev/phase: 3-services, feedmill.dev/fetch-type: queue-fetcher}}
spec: {scaleTargetRef: {name: fetcher}}
"""
CRON_JOB = """
apiVersion: batch/v1
kind: CronJob
metadata: {name: batch, labels: {feedmill.dev/phase: 3-services, feedmill.dev/fetch-type: batch-fetcher}}
spec:
  schedule: "*/5 * * * *"
  jobTemplate:
    spec:
      template: {spec: {restartPolicy: Never, containers: [{name: batch, image: feedmill, args: [batch]}]}}
"""


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def write_manifests(k8s: Path) -> None:
    write(k8s / "base/all.yaml", BASE)
    write(k8s / "base/kustomization.yaml", "resources: [all.yaml]\n")
    for fetch_type, text in (("queue-fetcher", DEPLOYMENT), ("batch-fetcher", CRON_JOB)):
        write(k8s / fetch_type / "all.yaml", text)
        write(k8s / fetch_type / "kustomization.yaml", "resources: [all.yaml, ../base]\n")
        for environment, namespace in ENVIRONMENTS.items():
            name = "feedmill" if environment == "dev" else "registry.example.org/mill/feedmill"
            write(
                k8s / "overlays" / environment / fetch_type / "kustomization.yaml",
                f"resources: [../../../{fetch_type}]\n"
                f"namespace: {namespace}\n"
                "labels: [{pairs: {app.kubernetes.io/part-of: feedmill}}]\n"
                f"images: [{{name: feedmill, newName: {name}, newTag: unset}}]\n"
                "configMapGenerator:\n"
                "  - name: feedmill-settings\n"
                "    literals: [FEEDMILL_FETCH_THREADS=32]\n"
                "    options: {labels: {feedmill.dev/phase: 3-services}}\n",
            )


def git(directory: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=tester", "-c", "user.email=tester@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *identity, *arguments], cwd=directory, check=True, capture_output=True, text=True)
    return done.stdout.strip()


class Bench:
    """One project, its remote, its cluster, and programs that stand in for kubectl, docker and kind."""

    def __init__(self, directory: Path, cluster: FakeCluster) -> None:
        self.directory, self.cluster = directory, cluster
        self.project = directory / "my project"
        self.bin = directory / "bin"
        self.images: set[str] = set()
        """The images that a registry or the engine has."""
        self.tmp = directory / "tmp"

    def set_up(self, template: Path, port: int) -> None:
        shutil.copytree(template, self.directory, symlinks=True, dirs_exist_ok=True)
        self.tmp.mkdir()
        stub = PROGRAM.replace("PORT", str(port))
        self.program("kubectl", stub.replace("PROGRAM", "kubectl"))
        self.program("../my project/.feedmill/venv/bin/python", stub.replace("PROGRAM", "python"))
        for name in ("docker", "kind"):
            self.program(name, ENGINE_STUB.replace("NAME", name).replace("DIRECTORY", str(self.directory)))
        self.program("kubernetes-validate", "#!/bin/sh\n")
        write(self.directory / "other_calls", "")
        self.use("dev")

    def program(self, name: str, text: str) -> None:
        write(self.bin / name, text)
        (self.bin / name).chmod(0o755)

    def use(self, environment: str, *, ready: bool = True) -> None:
        """The context of an environment, with the namespace and the secrets that people and operators make."""
        self.cluster.context = CONTEXTS[environment]
        self.cluster.objects = {}
        if ready:
            for kind, name in (
                ("Namespace", ENVIRONMENTS[environment]),
                ("Secret", "people-made-this"),
                ("Secret", "database-app"),
                ("Secret", "broker-user-writer"),
            ):
                self.cluster.objects[f"{kind.lower()}/{name}"] = Object(kind)

    def fail(
        self, call: str, says: str = "it failed", *, code: int = 1, times: int = 1, interrupt: bool = False
    ) -> None:
        self.cluster.faults.append(Fault(call, says, code, times, interrupt))

    def run(self, *arguments: str, cwd: Path | None = None, answer: str = "", path: str | None = None) -> Run:
        write(self.directory / "images", "".join(f"{image}\n" for image in self.images))
        environment = os.environ | {
            "PATH": path or f"{self.bin}:{os.environ['PATH']}",
            "KUBECONFIG": str(self.directory / "no-kubeconfig"),
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_SYSTEM": "/dev/null",
            "TMPDIR": str(self.tmp),
            "SETTLE_SECONDS": "0",
        }
        done = subprocess.run(
            [str(self.project / "deploy.sh"), *arguments],
            cwd=cwd or self.project,
            env=environment,
            input=answer,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert not list(self.tmp.iterdir()), "temporary files are left"
        lock = "configmap/feedmill-deploy-lock" in self.cluster.objects
        assert not lock or "another deploy" in done.stderr or "the lock stays" in done.stderr
        return Run(done)

    def deploy(self, fetch_type: str = "queue-fetcher", environment: str = "dev", *arguments: str) -> Run:
        """Deploy, and confirm the question."""
        self.cluster.calls.clear()
        return self.run(
            "-T", fetch_type, "-e", environment, *arguments, answer="prod\n" if environment == "prod" else "y\n"
        )

    def called(self, *words: str) -> list[str]:
        """The calls of kubectl that begin with these words."""
        return [" ".join(call) for call in self.cluster.calls if call[: len(words)] == list(words)]

    def changes(self) -> list[str]:
        """The calls that changed something in the cluster, without the options that every call has."""
        reading = {"api-resources", "config", "get", "diff", "wait", "kustomize", "logs", "rollout"}
        return [
            re.sub(r" --(context|namespace)=\S+| -f \S+", "", " ".join(call))
            for call in self.cluster.calls
            if call[0] not in reading and not any(argument.startswith("--dry-run") for argument in call)
        ]

    @property
    def other_calls(self) -> list[str]:
        return (self.directory / "other_calls").read_text().splitlines()

    def records(self) -> list[dict[str, str]]:
        """Return the records in the cluster."""
        objects = sorted(self.cluster.objects.items())
        return [found.data for key, found in objects if key.startswith("configmap/feedmill-deploy-2")]

    def commit(self, *, push: bool = True) -> str:
        git(self.project, "add", "--all")
        git(self.project, "commit", "--quiet", "--allow-empty", "--message", "A change")
        if push:
            git(self.project, "push", "--quiet", "origin", "main")
        return git(self.project, "rev-parse", "HEAD")

    def edit(self, path: str, old: str, new: str) -> None:
        file = self.project / path
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))


class Run:
    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
        self.all = done.stdout + done.stderr

    def __repr__(self) -> str:
        return f"exit {self.code}\n{self.out}\n--- errors\n{self.err}"


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("deploy")
    project = directory / "my project"
    (project / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / "deploy.sh", project)
    shutil.copytree(ROOT / "scripts/deploy", project / "scripts/deploy")
    write(project / "scripts/setup.sh", "#!/bin/sh\n")
    (project / "scripts/setup.sh").chmod(0o755)
    write(project / ".gitignore", ".feedmill/\n")
    write_manifests(project / "k8s")
    for environment in ENVIRONMENTS:
        name = f"k8s/overlays/{environment}/deploy.env"
        write(project / name, (ROOT / name).read_text())
    git(directory, "init", "--quiet", "--bare", "origin.git")
    git(project, "init", "--quiet")
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message", "All")
    git(project, "remote", "add", "origin", "../origin.git")
    git(project, "push", "--quiet", "origin", "main")
    return directory


@pytest.fixture
def bench(tmp_path: Path, template: Path) -> Iterator[Bench]:
    if KUBECTL is None:
        pytest.skip("kubectl is not installed, and it renders the manifests")
    cluster = FakeCluster(tmp_path / "my project")
    with served(cluster) as port:
        made = Bench(tmp_path, cluster)
        made.set_up(template, port)
        yield made
