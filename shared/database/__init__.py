"""PostgreSQL: connections, the database's clock, migrations."""
