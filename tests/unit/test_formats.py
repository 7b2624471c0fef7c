"""What kind of content an answer holds."""

from openassay.fetch.formats import ContentFormat, detect_format

HOST = "http://tides.example.org"


def test_formats_by_name_and_content() -> None:
    assert detect_format("text/csv", f"{HOST}/a", b"a,b\n1,2") is ContentFormat.CSV
    assert detect_format("text/plain", f"{HOST}/readme.md", b"# Tides") is ContentFormat.MARKDOWN
    assert detect_format("text/plain", f"{HOST}/table.csv", b"a,b") is ContentFormat.CSV
    assert detect_format("text/html", f"{HOST}/a", b"no markup at all") is ContentFormat.HTML
