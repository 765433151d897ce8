"""Pure: which URL of a feed is registered for what a person typed. No name is looked up."""

from __future__ import annotations

from dataclasses import dataclass

from services.admin.errors import Invalid
from services.fetcher.http.address_guard import Blocked, Network, check_host
from shared.observability.secrets import mask_credentials
from shared.politeness import BadUrl, clean_url, host_of, politeness_group

SHOWN_CHARACTERS = 200


@dataclass(frozen=True)
class UrlRules:
    """What fetchers may poll, and how hosts are grouped."""

    allowed: tuple[Network, ...] = ()
    """Networks that may be fetched from although they are not public."""
    proxy_hosts: frozenset[str] = frozenset()

    def read(self, text: str) -> str:
        """Return the URL in the form in which it is registered. `feed://` stands for http, as browsers had it.

        Raises:
            Invalid: it is none that can be polled; says why.
        """
        try:
            url = clean_url(without_feed(text))
            check_host(host_of(url), self.allowed)
        except (BadUrl, Blocked) as error:
            shown = mask_credentials("".join(text.split()))  # a space within a password would end the URL
            raise Invalid(f"{shown[:SHOWN_CHARACTERS]}: {error}", "body.url") from None
        return url

    def group_of(self, url: str) -> str:
        """Return the politeness group of a registered URL."""
        return politeness_group(url, self.proxy_hosts)


def without_feed(text: str) -> str:
    """Return a URL without the scheme `feed`, which stands before another one or for http; any other as it is."""
    stripped = text.strip()
    scheme, colon, rest = stripped.partition(":")
    if scheme.lower() != "feed" or not colon:
        return stripped
    return f"http:{rest}" if rest.startswith("//") else rest
