"""`feedmill batch`: one run over all that is due, in this process, without the fetcher's queues.

    command      servers, signals, exit        crew      what takes part in a run, put together
    run          the loop: claim, fetch, publish, wait, retry, end
    window*      the jobs in memory            tally*    what the run came to, and its last words
    claims       the database: claim, give back          outlet    the broker: results out
    receipts     which results the writer has written    report    lines and summary for people and machines

Starred rooms are pure.
"""
