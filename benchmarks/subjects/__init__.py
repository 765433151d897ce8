"""The subjects of the benchmark: one module each, with a function `run(bench)` that returns its rows."""
