"""How the whole pipeline fares: figures of the last hour, and a verdict on each stage by fixed rules."""
