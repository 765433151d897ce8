"""Lists of feeds for tests."""

from __future__ import annotations

import io

from services.admin.subscriptions.model import Format, Listed
from services.admin.subscriptions.reading import FeedList, open_list


def open_bytes(data: bytes, form: Format | None = None, *, salvage: bool = False) -> FeedList:
    return open_list(io.BytesIO(data), form, salvage=salvage)


def read(text: str | bytes, form: Format | None = None, *, salvage: bool = False) -> list[Listed]:
    data = text.encode() if isinstance(text, str) else text
    return list(open_bytes(data, form, salvage=salvage).read())


def opml(*outlines: str) -> str:
    return '<?xml version="1.0"?>\n<opml version="2.0"><body>\n' + "\n".join(outlines) + "\n</body></opml>\n"


def outline(url: str, name: str = "News") -> str:
    return f'<outline type="rss" text="{name}" xmlUrl="{url}"/>'


def warnings(text: str | bytes, *, salvage: bool = False) -> list[tuple[int, str]]:
    data = text.encode() if isinstance(text, str) else text
    return [(flaw.line, flaw.text) for flaw in open_bytes(data, salvage=salvage).flaws.in_order]
