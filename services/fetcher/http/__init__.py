"""One HTTP request: bounded, guarded, decoded."""
