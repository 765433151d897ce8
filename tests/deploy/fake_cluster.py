"""Stands in for a cluster, and for kubectl as far as it speaks to one.

It knows what deploy.sh asks for, in the words of the real one: objects come by apply and go by delete, and the former
specs of a Deployment stay in its ReplicaSets. The programs `kubectl` and `python` of the tests are a few lines of bash
that ask this over a socket, since a deploy calls them some thirty times. `kubectl kustomize` and `manifests.py
facts` come from the real ones, once for the same input: they take longer than all the rest of a deploy.
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
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from scripts.deploy.manifests import before, others

PROGRAM = """#!/bin/bash
exec 3<>/dev/tcp/127.0.0.1/PORT
set -- PROGRAM "$(readlink /proc/self/fd/0)" "$@"
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
APIS = {kind: api for api, kinds in KINDS.items() for kind in kinds}
SAID: dict[str, str] = {}
"""The output of real programs, by their input."""


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
    owned: bool = False
    generation: int = 0
    former: list[str] = field(default_factory=list)
    """What it was: of a Deployment its ReplicaSets know it."""


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

    def real(self, key: str, command: list[str], given: str = "") -> str:
        """What a program says, which is asked once for the same key."""
        if key not in SAID:
            done = subprocess.run(
                command, cwd=self.project, input=given, capture_output=True, text=True, check=False, env=os.environ
            )
            if done.returncode:
                raise Failed(done.stderr.strip(), done.returncode)
            SAID[key] = done.stdout
        return SAID[key]

    def rendered(self, directory: str) -> str:
        key = Path(directory, "kustomization.yaml").read_text() if Path(directory).name.startswith("tmp.") else ""
        key = re.sub(r"(\.\./)+.*/k8s/", "k8s/", key) or directory.removeprefix(str(self.project))
        for file in sorted(self.project.parent.rglob("*.yaml")):
            if "tmp" not in file.relative_to(self.project.parent).parts:
                key += f"{file}\n".removeprefix(str(self.project.parent)) + file.read_text()
        return self.real(key, [str(shutil.which("kubectl")), "kustomize", directory])

    def manifests(self, stdin: str, command: str, first: str, second: str) -> str:
        """What manifests.py says; of what was before it also writes files."""
        given = Path(stdin).read_text()
        run = [sys.executable, "-m", "scripts.deploy.manifests", command, first, second]
        if command != "facts":
            documents, found = list(yaml.safe_load_all(Path(first).read_text())), json.loads(given)["items"]
            said = before(documents, found, Path(second)) if command == "before" else others(documents, found, second)
            return "".join("\t".join(map(str, fact)) + "\n" for fact in said)
        values = Path(first, "deploy.env").read_text()
        key = f"{command} {first.removeprefix(str(self.project))} {second} {values} {given}"
        return self.real(key, run, given).replace("PROJECT", str(self.project))

    def answer(self, parent: int, program: str, stdin: str, arguments: list[str]) -> str:
        """Return the output of a program. Raises Failed with its error message."""
        if program == "python":
            return self.manifests(stdin, *arguments[2:])
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
        return self.ask_server(arguments, call)

    def ask_server(self, arguments: list[str], call: str) -> str:
        flags = dict(re.findall(r"--([\w-]+)=(\S*)", call))
        plain = []
        rest = iter(arguments)
        for argument in rest:
            if argument in ("-l", "-f", "-o", "-p"):
                flags[argument] = next(rest)
            elif not argument.startswith("-"):
                plain.append(argument)
        assert flags["context"] == self.context, "every call must name the context that was checked"
        space = flags.get("namespace", "")
        if plain[0] != "apply" and "-f" not in flags and space and f"namespace/{space}" not in self.objects:
            raise Failed(f'Error from server (NotFound): namespaces "{space}" not found')
        verb = {"get": self.get, "delete": self.delete, "apply": self.apply}.get(plain[0])
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
        manifests = list(parse_manifests("---\n".join(file.read_text() for file in files)))
        if unknown := self.unknown_kinds.intersection(one.kind for _, one in manifests):
            raise Failed(f'error: no matches for kind "{min(unknown)}" in version "v1"')
        for key, manifest in manifests:
            if not fits(manifest.labels, flags.get("-l", "")) or "dry-run" in flags:
                continue
            self.fault(f"apply {key}", 0)
            now = self.objects.setdefault(key, Object(manifest.kind))
            lines.append(f"{key} {'configured' if now.applied else 'created'}\n")
            if now.spec != manifest.spec:
                now.former.append(now.spec)
                now.generation += 1
            now.labels, now.spec, now.applied = manifest.labels, manifest.spec, True
        return "".join(lines)

    def get(self, plain: list[str], flags: dict[str, str]) -> str:
        if "-f" in flags:
            named = [key for key, _ in parse_manifests(Path(flags["-f"]).read_text())]
            return json.dumps({"items": [self.document(key) for key in named if key in self.objects]})
        if plain[0] in ("pod", "pods", "events"):
            return ""
        if plain[0].startswith("deployments,"):
            workloads = [one for one in self.objects.values() if one.kind in ("CronJob", "Deployment", "Job")]
            return "".join(one.spec + "".join(one.former) for one in workloads)
        if len(plain) > 1 or "/" in plain[0]:
            keys = [f"{plain[0]}/{name}" for name in plain[1:]] or plain
            return "".join(self.get_one(short(key), flags.get("-o", "")) for key in keys)
        keys = self.selected(plain[0], flags.get("-l", ""))
        if flags["-o"] == "name":
            return "".join(f"{key}\n" for key in keys)
        return json.dumps({"items": [self.document(key) for key in keys]})

    def get_one(self, key: str, form: str) -> str:
        if key not in self.objects:
            raise Failed(f'Error from server (NotFound): "{key}" not found')
        found = self.objects[key]
        if "{.data.holder}" in form:
            return re.sub(r"\{\.data\.(\w+)\}", lambda name: found.data[name[1]], form.removeprefix("jsonpath="))
        return str(found.generation) if "generation" in form else ""

    def document(self, key: str) -> dict[str, object]:
        one = self.objects[key]
        last = {"key": key, "kind": one.kind, "labels": one.labels, "spec": one.spec}
        annotations = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(last)} if one.applied else {}
        metadata = {"name": key.split("/")[1], "generation": one.generation, "annotations": annotations}
        metadata |= {"labels": one.labels} | ({"ownerReferences": [{}]} if one.owned else {})
        image = re.search(r"image: (.*)", one.spec)
        spec = {"image": image[1]} if image else {}
        return {"apiVersion": APIS.get(one.kind, "v1"), "kind": one.kind, "metadata": metadata, "spec": spec}

    def selected(self, kinds: str, selector: str) -> list[str]:
        wanted = [re.sub(r"(?<=y)ies$|s$", "", kind.split(".")[0]) for kind in kinds.split(",")]
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

    def rest(self, plain: list[str], flags: dict[str, str], arguments: list[str]) -> str:
        match plain:
            case ["diff"]:
                raise Failed("-before, +after", 1)
            case ["logs" | "wait" | "rollout", *_]:
                return ""
            case ["patch", name] if flags["-p"] == '{"spec":{"suspend":true}}':
                if name not in self.objects:
                    raise Failed(f'Error from server (NotFound): "{name}" not found')
                self.objects[name].suspended = True
                return ""
            case ["create", *rest]:
                return self.create(rest, arguments)
            case ["api-resources"]:
                kinds = {one.kind for one in self.objects.values()} | set(APIS)
                return "".join(f"{kind.lower()}s\n" for kind in sorted(kinds))
            case ["label", "configmap", name, label]:
                key, value = label.split("=")
                self.objects[f"configmap/{name}"].labels[key] = value
                return ""
        raise Failed(f"the fake cluster does not know: {arguments}", 99)

    def create(self, plain: list[str], arguments: list[str]) -> str:
        if "--dry-run=server" in arguments:
            if "job/migrate" in self.objects:
                raise Failed('Error from server (AlreadyExists): jobs.batch "migrate" already exists')
            return ""
        kind, name = plain[0], plain[-1]
        if f"{kind}/{name}" in self.objects:
            raise Failed(f'error: failed to create {kind}: {kind}s "{name}" already exists')
        given = dict(a.partition("=")[2].split("=", 1) for a in arguments if a.startswith("--from-literal="))
        files = dict(a.partition("=")[2].split("=", 1) for a in arguments if a.startswith("--from-file="))
        data = given | {key: Path(file).read_text() for key, file in files.items()}
        self.objects[f"{kind}/{name}"] = Object({"configmap": "ConfigMap", "secret": "Secret"}[kind], data=data)
        return ""


@contextmanager
def served(cluster: FakeCluster) -> Iterator[int]:
    """The port on which the programs of the tests ask."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            received = b""
            while received.count(b"\0") < 2 or received.count(b"\0") < int(received.split(b"\0")[0]) + 2:
                received += self.request.recv(65536)
            _, parent, program, stdin, *arguments = received.decode().split("\0")[:-1]
            says, code, out = "", "0", ""
            try:
                out = cluster.answer(int(parent), program, stdin, arguments)
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
