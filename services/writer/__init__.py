"""The writer: results in, rows out.

Takes `FeedFetched` from the queue `writer`. Publishes nothing. Writes articles, ledger, feed state and fetch log, in
one transaction per batch. Results of dry runs come from `writer.trials`, and their transactions are rolled back.

    handler   one batch                    store      the transaction: what is written in which order
    articles  which article an entry is    schedule   when a feed is polled next: both pure
    article   an article, and SQL from lists of columns    ledger, pending, feed_store   the SQL of each table
    duplicates   near-duplicates: their sketches in the database, settled afterwards
    freshness    how long articles took from their publication to their row
    pruning      deletes old rows          fires      tasks of fetches by hand, dry runs
"""
