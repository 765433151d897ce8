"""The batch: one run over all feeds that are due, in one process, without the fetcher's queues.

Takes claims from the table `feeds`, and back those of jobs that fetchers have left. Gives `FeedFetched` to the queue
`writer`. `feedmill batch` starts it.

    service   puts a run together; claims and releases feeds      runner   the loop: claim, fetch, publish, retry, end
    window    the jobs in memory, pure       results   publishes results, and looks whether they are written
    leftovers the jobs that fetchers have left    summary   the counts of a run, pure
"""
