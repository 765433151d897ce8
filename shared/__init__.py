"""What every service speaks: the map, the wire, the one loop. Imports no service."""
