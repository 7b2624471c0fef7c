"""Scores how much a text reads like content rather than a menu, a cookie wall or a dump: 0 to 1."""

import re
from statistics import fmean

_WORD = re.compile(r"[^\W\d_]+")
# Its end is optional, so that each character is looked at once: a page may be one line without a full stop.
_STRETCH = re.compile(r"[^.!?\u3002\uff01\uff1f\n]+([.!?\u3002\uff01\uff1f]?)")
_LETTER = re.compile(r"[^\W\d_]")
_MIN_SENTENCE = 27  # characters
_SPACE = re.compile(r"\s")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")  # one says as much as two or three Latin letters

# Notices that stand where content should; only a short text can be one, an article may speak of them.
_GONE = re.compile(
    r"\A\W*404\W*$|error 404\b|\b404 (?:error|not|page|-)|"
    r"(?:page|article|content|story|post|site|url|link|product)[^.!?\n]{0,50}"
    r"(?:not (?:be )?found|can(?:no|['\u2019])t be found|(?:does not|doesn['\u2019]t|no longer) (?:exist|available)|"
    r"(?:is|has been|was) (?:no longer available|removed|deleted|moved))|nothing (?:was )?found|"
    r"(?:page|article)[^.!?\n]{0,30}(?:no longer|un)available|"
    r"seite (?:wurde )?nicht (?:gefunden|vorhanden)|page (?:est )?introuvable|página no (?:encontrada|existe)|"
    r"página não (?:foi )?encontrada|pagina non (?:è stata )?trovata|pagina niet gevonden|страница не найдена|"
    r"页面(?:不存在|未找到)|ページが見つかりません",
    re.IGNORECASE | re.MULTILINE,
)
_CONSENT = re.compile(
    r"(?:use[sn]?|using|store|accept|allow|reject|manage|enable|set) (?:[\w/,]+ ){0,6}cookies|"
    r"cookies? (?:policy|settings|preferences|notice)|value your privacy|before you continue|"
    r"your (?:privacy|cookie) (?:choices|settings)|(?:verwende[nt]?|nutz(?:en|t)|setzen) .{0,20}cookies|"
    r"utilis\w+ (?:des |les )?cookies|utiliza\w* cookies|utilizz\w+ (?:i )?cookie|файлы cookie",
    re.IGNORECASE,
)
_ABOUT_CONSENT = re.compile(
    r"cookie|consent|privacy|partners|personali[sz]|advertis|\bads\b|accept|reject|agree|options|preferences|"
    r"got it|learn more",
    re.IGNORECASE,
)
_UNIT = re.compile(r"[^.!?\n]+")
_NOTICE_LENGTH = 1_500  # characters
_NOTICE_START = 250

_LONG_ENOUGH = 600  # characters; a news brief is about this long
_USUAL_LETTERS = 0.75  # share of letters in running prose; tables and code lie near 0.5


def score(text: str) -> float:
    """Score a text by its length, letters, sentences, variety and substance."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return 0.0
    visible = _SPACE.sub("", text)
    inside = 0  # characters inside sentences
    for stretch in _STRETCH.finditer(text):
        first = _LETTER.search(text, stretch.start(), stretch.end())
        size = stretch.end() - first.start() if first and stretch[1] else 0
        inside += size if size >= _MIN_SENTENCE else 0
    # Repeated lines and repeated words both mark boilerplate and generated filler.
    words = _WORD.findall(" ".join(lines).lower())[:400]
    distinct = len(set(words)) / len(words) if words else 0.0
    widths = [_width(line) for line in lines]  # lines that are longer than a menu entry have substance
    factors = (
        min(1.0, _width(text) / _LONG_ENOUGH),
        min(1.0, sum(map(str.isalpha, visible)) / len(visible) / _USUAL_LETTERS),
        min(1.0, inside / (0.7 * len(text))),
        min(len(set(lines)) / len(lines), min(1.0, distinct / 0.3)),
        min(1.0, sum(width for width in widths if width > 60) / sum(widths) / 0.6),
    )
    # The weakest trait decides more than the average: a long menu must not pass for its length.
    found = 0.4 * fmean(factors) + 0.6 * min(factors[1:]) * min(1.0, 0.4 + factors[0])
    return round(found * _notice_factor(text), 3)


def _notice_factor(text: str) -> float:
    """Return less the more of a short text is a notice: that the page is gone, or that it wants to set cookies."""
    if len(text) > _NOTICE_LENGTH:
        return 1.0
    if _GONE.search(text, 0, _NOTICE_START):
        return 0.2
    if not _CONSENT.search(text):
        return 1.0
    units = _UNIT.findall(text)
    share = sum(len(unit) for unit in units if _ABOUT_CONSENT.search(unit)) / sum(map(len, units))
    return max(0.1, 1 - 1.5 * share)


def _width(text: str) -> float:
    """Count characters, wide ones for what they say."""
    return len(text) + 1.5 * len(_WIDE.findall(text))
