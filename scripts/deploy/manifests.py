"""What manifests say, for deploy.sh: a line a fact, its parts separated by tabs."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from services.api.settings import ApiSettings
from services.cli.settings import CliSettings
from services.enricher.settings import EnricherSettings
from services.fetcher.settings import FetcherSettings
from services.scheduler.settings import SchedulerSettings
from services.writer.settings import WriterSettings
from shared.errors import ConfigurationError
from shared.settings import SECRETS, read_settings

PHASE, TYPE, PART_OF = "feedmill.dev/phase", "feedmill.dev/fetch-type", "app.kubernetes.io/part-of"
PHASES = ("1-foundation", "2-migrate", "3-services")
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
MAKE_SECRETS = {"Ingress", "Certificate", "ExternalSecret", "SealedSecret"}  # or do without it for a while
SERVERS = ("rabbitmq.com", "postgresql.cnpg.io")

Document = dict[str, Any]
Fact = tuple[Any, ...]


class AllSettings(SchedulerSettings, FetcherSettings, EnricherSettings, WriterSettings, ApiSettings, CliSettings):
    """The settings of all services."""


class Values(BaseModel):
    """deploy.env."""

    model_config = ConfigDict(extra="forbid", alias_generator=str.upper)

    rules: Literal["dev", "staging", "prod"]
    context: re.Pattern[str]
    namespace: str = Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")
    branch: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]*$")
    foundation_seconds: int = Field(ge=1, le=99_999)
    migrate_seconds: int = Field(ge=1, le=99_999)
    rollout_seconds: int = Field(ge=1, le=99_999)


def read_values(file: Path) -> tuple[str, list[str]]:
    """Return the namespace that deploy.env names, and what is wrong with its values."""
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    given = dict(line.partition("=")[::2] for line in lines if not line.endswith("="))
    try:
        return Values.model_validate(given).namespace, []
    except ValidationError as error:
        wrong = error.errors(include_input=False)
        return given.get("NAMESPACE", ""), [f"{file}: {one['loc'][0]}: {one['msg']}" for one in wrong]


def labels(document: Document) -> dict[str, str]:
    """Return the labels of an object."""
    return document["metadata"].get("labels") or {}


def name_of(document: Document) -> str:
    """Return KIND/NAME for kubectl. Kinds that aren't Kubernetes' own need their group: several may be a "cluster"."""
    kind, (group, _, version) = document["kind"].lower(), document["apiVersion"].rpartition("/")
    if "." in group and not group.endswith(".k8s.io"):
        kind += f".{version}.{group}"
    return f"{kind}/{document['metadata']['name']}"


def identity(document: Document) -> Fact:
    """Return group, kind and name, which stay the same when an API's version changes."""
    return document["apiVersion"].rpartition("/")[0], document["kind"], document["metadata"]["name"]


def image_of(server: Document) -> str:
    """Return the image of a broker or database, or the major version that it takes from a catalog."""
    spec = server["spec"]
    return str(
        spec.get("image") or spec.get("imageName") or f"major:{(spec.get('imageCatalogRef') or {}).get('major')}"
    )


def is_older(image: str, than: str) -> bool:
    """Compare the numbers that both tags have."""
    tags = (one.partition("@")[0].rpartition(":")[2] for one in (image, than))
    new, old = ([int(number) for number in re.findall(r"\d+", tag)] for tag in tags)
    return new[: len(old)] < old[: len(new)]


def nodes(tree: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Every value within a tree, after the key that it stands under (an item of a list: the list's)."""
    yield key, tree
    for name, below in tree.items() if isinstance(tree, dict) else ():
        yield from nodes(below, name)
    for below in tree if isinstance(tree, list) else ():
        yield from nodes(below, key)


def needed_secrets(document: Document) -> set[str]:
    """Return the names of the secrets without which the object does not work."""
    found = set()
    for key, node in nodes(document):
        if isinstance(node, dict) and not node.get("optional"):
            refers = re.search(r"[sS]ecret(s|KeyRef|Ref|TargetRef)?$", key)
            found.add(node.get("secretName") or (refers and node.get("name")))
    return {name for name in found if name} if document["kind"] not in MAKE_SECRETS else set()


def wrong_settings(document: Document) -> Iterator[str]:
    """What is wrong with the settings in a ConfigMap or in containers."""
    given = dict(document.get("data") or {}) if document["kind"] == "ConfigMap" else {}
    for key, node in nodes(document.get("spec")):
        if key == "env" and isinstance(node, dict):
            value = node.get("value") or ""
            given[node["name"]] = "" if "$(" in value else value  # put together in the pod
    given = {name: value for name, value in given.items() if name.startswith("FEEDMILL_") and name != SECRETS}
    for name in given:
        if name.removeprefix("FEEDMILL_").lower() not in AllSettings.model_fields:
            yield f"{name} is not a setting (docs/reference/configuration.md lists them)"
    os.environ.clear()
    os.environ.update(given)
    try:
        read_settings(AllSettings)
    except ConfigurationError as error:
        yield str(error)


def broken_contract(document: Document, namespace: str, fetch_type: str) -> Iterator[str]:
    """What deploy.sh can't work with in an object."""
    if labels(document).get(PHASE) not in PHASES:
        yield f"the label {PHASE} must be one of {', '.join(PHASES)}"
    if labels(document).get(PART_OF) != "feedmill":
        yield f"the label {PART_OF} must be feedmill"
    if document["metadata"].get("namespace", namespace) != namespace:
        yield f"is in the namespace {document['metadata']['namespace']}, and deploy.env says {namespace}"
    if labels(document).get(TYPE, fetch_type) != fetch_type:
        yield f"is labelled {TYPE}={labels(document)[TYPE]}"


def other_namespaces(documents: list[Document], namespace: str) -> Iterator[Fact]:
    """Problems: alert rules, and hosts named for one of the objects, that name another namespace."""
    ours = "|".join(re.escape(one["metadata"]["name"]) for one in documents)
    pattern = rf"""\b(?:{ours})[a-z0-9-]*\.([a-z0-9-]+)\.svc\b|namespace=~?\\*['"]([a-z0-9-]+)\\*['"]"""
    for document in documents:
        found = {one[0]: one[1] or one[2] for one in re.finditer(pattern, json.dumps(document))}
        for text in sorted(text for text, named in found.items() if named != namespace):
            yield "problem", f"{name_of(document)}: {text}, and deploy.env says {namespace}"


def image_facts(documents: list[Document]) -> Iterator[Fact]:
    """What is known of the images."""
    found = {node for key, node in nodes(documents) if key in ("image", "imageName") and isinstance(node, str)}
    names = {image: re.sub(r"(:[^/:@]*)?(@.*)?$", "", image) for image in found}
    ours = sorted({name for name in names.values() if re.search(r"(^|/)feedmill(-[a-z-]+)?$", name)})
    for name in ours:
        yield "ours", name
    if not ours or not ours[0].endswith("feedmill") or not all(name.startswith(ours[0]) for name in ours):
        yield "problem", f"feedmill's image must be in them, from one registry (not: {', '.join(ours)})"
    for image in sorted(found):
        if not re.search(r"@sha256:|:[^/:]+$", image) or image.endswith(":latest"):
            yield "problem", f"image {image}: has no fixed tag"
        elif "@sha256:" not in image and names[image] not in ours:
            yield "tagged", image


def secret_facts(documents: list[Document]) -> Iterator[Fact]:
    """The secrets. What an operator makes of an object is named for it (broker-default-user, database-app)."""
    makers = [document for document in documents if document["kind"] == "Secret" or "." in name_of(document)]
    owners = [one["metadata"]["name"] for one in makers if labels(one).get(PHASE) == PHASES[0]]
    for name in sorted({name for document in documents for name in needed_secrets(document)}):
        made = any(name == owner or name.startswith(f"{owner}-") for owner in owners)
        yield "secret", "ready" if made else "now", name


def facts(directory: Path, fetch_type: str, documents: list[Document]) -> Iterator[Fact]:
    """All facts of an overlay, which has its deploy.env in the directory."""
    namespace, problems = read_values(directory / "deploy.env")
    yield from (("problem", text) for text in problems)
    for document in documents:
        name = name_of(document)
        yield "object", labels(document).get(PHASE), name
        for text in (*broken_contract(document, namespace, fetch_type), *wrong_settings(document)):
            yield "problem", f"{name}: {text}"
    if not any(labels(document).get(TYPE) for document in documents):
        yield "problem", f"no object is labelled {TYPE}={fetch_type}"
    yield from other_namespaces(documents, namespace)
    yield from image_facts(documents)
    yield from secret_facts(documents)


def before(documents: list[Document], live: list[Document], directory: Path) -> Iterator[Fact]:
    """What the way back needs, and files of what was last applied: DIRECTORY/PHASE/KIND=NAME.json."""
    there = {identity(one): one for one in live}
    for document in documents:
        phase, name, now = labels(document)[PHASE], name_of(document), there.get(identity(document))
        if identity(document)[0].endswith(SERVERS):
            yield "server", name, now["metadata"]["generation"] if now else 0
            if now and is_older(image_of(document), image_of(now)):
                yield "older", f"{name} {image_of(now)}"
        elif phase == PHASES[1]:
            continue
        elif now is None:
            if phase == PHASES[2] or TYPE in labels(document):
                yield "new", phase, name
        elif applied := (now["metadata"].get("annotations") or {}).get(LAST_APPLIED):
            file = directory / phase / f"{name.replace('/', '=')}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{applied}\n", encoding="utf-8")
        else:
            yield "lost", name


def unhashed(document: Document) -> str:
    """Return the name of a ConfigMap without what kustomize adds to it for its content (feedmill-config-h26tc4kd69)."""
    name = document["metadata"]["name"] if document["kind"] == "ConfigMap" else ""
    return re.sub(r"-[0-9a-z]{10}$", "", name) if re.search(r"-[0-9a-z]{10}$", name) else ""


def others(documents: list[Document], found: list[Document], other: str) -> Iterator[Fact]:
    """What is labelled as ours beside the manifests: what is to go, old ConfigMaps, and leftovers.

    What runs goes before the foundation that it needs until it has drained. Of what others own only Jobs go, and before
    their CronJob: one that somebody made of it by hand would not be waited for with it.
    """
    kept, generated = {identity(one) for one in documents}, {unhashed(one) for one in documents} - {""}
    for one in sorted(found, key=lambda one: (one["kind"] == "Job", labels(one).get(PHASE, "")), reverse=True):
        if labels(one).get(TYPE) == other:
            if one["kind"] == "Job" or "ownerReferences" not in one["metadata"]:
                yield "remove", name_of(one)
        elif "ownerReferences" not in one["metadata"] and identity(one) not in kept:
            yield "old" if unhashed(one) in generated else "leftover", name_of(one)


def main(command: str, first: str, second: str) -> None:
    """Print `facts DIRECTORY TYPE <MANIFESTS`, `before MANIFESTS DIRECTORY <LIVE` or `others MANIFESTS TYPE <FOUND`."""
    if command == "facts":
        found = facts(Path(first), second, [one for one in yaml.safe_load_all(sys.stdin) if one])
    else:
        documents = [one for one in yaml.safe_load_all(Path(first).read_text(encoding="utf-8")) if one]
        said = json.loads(sys.stdin.read().strip() or '{"items": []}')
        items = said.get("items", [said])
        found = before(documents, items, Path(second)) if command == "before" else others(documents, items, second)
    for fact in found:
        print("\t".join(str(part).replace("\n", " ") for part in fact))


if __name__ == "__main__":
    main(*sys.argv[1:])
