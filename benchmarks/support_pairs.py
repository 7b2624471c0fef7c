"""Pairs of a statement and its evidence, made from running text: supported, refuted, or neither.

Every exchange of a word, name or figure is made in the statement and in its evidence, all four ways, so that
neither side alone tells the label and shared words alone do not either.
"""

import random
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from lemminflect import getInflection, getLemma  # type: ignore[import-not-found]
from textblob.en import parse  # type: ignore[import-not-found]

from benchmarks.support_corpora import Text, WordNet
from openassay.text.words import content_words, stem

SUPPORTED, REFUTED, NEITHER = 0, 1, 2
KINDS = 40_000  # words of which two statements each are made: one of a wider word, one of a word beside it
MONTHS = "January February March April May June July August September October November December".split()
NATIONS = dict(
    pair.split(":")
    for pair in (
        "American:the United States|British:Britain|English:England|French:France|German:Germany|Italian:Italy|"
        "Spanish:Spain|Canadian:Canada|Australian:Australia|Indian:India|Chinese:China|Japanese:Japan|Russian:Russia|"
        "Irish:Ireland|Scottish:Scotland|Mexican:Mexico|Brazilian:Brazil|Dutch:the Netherlands|Swedish:Sweden|"
        "Norwegian:Norway|Danish:Denmark|Polish:Poland|Greek:Greece|Turkish:Turkey|Israeli:Israel|Egyptian:Egypt|"
        "Argentine:Argentina|Portuguese:Portugal|Swiss:Switzerland|Austrian:Austria|Belgian:Belgium|Finnish:Finland|"
        "Czech:the Czech Republic|Hungarian:Hungary|Korean:Korea|Welsh:Wales|Pakistani:Pakistan|Cuban:Cuba"
    ).split("|")
)
SMALL = "zero one two three four five six seven eight nine ten eleven twelve".split()
_PRONOUNS = {"he", "she", "it", "they"}
_KEPT = frozenset(  # adjectives without which a sentence says more than before
    "former fake alleged only few no little last first second third next same other many more less most least several "
    "possible likely unlikely potential proposed supposed fictional future own such".split()
)
_CUTS = frozenset("who which where with and but while as after before including when that for by in on at from".split())
_CLOSED = frozenset("not n't no never without only neither nor unless if hardly few fewer less".split())


class Token(NamedTuple):
    word: str
    tag: str
    chunk: str


def tokens(sentence: str) -> list[Token]:
    found = []
    for item in parse(sentence, tokenize=True, tags=True, chunks=True).replace("\n", " ").split(" "):
        parts = item.split("/")
        if len(parts) >= 4:
            found.append(Token("/".join(parts[:-3]).replace("&slash;", "/"), parts[-3], parts[-2]))
    return found


def joined(line: Sequence[str]) -> str:
    text = re.sub(r" ?(n?)' ?(s|t|re|ve|ll|d|m)\b", r"\1'\2", " ".join(line))
    text = re.sub(r" ([,.;:!?%)\]’”]|'s\b|n't\b|'\s)", r"\1", text)
    text = re.sub(r"([(\[$“]) ", r"\1", text)
    return text[:1].upper() + text[1:]


def spaced(text: str) -> str:
    """As the fact-verification sets print it: every mark by itself, brackets as words."""
    text = re.sub(r"([,.;:!?%\"]|'s\b)", r" \1 ", text).replace("(", " -LRB- ").replace(")", " -RRB- ")
    text = re.sub(r"(\d) , (\d{3})", r"\1,\2", re.sub(r"(\d) \. (\d)", r"\1.\2", text))
    return " ".join(text.split())


class Pair(NamedTuple):
    statement: str
    evidence: str
    label: int


# --- statements that follow from a sentence ---------------------------------------------------------------------


def _bare(line: Sequence[Token]) -> list[Token]:
    """Without what stands in brackets and without the last full stop."""
    kept, depth = [], 0
    for token in line:
        depth += token.word in ("(", "[")
        if not depth:
            kept.append(token)
        depth -= token.word in (")", "]")
    return kept[:-1] if kept and kept[-1].word == "." else kept


def _verb(line: Sequence[Token]) -> int:
    """Where the first finite verb stands, or -1."""
    for index, token in enumerate(line):
        if (
            index
            and token.tag in ("VBD", "VBZ", "VBP", "MD")
            and any(t.tag.startswith(("NN", "PRP")) for t in line[:index])
        ):
            return index
    return -1


def _subject(line: Sequence[Token]) -> tuple[list[Token], list[Token]] | None:
    """The subject and the rest, where the sentence opens with its subject; an opening phrase is dropped."""
    commas = [index for index, token in enumerate(line[:14]) if token.word == ","]
    if line and line[0].tag in ("IN", "RB", "VBG", "TO", "CC") and commas:
        line = line[commas[0] + 1 :]
    verb = _verb(line)
    if not 0 < verb <= 9 or any(token.word in {",", ";", "that", "which", "who"} for token in line[:verb]):
        return None
    return list(line[:verb]), list(line[verb:])


def _named(subject: Sequence[Token], title: str) -> list[str]:
    words = [token.word for token in subject]
    if title and len(words) == 1 and words[0].lower() in _PRONOUNS:
        return title.split()
    return words


def _shortened(rest: Sequence[Token], rng: random.Random) -> list[Token]:
    """Cut after some phrase, where nothing closes the meaning of what is kept."""
    places = [
        i
        for i in range(3, len(rest))
        if rest[i].word == "," or (rest[i].word in _CUTS and rest[i - 1].tag.startswith(("NN", "CD")))
    ]
    places = [i for i in places if not any(token.word.lower() in _CLOSED for token in rest[:i])]
    kept = list(rest[: rng.choice(places)]) if places and rng.random() < 0.85 else list(rest)
    if rng.random() < 0.4:
        kept = [
            t
            for t in kept
            if not (t.tag == "JJ" and t.word.lower() not in _KEPT and t.word.islower() and rng.random() < 0.6)
        ]
    return kept


def _articled(words: list[str]) -> list[str]:
    """a and an as the next word wants them."""
    fixed = list(words)
    for index, (word, after) in enumerate(pairwise(words)):
        if word.lower() in ("a", "an"):
            fixed[index] = ("an" if after[:1].lower() in "aeiou" else "a") if word.islower() else word
    return fixed


def follows(sentence: str, line: Sequence[Token], title: str, rng: random.Random) -> Iterator[str]:
    """Statements that a sentence bears out."""
    bare = _bare(line)
    parts = _subject(bare)
    if parts is None:
        return
    subject, rest = _named(parts[0], title), parts[1]
    yield joined(_articled([*subject, *(t.word for t in rest), "."]))
    for _ in range(2):
        yield joined(_articled([*subject, *(t.word for t in _shortened(rest, rng)), "."]))
    yield from _second_verbs(subject, rest, rng)
    yield from _is_a(subject, rest)
    yield from _turned(subject, rest)
    yield from _life(sentence, title or joined(subject))


def _second_verbs(subject: list[str], rest: Sequence[Token], rng: random.Random) -> Iterator[str]:
    for index in range(2, len(rest) - 2):
        if rest[index - 1].word in ("and", "who", "but") and rest[index].tag in ("VBD", "VBZ") and len(subject) < 6:
            yield joined(_articled([*subject, *(t.word for t in _shortened(rest[index:], rng)), "."]))


def _is_a(subject: list[str], rest: Sequence[Token]) -> Iterator[str]:
    """X is an American singer and actor: X is a singer, X is an actor, X is American."""
    if rest[0].word not in ("is", "was", "are", "were") or len(rest) < 3 or rest[1].word not in ("a", "an", "the"):
        return
    end = next(
        (
            i
            for i in range(2, len(rest))
            if not rest[i].tag.startswith(("NN", "JJ", "CC", "VBN")) and rest[i].word != ","
        ),
        len(rest),
    )
    phrase = rest[2:end]
    heads = [
        i
        for i, t in enumerate(phrase)
        if t.tag in ("NN", "NNS") and (i + 1 == len(phrase) or not phrase[i + 1].tag.startswith("NN"))
    ]
    for index in heads:
        word = phrase[index].word
        yield joined(_articled([*subject, rest[0].word, "a", word, "."]))
        if index and phrase[index - 1].tag.startswith(("NN", "JJ")):
            yield joined(_articled([*subject, rest[0].word, "a", phrase[index - 1].word, word, "."]))
    for token in phrase:
        if token.word in NATIONS and heads:
            yield joined([*subject, rest[0].word, token.word, "."])
            yield joined([*subject, rest[0].word, "from", NATIONS[token.word], "."])


def _turned(subject: list[str], rest: Sequence[Token]) -> Iterator[str]:
    """Active from passive: "X was written by Y" bears out "Y wrote X"."""
    words = [t.word for t in rest]
    if rest[0].word in ("is", "was", "were", "are") and "by" in words[2:6]:
        by = words.index("by")
        verb = rest[by - 1]
        if by == 2 and verb.tag in ("VBN", "VBD"):
            past = getInflection(getLemma(verb.word, "VERB")[0], "VBD")
            agent = _phrase(rest[by + 1 :])
            if past and agent:
                yield joined([*agent, past[0], *subject, "."])
    elif (
        rest[0].tag == "VBD"
        and len(rest) > 2
        and rest[1].chunk == "B-NP"
        and rest[0].word not in ("was", "were", "had", "did")
    ):
        done = getInflection(getLemma(rest[0].word, "VERB")[0], "VBN")
        patient = _phrase(rest[1:])
        if done and patient:
            yield joined([*patient, "was", done[0], "by", *subject, "."])


def _phrase(line: Sequence[Token]) -> list[str]:
    end = next((i for i, t in enumerate(line) if not t.tag.startswith(("NN", "JJ", "DT", "PRP$", "CD"))), len(line))
    return [t.word for t in line[:end]]


_DAY = rf"(?:(\d{{1,2}}) ({'|'.join(MONTHS)})|({'|'.join(MONTHS)}) (\d{{1,2}}),?) (\d{{4}})"
_BORN = re.compile(rf"\((?:[^()]{{0,60}}; ?)?born (?:on )?{_DAY}")
_LIVED = re.compile(rf"\((?:[^()]{{0,60}}; ?)?{_DAY}\s*[–-]+\s*{_DAY}\)")


def _life(sentence: str, name: str) -> Iterator[str]:
    if match := _BORN.search(sentence):
        yield from _event(name, "was born", match.groups())
    elif match := _LIVED.search(sentence):
        yield from _event(name, "was born", match.groups()[:5])
        yield from _event(name, "died", match.groups()[5:])


def _event(name: str, verb: str, parts: Sequence[str]) -> Iterator[str]:
    day, month, year = parts[0] or parts[3], parts[1] or parts[2], parts[4]
    yield f"{name} {verb} in {year}."
    yield f"{name} {verb} in {month}."
    yield f"{name} {verb} on {month} {day}, {year}."
    yield f"{name} {verb} in the {year[:3]}0s."


# --- rewordings that keep what is said ---------------------------------------------------------------------------


def contrasts(line: Sequence[Token], wordnet: WordNet, rng: random.Random) -> list[tuple[str, str]]:
    """Two statements that differ in one word, neither of which need stand in the evidence: a synonym or what the word
    is a kind of, and an antonym or something else of that kind. Only the meaning tells which one follows."""
    found = []
    for index, token in enumerate(line):
        letter = {"N": "n", "V": "v", "J": "a", "R": "r"}.get(token.tag[:1], "")
        if not letter or not token.word.islower() or token.word in _LIGHT or token.tag.startswith("NNP"):
            continue
        lemma = (getLemma(token.word, _KINDS[letter]) or (token.word,))[0]
        true = wordnet.synonyms(lemma, letter) or (wordnet.hypernyms(lemma, letter, steps=1) if letter in "nv" else [])
        true = true or (wordnet.hypernyms(lemma, steps=2) if letter == "n" else [])
        false = wordnet.antonyms(lemma, letter) or (wordnet.sisters(lemma, letter)[:30] if letter in "nv" else [])
        false = [word for word in false if word not in true]
        if true and false:
            pair = []
            for word in (rng.choice(true), rng.choice(false)):
                form = (getInflection(word, token.tag) or (word,))[0] if token.tag in _INFLECTED else word
                pair.append(
                    joined(_articled([*(t.word for t in line[:index]), form, *(t.word for t in line[index + 1 :])]))
                )
            found.append((pair[0], pair[1]))
    return found


def veiled(evidence: str, claim: str, rng: random.Random) -> str:
    """The evidence with a pronoun where it opens with the subject of the claim, as in the middle of an article."""
    words, wanted = evidence.split(), claim.split()
    same = next(
        (i for i, (a, b) in enumerate(zip(words, wanted, strict=False)) if a != b), min(len(words), len(wanted))
    )
    named = [
        i for i in range(1, same + 1) if i < len(words) and words[i - 1][:1].isupper() and not words[i][:1].isupper()
    ]
    if not named or words[0] in ("The", "A", "An", "In", "It", "He", "She"):
        return evidence
    return " ".join([rng.choice(("He", "She", "It", "They", "The company", "This")), *words[named[0] :]])


_LIGHT = frozenset("is was be has had are were been have do did does being said made used other such same".split())
_KINDS = {"n": "NOUN", "v": "VERB", "a": "ADJ", "r": "ADV"}
_INFLECTED = ("NNS", "VBD", "VBZ", "VBN", "VBG", "JJR", "JJS")


def renumbered(statement: str, rng: random.Random) -> tuple[str, str] | None:
    """A statement with a bound in place of its figure: one that holds and one that does not."""
    found = list(re.finditer(r"(?<![\w.,$€£-])(\d{1,3}(?:,\d{3})+|\d{2,3})(?= [a-z]{3,})", statement))
    if found:
        match = rng.choice(found)
        value = int(match[1].replace(",", ""))
        step = max(1, round(value * rng.choice((0.02, 0.1, 0.3))))
        below, above = f"{value - step:,}", f"{value + step:,}"
        true = rng.choice(
            (f"more than {below}", f"over {below}", f"at least {value:,}", f"fewer than {above}", f"under {above}")
        )
        false = rng.choice(
            (f"more than {above}", f"over {above}", f"at least {above}", f"fewer than {below}", f"under {below}")
        )
        return _put(statement, match, true), _put(statement, match, false)
    if dated := re.search(r"\b[Ii]n (1[5-9]\d\d|20[0-2]\d)\b", statement):
        year, step = int(dated[1]), rng.choice((1, 1, 2, 5, 12))
        true = rng.choice((f"before {year + step}", f"after {year - step}", f"in the {str(year)[:3]}0s"))
        false = rng.choice(
            (
                f"before {year - step + 1}",
                f"after {year + step - 1}",
                f"in the {(year // 10 + rng.choice((-2, -1, 1, 2))) * 10}s",
            )
        )
        return _put(statement, dated, true), _put(statement, dated, false)
    return None


def _put(text: str, match: re.Match[str], new: str) -> str:
    new = new.capitalize() if match.start() == 0 else new
    return text[: match.start()] + new + text[match.end() :]


# --- exchanges: a word of the statement for one that says something else ------------------------------------------


class Exchange(NamedTuple):
    old: str
    new: str


class Pools(NamedTuple):
    names: dict[str, list[str]]  # by what stands before: "in", "by", "" ...
    phrases: list[str]  # phrases with a preposition, to add to statements


_NAME = re.compile(r"(?<!\. )(?<!^)\b[A-Z][\w’'-]+(?: (?:of |de |the )?[A-Z][\w’'.-]*\w)*")


def names(text: str) -> list[tuple[str, str]]:
    """Names with the word before them."""
    found = []
    for match in _NAME.finditer(text):
        name = match.group()
        if name not in MONTHS and name not in NATIONS and len(name) > 2:
            before = text[: match.start()].split()
            found.append((before[-1].lower() if before else "", name))
    return found


def exchanges(
    statement: str, line: Sequence[Token], text: Text, pools: Pools, wordnet: WordNet, rng: random.Random
) -> list[Exchange]:
    found = [*_names(statement, text, pools, rng), *_figures(statement, rng), *_nations(statement, rng)]
    for token in line:
        found.extend(_words(token, wordnet, rng))
    return found


def _names(statement: str, text: Text, pools: Pools, rng: random.Random) -> Iterator[Exchange]:
    own = [pair for sentence in text.sentences for pair in names(sentence)]
    for before, name in names(statement):
        near = [other for place, other in own if place == before and not set(other.split()) & set(name.split())]
        pool = near if near and rng.random() < 0.6 else pools.names.get(before) or pools.names[""]
        new = rng.choice(pool)
        if not set(new.split()) & set(name.split()):
            yield Exchange(name, new)


def _figures(statement: str, rng: random.Random) -> Iterator[Exchange]:
    for match in re.finditer(r"(?<![\w.,-])\d[\d,]*(?:\.\d+)?(?![\w-])", statement):
        old = match.group().rstrip(",.")
        yield Exchange(old, _other_figure(old, rng))
    for month in MONTHS:
        if re.search(rf"\b{month}\b", statement):
            yield Exchange(month, rng.choice([other for other in MONTHS if other != month]))
    for size in ("thousand", "million", "billion"):
        if f" {size}" in statement:
            yield Exchange(size, rng.choice([other for other in ("thousand", "million", "billion") if other != size]))
    for word in re.findall(rf"\b(?:{'|'.join(SMALL[1:])})\b", statement):
        yield Exchange(word, rng.choice([other for other in SMALL[2:] if other != word]))


def _other_figure(old: str, rng: random.Random) -> str:
    if re.fullmatch(r"1[5-9]\d\d|20[0-2]\d", old):
        return str(int(old) + rng.choice((-40, -17, -10, -5, -3, -2, -1, 1, 2, 3, 5, 10, 17)))
    value = float(old.replace(",", ""))
    new = value
    while new == value:
        new = (
            value * rng.choice((0.1, 0.5, 0.8, 0.9, 1.1, 1.25, 2, 3, 10))
            if rng.random() < 0.6
            else value + rng.choice((-3, -2, -1, 1, 2, 3))
        )
        new = abs(round(new, len(old.partition(".")[2])))
    return f"{new:,.{len(old.partition('.')[2])}f}" if "," in old else f"{new:.{len(old.partition('.')[2])}f}"


def _nations(statement: str, rng: random.Random) -> Iterator[Exchange]:
    for word in NATIONS:
        if re.search(rf"\b{word}\b", statement):
            yield Exchange(word, rng.choice([other for other in NATIONS if other != word]))


def _words(token: Token, wordnet: WordNet, rng: random.Random) -> Iterator[Exchange]:
    letter = {"N": "n", "V": "v", "J": "a", "R": "r"}.get(token.tag[:1], "")
    if not letter or not token.word.islower() or len(token.word) < 3:
        return
    kind = {"n": "NOUN", "v": "VERB", "a": "ADJ", "r": "ADV"}[letter]
    lemma = (getLemma(token.word, kind) or (token.word,))[0]
    options = wordnet.antonyms(lemma, letter)
    if letter == "n" and (not options or rng.random() < 0.5):
        options = wordnet.sisters(lemma)[:40]
    elif letter == "v" and not options and rng.random() < 0.25:
        options = wordnet.sisters(lemma, "v")[:15]
    if options:
        new = rng.choice(options)
        if token.tag in ("NNS", "VBD", "VBZ", "VBN", "VBG", "JJR", "JJS"):
            new = (getInflection(new, token.tag) or (new,))[0]
        if stem(new) != stem(token.word):
            yield Exchange(token.word, new)


def exchanged(text: str, swap: Exchange) -> str:
    changed = re.sub(rf"(?<!\w){re.escape(swap.old)}(?!\w)", swap.new.replace("\\", ""), text)
    return re.sub(r"\b([Aa])n?(?= ([A-Za-z]))", lambda m: m[1] + ("n" if m[2].lower() in "aeiou" else ""), changed)


# --- denials and widenings ---------------------------------------------------------------------------------------

_ONLY = ("only", "exclusively", "solely", "just")
_BALKS = (
    "refused to",
    "failed to",
    "was unable to",
    "has yet to",
    "declined to",
    "never managed to",
    "was incapable of",
    "did not",
    "never",
)


def denied(line: Sequence[Token], rng: random.Random) -> str | None:
    words = [t.word for t in line]
    if any(word in ("not", "n't", "never", "no") for word in words):
        kept = [t for t in line if t.word not in ("not", "n't", "never")]
        if len(kept) == len(line):
            return None
        return joined([{"ca": "can", "wo": "will"}.get(t.word, t.word) for t in kept])
    verb = _verb(line)
    if verb < 1:
        return None
    token = line[verb]
    if token.word in (
        "is",
        "was",
        "are",
        "were",
        "has",
        "had",
        "have",
        "can",
        "could",
        "will",
        "would",
        "may",
        "should",
    ):
        wide = (
            ["not"]
            if rng.random() < 0.7 or token.word in ("has", "had", "have")
            else rng.choice((["never"], ["no", "longer"], ["not"]))
        )
        if token.word in ("has", "had", "have") and (verb + 1 == len(line) or line[verb + 1].tag != "VBN"):
            return joined([*words[:verb], rng.choice(("does not have", "lacks", "never had")), *words[verb + 1 :]])
        return joined([*words[: verb + 1], *wide, *words[verb + 1 :]])
    base = (getLemma(token.word, "VERB") or (token.word,))[0]
    if token.tag == "VBD":
        balk = rng.choice(_BALKS)
        form = {"was incapable of": (getInflection(base, "VBG") or (base,))[0], "never": token.word}.get(balk, base)
        return joined([*words[:verb], balk, form, *words[verb + 1 :]])
    if token.tag in ("VBZ", "VBP"):
        return joined([*words[:verb], "does not" if token.tag == "VBZ" else "do not", base, *words[verb + 1 :]])
    return None


_GRANTS = ("managed to", "was able to", "went on to", "did", "indeed", "once", "also")


def granted(line: Sequence[Token], rng: random.Random) -> str | None:
    """The same said with more words, so that added words alone do not mean a denial."""
    verb = _verb(line)
    words = [t.word for t in line]
    if verb < 1 or any(word in ("not", "n't", "never", "no") for word in words):
        return None
    if line[verb].tag == "VBD" and line[verb].word not in ("was", "were", "had", "did"):
        grant = rng.choice(_GRANTS)
        base = (getLemma(line[verb].word, "VERB") or (line[verb].word,))[0]
        form = line[verb].word if grant in ("indeed", "once", "also") else base
        return joined([*words[:verb], grant, form, *words[verb + 1 :]])
    if line[verb].word in ("is", "was"):
        added = {
            "is": ("is also", "is indeed", "is, among other things,", "is known as"),
            "was": ("was also", "was once", "was indeed"),
        }
        return joined([*words[:verb], rng.choice(added[line[verb].word]), *words[verb + 1 :]])
    return None


def widened(line: Sequence[Token], rng: random.Random) -> str | None:
    """Only, all, always: more than the sentence says."""
    verb = _verb(line)
    if verb < 1 or line[verb].tag == "MD":
        return None
    words = [t.word for t in line]
    if line[verb].word in ("is", "was", "are", "were"):
        return joined([*words[: verb + 1], rng.choice(_ONLY), *words[verb + 1 :]])
    return joined([*words[:verb], rng.choice(("only", "exclusively", "always")), *words[verb:]])


_HEDGED = tuple(
    pair.split(":")
    for pair in (
        "may:|might:|could:|is expected to:will|is likely to:will|is believed to be:is|appears to:does|allegedly:|"
        "reportedly:|possibly:|probably:"
    ).split("|")
)
_QUANTITY = tuple(
    pair.split(":")
    for pair in (
        "some:all|many:all|most:all|several:all|a few:most|often:always|usually:always|sometimes:always|"
        "more than:less than|less than:more than|at least:at most|before:after|after:before|the largest:the smallest|"
        "the first:the last|more:less|higher:lower|increased:decreased|rose:fell|grew:shrank|over:under|best:worst|"
        "north:south|east:west"
    ).split("|")
)


def hardened(statement: str) -> str | None:
    for soft, hard in _HEDGED:
        if re.search(rf"\b{soft}\b", statement):
            return re.sub(r" +", " ", re.sub(rf"\b{soft}\b", hard, statement, count=1))
    return None


def quantified(statement: str, rng: random.Random) -> Exchange | None:
    options = [Exchange(*pair) for pair in _QUANTITY if re.search(rf"\b{pair[0]}\b", statement)]
    return rng.choice(options) if options else None


def swapped(line: Sequence[Token]) -> str | None:
    """Who did it to whom, turned round."""
    parts = _subject(line)
    if not parts or parts[1][0].tag != "VBD":
        return None
    subject, rest = [t.word for t in parts[0]], parts[1]
    start = 1 if rest[0].word not in ("was", "were") else next((i + 1 for i, t in enumerate(rest) if t.word == "by"), 0)
    other = _phrase(rest[start:]) if start else []
    if not other or not other[0][:1].isupper() or not subject[0][:1].isupper() or other == subject:
        return None
    return joined([*other, *(t.word for t in rest[:start]), *subject, *(t.word for t in rest[start + len(other) :])])


# --- all together ------------------------------------------------------------------------------------------------


class Maker:
    """Makes the pairs of one text after another."""

    def __init__(self, corpus: Sequence[Text], wordnet: WordNet, seed: int) -> None:
        self.corpus, self.wordnet, self.rng = corpus, wordnet, random.Random(seed)
        self.pools = self._pools()

    def _pools(self) -> Pools:
        by_place: dict[str, list[str]] = {"": []}
        phrases = []
        for text in self.corpus:
            for sentence in text.sentences:
                for before, name in names(sentence):
                    by_place.setdefault(before, []).append(name)
                    by_place[""].append(name)
                phrases += re.findall(
                    r" ((?:in|at|with|for|from|by|during|under|after) (?:the )?(?:[A-Z][\w-]+|\d{4})(?: [A-Z][\w-]+)*)",
                    sentence,
                )
        return Pools({place: found for place, found in by_place.items() if len(found) > 20 or not place}, phrases)

    def pairs(self, text: Text) -> Iterator[Pair]:
        lines = [tokens(sentence) for sentence in text.sentences]
        claims = [list(dict.fromkeys(c for c in follows(s, line, text.title, self.rng) if 3 <= len(c.split()) <= 40))
                  for s, line in zip(text.sentences, lines, strict=True)]  # fmt: skip
        for index, own in enumerate(claims):
            self.rng.shuffle(own)
            for claim in own[:4]:
                yield from self._of_claim(claim, text, index, lines[index])
            if own and len(claims) > 1:
                yield from self._beside(own, claims, text, index)

    def _window(self, text: Text, index: int, without: int = -1) -> tuple[int, int]:
        size = self.rng.choice((1, 1, 1, 2, 2, 3, 4))
        start = max(0, index - self.rng.randrange(size))
        end = min(len(text.sentences), start + size)
        if start <= without < end:
            return index, index + 1
        return start, end

    def _evidence(self, text: Text, index: int, without: int = -1) -> str:
        start, end = self._window(text, index, without)
        return " ".join(text.sentences[start:end])

    def _of_claim(self, claim: str, text: Text, index: int, source: Sequence[Token]) -> Iterator[Pair]:
        rng, line = self.rng, tokens(claim)
        evidence = self._evidence(text, index)
        if rng.random() < 0.3:
            evidence = veiled(evidence, claim, rng)
        if rng.random() < 0.5:
            yield Pair(claim, evidence, SUPPORTED)
        claims = [claim]
        for true, false in rng.sample(found := contrasts(line, self.wordnet, rng), min(3, len(found))):
            yield Pair(true, evidence, SUPPORTED)
            yield Pair(false, evidence, REFUTED)
            claims.append(true)
        if bounds := renumbered(claim, rng):
            yield Pair(bounds[0], evidence, SUPPORTED)
            yield Pair(bounds[1], evidence, REFUTED)
        claim = rng.choice(claims)
        swaps = exchanges(claim, line, text, self.pools, self.wordnet, rng)
        if extra := quantified(claim, rng):
            swaps.append(extra)
        if swaps and rng.random() < 0.6:
            yield from self._four_ways(claim, evidence, rng.choice(swaps))
        yield from self._turns(claim, tokens(claim), evidence, source)

    def _four_ways(self, claim: str, evidence: str, swap: Exchange) -> Iterator[Pair]:
        false, other = exchanged(claim, swap), exchanged(evidence, swap)
        if false == claim:
            return
        yield Pair(false, evidence, REFUTED)
        if other != evidence:
            yield Pair(false, other, SUPPORTED)
            if self.rng.random() < 0.7:
                yield Pair(claim, other, REFUTED)

    def _turns(self, claim: str, line: Sequence[Token], evidence: str, source: Sequence[Token]) -> Iterator[Pair]:
        rng = self.rng
        roll = rng.random()
        if roll < 0.35 and (text := denied(line, rng)):
            yield Pair(text, evidence, REFUTED)
            if same := granted(line, rng):
                yield Pair(same, evidence, SUPPORTED)
            if rng.random() < 0.35 and (turned := denied(source, rng)) and _verb(source) > 0:
                yield Pair(claim, turned, REFUTED)
                yield Pair(text, turned, SUPPORTED)
        elif roll < 0.45 and (text := widened(line, rng)):
            yield Pair(text, evidence, NEITHER)
        elif roll < 0.6 and (text := swapped(line)):
            yield Pair(text, evidence, REFUTED)
        elif roll < 0.85:
            added = f"{claim.rstrip('. ')} {rng.choice(self.pools.phrases)}."
            yield Pair(added, evidence, NEITHER)
        if text := hardened(claim):
            yield Pair(text, evidence, NEITHER)

    def _beside(self, own: list[str], claims: Sequence[list[str]], text: Text, index: int) -> Iterator[Pair]:
        """Another sentence of the same text: by itself no evidence, together with this one as a conjunction some."""
        rng = self.rng
        near = [i for i in range(len(claims)) if i != index and claims[i]]
        if not near:
            return
        other = rng.choice(near)
        claim = rng.choice(claims[other])
        aside = self._evidence(text, index, without=other)
        if _shared(claim, aside) < 0.8:
            yield Pair(claim, aside, NEITHER)
            if rng.random() < 0.5:
                yield Pair(f"{own[0].rstrip('. ')}, and {claim}", aside, NEITHER)
        if rng.random() < 0.5 and abs(other - index) <= 3:
            both = " ".join(text.sentences[min(index, other) : max(index, other) + 1])
            yield Pair(f"{own[0].rstrip('. ')}, and {claim}", both, SUPPORTED)
        if rng.random() < 0.15:
            strange = rng.choice(self.corpus)
            if strange.sentences and strange is not text:
                yield Pair(own[0], rng.choice(strange.sentences), NEITHER)

    def kinds(self, count: int) -> Iterator[Pair]:
        """X is a violinist: X is a musician who plays the violin, and no politician."""
        rng, wordnet = self.rng, self.wordnet
        nouns = [word for (word, letter) in wordnet.senses if letter == "n" and word in wordnet.common]
        for _ in range(count):
            word = rng.choice(nouns)
            sense = wordnet.first(word, "n")
            above, beside = wordnet.hypernyms(word, steps=rng.choice((1, 1, 2, 3))), wordnet.sisters(word)
            if not above or not beside or not sense:
                continue
            other = rng.choice(beside)
            yield from self._kind(word, rng.choice(above), other, _gloss(wordnet, word), _gloss(wordnet, other))

    def _kind(self, word: str, above: str, beside: str, gloss: str, strange: str) -> Iterator[Pair]:
        rng = self.rng
        name, nation, place = (
            rng.choice(self.pools.names[""]),
            rng.choice(list(NATIONS)),
            rng.choice(self.pools.names["in"]),
        )
        is_ = rng.choice(("is", "was"))
        forms = (f"{name} {is_} a {word}.", f"{name} {is_} a {nation} {word}.", f"{name} {is_} a {word} in {place}.",
                 f"{name} (born {rng.randrange(1900, 2005)}) {is_} a {nation} {word} from {place}.")  # fmt: skip
        subject, evidence = name, rng.choice(forms)
        if gloss and rng.random() < 0.4:
            evidence = f"{name} {is_} {gloss}."
            above = rng.choice((above, word))
        elif gloss and strange and rng.random() < 0.4:
            above, beside = gloss, strange
        for kind, label in ((above, SUPPORTED), (beside, REFUTED)):
            statement = f"{subject} {is_} {kind if kind in (gloss, strange) else 'a ' + kind}."
            yield Pair(exchanged(statement, Exchange("¤", "")), exchanged(evidence, Exchange("¤", "")), label)


def _gloss(wordnet: WordNet, word: str) -> str:
    sense = wordnet.first(word, "n")
    gloss = wordnet.synsets[sense][2].partition(";")[0].strip() if sense else ""
    return gloss if re.match(r"(?:an?|the|someone|something|any)\b", gloss) and "(" not in gloss else ""


def _shared(claim: str, evidence: str) -> float:
    wanted = {stem(word) for word in content_words(claim)}
    return len(wanted & {stem(word) for word in content_words(evidence)}) / max(1, len(wanted))


def dressed(pair: Pair, rng: random.Random) -> Pair:
    """Some as the fact-verification sets print them, some without the final stop."""
    roll = rng.random()
    if roll < 0.2:
        return Pair(spaced(pair.statement), spaced(pair.evidence), pair.label)
    if roll < 0.3:
        return Pair(pair.statement.rstrip(" ."), pair.evidence, pair.label)
    return pair


def make(corpus: Sequence[Text], wordnet: WordNet, told: Callable[[str], None]) -> Iterator[Pair]:
    """From half of the texts: with all of them, and longer windows, the sets it is measured on gained nothing."""
    for part in (0, 1):
        maker = Maker(corpus, wordnet, 20 + part)
        for text in corpus[part::4]:
            yield from (dressed(pair, maker.rng) for pair in maker.pairs(text))
        yield from (dressed(pair, maker.rng) for pair in maker.kinds(KINDS))
        told(f"part {part + 1} of 2")
