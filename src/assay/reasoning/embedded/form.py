"""Requests about the form of an answer: "shorter please", "as a table", "in German". They name no subject."""

import re

from assay.text.words import fold

_NUMBER = r"(?:(?:about |at most |only )?\d{1,5}|an?|a few|a single|one|two|three|four|five|six|ten|half a)"
_LENGTH = re.compile(
    rf"\b(?:in|to|with|within|under|using|into) {_NUMBER} (?:short |simple )?(?:word|sentence|paragraph|line|page)s?\b"
)
_MEASURED = re.compile(r"\b(?:\d{1,5} words?|(?:\d{1,3}|one|two|three|half a|a) pages?)\b")  # what a report can keep to
_SHAPE = (
    r"tables?|(?:bullet(?:ed)? |numbered |short |simple )?lists?|bullets|bullet points?|timeline|chart|diagram|essay|"
    r"paragraphs?|markdown|json|csv|html|outline|summary|tweet|e-?mail|poem|story|prose|key points"
)
_LANGUAGE = (
    "english german deutsch french spanish italian portuguese dutch polish russian ukrainian chinese mandarin japanese "
    "korean arabic hebrew turkish greek swedish danish norwegian finnish czech hungarian romanian hindi latin"
)
_ASKED_FOR = re.compile(
    r"\b(?:"
    r"(?:(?:a (?:bit|little|lot)|much|even) )?(?:shorter|longer|briefer|simpler|clearer)|"
    r"(?:more|less) (?:concise|brief|simple|compact|technical|formal|readable|complicated)(?:ly)?|"
    r"too (?:long|short|complicated)|briefly|concisely|simply|in (?:short|brief|full|a nutshell)|tl;? ?dr|eli5|"
    r"(?:in|with|using) (?:simple|simpler|plain|easy|other|different|layman'?s?|fewer|your own) "
    r"(?:terms|words|english|language|sentences)|"
    rf"(?:in|as|into|with|in the form of)(?: an?)? (?:{_SHAPE})|"
    rf"(?:in|into|to|auf) (?:{'|'.join(_LANGUAGE.split())})|"
    r"(?:an? |the )?(?:(?:short|brief|quick) )?summary|summari[sz]e|sum (?:it |that |this |all that )?up|recap|shorten|"
    r"simplify|translate|repeat|rephrase|reword|rewrite|paraphrase|again|once (?:more|again)|one more time|"
    r"(?:like|as if) i(?:'m| am| was| were) (?:five|5|a child|a kid)|"
    r"(?:to|for) (?:an? )?(?:child|children|kids?|beginners?|laymen|layman|five[- ]year[- ]old)"
    r")(?!['\w-])"
)
_BESIDES = frozenset(
    "please pls thanks and but or ok okay now then so just can could would will you i i'd want need like to have let "
    "me us get give show do make put say write tell explain answer present format turn convert describe it that this "
    "all of them these the a an your my last above previous whole answer report text result reply version "
    "explanation one for in with as time instead if possible more".split()
)


def is_form(text: str) -> bool:
    """Whether nothing is asked for but another form of the last answer."""
    plain = " ".join(fold(text).replace("’", "'").split())
    rest = _ASKED_FOR.sub(" ", _LENGTH.sub(" ", plain))
    return rest != plain and all(word.strip(".,!?;:") in _BESIDES | {""} for word in rest.split())


def length_in(text: str) -> str:
    """A length that a report can keep to: "100 words"."""
    found = _MEASURED.search(fold(text))
    return found.group() if found else ""
