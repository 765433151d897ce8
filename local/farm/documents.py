"""Renders articles as a feed in each of the four formats, well-formed or malformed."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from email.utils import format_datetime
from html import escape

from local.farm.articles import Article
from local.farm.specs import FeedFormat

CONTENT_TYPES = {
    FeedFormat.RSS: "application/rss+xml; charset=utf-8",
    FeedFormat.ATOM: "application/atom+xml; charset=utf-8",
    FeedFormat.RDF: "application/rdf+xml; charset=utf-8",
    FeedFormat.JSON: "application/feed+json",
}

HTML_PAGE = (
    '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Welcome</title></head>\n'
    "<body><h1>Welcome to our new site</h1><p>The feed that was here is not here any more. "
    'Read <a href="/about">about us</a> instead.</p></body></html>\n'
)

_PLAIN_TEXT = 2
_DECLARATION = '<?xml version="1.0" encoding="utf-8"?>\n'


def render(feed_format: FeedFormat, source: str, articles: Sequence[Article], updated_at: datetime) -> str:
    """Return the feed of `source` that lists `articles` in this order."""
    return _RENDERERS[feed_format](source, articles, updated_at)


def spoil(document: str) -> str:
    """Return the XML document malformed, but still readable for tolerant readers.

    It has bare ampersands, an undeclared entity and an unclosed tag in each text, and no end.
    """
    for name in ("description", "content"):
        document = document.replace(f"</{name}>", f" Fish & chips,&nbsp;half price<br></{name}>")
    return document[: document.rindex("</")].replace(" &amp; ", " & ")


def _render_rss(source: str, articles: Sequence[Article], updated_at: datetime) -> str:
    items = "".join(
        f"<item><title>{escape(article.title)}</title><link>{escape(article.url)}</link>"
        f'<guid isPermaLink="false">{escape(article.entry_id)}</guid>'
        f"<pubDate>{format_datetime(article.published_at, usegmt=True)}</pubDate>"
        f"<dc:creator>{escape(article.author)}</dc:creator>"
        + _categories(article, "<category>", "</category>")
        + f"<description>{_xml_text(article)}</description></item>\n"
        for article in articles
    )
    return (
        f'{_DECLARATION}<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel>'
        f"<title>{_feed_title(source)}</title><link>{_home(source)}</link><language>en</language>"
        f"<description>News &amp; notes from {source}, now and then</description>"
        f"<lastBuildDate>{format_datetime(updated_at, usegmt=True)}</lastBuildDate>\n{items}</channel></rss>\n"
    )


def _render_atom(source: str, articles: Sequence[Article], updated_at: datetime) -> str:
    entries = "".join(
        f'<entry><title type="text">{escape(article.title)}</title>'
        f'<link rel="alternate" href="{escape(article.url)}"/><id>{escape(article.entry_id)}</id>'
        f"<published>{_iso(article.published_at)}</published><updated>{_iso(article.published_at)}</updated>"
        f"<author><name>{escape(article.author)}</name></author>"
        + _categories(article, '<category term="', '"/>')
        + f'<content type="{_atom_type(article)}">{_xml_text(article)}</content>'
        "</entry>\n"
        for article in articles
    )
    return (
        f'{_DECLARATION}<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="en">'
        f'<title>{_feed_title(source)}</title><link href="{_home(source)}"/>'
        f"<id>tag:farm.example,2026:{source}</id><updated>{_iso(updated_at)}</updated>\n{entries}</feed>\n"
    )


def _render_rdf(source: str, articles: Sequence[Article], updated_at: datetime) -> str:
    contents = "".join(f'<rdf:li rdf:resource="{escape(article.url)}"/>' for article in articles)
    items = "".join(
        f'<item rdf:about="{escape(article.url)}"><title>{escape(article.title)}</title>'
        f"<link>{escape(article.url)}</link><dc:date>{_iso(article.published_at)}</dc:date>"
        f"<dc:creator>{escape(article.author)}</dc:creator>"
        + _categories(article, "<dc:subject>", "</dc:subject>")
        + f"<description>{_xml_text(article)}</description></item>\n"
        for article in articles
    )
    return (
        f'{_DECLARATION}<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
        ' xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f'<channel rdf:about="{_home(source)}"><title>{_feed_title(source)}</title><link>{_home(source)}</link>'
        f"<description>News &amp; notes from {source}</description><dc:date>{_iso(updated_at)}</dc:date>"
        f"<items><rdf:Seq>{contents}</rdf:Seq></items></channel>\n{items}</rdf:RDF>\n"
    )


def _render_json(source: str, articles: Sequence[Article], _updated_at: datetime) -> str:
    document = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": _feed_title(source),
        "home_page_url": _home(source),
        "language": "en",
        "items": [
            {
                "id": article.entry_id,
                "url": article.url,
                "title": article.title,
                "content_text" if article.style == _PLAIN_TEXT else "content_html": _content(article),
                "date_published": _iso(article.published_at),
                "authors": [{"name": article.author}],
                "tags": list(article.categories),
            }
            for article in articles
        ],
    }
    return json.dumps(document, ensure_ascii=len(articles) % 2 == 0, separators=(",", ":"))


_RENDERERS: dict[FeedFormat, Callable[[str, Sequence[Article], datetime], str]] = {
    FeedFormat.RSS: _render_rss,
    FeedFormat.ATOM: _render_atom,
    FeedFormat.RDF: _render_rdf,
    FeedFormat.JSON: _render_json,
}


def _content(article: Article) -> str:
    if article.style == _PLAIN_TEXT:
        return "\n\n".join(article.paragraphs)
    return "".join(f"<p>{escape(paragraph, quote=False)}</p>" for paragraph in article.paragraphs)


def _xml_text(article: Article) -> str:
    content = _content(article)
    return f"<![CDATA[{content}]]>" if article.style == 0 else escape(content)


def _categories(article: Article, before: str, after: str) -> str:
    return "".join(f"{before}{escape(name)}{after}" for name in article.categories)


def _atom_type(article: Article) -> str:
    return "text" if article.style == _PLAIN_TEXT else "html"


def _feed_title(source: str) -> str:
    return source.replace("-", " ").title()


def _home(source: str) -> str:
    return f"https://{source}.farm.example/"


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
