"""The `feedmill` command: starts services, private servers, the demo and its feed farm."""
