"""Stands in for a cluster, and for kubectl as far as it speaks to one.

It knows what deploy.sh asks for, in the words of the real one: objects come by apply and go by delete, and a Deployment
whose template changes gets a revision and can be undone. The program `kubectl` of the tests is four lines of bash that
ask this over a socket, since a deploy calls it some fifty times. `kustomize` is the real kubectl's.
Every call is kept; a fault (a pattern of the call, and what happens then) makes one fail.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socketserver
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

KUBECTL = """#!/bin/bash
exec 3<>/dev/tcp/127.0.0.1/PORT
printf '%s\\0' "$#" "$PPID" "$@" >&3
read -r code complaints <&3
for ((; complaints > 0; complaints--)); do IFS= read -r line <&3; printf '%s\\n' "$line" >&2; done
cat <&3
exit "$code"
"""


@dataclass
class Fault:
    call: str
    """A pattern of the call, or of `apply KIND/NAME` for one object among many."""
    says: str
    code: int = 1
    times: int = 1
    interrupt: bool = False
    """Ctrl-C meanwhile: the script gets SIGINT, and kubectl goes on."""


KINDS = {
    "v1": ("ConfigMap", "Namespace", "Secret"),
    "apps/v1": ("Deployment",),
    "batch/v1": ("CronJob", "Job"),
    "keda.sh/v1alpha1": ("ScaledObject",),
    "postgresql.cnpg.io/v1": ("Cluster",),
    "rabbitmq.com/v1beta1": ("RabbitmqCluster",),
}
RENDERED: dict[str, str] = {}


class Failed(Exception):
    def __init__(self, says: str, code: int = 1) -> None:
        super().__init__(says)
        self.says, self.code = says, code


@dataclass
class Object:
    kind: str
    labels: dict[str, str] = field(default_factory=dict)
    spec: str = ""
    applied: bool = False
    data: dict[str, str] = field(default_factory=dict)
    suspended: bool = False
    generation: int = 0
    revision: int = 0
    history: dict[int, str] = field(default_factory=dict)
    """The template of each revision of a Deployment."""


def parse_manifests(text: str) -> Iterator[tuple[str, Object]]:
    """The objects of a file of manifests, as kustomize writes them, or one JSON object a document."""
    for part in re.split(r"^---\n", text, flags=re.MULTILINE):
        if part.startswith("{"):
            one = json.loads(part)
            yield one["key"], Object(one["kind"], one["labels"], one["spec"])
        elif part.strip():
            kind, metadata = search(r"^kind: (\w+)", part), search(r"^metadata:\n((?:  .*\n)*)", part)
            block = re.search(r"^  labels:\n((?:    .*\n)*)", metadata, re.MULTILINE)
            labels = dict(re.findall(r"^    (\S+): \"?([^\"\n]*)\"?$", block[1] if block else "", re.MULTILINE))
            spec = re.search(r"^(?:spec|data):\n((?:[ -].*\n?)*)", part, re.MULTILINE)
            key = f"{kind.lower()}/{search(r'^  name: (.+)', metadata)}"
            yield key, Object(kind, labels, spec[1] if spec else "")


def search(pattern: str, text: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    assert found, pattern
    return found[1]


def fits(labels: dict[str, str], selector: str) -> bool:
    for term in filter(None, selector.split(",")):
        name, value = re.split("!?=", term)
        if (labels.get(name) == value) == ("!=" in term):
            return False
    return True


def short(name: str) -> str:
    """deployment/writer, whatever group and version the kind was given with."""
    kind, _, rest = name.partition("/")
    return f"{kind.split('.')[0]}/{rest}"


class FakeCluster:
    def __init__(self, project: Path) -> None:
        self.project = project
        self.objects: dict[str, Object] = {}
        self.context = ""
        self.unknown_kinds: set[str] = set()
        self.faults: list[Fault] = []
        self.replies: dict[str, str] = {}
        """Fixed answers, by the beginning of the call."""
        self.calls: list[list[str]] = []

    def rendered(self, directory: str) -> str:
        """By the real kubectl, once for the same input: it takes longer than all the rest of a deploy."""
        outside = Path(directory, "kustomization.yaml")
        key = re.sub(r"(\.\./)+.*/k8s/", "k8s/", outside.read_text()) if outside.is_absolute() else directory
        for file in sorted((self.project / "k8s").rglob("*.yaml")):
            key += f"{file}\n".removeprefix(str(self.project)) + file.read_text()
        if key not in RENDERED:
            command = [str(shutil.which("kubectl")), "kustomize", directory]
            done = subprocess.run(command, cwd=self.project, capture_output=True, text=True, check=False)
            if done.returncode:
                raise Failed(done.stderr.strip(), done.returncode)
            RENDERED[key] = done.stdout
        return RENDERED[key]

    def answer(self, parent: int, arguments: list[str]) -> str:
        """Return the output of kubectl. Raises Failed with its error message."""
        self.calls.append(arguments)
        call = " ".join(arguments)
        self.fault(call, parent)
        if arguments[0] == "kustomize":
            return self.rendered(arguments[1])
        if call == "config current-context":
            if not self.context:
                raise Failed("error: current-context is not set")
            return self.context
        for beginning, reply in self.replies.items():
            if call.startswith(beginning):
                return reply
        flags = dict(re.findall(r"--([\w-]+)=(\S*)", call))
        plain = []
        rest = iter(arguments)
        for argument in rest:
            if argument in ("-l", "-f", "-o", "-p"):
                flags[argument] = next(rest)
            elif not argument.startswith("-"):
                plain.append(argument)
        assert flags["context"] == self.context, "every call must name the context that was checked"
        if plain[0] != "apply" and "namespace" in flags and f"namespace/{flags['namespace']}" not in self.objects:
            raise Failed(f'Error from server (NotFound): namespaces "{flags["namespace"]}" not found')
        verb = {"get": self.get, "delete": self.delete, "apply": self.apply, "rollout": self.rollout}.get(plain[0])
        return verb(plain[1:], flags) if verb else self.rest(plain, flags, arguments)

    def fault(self, call: str, parent: int) -> None:
        for fault in self.faults:
            if fault.times > 0 and re.search(fault.call, call):
                fault.times -= 1
                if fault.interrupt:
                    os.kill(parent, signal.SIGINT)
                    threading.Event().wait(10)
                if fault.code:
                    raise Failed(fault.says, fault.code)

    def apply(self, _: list[str], flags: dict[str, str]) -> str:
        lines = []
        given = Path(flags["-f"])
        files = sorted(given.glob("*.json")) if given.is_dir() else [given]
        for key, manifest in parse_manifests("---\n".join(file.read_text() for file in files)):
            if not fits(manifest.labels, flags.get("-l", "")) or "dry-run" in flags:
                continue
            self.fault(f"apply {key}", 0)
            now = self.objects.setdefault(key, Object(manifest.kind))
            lines.append(f"{key} {'configured' if now.applied else 'created'}\n")
            changed = now.spec != manifest.spec
            now.labels, now.spec, now.applied = manifest.labels, manifest.spec, True
            now.generation += changed
            if manifest.kind == "Deployment" and changed:
                self.revise(now)
        return "".join(lines)

    @staticmethod
    def revise(deployment: Object) -> None:
        """As in a real cluster, an old template gets a new revision."""
        last = max(deployment.history, default=0)
        deployment.history = {number: spec for number, spec in deployment.history.items() if spec != deployment.spec}
        deployment.revision = last + 1
        deployment.history[deployment.revision] = deployment.spec

    def get(self, plain: list[str], flags: dict[str, str]) -> str:
        if not plain:
            return "{}"  # --raw=/version
        if plain[0] in ("pods", "events"):
            return ""
        if len(plain) == 2 or "/" in plain[0]:
            key = short("/".join(plain))
            if key not in self.objects:
                raise Failed(f'Error from server (NotFound): "{key}" not found')
            found = self.objects[key]
            last = {"key": key, "kind": found.kind, "labels": found.labels, "spec": found.spec}
            known = {
                "last-applied": json.dumps(last) if found.applied else "",
                "generation": str(found.generation),
                "revision": str(found.revision),
                "holder": found.data.get("holder", ""),
            }
            return next((value for name, value in known.items() if name in flags["-o"]), "")
        keys = self.selected(plain[0], flags.get("-l", ""))
        names = keys if flags["-o"] == "name" else [f"{self.objects[key].kind}/{key.split('/')[1]}" for key in keys]
        return "".join(f"{name}\n" for name in names)

    def selected(self, kinds: str, selector: str) -> list[str]:
        wanted = [kind.split(".")[0].removesuffix("s") for kind in kinds.split(",")]
        for kind in self.unknown_kinds.intersection(wanted):
            raise Failed(f'error: the server doesn\'t have a resource type "{kind}"')
        found = sorted(self.objects.items())
        return [key for key, one in found if key.split("/")[0] in wanted and fits(one.labels, selector)]

    def delete(self, plain: list[str], flags: dict[str, str]) -> str:
        if "-l" in flags:
            keys = self.selected(plain[0], flags["-l"])
        elif "/" in plain[0]:
            keys = [short(name) for name in plain]
        else:
            keys = [f"{plain[0]}/{name}" for name in plain[1:]]
        return "".join(f"{key} deleted\n" for key in keys if self.objects.pop(key, None))

    def rollout(self, plain: list[str], flags: dict[str, str]) -> str:
        if plain[0] == "status":
            return "successfully rolled out\n"
        deployment = self.objects[short(plain[1])]
        chosen = int(flags.get("to-revision") or sorted(deployment.history)[-2])
        if chosen not in deployment.history:
            raise Failed(f"error: unable to find specified revision {chosen} in history")
        deployment.spec = deployment.history[chosen]
        if chosen != deployment.revision:
            self.revise(deployment)
        return f"{plain[1]} rolled back\n"

    def rest(self, plain: list[str], flags: dict[str, str], arguments: list[str]) -> str:
        match plain:
            case ["diff"]:
                raise Failed("-before, +after", 1)
            case ["logs" | "wait", *_]:
                return ""
            case ["patch", name] if flags["-p"] == '{"spec":{"suspend":true}}':
                if name not in self.objects:
                    raise Failed(f'Error from server (NotFound): "{name}" not found')
                self.objects[name].suspended = True
                return ""
            case ["api-resources"]:
                known = [(kind, api) for api, kinds in KINDS.items() for kind in kinds]
                return "".join(
                    f"{kind.lower()}s {api} true {kind}\n"
                    for kind, api in known
                    if kind.lower() not in self.unknown_kinds
                )
            case ["create", "configmap", name]:
                if f"configmap/{name}" in self.objects:
                    raise Failed(f'error: failed to create configmap: configmaps "{name}" already exists')
                literals = [a.removeprefix("--from-literal=") for a in arguments if a.startswith("--from-literal=")]
                data = dict(literal.split("=", 1) for literal in literals)
                self.objects[f"configmap/{name}"] = Object("ConfigMap", data=data)
                return ""
            case ["create", "secret", "generic", name]:
                given = dict(a.partition("=")[2].split("=", 1) for a in arguments if a.startswith("--from-literal="))
                files = dict(a.partition("=")[2].split("=", 1) for a in arguments if a.startswith("--from-file="))
                data = given | {key: Path(file).read_text() for key, file in files.items()}
                self.objects[f"secret/{name}"] = Object("Secret", data=data)
                return ""
            case ["label", "configmap", name, label]:
                key, value = label.split("=")
                self.objects[f"configmap/{name}"].labels[key] = value
                return ""
        raise Failed(f"the fake cluster does not know: {arguments}", 99)


@contextmanager
def served(cluster: FakeCluster) -> Iterator[int]:
    """The port on which the program `kubectl` of the tests asks."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            received = b""
            while received.count(b"\0") < 2 or received.count(b"\0") < int(received.split(b"\0")[0]) + 2:
                received += self.request.recv(65536)
            _, parent, *arguments = received.decode().split("\0")[:-1]
            says, code, out = "", "0", ""
            try:
                out = cluster.answer(int(parent), arguments)
            except Failed as failed:
                says, code = failed.says + "\n", str(failed.code)
            self.wfile.write(f"{code} {says.count(chr(10))}\n{says}{out}".encode())

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
