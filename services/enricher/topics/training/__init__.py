"""Makes models of topics: from a user's texts (`feedmill enrich train`), and the one that feedmill brings."""
