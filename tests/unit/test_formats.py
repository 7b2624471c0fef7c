"""What kind of content an answer holds."""

from assay.harvest.formats import Format, recognise

HOST = "http://tides.example.org"


def test_formats_by_name_and_content() -> None:
    assert recognise("text/csv", f"{HOST}/a", b"a,b\n1,2") is Format.CSV
    assert recognise("text/plain", f"{HOST}/readme.md", b"# Tides") is Format.MARKDOWN
    assert recognise("text/plain", f"{HOST}/table.csv", b"a,b") is Format.CSV
    assert recognise("text/html", f"{HOST}/a", b"no markup at all") is Format.HTML
