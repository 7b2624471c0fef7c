"""Which company is meant: by name, ticker, likely misspelling or description."""

from assay.companies.register import Later, Register, open_companies

__all__ = ["Later", "Register", "open_companies"]
