"""The fetcher: jobs in, results out, politely.

Takes `FetchFeed` from its queues. Gives `FeedFetched` to the next stage, and jobs that have to wait to its own delay
queues. Touches the web. Has no database.
"""
