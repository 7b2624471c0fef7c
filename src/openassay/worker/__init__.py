"""Workers that claim queued runs from PostgreSQL."""
