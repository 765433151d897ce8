"""The `feedmill` command: the front door to all services, private servers, the demo and its feed farm."""
