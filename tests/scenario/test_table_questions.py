"""Questions over tables in a folder, asked as a user asks them and answered without a language model."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from reportlab.pdfgen.canvas import Canvas

from openassay.export import Report

# Merged heads over two lines, a unit in the caption, an empty cell, a footnoted label and a footnoted figure.
HEADS = ("2019", "2018", "2019", "2018")
ROWS = (
    ("Net sales (1)", "1,496.5", "1,202.9", "310.4", "295.2"),
    ("Cost of sales", "900.1", "820.4", "", "201.0"),
    ("Research expenses", "84.2", "70.2", "12.5", "11.9"),
    ("Total assets", "5,210.0", "4,980.3", "880.0", "861.7"),
)
TITLE, UNIT = "Acme Corp. results by region", "(in millions)"
PROSE = (
    "Acme Corp. makes valves and pumps for waterworks. Its oldest foundry stands in Lund and was rebuilt after a fire. "
    "The firm trains forty apprentices a year, most of them in the workshop that repairs old pumps."
)
OTHER = (
    "The museum of waterworks opened in spring. Visitors may walk through the old pumping hall, and a guide explains "
    "how the engines were fired. On Sundays the entrance is free for children."
)
FORMATS = ("html", "docx", "csv", "pdf")


def write_html(file: Path) -> None:
    body = "".join(
        f"<tr><td>{label}</td>" + "".join(f"<td>{value}</td>" for value in values) + "</tr>" for label, *values in ROWS
    )
    heads = "".join(f"<th>{head}</th>" for head in HEADS)
    file.write_text(
        f"<html><head><title>{TITLE}</title></head><body><article><h1>{TITLE}</h1><p>{PROSE}</p><p>{PROSE}</p>"
        f"<p>{TITLE} {UNIT}</p><table><tr><th></th><th colspan=2>Domestic</th><th colspan=2>International</th></tr>"
        f"<tr><th></th>{heads}</tr>{body}</table><p>{PROSE}</p></article></body></html>",
        encoding="utf-8",
    )


def write_docx(file: Path) -> None:
    def cell(text: str, properties: str = "", mark: str = "") -> str:
        raised = f'<w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:t>{mark}</w:t></w:r>' if mark else ""
        return f"<w:tc><w:tcPr>{properties}</w:tcPr><w:p><w:r><w:t>{text}</w:t></w:r>{raised}</w:p></w:tc>"

    two = '<w:gridSpan w:val="2"/>'
    lines = [cell("") + cell("Domestic", two) + cell("International", two), cell("") + "".join(map(cell, HEADS))]
    lines += [cell(label) + "".join(map(cell, values)) for label, *values in ROWS]
    body = "".join(f"<w:p><w:r><w:t>{line}</w:t></w:r></w:p>" for line in (TITLE, PROSE, TITLE, UNIT))
    body += "<w:tbl>" + "".join(f"<w:tr>{line}</w:tr>" for line in lines) + "</w:tbl>"
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as package:
        package.writestr("word/document.xml", f"<w:document {space}><w:body>{body}</w:body></w:document>")
    file.write_bytes(made.getvalue())


def write_csv(file: Path) -> None:
    lines = [f"{TITLE},,,,", f'"{UNIT}",,,,', ",Domestic,,International,", "," + ",".join(HEADS)]
    lines += [",".join([label, *(f'"{value}"' if value else "" for value in values)]) for label, *values in ROWS]
    file.write_text("\n".join(lines), encoding="utf-8")


def write_pdf(file: Path) -> None:
    canvas = Canvas(str(file))
    canvas.setTitle(TITLE)
    canvas.setFont("Helvetica", 9)
    for number, line in enumerate((PROSE[:110], PROSE[110:], "", TITLE, UNIT)):
        canvas.drawString(60, 780 - 12 * number, line)
    rights = (300, 370, 440, 510)
    canvas.drawCentredString(335, 694, "Domestic")
    canvas.drawCentredString(475, 694, "International")
    for number, (label, *values) in enumerate((("", *HEADS), *ROWS)):
        canvas.drawString(60, 682 - 12 * number, label)
        for right, value in zip(rights, values, strict=True):
            canvas.drawRightString(right, 682 - 12 * number, value)
    canvas.save()


WRITERS: dict[str, Callable[[Path], None]] = {
    "html": write_html,
    "docx": write_docx,
    "csv": write_csv,
    "pdf": write_pdf,
}


@pytest.fixture(params=FORMATS)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A table in one kind of file, among texts on other things."""
    made = tmp_path / "docs"
    made.mkdir()
    WRITERS[request.param](made / f"acme-results.{request.param}")
    (made / "museum.txt").write_text(OTHER, encoding="utf-8")
    (made / "acme.txt").write_text(PROSE, encoding="utf-8")
    return made


Research = Callable[..., Report]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What was the change in domestic net sales from 2018 to 2019?", "293.6 million"),
        ("What is the percentage change in domestic research expenses from 2018 to 2019?", "19.94%"),
        ("What was the average domestic total assets for 2018 and 2019?", "5,095.15 million"),
    ],
)
def test_a_figure_is_calculated_and_bound_to_its_cells(
    researched: Research, folder: Path, question: str, answer: str
) -> None:
    report = researched(question, docs=[folder], depth="quick")

    assert [one.text for one in report.answers] == [answer]
    stated = [one for section in report.sections for one in section.sentences if one.claims]
    assert stated[0].kind == "synthesis"
    assert stated[0].derived
    cells = [one.cell.text for one in stated if one.cell]
    assert len(cells) == 2
    quotes = {claim.id: claim.spans[0].quote for claim in report.claims}
    assert all(
        one.cell.text.removesuffix(" million") in quotes[one.claims[0]] for one in stated if one.cell is not None
    )


@pytest.mark.slow
def test_a_figure_is_read_from_its_cell(researched: Research, folder: Path) -> None:
    report = researched("What was the amount of international total assets in 2019?", docs=[folder], depth="quick")

    assert [one.text for one in report.answers] == ["880.0 million"]
    assert next(one for one in report.sections[0].sentences if one.claims).text.endswith(": 880.0 million.")


@pytest.mark.slow
@pytest.mark.parametrize(
    "question",
    ["How much rent did Acme pay in 2019?", "What was the cost of sales in 2012?", "How many patents has Acme?"],
)
def test_what_the_table_does_not_have_is_not_answered(researched: Research, folder: Path, question: str) -> None:
    report = researched(question, docs=[folder], depth="quick")

    assert report.answers == ()


# Reports of several quarters ------------------------------------------------------------------------------------


def write_report(folder: Path, name: str, company: str, ended: str, before: str, sales: tuple[int, int]) -> None:
    rows = (("Total net sales", *sales), ("Operating income", sales[0] // 10, sales[1] // 10))
    body = "".join(f"<tr><td>{label}</td><td>{now:,}</td><td>{then:,}</td></tr>" for label, now, then in rows)
    (folder / f"{name}.html").write_text(
        f"<html><head><title>{name}</title></head><body><article><p>{company}</p><p>(Exact name of registrant as "
        f"specified in its charter)</p><p>{company} files this report on the quarter ended {ended}. It sells goods in "
        "many places, and demand for them was even through the season, as it was in the year before.</p>"
        "<p>Statements of Operations (in millions)</p><table><tr><th></th><th colspan=2>Three Months Ended</th></tr>"
        f"<tr><th></th><th>{ended}</th><th>{before}</th></tr>{body}</table>"
        "<p>The notes that follow are part of these statements and were not audited.</p></article></body></html>",
        encoding="utf-8",
    )


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    made = tmp_path / "docs"
    made.mkdir()
    write_report(made, "2023 Q1 Boreal", "Boreal Foods Inc.", "March 31, 2023", "March 31, 2022", (5_120, 4_810))
    write_report(made, "2023 Q2 Boreal", "Boreal Foods Inc.", "June 30, 2023", "June 30, 2022", (5_632, 4_990))
    write_report(made, "2023 Q2 Castor", "Castor Motors Inc.", "June 30, 2023", "June 30, 2022", (7_741, 7_002))
    (made / "museum.txt").write_text(OTHER, encoding="utf-8")
    return made


@pytest.mark.slow
@pytest.mark.parametrize(
    ("question", "answer", "period"),
    [
        ("What was the revenue of Boreal Foods in Q1 2023?", "5,120 million", "March 31, 2023"),
        ("What were the total net sales of Castor Motors in the second quarter of 2023?", "7,741 million", "June 30"),
        ("What were the total net sales of Boreal Foods in the latest quarter?", "5,632 million", "June 30, 2023"),
        ("What were the total net sales of Boreal Foods in Q2 2022?", "4,990 million", "June 30, 2022"),
    ],
)
def test_company_and_quarter_choose_the_report(
    researched: Research, reports: Path, question: str, answer: str, period: str
) -> None:
    report = researched(question, docs=[reports], depth="quick")

    assert [one.text for one in report.answers] == [answer]
    first = next(one for one in report.sections[0].sentences if one.claims)
    assert period in first.text


@pytest.mark.slow
def test_a_row_over_several_quarters_is_a_table_of_bound_cells(researched: Research, reports: Path) -> None:
    report = researched(
        "How have the total net sales of Boreal Foods changed over time?", docs=[reports], depth="quick"
    )

    stated = [one for section in report.sections for one in section.sentences if one.claims]
    assert stated[0].kind == "synthesis"
    assert [figure.value for figure in stated[0].derived] == [10.0]
    assert [one.cell.text for one in stated if one.cell] == ["5,120 million", "5,632 million"]
    told = {(one.about, one.text, one.disputed) for one in report.answers}
    assert told == {("March 31, 2023", "5,120 million", False), ("June 30, 2023", "5,632 million", False)}


@pytest.mark.slow
def test_a_quarter_that_no_report_is_on_is_not_answered(researched: Research, reports: Path) -> None:
    report = researched("What were the total net sales of Castor Motors in Q4 2020?", docs=[reports], depth="quick")

    assert report.answers == ()
