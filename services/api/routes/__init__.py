"""The operations, a module per resource. A handler reads the request, calls `services.admin`, and shapes the answer."""
