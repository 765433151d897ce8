"""The fetcher: jobs in, results out, politely.

Takes `FetchFeed` from its queues. Gives `FeedFetched` to the next stage, and jobs that have to wait to its own delay
queues; results of dry runs go to `writer.trials`. Touches the web. Has no database.
"""
