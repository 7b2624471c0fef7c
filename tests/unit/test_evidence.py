"""Which sentences bear on a statement, and who else says the same."""

import json
from pathlib import Path

import pytest

from benchmarks.evaluation.retrieval import EVIDENCE_MEASURES
from openassay.models.evidence import Passage, QuoteSpan
from openassay.verification.corroboration import CorroborationIndex, SentenceBlock, SentenceIndex, find_best_sentences
from tests.growth import LINEAR, growth

ARTICLE = [
    "About the mill",
    "The old mill stands above the river at Varde.",
    "Anna Lindqvist bought it from the town.",
    "She restored the water wheel with two friends.",
    "The town has a school, a church and a small harbour.",
    "Visitors come from far away to see the harbour.",
]


@pytest.mark.slow
@pytest.mark.requirement("X-01", "W-09")
def test_five_sentences_hold_what_people_chose_as_evidence(eval_data: Path) -> None:
    measure = EVIDENCE_MEASURES["evidence"]
    assert measure.list_failures(measure.run(eval_data, True), True) == []


def test_a_sentence_inherits_what_the_one_before_names() -> None:
    assert find_best_sentences("Anna Lindqvist restored the water wheel.", ARTICLE, 2) == [3, 2]


def test_what_is_still_missing_goes_before_what_is_said_twice() -> None:
    told = [*ARTICLE, "The old mill stands high above the river.", "The roof of it was tiled in 1911."]
    found = find_best_sentences("The old mill above the river at Varde has had tiles on its roof since 1911.", told, 2)
    assert set(found) == {1, 7}


def test_rare_words_tell_more_than_common_ones() -> None:
    told = ["The bank and the town agreed.", "The bank and the town met.", "A zither was heard in the town."]
    assert find_best_sentences("The zither of the bank in the town.", told, 1) == [2]


def test_a_heading_gives_way_to_a_sentence_with_the_same_words() -> None:
    assert find_best_sentences("The harbour of Varde", ["Harbour Varde", "Boats fill the harbour of Varde."], 1) == [1]


def test_a_title_tells_documents_apart() -> None:
    told = "The wheel was restored by two friends."
    index = SentenceIndex([SentenceBlock([told], "A school in Lund"), SentenceBlock([told], "The mill of Varde")])
    assert [found.block for found in index.search("The wheel of the mill was restored.", 2)] == [1, 0]


@pytest.mark.parametrize(("statement", "told"), [("", ARTICLE), ("the of", ARTICLE), ("Anna", []), ("zzz", ARTICLE)])
def test_nothing_shared_is_no_evidence(statement: str, told: list[str]) -> None:
    assert find_best_sentences(statement, told, 5) == []


# Witnesses -------------------------------------------------------------------------------------------


def passage(document: str, text: str) -> Passage:
    return Passage(document=document, start=10, end=10 + len(text), text=text)


def witnesses(**texts: str) -> CorroborationIndex:
    return CorroborationIndex([passage(document, text) for document, text in texts.items()])


def spoken(quote: str) -> QuoteSpan:
    return QuoteSpan(document="own", start=0, end=len(quote), quote=quote)


@pytest.mark.requirement("X-01", "W-09")
def test_a_statement_without_a_figure_finds_who_says_the_same() -> None:
    found = witnesses(
        own="The council will close the old swimming hall.",
        other="Some news first. After a long meeting the council of the town will close the old swimming hall.",
        denies="The council will not close the old swimming hall.",
        less="The council met in the old swimming hall.",
    ).find_corroboration(spoken("The council will close the old swimming hall."))
    assert [span.document for span in found] == ["other"]
    assert found[0].quote.startswith("After a long meeting")
    assert found[0].start == 10 + len("Some news first. ")


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("Anna Lindqvist bought the mill of Varde.", "Berta Lindqvist bought the mill of Varde."),
        ("The mill of Varde was sold to friends in 1911.", "The mill of Varde was sold to friends in 1912."),
        ("She restored the water wheel with friends.", "Berta restored the water wheel with friends."),
        ("The mill opened.", "The mill opened its doors to the men who had come to burn it down."),
    ],
)
def test_alike_in_words_is_not_yet_the_same(statement: str, told: str) -> None:
    assert witnesses(other=told).find_corroboration(spoken(statement)) == []


@pytest.mark.requirement("W-09")
def test_a_statement_with_a_wrong_passage_is_offered_better_ones() -> None:
    read = witnesses(mill=" ".join(ARTICLE[1:]), town="The town of Lund has a school. It was built by the church.")
    offered = read.find_candidates("Anna Lindqvist restored the water wheel of the mill with two friends.", 1)
    assert [span.quote for span in offered] == [f"{ARTICLE[2]} {ARTICLE[3]}"], "a pronoun comes with whom it means"
    assert read.find_candidates("The moon has no air to breathe.") == []


@pytest.mark.slow
def test_time_grows_with_the_number_of_passages_and_no_faster(eval_data: Path) -> None:
    lines = (eval_data / "wice/dev.jsonl").read_text(encoding="utf-8").splitlines()
    claims = [json.loads(line) for line in lines][:60]
    told = [sentence for claim in claims for sentence in claim["evidence"]]
    passages = [passage(str(n % 60), "\n".join(told[n * 5 : n * 5 + 5])) for n in range(500)]

    def check(count: int) -> None:
        read = CorroborationIndex(passages[:count])
        for claim in claims:
            read.find_corroboration(spoken(claim["claim"]))
            read.find_candidates(claim["claim"])

    assert growth(check, 125) < LINEAR
