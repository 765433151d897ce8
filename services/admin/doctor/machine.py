"""Checks this machine: Python, disk, open files, names, and one feed if it is given."""

from __future__ import annotations

import platform
import resource
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from services.admin.doctor.findings import Finding, error, judge_disk, judge_open_files, judge_version, warning, well
from services.admin.feeds import preview
from services.fetcher.settings import FetcherSettings
from shared.build import read_version
from shared.observability.secrets import mask_credentials

LEAST_PYTHON = "3.11"

NAME = "example.org"
"""A name that resolves wherever the internet can be reached."""

LEAST_DISK_BYTES = 2**28
"""What is smaller is a container's /tmp in memory, where no servers are: not the disk that anybody means."""

DNS_SECONDS = 5.0
DNS_SLOW_SECONDS = 1.0


def check_machine(home: Path) -> Iterator[Finding]:
    """Yield what concerns no server. Args: the directory of private servers."""
    yield well("feedmill", f"version {read_version()}")
    yield judge_version("Python", platform.python_version(), LEAST_PYTHON)
    place = next(path for path in (home.resolve(), *home.resolve().parents) if path.exists())
    usage = shutil.disk_usage(place)
    if usage.total >= LEAST_DISK_BYTES:
        yield judge_disk(str(place), usage.free, usage.total)
    yield check_names(NAME)


def check_open_files(settings: FetcherSettings) -> Finding:
    """Compare this process's limit with what a fetcher may need."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = 2**31 if soft == resource.RLIM_INFINITY else soft
    return judge_open_files(limit, settings.fetch_threads, settings.fetcher_prefetch)


def check_names(name: str) -> Finding:
    """Resolve a name. A resolver may hang; nobody waits for it longer than `DNS_SECONDS`."""
    failures: list[str] = []

    def resolve() -> None:
        try:
            socket.getaddrinfo(name, 443, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as failure:
            failures.append(str(failure))

    begun = time.monotonic()
    resolving = threading.Thread(target=resolve, name="resolver", daemon=True)
    resolving.start()
    resolving.join(DNS_SECONDS)
    took = time.monotonic() - begun
    advice = "look at /etc/resolv.conf; where fetchers use a proxy or run elsewhere, this does not matter"
    if resolving.is_alive():
        return warning("DNS", f"{name} was not resolved within {DNS_SECONDS:g} s", advice)
    if failures:
        return warning("DNS", f"{name} does not resolve: {failures[0]}", advice)
    if took > DNS_SLOW_SECONDS:
        return warning(
            "DNS", f"{name} took {took:.1f} s to resolve", "take a nearer resolver, or a cache such as dnsmasq"
        )
    return well("DNS", f"{name} resolves in {took * 1000:.0f} ms")


def check_probe(url: str) -> Finding:
    """Fetch a feed once, as a fetcher would, and read it."""
    begun = time.monotonic()
    try:
        parsed = preview.read_url(url, base_url=None, content_type=None)
    except preview.ReadingFailed as failure:
        said = f"{mask_credentials(url)}: {failure.outcome.value}: {failure}"
        return error("probe", said, f"`feedmill parse {mask_credentials(url)}` tells more")
    took = time.monotonic() - begun
    return well("probe", f"{mask_credentials(url)}: {len(parsed.entries)} entries in {took:.2f} s")
