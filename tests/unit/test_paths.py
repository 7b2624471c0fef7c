"""Where files stand is not told; addresses, and what sources say, stay as they are."""

import pytest

from openassay.server.bodies import hide_file_urls, hide_paths

PLACED = {
    "/srv/private folder/kiln.pdf": "kiln.pdf",
    "no document could be read (/srv/data/uploads/ab/kiln.pdf: it is no PDF)": "no document could be read (kiln.pdf: "
    "it is no PDF)",
    "see file:///srv/data/kiln.txt": "see file:kiln.txt",
    "'/srv/ada/x' does not exist": "'x' does not exist",
}
OPEN = (
    "https://example.org/a/b/c",
    "GET https://example.org/~ada/b",
    "and/or, 1/2/3, km/h",
    "/mcp",
    "local:/etc/passwd",
)


@pytest.mark.parametrize(("text", "expected"), PLACED.items())
def test_of_a_file_its_name_is_told(text: str, expected: str) -> None:
    assert hide_paths({"path": [text]}) == {"path": [expected]}


@pytest.mark.parametrize("text", OPEN)
def test_what_is_no_path_stays(text: str) -> None:
    assert hide_paths(text) == hide_file_urls(text) == text
