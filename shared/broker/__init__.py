"""The message broker: topology, port, RabbitMQ adapter, and the one loop over a queue."""
