"""Language models: which one answers, what it may cost, and the vendors' APIs."""
