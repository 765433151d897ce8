"""Measures Feedmill beside something simpler, in the same run: `make bench`.

`python -m benchmarks [names …] [--quick]` runs the `subjects` on loopback, on throw-away servers. `bench` starts these
servers, `processes` the real services, `farm` the server of `feeds`, which look as real systems print them. `bare`
holds the simple programs that stand beside ours. `laps` runs rounds within a time budget, `messages` writes jobs and
results, `rows` prints figures. `simulation` is a program of its own, without servers: when to poll 47,000 feeds.
"""
