"""`assay company`: which company a name, a ticker or a description stands for."""

import json as jsonlib

import typer

from assay.cli.lines import one_line
from assay.companies import open_companies
from assay.model.company import Company


def company(name: str, as_json: bool) -> None:
    """Exits with 1 where no company is meant, and where several may be."""
    register = open_companies()
    found = register.resolve(name)
    candidates = [] if found else register.candidates(name)
    if as_json:
        shown = {"company": found and found.model_dump(mode="json"), "candidates": [_row(one) for one in candidates]}
        typer.echo(jsonlib.dumps(shown, indent=2, ensure_ascii=False))
    elif found:
        typer.echo(_line(found))
    for one in candidates if not as_json else ():
        typer.echo(_line(one))
    if not found:
        said = one_line(name.strip())[:80]
        typer.echo(f"{said!r} may be any of these." if candidates else f"no company is called {said!r}", err=True)
        raise typer.Exit(1)


def _row(company: Company) -> dict[str, object]:
    return company.model_dump(mode="json")


def _line(company: Company) -> str:
    return f"{company.cik:010}  {company.short:28}  {' '.join(company.tickers[:3]):16}  {company.name}"
