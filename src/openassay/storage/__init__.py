"""SQLite and PostgreSQL storage behind the protocols; caches, rate limits and signals that processes share."""
