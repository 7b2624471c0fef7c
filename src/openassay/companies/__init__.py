"""Which company is meant: by name, ticker, likely misspelling or description."""

from openassay.companies.register import CompanyRegister, LazyCompanyRegister, open_companies

__all__ = ["CompanyRegister", "LazyCompanyRegister", "open_companies"]
