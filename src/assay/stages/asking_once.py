"""Which queries of a round are new, and who asks them: no source is asked the same twice.

A query that repeats one of an earlier round is left out; what two sub-questions ask alike is asked by the first for
both. What it finds is the other's all the same.
"""

from collections.abc import Iterable, Mapping, Sequence

from assay.model.plan import QueryType
from assay.state import Plain
from assay.text.sense import Sense, sense

Wanted = dict[str, list[QueryType]]  # a query's text -> the kinds of source it is for; none: all of them


class Once:
    """`known` are the queries so far, each behind its sub-question's id; `most` is what one may ask in this round."""

    def __init__(self, known: Iterable[str], types: Sequence[QueryType], most: int) -> None:
        self._known = {(question, sense(text)) for question, _, text in (line.partition(" ") for line in known)}
        self._before = {meant for _, meant in self._known}
        self._asking: dict[tuple[Sense, QueryType], tuple[str, Plain]] = {}  # by whom, in this round
        self._types: tuple[QueryType, ...] = tuple(types) or ("web",)  # nobody to ask is told by the search
        self._most = most
        self.repeated: list[str] = []
        self.shared: set[str] = set()  # sub-questions that another asks something for
        self.earlier: list[tuple[str, str]] = []  # sub-question and query, where another has asked it before

    def queries(self, question: str, wanted: Wanted) -> list[Plain]:
        """What this sub-question asks itself: {text, types, also}, the last for whom else."""
        own: list[Plain] = []
        for text, types in wanted.items():
            meant = sense(text)
            if meant in self._before:
                self._repeats_earlier(question, text, meant)
                continue
            kinds = tuple(types) or self._types
            left = [kind for kind in kinds if (meant, kind) not in self._asking]
            if len(left) < len(kinds):
                self._repeats_another(question, text, [self._asking.get((meant, kind)) for kind in kinds])
            if left and len(own) < self._most:
                everywhere = not types and len(left) == len(kinds)
                own.append({"text": text, "types": [] if everywhere else left, "also": []})
                self._asking |= {(meant, kind): (question, own[-1]) for kind in left}
        return own

    def _repeats_earlier(self, question: str, text: str, meant: Sense) -> None:
        self.repeated.append(text)
        if (question, meant) not in self._known:
            self.earlier.append((question, text))

    def _repeats_another(self, question: str, text: str, asking: Iterable[tuple[str, Plain] | None]) -> None:
        """Who asks it asks for this sub-question too; that may be itself, in other words."""
        self.repeated.append(text)
        for owner, query in (one for one in asking if one is not None):
            if (question, text) not in [(owner, query["text"]), *((o["question"], o["text"]) for o in query["also"])]:
                query["also"].append({"question": question, "text": text})
                self.shared.add(question)


def found_before(earlier: Iterable[tuple[str, str]], searched: Mapping[str, Plain]) -> list[Plain]:
    """For each query that another sub-question has asked in an earlier round, what it found."""
    results = []
    for question, text in earlier:
        meant = sense(text)
        hits = [hit for result in searched.values() for hit in result["hits"] if sense(hit["query"]) == meant]
        if hits:
            results.append(lent(question, text, hits[0]["query"], hits))
    return results


def lent(question: str, text: str, asked_as: str, hits: Sequence[Plain]) -> Plain:
    """The outcome of a search that another has made; `text` is what this sub-question would have asked."""
    return {
        "question": question, "queries": [{"text": text, "as": asked_as, "status": "completed"}], "hits": list(hits),
        "completed": 0, "failed": 0, "cached": 0, "avoided": {}, "errors": {},
    }  # fmt: skip
