"""A quote is evidence only where it stands in the text."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from openassay.models.evidence import QuoteSpan
from openassay.verification.quotes import QuotePlace, find_quote, is_verbatim_span, normalise_text
from tests.growth import LINEAR, growth

pytestmark = pytest.mark.requirement("X-01")


@pytest.mark.parametrize(
    ("quote", "text", "found"),
    [
        ("rose 5%", "Sales rose 5% in May.", "rose 5%"),
        ("Sales rose 5%", "Sales\n  rose\u00a05% in May.", "Sales\n  rose\u00a05%"),
        ('"It is over," he said', "“It is over,” he said.", "“It is over,” he said"),
        ("the firm's plan", "the firm’s plan", "the firm’s plan"),
        ("2019-2021", "2019–2021", "2019–2021"),
        ("the first finding", "the ﬁrst ﬁnding", "the ﬁrst ﬁnding"),
        ("example", "exam\u00adple", "exam\u00adple"),
        ("example text", "exam\u00ad\nple text", "exam\u00ad\nple text"),
        ("zero width", "ze\u200bro width", "ze\u200bro width"),
        ("café noir", "cafe\u0301 noir", "cafe\u0301 noir"),
        ("cafe\u0301 noir", "café noir", "café noir"),
        ("and so on...", "and so on…", "and so on…"),
        ("  padded  ", "it is padded.", "padded"),
        ("-5 °C", "at −5\u202f°C", "−5\u202f°C"),
    ],
)
def test_found_as_the_source_words_it(quote: str, text: str, found: str) -> None:
    place = find_quote(quote, text)
    assert place is not None
    assert text[place.start : place.end] == found


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        ("sales rose", "Sales rose"),
        ("rose 6%", "rose 5%"),
        ("Sales rose ... in May", "Sales rose 5% in May"),
        ("Sales [...] in May", "Sales rose 5% in May"),
        ("Sales … May", "Sales rose 5% in May"),
        ("10 2", "10²"),
        ("102", "10²"),
        ("isn't", "isnt"),
        ("ish and chips", "ﬁsh and chips"),
        ("cafe noir", "café noir"),
        ("", "text"),
        (" \u200b\n", "text \u200b\n"),
        ("text", ""),
    ],
)
def test_not_found(quote: str, text: str) -> None:
    assert find_quote(quote, text) is None


def test_the_exact_wording_comes_first() -> None:
    text = 'a “b” c, a "b" c'
    assert find_quote('a "b" c', text) == QuotePlace(9, 16)


def test_verify() -> None:
    span = QuoteSpan(document="d", start=6, end=10, quote="rose")
    assert is_verbatim_span(span, "Sales rose.")
    assert not is_verbatim_span(span, "Sales fell.")
    assert not is_verbatim_span(span, "")


_TEXT = st.text(st.sampled_from("abcé .,'\"-\n\t“”’–\u00a0\u200bﬁ5%世"), max_size=60)
_NOISE = {" ": ["  ", "\n", " \u00a0", "\t "], '"': ["“", "”"], "'": ["’"], "-": ["–", "—"]}


@given(_TEXT, st.data())
def test_a_slice_with_noise_is_found(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    noisy = "".join(data.draw(st.sampled_from([char, *_NOISE.get(char, [])])) for char in text[start:end])
    wanted = normalise_text(noisy).text.strip(" ")
    assume(wanted)
    place = find_quote(noisy, text)
    assert place is not None
    assert normalise_text(text[place.start : place.end]).text.strip(" ") == wanted


@given(st.text(), st.text())
def test_never_raises_and_never_invents(quote: str, text: str) -> None:
    place = find_quote(quote, text)
    if place is None:
        assert not quote.strip() or quote not in text or not normalise_text(quote).text.strip(" ")
    else:
        assert normalise_text(text[place.start : place.end]).text.strip(" ") == normalise_text(quote).text.strip(" ")
        assert 0 <= place.start < place.end <= len(text)


@given(_TEXT)
def test_a_quote_with_a_foreign_word_is_not_found(text: str) -> None:
    assert find_quote(f"{text} zebra", text) is None


def test_time_grows_with_the_text_and_no_faster() -> None:
    paragraph = "The company’s revenue rose 5% in the third quarter, the “best” since 2019. " * 12 + "\n\n"
    assert find_quote("not  in the text at all", paragraph * 1_100) is None
    assert growth(lambda size: find_quote("not  in the text at all", paragraph * size), 275) < LINEAR


@pytest.mark.slow
@pytest.mark.parametrize("text", ["a" * 300_000, "ab " * 100_000, "e\u0301" * 100_000, "\n\n“" * 100_000])
def test_hostile_text_takes_linear_time(text: str) -> None:
    assert growth(lambda size: find_quote(text[:1_000] + "!", text[:size]), len(text) // 4) < LINEAR
