"""No secret survives; what is none is left alone."""

import json
import logging
import sys
from html import escape
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openassay.settings import load
from openassay.text.redaction import GONE, Redactor, build_redactor, is_secret
from tests.growth import LINEAR, growth

OURS = "c0ffee-and-more-than-that"
CLEAN = Redactor([OURS])
TAIL = "Zx9" * 8
SHAPES = {
    f"Authorization: Bearer {TAIL}": f"Authorization: Bearer {GONE}",
    f"authorization: bearer {TAIL}.{TAIL}": f"authorization: bearer {GONE}",
    "Basic dXNlcjpwYXNzd29yZDEy": f"Basic {GONE}",
    f"token openassay_0123abcd_{TAIL} was sent": f"token {GONE} was sent",
    f"https://team.example/t/1?share=share_0123abcd_{TAIL}&x=1": f"https://team.example/t/1?share={GONE}&x=1",
    f"whsec_{TAIL}": GONE,
    f"Incorrect API key provided: sk-ant-{TAIL}.": f"Incorrect API key provided: {GONE}.",
    "postgresql://ada:pass@db.example/openassay": f"postgresql://{GONE}@db.example/openassay",
    "redis://:pass@cache:6379/0": f"redis://{GONE}@cache:6379/0",
    "GET /v2/everything?q=tea&apiKey=abc HTTP/1.1": f"GET /v2/everything?q=tea&apiKey={GONE} HTTP/1.1",
    f"https://maps.example/?key={TAIL}#top": f"https://maps.example/?key={GONE}#top",
    "client_secret=abc&grant=x": f"client_secret={GONE}&grant=x",
    f"the-key-sk-proj-{TAIL}-x": f"the-key-{GONE}",
    f"tvly-{TAIL}": GONE,
    f"ghp_{TAIL}": GONE,
    f"AIza{'Zx9b-' * 7}": GONE,
}
INNOCENT = (
    "Bearer instruments were abolished in 2007, and bearer certificates-of-deposit too.",
    "Basic research is underfunded; basic income-replacement-schemes are not.",
    "https://example.org/watch?v=dQw4w9WgXcQ&t=43&key=short",
    "See http://example.org:8080/a@b and mail ada@example.org about it.",
    "risk-adjusted, task-oriented, sk-learn, disk-usage-of-the-whole-machine",
    "f(x)=y, a == b, token=5, password policy, the_share_of_gdp, shareholder_value",
    "Sources: S1, S2; coverage 61 of 64.",
    "",
)


@pytest.mark.parametrize(("text", "expected"), SHAPES.items())
def test_what_has_the_shape_of_a_secret_is_taken_out(text: str, expected: str) -> None:
    assert CLEAN.redact_text(text) == expected
    assert CLEAN.redact_text(expected) == expected, "once is enough"


@pytest.mark.parametrize("text", INNOCENT)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert CLEAN.redact_text(text) == text


HOSTILE = (
    "sk-", "-sk-", "sk-a", "Bearer ", "Bearer aaaaaaaaaaaaaaaa/", "basic bearer", "bearer" + " " * 50, "://", "://a:",
    "a:a:a@", "=", "?key=", "&token=aaaaaaaaaaaaaaaaaaaa", "openassay_", "share_openassay_00000000_", "whsec_", "tvly-",
    "xoxb-", "AIza", "ghp_", "github_pat_",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.requirement("W-12")
@pytest.mark.parametrize("piece", HOSTILE)
def test_no_text_takes_long(piece: str) -> None:
    """Anybody may send a megabyte, and nobody else is served meanwhile."""
    pieces = 250_000 // len(piece)
    assert growth(lambda size: CLEAN.redact_text(piece * size), pieces) < LINEAR


@given(st.text(), st.text(min_size=8).filter(is_secret), st.text())
def test_a_secret_of_the_settings_survives_nowhere(before: str, secret: str, after: str) -> None:
    clean = Redactor([secret])
    for spelt in (secret, quote(secret, errors="replace"), escape(secret), json.dumps(secret)[1:-1]):
        told = clean.redact_text(f"{before}{spelt}{after}")
        assert spelt not in told.replace(GONE, "\0") or spelt in "\0"
        data = clean.redact_data({"a": [f"{before}{spelt}{after}", 1, None], spelt: (True,)})
        assert spelt not in str(data).replace(GONE, "\0")


@given(st.text(st.characters(exclude_characters="=:_-", exclude_categories=["Cs"])))
def test_text_without_any_is_unchanged(text: str) -> None:
    if "AIza" not in text and "asic " not in text.lower() and "earer " not in text.lower():
        assert CLEAN.redact_text(text) == text


def test_data_without_any_are_the_same_data() -> None:
    data = {"title": "Tea", "urls": ["https://tea.example/?q=1"], "n": 3}
    assert CLEAN.redact_data(data) is data
    assert CLEAN.redact_data({"url": f"https://x.example/?share=share_0123abcd_{TAIL}", "n": [f"{OURS}!"]}) == {
        "url": f"https://x.example/?share={GONE}",
        "n": [f"{GONE}!"],
    }


def test_a_question_keeps_its_own_words_but_for_secrets_of_the_settings() -> None:
    asked = f"What is sk-ant-{TAIL}, and is {OURS} one?"
    assert CLEAN.redact_secrets(asked) == f"What is sk-ant-{TAIL}, and is {GONE} one?"


def test_every_key_of_the_settings_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-that-looks-like-words")
    monkeypatch.setenv("COMPATIBLE_API_KEY", "not-needed")
    monkeypatch.setenv("DATABASE_URL", "postgresql://ada:hunter2hunter2@db/openassay")
    clean = build_redactor(load())
    for secret in ("a-key-that-looks-like-words", "hunter2hunter2", "postgresql://ada:hunter2hunter2@db/openassay"):
        assert clean.redact_text(f"({secret})") == f"({GONE})"
    assert clean.redact_text("it is not-needed") == "it is not-needed", "a word that stands in for a key is none"


def test_logs_hold_none_and_neither_do_their_tracebacks(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("openassay.llm")
    with CLEAN.filter_logs(), caplog.at_level("INFO", logger=logger.name):
        logger.info("asked with %s", OURS)
        try:
            raise ValueError(f"https://u:{TAIL}@x.example")
        except ValueError:
            logger.warning("failed", exc_info=sys.exc_info())
        logger.info("%d of %d", 3, 5)
    assert OURS not in caplog.text
    assert TAIL not in caplog.text
    assert "Traceback" in caplog.text
    assert "3 of 5" in caplog.text
    logger.info("closed")
    assert not logger.filters
