"""Is it true: quotes that exist, figures that agree, support, independence, credibility, verdict."""
