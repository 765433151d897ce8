"""A client that drains `pending_articles`. Needs psycopg 3 and nothing else; docs/how-to/consume.md has the promises.

calls: the article, and the calls in their order, without I/O · drain, drain_async: the clients
"""

from feedmill_client.calls import AWAY, Article
from feedmill_client.drain import PendingArticles
from feedmill_client.drain_async import AsyncPendingArticles

__all__ = ["AWAY", "Article", "AsyncPendingArticles", "PendingArticles"]
