"""A client for whoever drains `pending_articles`. Needs psycopg 3 only; docs/how-to/consume.md has the promises.

Rooms: article (what is given out) · steps (the calls, and in which order; no I/O) · drain, drain_async (the I/O).
"""

from feedmill_client.article import AWAY, Article
from feedmill_client.drain import PendingArticles
from feedmill_client.drain_async import AsyncPendingArticles

__all__ = ["AWAY", "Article", "AsyncPendingArticles", "PendingArticles"]
