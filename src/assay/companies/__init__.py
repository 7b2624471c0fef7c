"""Which company is meant: by name, ticker, likely misspelling or description."""

from assay.companies.register import Register, open_companies

__all__ = ["Register", "open_companies"]
