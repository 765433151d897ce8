"""Near-duplicates: found in the writer's transaction, and compared once more after it."""
