"""What several services use: the wire, the broker, the database, observability. Imports no service."""
