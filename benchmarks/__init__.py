"""What Feedmill costs, beside the bare thing that each part stands on, in the same run.

`make bench`, or `python -m benchmarks [names …] [--quick]`. One module per subject; `__main__` lists them and
`rows` is the form of what they return. Everything runs on loopback and on throw-away servers.

Rooms: rows (a figure and what stands beside it) · laps (rounds within a time budget, medians) · bench (the servers,
and a fresh vhost and database for each subject) · processes (the real services and the farm, and what they cost) ·
bare (loops that do nothing but fetch) · clients (other clients in such a loop) · bare_sql (COPY and executemany) ·
duel (ours and the bare loop over the same feeds) · wire (straight to the queues) · memory (large feeds) · results
(what a writer is given) · cpu (/proc).
"""
