"""Where the API is: FEEDMILL_API_URL, and the token for it."""

from __future__ import annotations

import ipaddress
import re
import ssl
from urllib.parse import SplitResult, urlsplit

import httpx

from local.terminal import print_error
from services.cli.settings import CliSettings
from shared.errors import ConfigurationError

CONNECT_SECONDS = 10.0
READ_SECONDS = 120.0
"""An answer, and each part of one, comes within this time. The longest poll takes less."""


def open_client(settings: CliSettings) -> httpx.AsyncClient:
    """Return a client of the API at FEEDMILL_API_URL, with FEEDMILL_API_TOKEN. It follows no redirect.

    Raises:
        ConfigurationError: the URL or the token can't be one.
    """
    url = _read_url(settings.api_url)
    token = _read_token(settings.api_token.get_secret_value())
    if token and url.scheme == "http" and not _is_loopback(url.hostname or ""):
        print_error(f"warning: the token goes to {url.hostname} in the clear: use https in FEEDMILL_API_URL")
    return httpx.AsyncClient(
        base_url=url.geturl(),
        headers={"Authorization": f"Bearer {token}"} if token else {},
        timeout=httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS),
        trust_env=False,  # a proxy of the environment is for feeds
        # OpenSSL's own default: the machine's authorities, or SSL_CERT_FILE's.
        verify=ssl.create_default_context() if url.scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
    )


def _read_url(text: str) -> SplitResult:
    url = urlsplit(text.strip())
    try:
        httpx.URL(text.strip())
    except httpx.InvalidURL:
        raise ConfigurationError(
            "FEEDMILL_API_URL is no URL of an API: expected https://HOST[:PORT][/PREFIX]"
        ) from None
    if "@" in url.netloc:
        raise ConfigurationError("FEEDMILL_API_URL has a user or a password: give a token as FEEDMILL_API_TOKEN")
    if url.query or url.fragment:
        raise ConfigurationError("FEEDMILL_API_URL has more than host and path: leave off what begins with ? or #")
    return url._replace(path=re.sub(r"(/api)?/*$", "", url.path))  # people copy the address with `/api`


def _read_token(text: str) -> str:
    token = text.strip()  # a file's line ends
    if not re.fullmatch(r"[!-~]*", token):
        raise ConfigurationError("FEEDMILL_API_TOKEN has spaces or letters that no token has: copy it again")
    return token


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
