"""The HTTP API, the page it serves, and the webhooks it sends."""
