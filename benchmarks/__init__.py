"""Measures Feedmill beside the bare thing under each part, in the same run: `make bench`.

`python -m benchmarks [names …] [--quick]` runs the `subjects` on loopback, on throw-away servers. `bench` has these
servers, `processes` the real services and the farm, `bare` what stands beside them. `laps` are rounds within a time
budget, `contest` lets several clients fetch the same feeds, `results` makes input for a writer, `rows` prints figures.
`simulation` is a program of its own, without servers: when to poll 47,000 feeds.
"""
