"""Makes the model that feedmill brings: `make train-topics ARGS=DIRECTORY` (docs/explanation/enrichment.md)."""
