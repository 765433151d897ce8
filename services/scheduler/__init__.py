"""The scheduler: time in, jobs out.

Takes the clock. Gives `FetchFeed` to the queue `fetcher`. Touches the claims in `feeds`, nothing else.
"""
