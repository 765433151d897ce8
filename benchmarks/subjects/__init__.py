"""What is measured: one module per subject, with a function `run(bench)` that returns its rows."""
