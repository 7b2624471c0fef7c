"""PDF files: text in whole sentences, rows with their headings, and plain reasons when one cannot be read."""

import contextlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfgen.canvas import Canvas

from assay.errors import ReadError
from assay.harvest import pdf
from assay.harvest.pages import Page, flow

SENTENCE = "Revenue of the segment rose to 12.4 billion dollars in the third quarter because prices were higher."


def make(path: Path, pages: list[list[str]], *, title: str = "", encrypt: object = None) -> Path:
    canvas = Canvas(str(path), encrypt=encrypt)
    canvas.setTitle(title)
    canvas.setAuthor("Ada Example")
    for lines in pages:
        canvas.setFont("Helvetica", 11)
        for number, line in enumerate(lines):
            canvas.drawString(72, 770 - 14 * number, line)
        canvas.showPage()
    canvas.save()
    return path


def test_text_title_author_and_date(tmp_path: Path) -> None:
    path = make(tmp_path / "a.pdf", [[SENTENCE[:54], SENTENCE[54:].strip()]], title="A Report on Segments")
    found = pdf.extract(path)
    assert found.text == SENTENCE
    assert (found.title, found.author) == ("A Report on Segments", "Ada Example")
    assert found.published is not None
    assert abs((found.published - datetime.now(UTC).date()).days) <= 1


@pytest.mark.parametrize(
    "title",
    ["Microsoft Word - final2.doc", "untitled", "0000320193-23-000077", "report_v2.indd", "a8f3c99d21e04b"],
)
def test_titles_that_say_nothing_are_dropped(tmp_path: Path, title: str) -> None:
    assert pdf.extract(make(tmp_path / "a.pdf", [[SENTENCE]], title=title)).title == ""


def test_a_sentence_over_a_page_break_is_whole_and_running_lines_go(tmp_path: Path) -> None:
    pages = [
        [
            "Example Corp Annual Report",
            *([f"Part {number} of the text is complete and ends here."] * 3),
            str(number),
        ]
        for number in range(1, 6)
    ]
    pages[0].insert(-1, "The last sentence of this page is long enough to be broken and")
    pages[1].insert(1, "goes on over there.")
    text = pdf.extract(make(tmp_path / "a.pdf", pages)).text
    assert "long enough to be broken and goes on over there." in text
    assert "Annual Report" not in text


def test_a_scan_says_so(tmp_path: Path) -> None:
    path = tmp_path / "scan.pdf"
    canvas = Canvas(str(path))
    for _ in range(3):
        canvas.rect(72, 72, 400, 600, fill=1)
        canvas.showPage()
    canvas.save()
    with pytest.raises(ReadError, match="scanned, no text layer"):
        pdf.extract(path)


def test_a_file_with_a_password_says_so(tmp_path: Path) -> None:
    lock = StandardEncryption("secret", strength=128)
    with pytest.raises(ReadError, match="password"):
        pdf.extract(make(tmp_path / "a.pdf", [[SENTENCE]], encrypt=lock))


def test_a_file_with_an_owner_password_alone_is_read(tmp_path: Path) -> None:
    lock = StandardEncryption("", ownerPassword="owner", strength=128)
    assert SENTENCE in pdf.extract(make(tmp_path / "a.pdf", [[SENTENCE]], encrypt=lock)).text


@pytest.mark.parametrize("content", [b"", b"%PDF-1.7\nnothing follows", b"\x00" * 4096, b"<html>no</html>"])
def test_a_corrupt_file_is_a_read_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(content)
    with pytest.raises(ReadError, match="not a readable PDF"):
        pdf.extract(path)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_a_truncated_file_is_read_or_refused(tmp_path: Path, share: float) -> None:
    path = make(tmp_path / "a.pdf", [[SENTENCE] * 20] * 4)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    with contextlib.suppress(ReadError):
        assert SENTENCE in pdf.extract(path).text


def test_the_time_limit_holds(tmp_path: Path) -> None:
    path = make(tmp_path / "a.pdf", [[SENTENCE] * 50] * 400)
    with pytest.raises(ReadError, match="more than 1 s"):
        pdf.extract(path, seconds=1)


def test_the_memory_limit_holds(tmp_path: Path) -> None:
    path = make(tmp_path / "a.pdf", [[SENTENCE] * 50] * 50)
    with pytest.raises(ReadError, match=r"MB of memory|not a readable PDF"):
        pdf.extract(path, megabytes=40)


def test_many_threads_may_read_at_once(tmp_path: Path) -> None:
    paths = [make(tmp_path / f"{number}.pdf", [[f"{SENTENCE} Number {number}."]]) for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        texts = [found.text for found in pool.map(pdf.extract, paths)]
    assert all(f"Number {number}." in text for number, text in enumerate(texts))


def test_the_child_imports_nothing_of_assay() -> None:
    heavy = "[name for name in sys.modules if name.startswith(('lang', 'pydantic', 'trafilatura'))]"
    code = f"import sys, assay.harvest.pdf_child; print({heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


TABLE = """
The following table shows net sales (in millions):

                                   Three Months Ended            Nine Months Ended
                                   July 1,2023   June 25,2022    July 1,2023   June 25,2022
Net sales:
  Products                        $     60,584   $    63,355    $   230,901   $   245,241
  Services                              21,213        19,604         62,886        58,941
     Total net sales                    81,797        82,959        293,787       304,182

A sentence of justified prose for the period ended  July        1,
2023 goes on here.
"""


def test_rows_say_their_column_headings() -> None:
    lines = flow([Page(TABLE, is_layout=True)]).split("\n")
    assert (
        "Total net sales — Three Months Ended July 1, 2023: 81,797; "
        "Three Months Ended June 25, 2022: 82,959; Nine Months Ended July 1, 2023: 293,787; "
        "Nine Months Ended June 25, 2022: 304,182"
    ) in lines
    assert any(line.startswith("Net sales: Products — Three Months Ended July 1, 2023: $60,584") for line in lines)
    assert "A sentence of justified prose for the period ended July 1, 2023 goes on here." in lines


def test_headings_in_doubt_are_not_guessed() -> None:
    doubtful = TABLE.replace("Three Months Ended            Nine Months Ended", "Restated  As Reported  Total")
    assert "Net sales: Services 21,213 19,604 62,886 58,941" in flow([Page(doubtful, is_layout=True)]).split("\n")


def test_a_quarterly_report_reads_well(eval_data: Path) -> None:
    """A real filing: whole sentences on a line, no footers, rows bound to their headings."""
    found = pdf.extract(eval_data / "sec-10q" / "docs" / "2023 Q3 AAPL.pdf")
    lines = found.text.split("\n")
    assert found.published == date(2023, 8, 4)
    assert "| Q3 2023 Form 10-Q |" not in found.text
    assert sum(line.startswith("Total net sales — Three Months Ended July 1, 2023: ") for line in lines) == 4
    prose = [line for line in lines if len(line) > 150 and " — " not in line]
    # Measured: .981 here (.981 over twelve filings, least .961) end as a sentence or a list clause does.
    whole = [line for line in prose if line.rstrip("”’)").endswith((".", ":", ";", "; and"))]
    assert len(whole) / len(prose) > 0.96
