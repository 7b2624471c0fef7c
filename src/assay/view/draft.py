"""The draft of a moment: as a text, and in the sections it would be published in, with citations and marks."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from assay.model.claim import Mark
from assay.model.report import Section, Sentence
from assay.stages.composing import MOST_CITED, SURENESS
from assay.state import Plain
from assay.view.records import DraftView
from assay.view.shown import Shown, number, optional_text, text

LONGEST = 200_000  # characters


class Behind(NamedTuple):
    """What a claim rests on."""

    sources: tuple[str, ...] = ()
    mark: Mark | None = None


def draft(shown: Shown) -> DraftView | None:
    ids = dict(shown.many("sources", lambda source: (text(source["document"]), text(source["id"]))))

    def behind(claim: Plain) -> tuple[str, Behind]:
        documents = [span["document"] for span in claim["spans"]]
        mark = optional_text(claim.get("mark"))
        cited = tuple(ids[document] for document in documents if document in ids)
        return text(claim["id"]), Behind(cited, Mark(mark) if mark else None)

    claims = dict(shown.many("claims", behind))
    confidence = shown.one("confidence", lambda value: round(number(value) / 10, 2), 0.0)
    return shown.one("draft", lambda held: _written(held, claims, confidence, shown), None)


def _written(held: Plain, claims: Mapping[str, Behind], confidence: float, shown: Shown) -> DraftView:
    used = [name for section in held["sections"] for sentence in section["sentences"] for name in sentence["claims"]]
    return DraftView(
        title=shown.text(held["title"], LONGEST),
        sections=tuple(_sections(held, claims, shown)),
        text=shown.text("\n\n".join(_paragraphs(held, claims)), LONGEST),
        citations=tuple(_cited(used, claims)),
        confidence=confidence,
    )


def _cited(names: Sequence[str], claims: Mapping[str, Behind]) -> dict[str, None]:
    return dict.fromkeys(source for name in names for source in claims.get(name, Behind()).sources)


def _paragraphs(held: Plain, claims: Mapping[str, Behind]) -> Iterator[str]:
    yield held["title"]
    for section in held["sections"]:
        lines = [
            f"{sentence['text']} {''.join(f'[{source}]' for source in _cited(sentence['claims'], claims))}".rstrip()
            for sentence in section["sentences"]
        ]
        yield "\n".join([section["title"], *lines] if section["title"] else lines)


def _sections(held: Plain, claims: Mapping[str, Behind], shown: Shown) -> Iterator[Section]:
    """As many sentences as there is room for; the others are counted."""
    room = LONGEST
    for section in held["sections"]:
        room -= len(section["title"])
        kept = []
        for sentence in section["sentences"]:
            room -= len(sentence["text"])
            if room >= 0:
                kept.append(_sentence(sentence, claims))
        if left := len(section["sentences"]) - len(kept):
            shown.left_out["sentences"] += left
        if kept:
            yield Section(title=section["title"], role=section.get("role", "body"), sentences=tuple(kept))


def _sentence(sentence: Plain, claims: Mapping[str, Behind]) -> Sentence:
    names, opens = sentence["claims"], sentence.get("opens", False)
    if not names:
        return Sentence(text=sentence["text"], kind="frame", opens=opens)
    marks = [mark for name in names if (mark := claims.get(name, Behind()).mark)]
    return Sentence(
        text=sentence["text"], kind="fact", claims=names, citations=tuple(_cited(names, claims))[:MOST_CITED],
        mark=min(marks, key=SURENESS.index) if marks else Mark.SINGLE, opens=opens,
    )  # fmt: skip
