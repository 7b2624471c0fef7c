"""The data that every layer shares: frozen pydantic models."""
