"""The fetcher: jobs in, results out, politely.

Takes `FetchFeed` from the queue `fetcher`. Gives `FeedFetched` to the next stage, and jobs that have to wait to its
own delay queues. Touches the web. Has no database.
"""
