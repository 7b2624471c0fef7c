"""Text that was made to take long: a page, a table and a message whose readings double with every piece of them."""

import pytest

from openassay.fetch.formats import ContentFormat, detect_format, reflow
from openassay.text.sentences import split_sentences
from openassay.text.small_talk import is_small_talk

# Before they were mended, each of these would have gone on for longer than anybody lives.
pytestmark = [pytest.mark.timeout(20), pytest.mark.requirement("W-17")]


def test_a_page_of_comments_is_recognised_at_once() -> None:
    bare = b"<!---->" * 140 + b"x"
    assert detect_format("text/plain", "https://a.example/", bare) is ContentFormat.PLAIN
    assert detect_format("", "https://a.example/", b"<!-- a --> <!-- b -->" * 20 + b"<html><p>x") is ContentFormat.HTML


def test_a_long_row_of_figures_is_read_at_once() -> None:
    row = "  ".join(str(n) for n in range(60))
    assert reflow(f"{row}  Total") == f"{row}  Total"
    long = " ".join(["17"] * 200_000)
    assert reflow(f"{long} Total\nand more") == f"{long} Total and more"
    rows = "Revenue  $ 1,200  (3.5) %  — 7\nProfit   $ 1,100  (2.5) %  — 6"
    assert reflow(rows) == rows


def test_a_long_courtesy_is_no_small_talk_and_takes_no_time() -> None:
    assert not is_small_talk("thx for " * 60 + "#")
    assert not is_small_talk("thanks for " * 300)
    assert is_small_talk("Thanks a lot for your help, and goodbye!")


def test_a_long_run_of_full_stops_takes_no_time() -> None:
    found = list(split_sentences("." * 200_000 + "x and that was it. Another one came after it."))
    assert found
