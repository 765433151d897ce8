"""How the pipeline fares: queues, hosts, figures, verdicts."""
