"""The HTTP API and the page it serves."""
