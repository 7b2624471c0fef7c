"""Rows of tables that say by themselves what they are of, when, in what unit, in which table and whose."""

import io
import zipfile
from pathlib import Path

import pytest
from reportlab.pdfgen.canvas import Canvas

from openassay.fetch import html, pdf
from openassay.fetch.table_notes import add_company, find_company
from openassay.fetch.tables import GridCell, write_grid
from openassay.fetch.text import extract_csv, extract_docx, extract_markdown
from openassay.models.evidence import Claim, QuoteSpan
from openassay.nodes.verify import add_context
from openassay.testing import make_document
from openassay.text.sentences import is_table_row, split_passages, split_sentences
from openassay.verification.context import read_context

# One table in each kind of file: headings of two lines, the upper ones merged, an empty cell and a footnoted one.
ROWS = [
    "Revenue (in millions) — Three Months Ended June 30, 2024: $1,234; Three Months Ended June 30, 2023: $1,100; "
    "Six Months Ended June 30, 2024: 2,400; Six Months Ended June 30, 2023: 2,100; Table: Statements of Income",
    "Cost of sales (in millions) — Three Months Ended June 30, 2024: 234; Six Months Ended June 30, 2024: 400; "
    "Six Months Ended June 30, 2023: 100; Table: Statements of Income",
    "Earnings per share — Three Months Ended June 30, 2024: $1.27; Three Months Ended June 30, 2023: $1.20; "
    "Six Months Ended June 30, 2024: 2.41; Six Months Ended June 30, 2023: 2.30; Table: Statements of Income",
]
DATES = ("June 30, 2024", "June 30, 2023")
PROSE = "The company reported on its second quarter, in which demand was strong in all regions that it serves. " * 3


def rows_of(text: str) -> list[str]:
    return [line for line in text.split("\n") if is_table_row(line)]


def grid(*lines: str) -> list[list[GridCell]]:
    return [[GridCell(cell.strip()) for cell in line.split("|")] for line in lines]


def test_html() -> None:
    heads = "".join(f"<th>{day}</th>" for day in DATES * 2)
    page = f"""<html><head><title>Acme Corp. reports second quarter results</title></head><body><article>
        <p>{PROSE}</p><h2>Statements of Income</h2><p>(in millions, except per share data)</p><table>
        <tr><th rowspan="2"></th><th colspan="2">Three Months Ended</th><th colspan="2">Six Months Ended</th></tr>
        <tr>{heads}</tr>
        <tr><td>Revenue (1)</td><td>$1,234<sup>2</sup></td><td>$1,100</td><td>2,400</td><td>2,100</td></tr>
        <tr><td>Cost of sales</td><td>234</td><td> </td><td>400</td><td>100</td></tr>
        <tr><td>Earnings per share</td><td>$1.27</td><td>$1.20</td><td>2.41</td><td>2.30</td></tr>
        </table><p>{PROSE}</p></article></body></html>"""
    found = html.extract(page, "https://acme.test/q2")

    assert rows_of(found.text) == [f"{row}; Company: Acme Corp." for row in ROWS]
    assert found.publisher != "Acme Corp."  # a title may be another's on it


def test_html_with_a_sign_in_a_cell_of_its_own_as_filings_have() -> None:
    """Each figure takes three columns: the sign, the digits, and the closing bracket."""
    page = f"""<html><body><article><p>{PROSE}</p><p>Statements of Income (in thousands)</p><table>
        <tr><td colspan="3"></td><td colspan="3">2024</td><td colspan="3">2023</td></tr>
        <tr><td colspan="3">Net loss</td><td>$</td><td>(12</td><td>)</td><td>$</td><td>(1,407</td><td>)</td></tr>
        <tr><td colspan="3">Margin</td><td colspan="2">4.1</td><td>%</td><td colspan="2">3.9</td><td>%</td></tr>
        </table></article></body></html>"""
    assert rows_of(html.extract(page, "").text) == [
        "Net loss (in thousands) — 2024: $(12); 2023: $(1,407); Table: Statements of Income",
        "Margin — 2024: 4.1%; 2023: 3.9%; Table: Statements of Income",
    ]


def test_html_layout_stays_as_it_is() -> None:
    page = f"<html><body><table><tr><td><p>{PROSE}</p></td><td>Menu</td></tr><tr><td>{PROSE}</td><td></td></tr></table>"
    assert not rows_of(html.extract(page, "").text)


def test_csv() -> None:
    lines = [
        "Statements of Income,,,,",
        '"(in millions, except per share data)",,,,',
        ",Three Months Ended,,Six Months Ended,",
        "," + ",".join(f'"{day}"' for day in DATES * 2),
        'Revenue (1),"$1,234","$1,100","2,400","2,100"',
        "Cost of sales,234,,400,100",
        "Earnings per share,$1.27,$1.20,2.41,2.30",
    ]
    assert extract_csv("\n".join(lines).encode()).text.split("\n") == ROWS


def test_docx() -> None:
    def cell(text: str, properties: str = "", mark: str = "") -> str:
        raised = f'<w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:t>{mark}</w:t></w:r>' if mark else ""
        return f"<w:tc><w:tcPr>{properties}</w:tcPr><w:p><w:r><w:t>{text}</w:t></w:r>{raised}</w:p></w:tc>"

    two, start, below = '<w:gridSpan w:val="2"/>', '<w:vMerge w:val="restart"/>', "<w:vMerge/>"
    rows = [
        cell("", start) + cell("Three Months Ended", two) + cell("Six Months Ended", two),
        cell("", below) + "".join(map(cell, DATES * 2)),
        cell("Revenue (1)") + cell("$1,234", mark="2") + cell("$1,100") + cell("2,400") + cell("2,100"),
        "".join(map(cell, ("Cost of sales", "234", "", "400", "100"))),
        "".join(map(cell, ("Earnings per share", "$1.27", "$1.20", "2.41", "2.30"))),
    ]
    lines = ("Acme Corp.", "Statements of Income", "(in millions, except per share data)")
    body = "".join(f"<w:p><w:r><w:t>{line}</w:t></w:r></w:p>" for line in lines)
    body += "<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in rows) + "</w:tbl>"
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as package:
        package.writestr("word/document.xml", f"<w:document {space}><w:body>{body}</w:body></w:document>")
    found = extract_docx(file.getvalue())

    assert rows_of(found.text) == [f"{row}; Company: Acme Corp." for row in ROWS]
    assert found.publisher is None


def test_pdf(tmp_path: Path) -> None:
    canvas = Canvas(str(tmp_path / "a.pdf"))
    canvas.setFont("Helvetica", 9)
    canvas.drawCentredString(300, 800, "ACME CORP.")
    canvas.drawCentredString(300, 788, "(Exact name of registrant as specified in its charter)")
    canvas.drawString(60, 750, "Statements of Income")
    canvas.drawString(60, 738, "(in millions, except per share data)")
    rights = (300, 370, 440, 510)
    canvas.drawCentredString(320, 714, "Three Months Ended")
    canvas.drawCentredString(460, 714, "Six Months Ended")
    table = (
        ("", *DATES, *DATES),
        ("Revenue (1)", "$1,234", "$1,100", "2,400", "2,100"),
        ("Cost of sales", "234", "", "400", "100"),
        ("Earnings per share", "$1.27", "$1.20", "2.41", "2.30"),
    )
    for number, (label, *values) in enumerate(table):
        canvas.drawString(60, 702 - 12 * number, label)
        for right, value in zip(rights, values, strict=True):
            canvas.drawRightString(right, 702 - 12 * number, value)
    canvas.save()
    found = pdf.extract(tmp_path / "a.pdf")

    assert rows_of(found.text) == [f"{row}; Company: ACME CORP." for row in ROWS]
    assert found.publisher == "ACME CORP."


def test_markdown() -> None:
    text = (
        "# Review\n\n## Sales by region\n\n| (in thousands) | 2024 | 2023 |\n|---|---|---|\n| North | 1,204 | 980 |\n"
    )
    assert rows_of(extract_markdown(text.encode()).text) == [
        "North (in thousands) — 2024: 1,204; 2023: 980; Table: Sales by region"
    ]


@pytest.mark.parametrize(
    ("lines", "row"),
    [
        # A heading in the middle of the columns it stands over.
        (
            [" | | Years Ended May 31, | ", " | 2024 | 2023 | 2022", "Fixed price | 1,452 | 1,146 | 1,036"],
            "Fixed price — Years Ended May 31, 2024: 1,452; Years Ended May 31, 2023: 1,146; "
            "Years Ended May 31, 2022: 1,036",
        ),
        # Units below the headings, of all columns or of each.
        (
            [" | 2024 | 2023", " | (in millions) | ", "Sensors | 914 | 918"],
            "Sensors (in millions) — 2024: 914; 2023: 918",
        ),
        ([" | 2024 | 2023", " | €m | €m", "Pensions | 57 | 44"], "Pensions — 2024 €m: 57; 2023 €m: 44"),
        # What heads the labels is their unit, or the period of the years beside it, or a heading like the others.
        (["$ million | F24 | F23", "Sales | 8,657 | 8,244"], "Sales ($ million) — F24: 8,657; F23: 8,244"),
        (["As of June 30, | 2024 | 2023", "Cash | 38 | 49"], "Cash — As of June 30, 2024: 38; As of June 30, 2023: 49"),
        (["Team | Year | Wins", "Reds | 2024 | 93"], "Team: Reds; Year: 2024; Wins: 93"),
        # A date over the whole table holds for columns without one.
        (
            ["June 30, 2024 | | ", " | Level 1 | Level 2", "Funds | 12 | 2,010"],
            "Funds — June 30, 2024 Level 1: 12; June 30, 2024 Level 2: 2,010",
        ),
        # The unit of all that columns of counts are excepted from is told apart.
        (
            ["(in millions) | Shares | Amount", "Issued | 12 | 2,010"],
            "Issued — Shares: 12; Amount: 2,010; Unit: in millions",
        ),
    ],
)
def test_headings_units_and_periods(lines: list[str], row: str) -> None:
    written = write_grid(grid(*lines))
    assert written is not None
    assert written[-1] == row
    assert is_table_row(row)


def test_groups_of_rows_end_with_their_total_and_headings_may_begin_anew() -> None:
    lines = grid(
        " | 2024 | 2023",
        "Solutions: | | ",
        "Automotive | 5,686 | 6,092",
        "Total | 5,686 | 6,092",
        "Energy | 699 | 712",
        " | 2022 | 2021",
        "Energy | 685 | 640",
    )
    assert write_grid(lines) == [
        "Solutions:",
        "Solutions: Automotive — 2024: 5,686; 2023: 6,092",
        "Total — 2024: 5,686; 2023: 6,092",
        "Energy — 2024: 699; 2023: 712",
        "Energy — 2022: 685; 2021: 640",
    ]


@pytest.mark.parametrize(
    "lines",
    [["Name | Acme", "Revenue | 1,204"], ["1 | 2", "3 | 4"], ["One cell"], [" | 2024 | 2023"], ["", ""]],
)
def test_without_headings_nothing_is_written(lines: list[str]) -> None:
    assert write_grid(grid(*lines)) is None


def test_a_long_row_is_several_lines_that_all_say_what_they_are_of() -> None:
    names = [f"Measurement number {number} of the year 2024" for number in range(60)]
    lines = write_grid(grid("Station | " + " | ".join(names), "North | " + " | ".join("12" for _ in names)), [], "Wind")
    assert lines is not None
    assert len(lines) > 1
    assert all(line.endswith("; Table: Wind") for line in lines)
    assert [piece.text for line in lines for piece in split_sentences(line)] == lines


@pytest.mark.parametrize(
    ("title", "text", "company"),
    [
        ("", "FORM 10-Q\nApple Inc.\n(Exact name of Registrant as specified in its charter)", "Apple Inc."),
        ("Acme Corp. reports second quarter results", "", "Acme Corp."),
        ("Annual report 2024 | Beispiel AG", "", "Beispiel AG"),
        ("Acme Corp. and Beta Inc. merge", "Acme Corp.", ""),
        ("Why shares of Acme Corp. fell", "Analysts cut their targets for Acme Corp. on Monday.", ""),
        ("", "GasLog Ltd. and its subsidiaries\nNotes", "GasLog Ltd."),
        ("", "About the Company\nour sales of the company", ""),
        ("Wind in the north", "The company said so.", ""),
    ],
)
def test_whose_document_it_is(title: str, text: str, company: str) -> None:
    assert find_company(title, text) == company


def test_only_rows_say_whose_they_are() -> None:
    text = "Sales rose in 2024.\nSales — 2024: 12; Table: Results"
    assert add_company(text, "Acme Corp.") == f"{text}; Company: Acme Corp."


# What the judge and the reader see of a row -------------------------------------------------------------------


def test_the_judge_and_the_reader_of_part_of_a_row_see_its_table_unit_period_and_company() -> None:
    document = make_document(f"{PROSE}\n{ROWS[0]}; Company: Acme Corp.\n{ROWS[1]}; Company: Acme Corp.", title="Filing")
    part = "Revenue (in millions) — Three Months Ended June 30, 2024: $1,234"
    start = document.text.index(part)
    span = QuoteSpan(document=document.hash, start=start, end=start + len(part), quote=part)
    context = read_context(document, [span])
    claim = add_context(Claim(id="C1", text="Revenue was $1,234 million.", questions=(), spans=(span,)), [context])

    for shown in (context.render(), "\n".join(one.quote for one in claim.spans)):
        for told in ("(in millions)", "Three Months Ended June 30, 2024", "Statements of Income", "Acme Corp."):
            assert told in shown
    assert all(document.text[one.start : one.end] == one.quote for one in claim.spans)
    assert not claim.context


def test_a_row_that_names_no_company_is_shown_with_what_its_document_says_of_itself() -> None:
    document = make_document("\n".join(ROWS), title="Acme, second quarter of 2024")
    start, end = 0, len(ROWS[0])
    span = QuoteSpan(document=document.hash, start=start, end=end, quote=ROWS[0])
    for one, field in ((document, "title"), (document.model_copy(update={"publisher": "Acme"}), "publisher")):
        claim = Claim(id="C1", text="Revenue was $1,234 million.", questions=(), spans=(span,))
        assert [item.field for item in add_context(claim, [read_context(one, [span])]).context] == [field]


def test_passages_hold_whole_rows() -> None:
    text = "\n".join(ROWS * 5)
    rows = [line for passage in split_passages("d", text) for line in passage.text.split("\n")]
    assert rows == ROWS * 5
