"""Clients that drain `pending_articles`; docs/how-to/consume.md has the promises.

PendingArticles and AsyncPendingArticles speak to the database and need psycopg 3. HttpPendingArticles speaks to the
HTTP API and needs nothing. None needs anything else of Feedmill.

calls: the article, and the calls in their order, without I/O · sql: as SQL · loop, drain, drain_async, drain_http: the
clients
"""

from feedmill_client.calls import Article
from feedmill_client.drain_http import ApiAway, ApiRefused, HttpPendingArticles

__all__ = ["AWAY", "ApiAway", "ApiRefused", "Article", "AsyncPendingArticles", "HttpPendingArticles", "PendingArticles"]

try:
    from feedmill_client.drain import PendingArticles
    from feedmill_client.drain_async import AsyncPendingArticles
    from feedmill_client.sql import AWAY
except ModuleNotFoundError as error:
    if error.name != "psycopg":
        raise
