"""Is a statement made of its passages' words? One that brings many of its own says something else, whoever vouches."""

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Literal, NamedTuple

from openassay.text.negation import OPPOSITES
from openassay.text.quantities import PartialDate, find_quantities
from openassay.text.sentences import split_sentences
from openassay.text.words import STOP_WORDS, content_words, fold, spell_hyphens, stem, words
from openassay.verification.names import GRAMMAR, is_same_name
from openassay.verification.polarity import ProblemKind, StatementProblem

# Do the figures and names of a statement stand where they stand in the passage? "A beat B" is not "B beat A".
#
# Each figure or name is looked for by the words beside it. Where they are beside another of its kind in the passage
# rather than beside itself, the two have changed places. This doubts, it never vouches.

TokenKind = Literal["figure", "name", "word"]
MOST, MOST_BEHIND, MOST_LINES = 100, 200, 100  # words of a sentence, words of a passage's sentence, sentences
REACH = 6  # words beside it, on either side
LEAST, LEAST_OF_FREE_WORDS = 2, 5  # a like stop word alone is chance; in a free wording two words are
LEAST_GONE = 4  # where the rival is nowhere in the sentence: one word beside it is chance, two are not
PLAIN, TELLING = 1, 2  # what a stop word beside it and any other word beside it count
_TOKEN = re.compile(r"[^\W_]+(?:[-’'.&][^\W_]+)*|[,;:()]")
_BE = frozenset("is was are were been being be".split())
_COMMA = re.compile(r",(?!\s\d{4}|\d)|\s[–—-]\s")
_MOST_ASIDES = 12
# What day it was may be left out; a day that is told is checked as a date.
_WEEKDAY = re.compile(
    r"(?:\b(?:on|late|early|last|this|next) )?\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b"
    r"(?: (?:morning|afternoon|evening|night)\b)?,?",
    re.I,
)
_BRACKETS = re.compile(r"\s?\([^()]*\)")
_FINE = re.compile(r"[,;:()]")


class SentenceToken(NamedTuple):
    key: str  # a word's stem, a figure's value, a name's folded words
    sort: TokenKind
    shown: str
    when: PartialDate | None = None
    owns: bool = False  # "Johnson's"

    @property
    def opposites(self) -> frozenset[str]:
        return OPPOSITES.get(self.shown.lower(), frozenset())


def check_word_order(statement: str, passages: Sequence[str], *, strict: bool = True) -> Iterator[StatementProblem]:
    least = LEAST if strict else LEAST_OF_FREE_WORDS
    lines = [line[:MOST_BEHIND] for passage in passages for line in _passage_lines(passage)][:MOST_LINES]
    for piece in _sentence_texts(statement):
        ours = _to_active_voice(_tokenize(piece))
        if len(ours) > MOST:
            yield StatementProblem("scope", "the sentence is too long to be checked word by word")
            return
        for at, token in enumerate(ours):
            if (token.sort != "word" or token.opposites) and (rival := _find_rival(ours, at, lines, least)):
                kind = _KINDS.get(token.sort) or ("date" if token.when else "figure")
                yield StatementProblem(kind, f"{token.shown}{INSTEAD}{rival}")


INSTEAD = " stands where the quoted passage has "  # between what is said and what the passage has
_KINDS: dict[TokenKind, ProblemKind] = {"name": "name", "word": "direction"}


def _find_rival(ours: Sequence[SentenceToken], at: int, lines: Sequence[Sequence[SentenceToken]], least: int) -> str:
    """Return what stands in this place in the passage, if its own place is less like it. What has no place there at all
    is for other checks to see."""
    slot, listed = ours[at], _list_with(ours, at)
    own, rival, shown = -1 if slot.sort == "figure" else 0, least - 1, ""
    for line in lines:
        for place, token in enumerate(line):
            if token.sort == slot.sort:
                itself = _is_same_token(slot, token)
                if not itself and (_WEEKDAY.fullmatch(token.shown) or token.key in listed):
                    continue
                # One may have taken the other's place: of a word only its opposites.
                if not itself and slot.sort == "word" and token.shown.lower() not in slot.opposites:
                    continue
            else:
                # A name may be this plain word of the passage: "Village" at the beginning, "village" there.
                itself = slot.sort == "name" and token.sort == "word" and token.shown.lower() in slot.key.split()
                if not itself:
                    continue
            # How like the two places are: by the runs of like words to their left and to their right.
            like = 0
            before = ours[max(0, at - REACH) : at][::-1], line[max(0, place - REACH) : place][::-1]
            after = ours[at + 1 : at + 1 + REACH], line[place + 1 : place + 1 + REACH]
            for mine, theirs in (before, after):
                for one, other in zip(mine, theirs, strict=False):
                    if one.sort != other.sort or not _is_same_token(one, other):
                        break
                    plain = one.sort == "word" and (one.key in STOP_WORDS or _FINE.match(one.key))
                    like += PLAIN if plain else TELLING
            if itself:
                own = max(own, like)
            elif like > rival and (like >= LEAST_GONE or any(_is_same_token(token, other) for other in ours)):
                rival, shown = like, token.shown
    # Where words were left out its own place is half as it was: the rival's must be twice as like it.
    return shown if own > -1 and 2 * max(own, 0) < rival else ""


def _list_with(ours: Sequence[SentenceToken], at: int) -> set[str]:
    """The names that stand with one in a list: these may come in any order."""
    listed = set[str]()
    for run in (ours[at + 1 :], ours[:at][::-1]):
        for token in run:
            if token.sort == "name":
                listed.add(token.key)
            elif token.key not in (",", "and", "or"):
                break
    return listed if ours[at].sort == "name" else set()


def _is_same_token(one: SentenceToken, other: SentenceToken) -> bool:
    if one.when and other.when:
        return all(a == b for a, b in zip(one.when[:4], other.when[:4], strict=True) if a and b)
    if one.sort != "name":
        return one.key == other.key
    mine, theirs = one.key.split(), other.key.split()
    if _initials(mine) == other.key or _initials(theirs) == one.key or is_same_name(one.key, other.key):
        return True
    return _is_part_of_name(mine, theirs) or _is_part_of_name(theirs, mine)


def _is_part_of_name(some: Sequence[str], whole: Sequence[str]) -> bool:
    """Whether a name is a part of another, as a surname is; not "BC Beroe" of "BC Bulgaria", nor America of South
    America."""
    if (set(whole) & _QUALIFYING) - set(some):
        return False
    return all(any(is_same_name(word, other) for other in whole) for word in some)


_QUALIFYING = frozenset(
    "north south east west northern southern eastern western central new old upper lower great greater".split()
)


def _initials(words: Sequence[str]) -> str:
    return "".join(word[0] for word in words) if len(words) > 1 else ""


@lru_cache(maxsize=512)
def _passage_lines(passage: str) -> tuple[tuple[SentenceToken, ...], ...]:
    """Each sentence of the passage, and again without each of its asides: a statement may leave one out."""
    plain = _BRACKETS.sub("", passage)  # "(b. 1960)" may look like the end of a sentence
    found = [_tokenize(sentence) for sentence in _sentence_texts(passage)] if plain != passage else []
    for sentence in _sentence_texts(plain):
        placed = _tokenize_with_offsets(sentence)
        # What stands between two commas or dashes, or two such stretches.
        marks = [(match.start(), match.end()) for match in _COMMA.finditer(sentence)]
        pairs = [(at, at + far) for far in (1, 2) for at in range(len(marks) - far)]
        asides = [(marks[first][0], marks[last][1]) for first, last in pairs[:_MOST_ASIDES]]
        asides += [match.span() for match in _WEEKDAY.finditer(sentence)]
        found.append(_merge_names(placed))
        found += [_merge_names([item for item in placed if not start <= item[0] < end]) for start, end in asides]
    return tuple(dict.fromkeys(form for tokens in found for form in (tuple(tokens), tuple(_to_active_voice(tokens)))))


def _sentence_texts(text: str) -> list[str]:
    return [piece.text for piece in split_sentences(text)] or [text]


def _tokenize(text: str) -> list[SentenceToken]:
    return _merge_names(_tokenize_with_offsets(text))


def _tokenize_with_offsets(text: str) -> list[tuple[int, SentenceToken]]:
    """Words and figures with their places."""
    text = spell_hyphens(text)
    figures = find_quantities(text)
    placed = [
        (item.start, SentenceToken(item.label or str(item.value), "figure", text[item.start : item.end], item.when))
        for item in figures
    ]
    for match in _TOKEN.finditer(text):
        if any(item.start < match.end() and match.start() < item.end for item in figures):
            continue
        bare = re.sub(r"['’]s$|['’]$", "", match.group())
        plain = fold(bare)
        titled = any(part[:1].isupper() for part in bare.split("-"))
        is_name = titled and (plain not in GRAMMAR or (bare.isupper() and len(bare) > 1))
        key = plain.replace(".", "") if is_name else stem(plain)
        sort: TokenKind = "name" if is_name else "word"
        placed.append((match.start(), SentenceToken(key, sort, bare, owns=bare != match.group())))
    return sorted(placed, key=lambda item: item[0])


def _merge_names(placed: Sequence[tuple[int, SentenceToken]]) -> list[SentenceToken]:
    """Neighbouring capitalised words are one name, up to one in the possessive."""
    found: list[SentenceToken] = []
    joined: SentenceToken | None = None
    for _, token in placed:
        if joined and token.sort == "name" and not joined.owns:
            token = SentenceToken(f"{joined.key} {token.key}", "name", f"{joined.shown} {token.shown}", owns=token.owns)
            found[-1] = token
        else:
            found.append(token)
        joined = token if token.sort == "name" else None
    return found


def _to_active_voice(tokens: Sequence[SentenceToken]) -> list[SentenceToken]:
    """ "B was beaten by A" as "A beaten B", where a name stands on both sides."""
    for at in range(1, len(tokens) - 3):
        be, verb, by = tokens[at : at + 3]
        done, doer = tokens[at - 1], tokens[at + 3]
        passive = be.shown in _BE and by.shown == "by" and verb.sort == "word"
        if passive and done.sort == doer.sort == "name":
            return [*tokens[: at - 1], doer, verb, done, *tokens[at + 4 :]]
    return list(tokens)


MOST_STRANGE = 0.4  # of the content words; light rewording stays below .3, another matter lies above .6

JOINED = 2
CLOSE = 0.75  # of all words; of true statements that people wrote of a passage three quarters lie below

LEAST_CONTENT_SHARE = 0.34  # the share of a sentence that a reader would look for in its passage at the very least
_ADDRESS = re.compile(
    r"\b(?:https?://|www\.)\S+|\b[\w-]+\.(?:com|org|net|io|info|biz|example|test|co\.\w\w)\b\S*", re.I
)


def content_share(statement: str, passages: Sequence[str]) -> float:
    """How much of the statement's content stands in the passages, each word counted once."""
    said = _content_stems(statement)
    return 1 - len(_foreign_stems(said, passages)) / len(said) if said else 1.0


def is_close_wording(statement: str, passages: Sequence[str]) -> bool:
    """Whether the statement keeps to the words of one passage, or of two that it joins, words of grammar included."""
    said = {stem(word) for word in words(statement)}
    left = said
    for _ in range(JOINED):
        left = min((left - _all_stems(passage) for passage in passages), key=len, default=left)
    return len(left) <= (1 - CLOSE) * len(said)


# Of all words, in their order: of the statement's, so that what differs was exchanged, and of the sentence's, so that
# little was left out: "Vaccines cause autism" is no copy of "The claim that vaccines cause autism was refuted".
COPIED, KEPT = 0.8, 0.7


def find_copied_sentence(statement: str, sentences: Iterable[str], kept: float = KEPT) -> str | None:
    """Return the sentence that a statement copies but for a few words, if there is one."""
    said = [stem(word) for word in words(statement)]
    best, most = None, COPIED * len(said)
    for sentence in sentences:
        there = [stem(word) for word in words(sentence)]
        if len(set(said) & set(there)) < COPIED * len(set(said)):
            continue
        blocks = SequenceMatcher(None, said, there, autojunk=False).get_matching_blocks()
        like = sum(block.size for block in blocks)
        if like >= most and like >= kept * len(there) and like:
            best, most = sentence, like
    return best


@lru_cache(maxsize=512)
def _all_stems(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words(text))


def is_grounded(statement: str, passages: Sequence[str]) -> bool:
    """Names alone do not make it so: what is said of them must be the passages' too, but for a word."""
    plain = _content_stems(
        " ".join(word for word in statement.split() if not word[0].isupper() and not word[0].isdigit())
    )
    few = max(1.0 if len(plain) > 2 else 0.0, MOST_STRANGE * len(plain))
    return content_share(statement, passages) >= 1 - MOST_STRANGE and len(_foreign_stems(plain, passages)) <= few


def check_wording(statement: str, passages: Sequence[str]) -> Iterator[StatementProblem]:
    """A sentence hardly a word of which is the passages', beside others or alone, and an address that is none of
    theirs."""
    text = " ".join(passages)
    for address in _ADDRESS.findall(statement):
        if address.rstrip(".,;)") not in text:
            yield StatementProblem("name", f"the address {address} is not in the quoted passage")
    for piece in split_sentences(statement) or ():
        if content_share(piece.text, passages) < LEAST_CONTENT_SHARE:
            yield StatementProblem("scope", "the quoted passage has hardly a word of it")


def _foreign_stems(said: frozenset[str], passages: Sequence[str]) -> frozenset[str]:
    return said.difference(*map(_content_stems, passages))


@lru_cache(maxsize=512)
def _content_stems(text: str) -> frozenset[str]:
    return frozenset(stem(part) for word in content_words(text) for part in (word, *word.split("-")) if part)
