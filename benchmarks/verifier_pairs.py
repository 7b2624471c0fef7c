"""Puts the pairs together that the verifier learns from, and those it is only measured on.

    PYTHONPATH=. python benchmarks/verifier_pairs.py --sets FOLDER --pairs pairs.jsonl.xz --held held.json.xz

`--sets` has the labelled pairs of others (benchmarks/data/ORIGIN.md), a NAME.jsonl each, with `claim`, `evidence`,
`label` (supported, refuted, neither, or not_supported where the last two are not told apart) and, where known, `title`
and `date`; and in `corpora/` the texts that statements were written on. What is not there is left out, and said to be.
"""

import argparse
import hashlib
import json
import lzma
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from math import log
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.evaluation.measure import CHECKOUT_DATA, load_rows
from openassay.models.report import DerivedFigure
from openassay.reasoning.llm.compose import NumberedClaims
from openassay.reasoning.llm.prose import parse_figure
from openassay.text.sentences import split_sentences
from openassay.text.words import stems
from openassay.verification.support import COPY, mark_copy
from openassay.verification.synthesis import compute_figure, is_same_figure, shorten_claim, tell_figure

OURS = Path(__file__).parent / "data"
LABELS = {"supported": 0, "refuted": 1, "neither": 2, "not_supported": 3}
TWO_VOICES, ONE_VOICE = 4, 5  # labels of pairs of documents
LONGEST = 230  # words of evidence
WRITTEN = 1.5  # what a pair that was written for this weighs beside one of others
ASIDE = 1.0  # what one that was made from such a pair weighs
COPIES = 1  # sentences of a passage that are shown as statements of their own
VOICE_WORDS = 130  # of each of two documents


class SetUse(NamedTuple):
    """How many pairs of a set are used, and how many of them have their evidence put between other sentences."""

    most: int
    buried: float = 0.0


FITTED = {
    "vitaminc_real_test": SetUse(26_000, 0.15),
    "mnli_part": SetUse(30_000, 0.25),
    "snli_devtest": SetUse(7_000, 0.15),
    "snli_counterfactual": SetUse(8_000, 0.15),
    "infotabs": SetUse(9_000),
    "tabfact_part": SetUse(9_000),
    "conjnli": SetUse(7_000, 0.2),
    "semtabfacts": SetUse(5_000),
    "contractnli_devtest": SetUse(5_000),
    "scifact": SetUse(5_000),
    "feverous_dev_sent": SetUse(5_000),
    "defacto": SetUse(5_000),
    "neg_nli": SetUse(5_000, 0.2),
    "dnc_megaveridicality": SetUse(3_500, 0.2),
    "citint": SetUse(3_100),
    "sufficient_facts": SetUse(3_100),
    "scone": SetUse(2_500, 0.1),
    "med": SetUse(2_500, 0.1),
    "scitail_dev": SetUse(2_200, 0.2),
    "fib": SetUse(1_500),
    "help_part": SetUse(1_500, 0.1),
    "breaking_nli": SetUse(1_500, 0.2),
    "xsumfaith": SetUse(1_400),
    "finfact_debunk": SetUse(1_400),
    "bump": SetUse(1_100),
}
LOOKED_AT = (
    "summedits", "anli_devtest", "lingnli", "climate_fever", "covidfact", "attributionbench_dev", "commitmentbank",
)  # fmt: skip
TOLD = {
    "fm2": ("fm2_devtest",),
    "qags": ("qags",),
    "factcheck_gpt": ("factcheck_gpt",),
    "dialogue": ("q2_wow", "dialfact_small"),
    "scitab": ("scitab",),
    "check_covid": ("check_covid",),
    "healthver": ("healthver",),
}
MOST_TOLD = 900


class Pair(NamedTuple):
    claim: str
    evidence: str
    label: int
    weight: float
    set: str


def head_line(row: dict[str, Any]) -> str:
    """What a document says of itself, as it stands before its text."""
    found = [row.get(name) for name in ("title", "publisher", "date")]
    return " | ".join(part for part in found if isinstance(part, str) and part)


def with_head(head: str, text: str) -> str:
    return f"{head}\n{text}" if head else text


def tidy(text: str) -> str:
    """Without the traces of a tokeniser that some sets have."""
    text = " ".join(text.split())
    if " . " in text or " 's " in text or "-LRB-" in text or text.endswith(" ."):
        text = text.replace("-LRB-", "(").replace("-RRB-", ")").replace("`` ", '"').replace(" ''", '"')
        text = re.sub(r" ([.,;:!?%)])", r"\1", text).replace("( ", "(")
        text = re.sub(r" ('s|n't|'re|'ve|'ll|'d|'m)\b", r"\1", text)
    return text


def narrow(claim: str, text: str) -> str:
    """The sentences of a long text that bear on a claim, in their order."""
    if len(text.split()) <= LONGEST:
        return text
    pieces = [piece.text for piece in split_sentences(text)]
    wanted = set(stems(claim))
    shared = [wanted & set(stems(piece)) for piece in pieces]
    counts = Counter(word for words in shared for word in words)
    rarity = {word: log(1 + len(pieces) / count) for word, count in counts.items()}
    worth = [sum(rarity[word] for word in words) for words in shared]
    left, chosen, length = dict(rarity), set[int](), 0
    while length < LONGEST and len(chosen) < len(pieces):
        gains = {}
        for at in range(len(pieces)):
            if at not in chosen:
                beside = max((worth[near] for near in (at - 1, at + 1) if 0 <= near < len(pieces)), default=0.0)
                gains[at] = sum(left[word] for word in shared[at]) + 0.25 * worth[at] + 0.2 * beside + 0.3 * (at == 0)
        best = max(gains, key=gains.__getitem__)
        chosen.add(best)
        length += len(pieces[best].split())
        for word in shared[best]:
            left[word] *= 0.3
    return " ".join(pieces[at] for at in sorted(chosen)) or " ".join(text.split()[:LONGEST])


def load_set(folder: Path, name: str) -> list[dict[str, Any]]:
    if not (folder / f"{name}.jsonl").is_file():
        print(f"{name} is not there")
        return []
    return load_rows(folder / f"{name}.jsonl")


def pairs_of_others(folder: Path, rng: random.Random, filling: list[str]) -> Iterator[Pair]:
    for name, use in FITTED.items():
        found = load_set(folder, name)
        rng.shuffle(found)
        for row in found[: use.most]:
            evidence = tidy(narrow(row["claim"], row["evidence"]))
            if rng.random() < use.buried:
                before, after = (" ".join(rng.sample(filling, rng.randint(0, 3))) for _ in range(2))
                evidence = f"{before} {evidence} {after}".strip()
            head = head_line(row) if rng.random() < 0.8 else ""
            yield Pair(tidy(row["claim"]), with_head(head, evidence), LABELS[row["label"]], 1.0, name)


def load_written(name: str) -> list[dict[str, Any]]:
    with lzma.open(OURS / "written" / name, "rt") as file:
        return [json.loads(line) for line in file]


class PassageTexts:
    """The texts of others that statements were written on, by the origin that a statement names."""

    def __init__(self, data: Path, corpora: Path) -> None:
        def load(name: str) -> Any:
            return json.loads((data / name).read_text(encoding="utf-8"))

        self._corpora = corpora
        self._texts = {
            f"extraction/{key}": text["articleBody"] for key, text in load("extraction/ground-truth.json").items()
        }
        self._texts |= {
            f"deepscholar/{row['id']}": row["abstract"] for row in load_rows(data / "deepscholar/corpus.jsonl")
        }
        for at, paper in enumerate(load("train/covid-qa.json")["data"]):
            self._texts[f"covid-qa/{at}"] = paper["paragraphs"][0]["context"]
        for at, page in enumerate(load("train/xquad/en.json")["data"]):
            self._texts |= {f"xquad/{at}/{number}": one["context"] for number, one in enumerate(page["paragraphs"])}

    def list_news(self) -> list[str]:
        return [text for origin, text in self._texts.items() if origin.startswith("extraction/")]

    def find(self, place: dict[str, Any]) -> str | None:
        """The passage that a statement names, or None if its text is not there."""
        if place["origin"] in self._texts:
            return str(self._texts[place["origin"]][place["start"] : place["end"]])
        file = self._corpora / place["origin"]
        passage = file.read_text(encoding="utf-8")[place["start"] : place["end"]] if file.is_file() else ""
        # Another snapshot of a corpus may be another text.
        lines = [line for line in passage.splitlines() if line.strip()]
        forms = (passage, passage.strip(), "\n".join(lines), " ".join(lines))
        return next((one for one in forms if hashlib.sha256(one.encode()).hexdigest() == place["sha256"]), None)


def written_pairs(rng: random.Random, texts: PassageTexts) -> Iterator[Pair]:
    """Statements that were written for this. From each true one on a passage of our own a false one is made, by taking
    a sentence away that it needs."""
    for row in load_written("first.jsonl.xz"):
        text = row.get("text") or texts.find(row["passage"])
        if text is None:
            continue
        for head in ("", head_line(row)):
            yield Pair(row["statement"], with_head(head, text), LABELS[row["label"]], WRITTEN, "written")
    stances = json.loads((OURS / "written" / "not_stood_by.json").read_text(encoding="utf-8"))
    passages = []
    for file in sorted((OURS / "written").glob("*.xz")):
        if file.name != "first.jsonl.xz":
            told = stances.get(file.name.partition(".")[0], {})
            passages += [{"disowned": told.get(str(at), ())} | row for at, row in enumerate(load_written(file.name))]
    filling = [sentence for row in passages for sentence in row["sentences"]]
    yield from elsewhere_pairs(rng, passages)
    for row in passages:
        sentences, head = row["sentences"], head_line(row)
        # Copies: those who write false statements keep to the words of their passage, so that a model which sees no
        # others takes every copy for false. What a document does not stand by is false when it stands alone.
        own = [at for at in range(len(sentences)) if at not in row["disowned"]]
        for at in rng.sample(own, min(COPIES, len(own))):
            yield Pair(sentences[at], with_head(head, " ".join(sentences)), 0, ASIDE, "copied")
        for at in row["disowned"]:
            yield Pair(sentences[at], with_head(head, " ".join(sentences)), 3, WRITTEN, "copied")
        for said in row["statements"]:
            text, label = said["text"], LABELS[said["label"]]
            for shown in ("", head):
                yield Pair(text, with_head(shown, " ".join(sentences)), label, WRITTEN, "written")
            needs = sorted({at for at in said.get("needs") or () if 0 <= at < len(sentences)})
            if label == 0 and needs:
                alone = " ".join(sentences[at] for at in needs)
                yield Pair(text, with_head(head, alone), 0, ASIDE, "alone")
                if len(sentences) > len(needs):
                    gone = rng.choice(needs)
                    without = [one for at, one in enumerate(sentences) if at != gone]
                    yield Pair(text, with_head(head, " ".join(without)), 2, ASIDE, "removed")
            if rng.random() < 0.4:
                others = rng.sample(filling, rng.randint(1, 4))
                cut = rng.randint(0, len(others))
                yield Pair(text, " ".join([*others[:cut], *sentences, *others[cut:]]), label, ASIDE, "buried")


def elsewhere_pairs(rng: random.Random, passages: list[dict[str, Any]]) -> Iterator[Pair]:
    """A true statement, or a copied sentence, beside the passage on another matter that shares most of its words: what
    a search finds and a reader puts aside."""
    owners: dict[str, list[int]] = {}
    for at, row in enumerate(passages):
        for word in {word for sentence in row["sentences"] for word in stems(sentence)}:
            owners.setdefault(word, []).append(at)
    for at, row in enumerate(passages):
        for text in (rng.choice([said["text"] for said in row["statements"] if said["label"] == "supported"]),
                     rng.choice(row["sentences"])):  # fmt: skip
            near: Counter[int] = Counter()
            for word in set(stems(text)):
                for other in owners.get(word, ()):
                    near[other] += 100 // len(owners[word])
            others = [(other, worth) for other, worth in near.most_common(4) if other != at and worth]
            if others:
                found = passages[others[0][0]]
                yield Pair(text, with_head(head_line(found), " ".join(found["sentences"])), 2, ASIDE, "elsewhere")


def synthesis_pairs(rng: random.Random, rows: Iterable[dict[str, Any]]) -> Iterator[Pair]:
    """Sentences that draw claims together, beside those they name and beside all of their group; and true ones without
    a claim that they need. Figures that code computes again are told, as they are to the verifier."""
    for row in rows:
        claims = [
            shorten_claim(one["text"], f"{one['title']} | {one['publisher']} | {one['date']}") for one in row["claims"]
        ]
        for said in row["sentences"]:
            figures = [tell_figure(figure) for line in said.get("derived") or () if (figure := read_figure(line))]
            named = [claims[number - 1] for number in said["uses"] if 0 < number <= len(claims)]
            label = 0 if said["true"] else 3
            for shown in (named, rng.sample(claims, len(claims))):
                yield Pair(said["text"], "\n".join((*shown, *figures)), label, WRITTEN, "written")
            if said["true"] and len(named) > 1:
                left = [claim for claim in named if claim != rng.choice(named)]
                yield Pair(said["text"], "\n".join(left), 2, ASIDE, "removed")


def read_figure(line: str) -> DerivedFigure | None:
    """A figure that comes about as it says; None for any other, which code refuses."""
    figure = parse_figure(line, NumberedClaims([], {}))
    value = compute_figure(figure) if figure and figure.operation != "count" else None
    return figure if figure and value is not None and is_same_figure(figure.value, value) else None


def voice_pairs(part: str = "train") -> Iterator[Pair]:
    """Two documents each, in both orders, with and without what is known of them besides their text."""

    def show(document: dict[str, Any], *, named: bool) -> str:
        found = (document.get(name) for name in ("title", "publisher", "author", "date"))
        known = " | ".join(part for part in found if part)
        said = document["text"].split()
        if len(said) > VOICE_WORDS:  # bylines stand at the beginning, imprints and agencies at the end
            said = [*said[: VOICE_WORDS - 30], *said[-30:]]
        return with_head(known if named else "", " ".join(said))

    for row in load_rows(OURS / "independence" / f"{part}.jsonl"):
        label = TWO_VOICES if row["independent"] else ONE_VOICE
        told_by_text = row.get("kind") not in (None, "publisher", "author", "agency", "mirror")
        for named in (True, False) if told_by_text else (True,):
            first, second = show(row["a"], named=named), show(row["b"], named=named)
            yield Pair(first, second, label, ASIDE, "voices")
            yield Pair(second, first, label, ASIDE, "voices")


def wice_pairs(data: Path) -> Iterator[Pair]:
    for row in load_rows(data / "train/wice-tokens-train.jsonl"):
        told = [line.split(":", 1)[1].strip() for line in row["evidence"] if line.startswith("(meta data)")]
        body = "\n".join(line for line in row["evidence"] if not line.startswith("(meta data)"))
        label = 0 if row["label"] == "supported" else 2
        yield Pair(row["claim"], with_head(" | ".join(told), narrow(row["claim"], body)), label, WRITTEN, "wice")


Held = dict[str, list[tuple[str, str, bool]]]


def held_sets(folder: Path, data: Path, rng: random.Random) -> Held:
    """Sets by name: `dev` are watched in training, `test` only told at its end."""

    def sample(rows: Iterable[tuple[str, str, bool]]) -> list[tuple[str, str, bool]]:
        found = [(tidy(claim), narrow(claim, evidence), supported) for claim, evidence, supported in rows]
        rng.shuffle(found)
        return found[:MOST_TOLD]

    def labelled(*names: str) -> Iterator[tuple[str, str, bool]]:
        for row in (row for name in names for row in load_set(folder, name)):
            yield row["claim"], with_head(head_line(row), row["evidence"]), row["label"] == "supported"

    def by_hand(name: str) -> Iterator[tuple[str, str, bool]]:
        for row in load_rows(OURS / "statements" / f"{name}.jsonl"):
            yield row["statement"], with_head(head_line(row), row["passage"]), row["supported"]

    held: Held = {f"dev:{name}": sample(labelled(name)) for name in LOOKED_AT}
    held |= {f"test:{name}": sample(labelled(*sets)) for name, sets in TOLD.items()}
    held |= {f"{name}:by hand": sample(by_hand(name)) for name in ("dev", "test")}
    fever = ((row["claim"], row["evidence"], row["label"] == "SUPPORTS")
             for row in load_rows(data / "fever-symmetric/dev.jsonl"))  # fmt: skip
    held["test:fever"] = sample(fever)
    for name in ("dev", "test"):
        rows = load_rows(OURS / "syntheses" / f"{name}.jsonl")
        drawn = [pair for pair in synthesis_pairs(rng, rows) if pair.set == "written"][::2]
        held[f"{name}:syntheses"] = [(pair.claim, pair.evidence, pair.label == 0) for pair in drawn]
        found = voice_pairs(name)
        held[f"{name}:voices"] = [(pair.claim, pair.evidence, pair.label == ONE_VOICE) for pair in found]
    return {
        name: [(mark_copy(claim, text) if "voices" not in name else claim, text, true) for claim, text, true in found]
        for name, found in held.items()
        if found
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Put the verifier's pairs together.")
    parser.add_argument("--sets", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=CHECKOUT_DATA)
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--held", type=Path, required=True)
    arguments = parser.parse_args()
    rng = random.Random(7)
    texts = PassageTexts(arguments.data, arguments.sets / "corpora")
    filling = [piece.text for text in texts.list_news() for piece in split_sentences(text)[:40]]
    filling = [text for text in filling if 6 < len(text.split()) < 40]
    pairs = [*pairs_of_others(arguments.sets, rng, filling), *written_pairs(rng, texts)]
    with lzma.open(OURS / "syntheses" / "train.jsonl.xz", "rt") as lines:
        pairs += synthesis_pairs(rng, map(json.loads, lines))
    pairs += [*wice_pairs(arguments.data), *voice_pairs()]
    pairs = [
        pair if pair.label >= TWO_VOICES else pair._replace(claim=mark_copy(pair.claim, pair.evidence))
        for pair in pairs
    ]
    rng.shuffle(pairs)
    with lzma.open(arguments.pairs, "wt", preset=3) as file:
        for pair in pairs:
            file.write(json.dumps(pair, ensure_ascii=False) + "\n")
    marked = Counter((pair.set, pair.label) for pair in pairs if pair.claim.startswith(COPY))
    print("copies", marked.most_common(14))
    print(len(pairs), Counter(pair.set for pair in pairs).most_common())
    with lzma.open(arguments.held, "wt") as file:
        json.dump(held_sets(arguments.sets, arguments.data, rng), file)


if __name__ == "__main__":
    main()
