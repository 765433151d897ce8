"""Nine styles of feeds: blogs, news sites, podcasts, videos. Each has the markup and the habits of its kind.

Every style prints `tick` somewhere in each entry: a number of comments, a counting pixel, a time. A reader's answer
does not depend on it, but the entry's source does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from html import escape
from zlib import crc32

from local.farm.articles import Article

_XML = '<?xml version="1.0" encoding="UTF-8"?>'
_NAMES = {
    "atom": "http://www.w3.org/2005/Atom",
    "content": "http://purl.org/rss/1.0/modules/content/",
    "dc": "http://purl.org/dc/elements/1.1/",
    "itunes": "http://www.itunes.com/dtds/podcast-1.0.dtd",
    "media": "http://search.yahoo.com/mrss/",
    "podcast": "https://podcastindex.org/namespace/1.0",
    "slash": "http://purl.org/rss/1.0/modules/slash/",
    "sy": "http://purl.org/rss/1.0/modules/syndication/",
    "thr": "http://purl.org/syndication/thread/1.0",
    "wfw": "http://wellformedweb.org/CommentAPI/",
    "yt": "http://www.youtube.com/xml/schemas/2015",
}


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

    @property
    def title(self) -> str:
        """The title of the feed."""
        return self.source.replace("-", " ").title()

    def join(self, entry: Callable[[Page, Article], str]) -> str:
        """Return all entries, as `entry` prints them."""
        return "".join(entry(self, article) for article in self.articles)


@dataclass(frozen=True)
class Style:
    """A kind of feed: its file name, its media type, and the function that prints it."""

    file: str
    content_type: str
    render: Callable[[Page], str]


def _wordpress(page: Page) -> str:
    return (
        f'{_XML}<rss version="2.0"\n\t{_declare("content", "wfw", "dc", "atom", "sy", "slash")}>\n\n<channel>\n'
        f'\t<title>{page.title}</title>\n\t<atom:link href="{page.home}/feed/" rel="self" type="application/rss+xml" />'
        f"\n\t<link>{page.home}</link>\n\t<description>Just another weblog</description>\n"
        f"\t<lastBuildDate>{_mail(page.updated_at)}</lastBuildDate>\n\t<language>en-US</language>\n"
        "\t<sy:updatePeriod>\n\thourly\t</sy:updatePeriod>\n\t<sy:updateFrequency>\n\t1\t</sy:updateFrequency>\n"
        f"\t<generator>https://wordpress.org/?v=6.8</generator>\n{page.join(_wordpress_item)}\t</channel>\n</rss>\n"
    )


def _wordpress_item(page: Page, article: Article) -> str:
    url = escape(article.url)
    categories = "".join(f"<category><![CDATA[{name}]]></category>\n\t\t" for name in article.categories)
    return (
        f"\t<item>\n\t\t<title>{escape(article.title)}</title>\n\t\t<link>{url}</link>\n"
        f"\t\t\t\t\t<comments>{url}#respond</comments>\n\n\t\t<dc:creator><![CDATA[{article.author}]]></dc:creator>\n"
        f"\t\t<pubDate>{_mail(article.published_at)}</pubDate>\n\t\t\t\t{categories}"
        f'<guid isPermaLink="false">{escape(article.entry_id)}</guid>\n\n'
        f"\t\t\t\t\t<description><![CDATA[<p>{article.paragraphs[0][:60]} [&#8230;]</p>\n]]></description>\n"
        f"\t\t\t\t\t\t\t\t\t\t<content:encoded><![CDATA[\n{_blocks(page, article)}\n]]></content:encoded>\n\t\t\t\t\t\n"
        f"\t\t\t\t\t<wfw:commentRss>{url}feed/</wfw:commentRss>\n"
        f"\t\t\t<slash:comments>{page.tick + len(article.title)}</slash:comments>\n\t\t\n\t\t\n\t\t\t</item>\n"
    )


def _escaped(page: Page) -> str:
    return (
        f'{_XML}\n<rss version="2.0" xml:base="{page.home}/" {_declare("dc")}>\n  <channel>\n'
        f"    <title>{page.title}</title>\n    <link>{page.home}/</link>\n    <description/>\n"
        f"    <language>en</language>\n{page.join(_escaped_item)}  </channel>\n</rss>\n"
    )


def _escaped_item(page: Page, article: Article) -> str:
    fields = f'<span class="field field--name-title">{escape(article.title)}</span>\n'
    pixel = f'<img src="{page.home}/count.gif?r={page.tick}" width="1" height="1" alt="">'
    body = f"{fields}<div class='field__item'>{_markup(page, article)}</div>{pixel}"
    return (
        f"    <item>\n  <title>{escape(article.title)}</title>\n  <link>{escape(article.url)}</link>\n"
        f"  <description>{escape(body)}</description>\n"
        f"    <pubDate>{_mail(article.published_at)}</pubDate>\n    <dc:creator>{escape(article.author)}</dc:creator>\n"
        f'    <guid isPermaLink="false">{escape(article.entry_id)}</guid>\n    </item>\n'
    )


def _newsroom(page: Page) -> str:
    return (
        f'{_XML}<rss {_declare("dc", "content", "atom", "media")} version="2.0"><channel>'
        f"<title><![CDATA[{page.title}]]></title><description><![CDATA[News & more]]></description>"
        f"<link>{page.home}/news</link><image><url>{page.home}/logo.gif</url><title>{page.title}</title>"
        f"<link>{page.home}/news</link></image><lastBuildDate>{_mail(page.updated_at)}</lastBuildDate>"
        f"<copyright><![CDATA[All rights reserved]]></copyright><language><![CDATA[en-gb]]></language><ttl>15</ttl>"
        f"{page.join(_newsroom_item)}</channel></rss>"
    )


def _newsroom_item(page: Page, article: Article) -> str:
    image = f"{page.home}/images/{_number(article)}"
    return (
        f"<item><title><![CDATA[{article.title}]]></title><description><![CDATA[{article.paragraphs[0]}]]></description>"
        f'<link>{escape(article.url)}</link><guid isPermaLink="false">{escape(article.entry_id)}</guid>'
        f"<pubDate>{_mail(article.published_at)}</pubDate><dc:date>{_iso(article.published_at)}</dc:date>"
        f'<media:thumbnail width="240" height="135" url="{image}_240.jpg"/>'
        f'<media:content height="168" medium="image" url="{image}_976.jpg" width="300">'
        f"<media:credit>{escape(article.author)}</media:credit><media:description>{escape(article.title)}"
        f"</media:description></media:content><!-- rendered {page.tick} --></item>"
    )


def _atom_html(page: Page) -> str:
    return (
        f"{_XML}\n<feed xmlns='{_NAMES['atom']}' {_declare('thr')}><id>tag:farm.example,2026:{page.source}</id>"
        f"<updated>{_iso(page.updated_at)}</updated><title type='text'>{page.title}</title>"
        f"<link rel='self' type='application/atom+xml' href='{page.home}/feeds/posts/default'/>"
        f"<link rel='alternate' type='text/html' href='{page.home}/'/><author><name>{page.title}</name></author>"
        f"<generator version='7.00' uri='http://www.blogger.com'>Blogger</generator>{page.join(_atom_html_entry)}</feed>"
    )


def _atom_html_entry(page: Page, article: Article) -> str:
    at, url = _iso(article.published_at), escape(article.url)
    categories = "".join(
        f"<category scheme='http://www.blogger.com/atom/ns#' term='{escape(name)}'/>" for name in article.categories
    )
    return (
        f"<entry><id>{escape(article.entry_id)}</id><published>{at}</published><updated>{at}</updated>{categories}"
        f"<title type='text'>{escape(article.title)}</title>"
        f"<content type='html'>{escape(_markup(page, article))}</content>"
        f"<link rel='replies' type='text/html' href='{url}#comment-form' title='{page.tick} Comments'/>"
        f"<link rel='alternate' type='text/html' href='{url}' title='{escape(article.title)}'/>"
        f"<author><name>{escape(article.author)}</name><uri>{page.home}/profile</uri>"
        f"<email>noreply@blogger.com</email></author><thr:total>{page.tick}</thr:total></entry>"
    )


def _atom_xhtml(page: Page) -> str:
    return (
        f'{_XML}\n<feed xmlns="{_NAMES["atom"]}" xml:lang="en" xml:base="{page.home}/">\n<title>{page.title}</title>\n'
        f'<link rel="self" href="feed.atom"/>\n<link href="."/>\n<id>{page.home}/</id>\n'
        f"<updated>{_iso(page.updated_at)}</updated>\n<author><name>{page.title}</name></author>\n"
        f"{page.join(_atom_xhtml_entry)}</feed>\n"
    )


def _atom_xhtml_entry(page: Page, article: Article) -> str:
    content = "".join(f"<p>{escape(text)}</p>\n" for text in article.paragraphs)
    return (
        f"<entry>\n  <title>{escape(article.title)}</title>\n  <link href='{escape(article.url)}'/>\n"
        f"  <id>{escape(article.entry_id)}</id>\n  <published>{_iso(article.published_at)}</published>\n"
        f"  <updated>{_iso(article.published_at)}</updated>\n  <author><name>{escape(article.author)}</name></author>\n"
        f'  <content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">\n{content}'
        f'<p><a href="tags/{_number(article)}/">more</a> <img src="count/{page.tick}.png" alt=""/></p></div>'
        "</content>\n</entry>\n"
    )


def _rdf(page: Page) -> str:
    listed = "".join(f'    <rdf:li rdf:resource="{escape(article.url)}" />\n' for article in page.articles)
    return (
        f'{_XML}\n<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"'
        f' {_declare("dc", "content")} xml:lang="en">\n <channel rdf:about="{page.home}/index.rdf">\n'
        f"  <title>{page.title}</title>\n  <link>{page.home}</link>\n  <description />\n"
        f"  <dc:date>{_iso(page.updated_at)}</dc:date>\n  <items>\n   <rdf:Seq>\n{listed}   </rdf:Seq>\n  </items>\n"
        f" </channel>\n{page.join(_rdf_item)}</rdf:RDF>\n"
    )


def _rdf_item(page: Page, article: Article) -> str:
    text = article.paragraphs[0]
    subjects = "".join(f"  <dc:subject>{escape(name)}</dc:subject>\n" for name in article.categories)
    return (
        f' <item rdf:about="{escape(article.url)}">\n  <title>{escape(article.title)}</title>\n'
        f"  <link>{escape(article.url)}</link>\n  <description>{escape(text[:80])}</description>\n"
        f"  <content:encoded><![CDATA[<div class='section' data-seen='{page.tick}'><p>{escape(text)}</p></div>]]>"
        f"</content:encoded>\n  <dc:creator>{escape(article.author)}</dc:creator>\n{subjects}"
        f"  <dc:date>{_iso(article.published_at)}</dc:date>\n </item>\n"
    )


def _podcast(page: Page) -> str:
    return (
        f'{_XML}\n<rss version="2.0" {_declare("itunes", "content", "atom", "podcast")}>\n  <channel>\n'
        f'    <atom:link href="{page.home}/rss" rel="self" type="application/rss+xml"/>\n'
        f"    <title>{page.title}</title>\n    <pubDate>{_mail(page.updated_at)}</pubDate>\n"
        f"    <language>en-us</language>\n    <link>{page.home}</link>\n"
        f"    <itunes:author>{page.title}</itunes:author>\n    <itunes:type>episodic</itunes:type>\n"
        f'    <itunes:category text="Society &amp; Culture"/>\n    <itunes:image href="{page.home}/cover.jpg"/>\n'
        f"{page.join(_podcast_item)}  </channel>\n</rss>\n"
    )


def _podcast_item(page: Page, article: Article) -> str:
    number = _number(article)
    return (
        f"    <item>\n      <title>{escape(article.title)}</title>\n      <itunes:title>{escape(article.title)}"
        f"</itunes:title>\n      <pubDate>{_mail(article.published_at)}</pubDate>\n"
        f'      <guid isPermaLink="false">{escape(article.entry_id)}</guid>\n      <link>{escape(article.url)}</link>\n'
        f"      <description><![CDATA[{_markup(page, article)}]]></description>\n"
        f"      <itunes:duration>{1800 + number % 1800}</itunes:duration>\n"
        "      <itunes:explicit>false</itunes:explicit>\n"
        f'      <enclosure url="{page.home}/audio/{number}.mp3" length="{10_000_000 + number}" type="audio/mpeg"/>\n'
        f'      <podcast:soundbite startTime="{page.tick}" duration="30"/>\n    </item>\n'
    )


def _video(page: Page) -> str:
    return (
        f'{_XML}\n<feed {_declare("yt", "media")} xmlns="{_NAMES["atom"]}">\n <id>yt:channel:{page.source}</id>\n'
        f' <title>{page.title}</title>\n <link rel="alternate" href="{page.home}"/>\n'
        f" <author>\n  <name>{page.title}</name>\n  <uri>{page.home}</uri>\n </author>\n"
        f" <published>2020-01-01T00:00:00+00:00</published>\n{page.join(_video_entry)}</feed>\n"
    )


def _video_entry(page: Page, article: Article) -> str:
    title, at = escape(article.title), _iso(article.published_at)
    text = escape("\n\n".join(article.paragraphs))
    return (
        f" <entry>\n  <id>{escape(article.entry_id)}</id>\n  <yt:videoId>{_number(article)}</yt:videoId>\n"
        f'  <title>{title}</title>\n  <link rel="alternate" href="{escape(article.url)}"/>\n'
        f"  <published>{at}</published>\n  <updated>{at}</updated>\n  <media:group>\n"
        f"   <media:title>{title}</media:title>\n   <media:description>{text}</media:description>\n"
        f'   <media:thumbnail url="{page.home}/{_number(article)}.jpg" width="480" height="360"/>\n'
        f'   <media:community>\n    <media:statistics views="{1000 + page.tick}"/>\n   </media:community>\n'
        "  </media:group>\n </entry>\n"
    )


def _json_feed(page: Page) -> str:
    items = [
        {
            "id": article.entry_id,
            "url": article.url,
            "title": article.title,
            "content_html": _markup(page, article),
            "date_published": _iso(article.published_at),
            "authors": [{"name": article.author}],
            "tags": list(article.categories),
            "_reactions": page.tick,
        }
        for article in page.articles
    ]
    about = {"version": "https://jsonfeed.org/version/1.1", "title": page.title, "home_page_url": page.home}
    return json.dumps({**about, "items": items}, ensure_ascii=False, indent=1)


STYLES = (
    Style("feed/", "application/rss+xml; charset=UTF-8", _wordpress),
    Style("rss.xml", "application/rss+xml; charset=utf-8", _escaped),
    Style("news/rss.xml", "text/xml; charset=utf-8", _newsroom),
    Style("feeds/posts/default", "application/atom+xml; charset=UTF-8", _atom_html),
    Style("feed.atom", "application/atom+xml", _atom_xhtml),
    Style("index.rdf", "application/rdf+xml", _rdf),
    Style("episodes", "application/rss+xml", _podcast),
    Style("videos.xml", "text/xml; charset=UTF-8", _video),
    Style("feed.json", "application/feed+json", _json_feed),
)


def _markup(page: Page, article: Article) -> str:
    """Return the text as HTML: paragraphs, and by turns an image, a link, a list, a quotation."""
    first, *more = article.paragraphs
    number = _number(article)
    link = f'<a href="{page.home}/about/{number}?ref=feed&amp;from={number % 7}" rel="nofollow">read on</a>'
    opening = (
        f'<figure><img src="{page.home}/i/{number}.jpg" alt="" width="640"><figcaption>{article.author}</figcaption>'
        "</figure>",
        "<h2>What happened</h2>",
        "",
        f"<blockquote><p>{link}</p></blockquote>",
    )[number % 4]
    texts = "".join(f"<p>{escape(text, quote=False)}</p>\n" for text in more)
    return f"{opening}<p class='lead'>{escape(first, quote=False)}&nbsp;&mdash; {link}.</p>\n{texts}"


def _blocks(page: Page, article: Article) -> str:
    """Return the HTML as an editor of blocks keeps it, with typographic quotes as references."""
    return _markup(page, article).replace("<p>", '\n<p class="wp-block-paragraph">').replace("'", "&#8217;")


def _declare(*prefixes: str) -> str:
    return " ".join(f'xmlns:{prefix}="{_NAMES[prefix]}"' for prefix in prefixes)


def _number(article: Article) -> int:
    return crc32(article.url.encode())


def _mail(moment: datetime) -> str:
    return format_datetime(moment.astimezone(UTC))


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()
