"""Search providers, one module each, and the ranking of what they find."""
