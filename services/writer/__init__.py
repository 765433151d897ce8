"""The writer: results in, rows out.

Takes `FeedFetched` from the queue `writer`. Gives nothing to any queue. Touches every table: articles, ledger, feed
state and fetch log, in one transaction per batch. Also owns the schema (`migrations/`).
"""
