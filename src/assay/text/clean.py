"""Text without invisible characters: what a reader cannot see, a model must not either."""

import re
import unicodedata

_SPACES = "\t\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"

# What a reader cannot see but a model obeys: controls, soft hyphen, zero-width and bidirectional marks,
# invisible operators, interlinear notes, tags and supplementary variation selectors. U+200C and U+200D stay:
# Persian, Indic scripts and emoji are misspelt without them.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_LINE_END = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_GAP = re.compile(f"[ {_SPACES}]+")
_BLANKS = re.compile(r"\n{3,}")


def clean(text: str) -> str:
    """Sanitise; a second pass changes nothing, so offsets into the result are stable."""
    text = _LINE_END.sub("\n", text)
    text = _INVISIBLE.sub("", _SURROGATE.sub("\ufffd", text))
    text = unicodedata.normalize("NFC", _GAP.sub(" ", text))
    lines = "\n".join(line.strip(" ") for line in text.split("\n"))
    return _BLANKS.sub("\n\n", lines).strip("\n")


def is_readable(text: str) -> bool:
    """No control codes, no bytes that were not UTF-8. Format characters are text: Persian joins with U+200C, Arabic
    and Hebrew are marked with U+200F, emoji joined with U+200D."""
    broken = ("Cc", "Cs")
    return "\ufffd" not in text and not any(
        unicodedata.category(mark) in broken and not mark.isspace() for mark in text
    )
