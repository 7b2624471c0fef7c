"""SQLite and PostgreSQL storage behind the protocols."""
