"""Styles of feeds: blogs, news sites, podcasts, videos. Each has the markup and the habits of its kind.

The XML ones are files in `templates`, whose parts are head, entry and tail. Every style prints `tick` somewhere in each
entry: a number of comments, a counting pixel, a view count. No reader's answer depends on it, but the source does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import lru_cache
from html import escape
from pathlib import Path
from string import Template
from zlib import crc32

from local.farm.articles import Article

TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Page:
    """All that a style prints: the feed `source`, its articles (newest first), its last change, and the tick."""

    source: str
    articles: Sequence[Article]
    updated_at: datetime
    tick: int

    @property
    def home(self) -> str:
        """The address of the site."""
        return f"https://{self.source}.farm.example"


@dataclass(frozen=True)
class Style:
    """A kind of feed: its name, its media type, and the function that prints it."""

    name: str
    content_type: str
    render: Callable[[Page, str], str]


def _render_xml(page: Page, name: str) -> str:
    head, entry, tail = _read_template(name)
    listed = "".join(f'\n    <rdf:li rdf:resource="{escape(article.url)}" />' for article in page.articles)
    about = {"feed": page.source, "home": page.home, "listed": listed, **_dates(page.updated_at)}
    entries = (
        entry.substitute(_values(page, article), **about | _dates(article.published_at)) for article in page.articles
    )
    return "".join([head.substitute(about), *entries, tail.substitute(about)])


def _render_json(page: Page, _: str) -> str:
    items = [
        {
            "id": article.entry_id,
            "url": article.url,
            "title": article.title,
            "content_html": _write_html(page, article),
            "date_published": _dates(article.published_at)["iso_date"],
            "authors": [{"name": article.author}],
            "tags": list(article.categories),
            "_reactions": page.tick,
        }
        for article in page.articles
    ]
    about = {"version": "https://jsonfeed.org/version/1.1", "title": page.source, "home_page_url": page.home}
    return json.dumps({**about, "items": items}, ensure_ascii=False, indent=1)


STYLES = (
    Style("wordpress", "application/rss+xml; charset=UTF-8", _render_xml),
    Style("drupal", "application/rss+xml; charset=utf-8", _render_xml),
    Style("newsroom", "text/xml; charset=utf-8", _render_xml),
    Style("blogger", "application/atom+xml; charset=UTF-8", _render_xml),
    Style("xhtml", "application/atom+xml", _render_xml),
    Style("rdf", "application/rdf+xml", _render_xml),
    Style("podcast", "application/rss+xml", _render_xml),
    Style("video", "text/xml; charset=UTF-8", _render_xml),
    Style("json", "application/feed+json", _render_json),
)


@lru_cache
def _read_template(name: str) -> tuple[Template, Template, Template]:
    head, entry, tail = (TEMPLATES / f"{name}.xml").read_text(encoding="utf-8").split("=====\n")
    return Template(head), Template(entry), Template(tail)


def _values(page: Page, article: Article) -> dict[str, object]:
    """Return what an entry of a template may print: escaped, and for CDATA sections (`raw_…`) as it is."""
    text = " ".join(article.paragraphs)
    texts = {
        "title": article.title,
        "url": article.url,
        "id": article.entry_id,
        "author": article.author,
        "category": article.categories[0],
        "text": text,
        "excerpt": text[:60],
        "html": _write_html(page, article),
    }
    raw = {f"raw_{name}": value for name, value in texts.items()}
    return (
        {name: escape(value) for name, value in texts.items()} | raw | {"number": _number(article), "tick": page.tick}
    )


def _write_html(page: Page, article: Article) -> str:
    """Return the text as HTML: paragraphs, and by turns an image, a heading or a quotation before them."""
    first, *more = article.paragraphs
    number = _number(article)
    link = f'<a href="{page.home}/about/{number}?ref=feed&amp;from={number % 7}" rel="nofollow">read on</a>'
    opening = (
        f'<figure><img src="{page.home}/i/{number}.jpg" alt="" width="640"><figcaption>A view</figcaption></figure>',
        "<h2>What happened</h2>",
        "",
        f"<blockquote><p>{link}</p></blockquote>",
    )[number % 4]
    texts = "".join(f"<p>{escape(text, quote=False)}</p>\n" for text in more)
    return f"{opening}<p class='lead'>{escape(first, quote=False)}&nbsp;&mdash; {link}.</p>\n{texts}"


def _dates(moment: datetime) -> dict[str, str]:
    moment = moment.astimezone(UTC)
    return {"mail_date": format_datetime(moment), "iso_date": moment.isoformat()}


def _number(article: Article) -> int:
    return crc32(article.url.encode())
