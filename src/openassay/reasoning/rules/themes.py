"""Themes: what was found for a broad question, grouped by meaning, each under a heading in the documents' own words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from openassay.models.evidence import Claim, Disagreement
from openassay.protocols import Embedder
from openassay.reasoning.rules.phrases import find_matter
from openassay.reasoning.rules.read import stands_alone
from openassay.text.sentences import is_statement, is_table_row
from openassay.text.words import IRREGULAR, STOP_WORDS, fold, jaccard, stems, words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_THEMES = 6
FEWEST_TOLD, MOST_TOLD = 2, 4  # statements of a theme
MOST_LEFT = 4  # of statements that are of no theme
FEWEST_WORDS = 7  # of a statement that a report on a broad question tells
ON_TOPIC, NEAR_BEST = 0.34, 0.57  # cosine to the question that a statement needs, and its share of the best one's
SAME, SAME_WORDS = 0.88, 0.6  # cosine and common stems from which on two statements say one thing
ALIKE = 0.08  # mean cosine of two groups that are one theme, once what all statements have in common is taken away
OWN_VOICE = 0.12  # taken from what is told by "we", whom a report does not name
DIVERSE = 0.5  # how much a statement loses by being like those told before it

_WE = frozenset("we us our ours ourselves".split())


class Theme(NamedTuple):
    """Statements of one matter in the order they are told, and the documents that speak of it."""

    title: str
    claims: tuple[Claim, ...]
    documents: int
    years: str = ""  # in which they were published, where the question asks for a development


class ThemedClaims(NamedTuple):
    """`lead` answers best; `left` are statements to the point that no other is like."""

    lead: Claim
    themes: tuple[Theme, ...]
    left: tuple[Claim, ...]


def find_themes(
    goal: str,
    claims: Sequence[Claim],
    embedder: Embedder,
    titles: Mapping[str, str],
    dates: Mapping[str, str] | None = None,
) -> ThemedClaims | None:
    """Group the statements that can be understood alone; None where there are none. With `dates`, those of documents,
    statements and themes are told in order of time."""
    usable = [one for one in claims if is_statement(one.text) and not is_table_row(one.text) and stands_alone(one.text)]
    if not usable:
        return None
    import numpy as np

    matter = find_matter(goal)
    # What a whole folder is of may stand in any sentence: the rest of the question tells them apart.
    plain = " ".join(word for word in matter.split() if not any(sign.isupper() or sign.isdigit() for sign in word))
    asked = [goal, matter, plain if len(stems(plain)) > 1 else matter]
    vectors = embedder.embed([*asked, *(claim.text for claim in usable)])
    near, vectors = vectors[len(asked) :] @ vectors[: len(asked)].mean(axis=0), vectors[len(asked) :]
    worth = 0.7 * near + 0.3 * np.array([claim.relevance for claim in usable], dtype=np.float32)
    worth -= [
        OWN_VOICE * bool(_WE & {word.partition("'")[0] for word in words(claim.text.replace("’", "'"))})
        for claim in usable
    ]
    floor = max(ON_TOPIC, NEAR_BEST * float(near.max()))
    # Each thing that is said, by its best statement; whoever says it again counts among the documents.
    kept: list[int] = []
    documents: dict[int, set[str]] = {}
    for at in (int(at) for at in worth.argsort()[::-1] if near[at] >= floor):
        same = (one for one in kept if _say_the_same(usable[at], usable[one], float(vectors[at] @ vectors[one])))
        first = next(same, at)
        documents.setdefault(first, set()).update(span.document for span in usable[at].spans)
        if first == at:
            kept.append(at)
    if not kept:
        return None
    own = vectors[kept]
    groups = group_by_meaning(own, ALIKE)
    # The best answer is near to the question and to what else was found.
    central = own @ own.mean(axis=0)
    lead = max(zip(kept, central, strict=True), key=lambda one: float(worth[one[0]]) + 0.5 * float(one[1]))[0]
    themes, left = list[tuple[float, str, Theme]](), list[int]()
    for group in groups:
        members = [kept[one] for one in group]
        speakers = set().union(*(documents[one] for one in members))
        chosen = _choose_diverse([one for one in members if one != lead], worth, vectors)
        if len(chosen) < FEWEST_TOLD:
            left += chosen
            continue
        title = _name_theme(
            [usable[one] for one in chosen],
            [usable[one] for one in kept],
            goal,
            embedder,
            titles,
            own[group].mean(axis=0),
        )
        if not title:
            left += chosen
            continue
        told = [usable[one] for one in chosen]
        when = ""
        if dates is not None:
            told.sort(key=lambda claim: _date(claim, dates))
            when = _date(told[0], dates)
        weight = float(sum(sorted((worth[one] for one in members), reverse=True)[:FEWEST_TOLD]))
        themes.append((weight, when, Theme(title, tuple(told), len(speakers), _tell_years(speakers, dates or {}))))
    best = sorted(themes, key=lambda theme: -theme[0])[:MOST_THEMES]
    if dates is not None:
        best.sort(key=lambda theme: theme[1])
    left.sort(key=lambda one: -worth[one])
    return ThemedClaims(
        usable[lead], _distinct_titles([theme for _, _, theme in best]), tuple(usable[one] for one in left[:MOST_LEFT])
    )


def can_tell(statement: str) -> bool:
    """Whether a statement tells something by itself: a whole sentence of some length, and no row of a table."""
    whole = is_statement(statement) and not is_table_row(statement) and len(statement.split()) >= FEWEST_WORDS
    return whole and stands_alone(statement)


def _say_the_same(one: Claim, other: Claim, cosine: float) -> bool:
    return cosine >= SAME or jaccard(one.text, other.text) >= SAME_WORDS


def _date(claim: Claim, dates: Mapping[str, str]) -> str:
    """The earliest day on which a document said so; what is undated comes last."""
    return min((dates[span.document] for span in claim.spans if dates.get(span.document)), default="9999")


def _tell_years(documents: Collection[str], dates: Mapping[str, str]) -> str:
    years = sorted({dates[name][:4] for name in documents if dates.get(name)})
    return "–".join(dict.fromkeys([*years[:1], *years[-1:]]))


def group_by_meaning(vectors: NDArray[np.float32], least: float) -> list[list[int]]:
    """Join groups whose members are on average most alike, as long as that is `least` or more. What all have in common
    is taken away first: statements found for one question are all of one matter."""
    import numpy as np

    rest = vectors - vectors.mean(axis=0)
    rest /= np.maximum(np.linalg.norm(rest, axis=1, keepdims=True), 1e-6)
    alike = rest @ rest.T
    groups = [[at] for at in range(len(vectors))]
    while len(groups) > 1:
        closeness = np.full((len(groups), len(groups)), -np.inf)
        for at, one in enumerate(groups):
            for to in range(at):
                closeness[at, to] = alike[np.ix_(one, groups[to])].mean()
        at, to = divmod(int(closeness.argmax()), len(groups))
        if closeness[at, to] < least:
            break
        groups[to] += groups.pop(at)
    return groups


def _choose_diverse(members: Sequence[int], worth: NDArray[np.float32], vectors: NDArray[np.float32]) -> list[int]:
    """The best of them, each as little as may be like those before it."""
    chosen: list[int] = []
    left = list(members)

    def gain(at: int) -> float:
        likest = max((float(vectors[at] @ vectors[other]) for other in chosen), default=0.0)
        central = float((vectors[at] @ vectors[list(members)].T).mean())
        return float(worth[at]) + 0.5 * central - DIVERSE * likest

    while left and len(chosen) < MOST_TOLD:
        best = max(left, key=gain)
        left.remove(best)
        chosen.append(best)
    return chosen


# Headings: words of the statements or a document's title, whichever is nearest in meaning to the whole theme.

LONGEST_PHRASE, LONGEST_HEADING, MOST_PHRASES = 4, 8, 12  # words; phrases that are compared by meaning
COMMON_TO_ALL = 0.5  # how much nearness to all that was found counts against a heading
SAID_BY_MORE = 0.06  # for each statement more that has it

_WORDS = re.compile(r"[^\W\d_][\w’'-]*|[^\w\s]")
# What stands ahead of a noun phrase.
_AHEAD = frozenset(
    "the a an its their his her our of for in on by with from between under over against across about into".split()
)
_PERSONS_AND_VERBS = frozenset("he she it they we i you him them us me this these those the a an".split())
_NUMBERING = re.compile(r"^\W*(?:[A-Z]{1,5}[- ]?)?\d[\w.-]*\W+\s*")


def _name_theme(
    members: Sequence[Claim],
    every: Sequence[Claim],
    goal: str,
    embedder: Embedder,
    titles: Mapping[str, str],
    centre: NDArray[np.float32],
) -> str:
    asked = set(stems(goal))
    count = Counter(phrase for claim in members for phrase in {fold(one): one for one in find_phrases(claim.text)})
    spelled = {fold(one): one for claim in reversed(members) for one in find_phrases(claim.text)}
    # What several say, then what the best say.
    ranked = sorted(spelled, key=lambda phrase: (-count[phrase], -len(phrase.split())))
    phrases = [spelled[one] for one in ranked if set(stems(one)) - asked][:MOST_PHRASES]
    named = {_NUMBERING.sub("", titles.get(span.document, "")) for claim in members for span in claim.spans}
    phrases += sorted(name for name in named if 2 <= len(name.split()) <= LONGEST_HEADING and set(stems(name)) - asked)
    if not phrases:
        return ""
    vectors = embedder.embed([*phrases, *(claim.text for claim in every)])
    all_of_it = vectors[len(phrases) :].mean(axis=0)
    near = vectors[: len(phrases)] @ (centre - COMMON_TO_ALL * all_of_it)
    said = [SAID_BY_MORE * (count[fold(phrase)] - 1) for phrase in phrases]
    best = max(range(len(phrases)), key=lambda at: (float(near[at]) + said[at], -at))
    return f"{phrases[best][:1].upper()}{phrases[best][1:]}"


def find_phrases(text: str) -> Iterator[str]:
    """Whole noun phrases of two to four words: behind an article, a possessive or a preposition, up to the next small
    word or sign, without a verb by their form."""
    run: list[str] = []
    before = ""
    for token in [*_WORDS.findall(text), "."]:
        plain = fold(token)
        if token[0].isalpha() and plain not in STOP_WORDS:
            run.append(token)
            continue
        verbal = any(fold(one) in IRREGULAR or one.endswith(("ed", "ly")) for one in run)
        # Behind what follows "to" or opens a sentence there may be a verb.
        if (
            2 <= len(run) <= 4
            and before in _AHEAD
            and plain not in _PERSONS_AND_VERBS
            and not verbal
            and not run[-1].endswith("ing")
        ):
            yield " ".join(run)
        run, before = [], plain


def _distinct_titles(themes: Sequence[Theme]) -> tuple[Theme, ...]:
    """Themes of one name are one."""
    by_title: dict[str, Theme] = {}
    for theme in themes:
        known = by_title.get(fold(theme.title))
        if known:
            theme = theme._replace(claims=(*known.claims, *theme.claims), documents=known.documents + theme.documents)
        by_title[fold(theme.title)] = theme
    return tuple(by_title.values())


# Disputes of a broad question.

ONE_MATTER = 0.6  # cosine of two statements that can be at odds


def keep_likely_disputes(
    disputes: Sequence[Disagreement], claims: Sequence[Claim], embedder: Embedder
) -> list[Disagreement]:
    """Those in which a statement of one side is near in meaning to one of another: statements found for a broad
    question speak of many things, and a word with its opposite stands in two of them by chance."""
    texts = {claim.id: claim.text for claim in claims}
    names = [
        name for name in dict.fromkeys(id for one in disputes for side in one.sides for id in side) if name in texts
    ]
    vectors = dict(zip(names, embedder.embed([texts[name] for name in names]), strict=True))

    def is_likely(one: Disagreement) -> bool:
        pairs = [
            (vectors[mine], vectors[theirs])
            for side, other in combinations(one.sides, 2)
            for mine in side
            for theirs in other
            if mine in vectors and theirs in vectors
        ]
        return one.resolved or not pairs or max(float(mine @ theirs) for mine, theirs in pairs) >= ONE_MATTER

    return [one for one in disputes if is_likely(one)]
