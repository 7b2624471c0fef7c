"""What leaves OpenAssay: the report's fields, its Markdown, its HTML."""

import re
from collections.abc import Callable
from datetime import datetime
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import pytest
from markdown_it import MarkdownIt

from openassay.export import Report
from openassay.models.evidence import Claim, Disagreement, Mark
from openassay.models.plan import Plan
from openassay.models.report import Critique, KeyFigure, ShortAnswer
from openassay.nodes.confidence import HIGH
from openassay.reasoning.base import Draft, DraftSection, DraftSentence, Quote, ReadRequest, WriteRequest
from openassay.reasoning.rules.write import write
from openassay.testing import make_document
from tests.scenario.conftest import LIBRARY_QUESTION, Lab, LibraryRun
from tests.scenario.material import LAKE, QUESTION

Make = Callable[..., Lab]


def scoring(score: float, recommendation: str = "approve") -> Callable[..., Critique]:
    return lambda real, request: Critique(scores={}, score=score, recommendation=recommendation)  # type: ignore[arg-type]


# S-10


@pytest.mark.requirement("S-10")
def test_only_supported_claims_are_published_each_with_mark_and_citations(library: LibraryRun) -> None:
    report = library.report
    claims = {claim.id: claim for claim in report.claims}
    facts = [s for section in report.sections for s in section.sentences if s.kind == "fact"]

    assert len(facts) > 10
    assert "✓" in {fact.mark for fact in facts}
    for fact in facts:
        assert all(claims[name].verdict == "supported" for name in fact.claims)
        assert fact.citations
        assert set(fact.citations) <= {span.source for name in fact.claims for span in claims[name].spans}
    cards = {card.id: card for card in report.sources}
    for fact in facts:
        groups = {cards[span.source].group for name in fact.claims for span in claims[name].spans}
        # Not the other way round: two that tell of one measurement are one voice.
        assert fact.mark != "✓✓" or len(groups) > 1, fact.text


@pytest.mark.requirement("S-10")
async def test_one_source_alone_is_marked_by_its_credibility(lab: Make) -> None:
    text = "Lake Marrow covered 412 square kilometres in 2019."
    marks = {}
    for url in ("https://someone.example/blog", "https://water.agency.gov/lake"):
        here = lab()
        here.holds(make_document(text, url=url, title="On Lake Marrow"))
        report = await here.report("How large is Lake Marrow?", depth="quick")
        marks[url] = report.claims[0].mark

    assert list(marks.values()) == ["⚠", "✓"]


@pytest.mark.requirement("S-10")
async def test_gaps_are_owned_up_to_and_lower_nothing_silently(lab: Make) -> None:
    async def read(real: Any, request: ReadRequest) -> Any:
        return [] if "shrink" in request.question.text else await real(request)

    here = lab(read=read)
    here.holds(*LAKE)

    report = await here.report(QUESTION)

    [gap] = [s for section in report.sections if section.role == "not_found" for s in section.sentences]
    assert gap.kind == "frame"
    assert "Why did Lake Marrow shrink?" in gap.text
    assert any("unanswered" in issue.description for issue in report.issues)
    assert "Of 3 sub-questions, 2 have statements that hold" in report.markdown


@pytest.mark.requirement("S-10")
@pytest.mark.parametrize("words", [400, 800])
async def test_a_report_is_about_as_long_as_asked_for(library: LibraryRun, words: int) -> None:
    given = WriteRequest(
        plan=Plan.model_validate(library.state["plan"]),
        claims=tuple(Claim.model_validate(item) for item in library.state["claims"]),
        disagreements=tuple(Disagreement.model_validate(item) for item in library.state["disagreements"]),
        words=words,
    )
    count = sum(len(s.text.split()) for section in write(given).sections for s in section.sentences)

    assert 0.5 * words <= count <= 1.25 * words


# F-13


@pytest.mark.requirement("F-13")
async def test_confidence_is_not_high_where_one_source_alone_says_so(lab: Make) -> None:
    here = lab(critique=scoring(10.0))
    here.holds(*LAKE)

    report = await here.report("How large is Lake Marrow?", depth="quick")

    assert report.status == "complete"
    assert report.confidence != "high"
    assert 0 < report.confidence_score < HIGH


@pytest.mark.requirement("F-13")
async def test_what_was_not_approved_is_partial_and_of_low_confidence(lab: Make) -> None:
    here = lab(critique=scoring(9.9, "reject"))
    here.holds(*LAKE)

    report = await here.report("How large is Lake Marrow?", depth="quick")

    assert (report.status, report.confidence) == ("partial", "low")
    assert "The last review did not approve it." in report.markdown


@pytest.mark.requirement("F-13")
def test_metadata_are_counted_from_the_report_itself(library: LibraryRun) -> None:
    report, data = library.report, library.report.metadata

    behind = {span.document for claim in report.claims for span in (*claim.spans, *claim.against)}
    assert data.sources == len(report.sources) == len(behind)
    assert data.words == sum(len(s.text.split()) for section in report.sections for s in section.sentences)
    assert data.iterations == sum(e.kind == "enter" and e.stage == "write" for e in library.events)
    assert data.rounds == sum(e.kind == "enter" and e.stage == "dispatch" for e in library.events)
    started, finished = datetime.fromisoformat(data.started), datetime.fromisoformat(data.finished)
    assert 0 < data.seconds <= (finished - started).total_seconds() + 1
    assert 7.5 <= data.score <= 10
    assert data.settings
    assert data.version


@pytest.mark.requirement("F-13")
def test_provenance_says_what_was_asked_and_searched(library: LibraryRun) -> None:
    made = library.report.provenance
    searched = {str(e.data["query"]) for e in library.events if e.kind == "search" and "query" in e.data}

    assert made.question == LIBRARY_QUESTION
    assert library.report.plan is not None
    assert list(made.sub_questions) == [question.text for question in library.report.plan.questions]
    assert set(made.queries) == searched
    assert made.thread
    assert {event.run for event in library.events} == {made.run}


@pytest.mark.requirement("F-13")
async def test_provenance_names_the_checkpoints_of_this_run_alone(lab: Make) -> None:
    here = lab()
    first = await here.report("What's happening with Apple?", depth="quick")
    thread = first.provenance.thread
    second = (await here.ask("What's happening with Tesla?", depth="quick", thread=thread)).report
    assert second is not None

    kept = [item.config["configurable"]["checkpoint_id"] async for item in here.checkpointer.alist(None)]

    for report in (first, second):
        assert len(report.provenance.checkpoints) > 5
        assert set(report.provenance.checkpoints) <= set(kept)
    assert not set(first.provenance.checkpoints) & set(second.provenance.checkpoints)


# L-11


@pytest.mark.requirement("L-11")
def test_markdown_has_every_statement_with_its_mark_and_linked_citations(library: LibraryRun) -> None:
    text, report = library.report.markdown, library.report

    assert text.startswith(f"# {LIBRARY_QUESTION.rstrip('?')}\n")
    for section in report.sections:
        assert f"## {section.title.replace('#', '')}" in text or not section.title
        for sentence in section.sentences:
            if sentence.kind == "fact":
                cited = "".join(f"[[{name}]](#{name.lower()})" for name in sentence.citations)
                assert f"{sentence.mark} {cited}" in text
    for card in report.sources:
        assert f'<a id="{card.id.lower()}"></a>**{card.id}**' in text
    anchors = set(re.findall(r'<a id="(s\d+)">', text))
    assert set(re.findall(r"\]\(#(s\d+)\)", text)) <= anchors


@pytest.mark.requirement("L-11")
def test_markdown_has_the_metadata_and_the_evidence(library: LibraryRun) -> None:
    text, report = library.report.markdown, library.report
    rows = dict(re.findall(r"^\| (\w[\w ]*?) \| (.*) \|$", text, re.MULTILINE))

    assert rows["Status"] == "complete"
    assert rows["Statements checked"] == f"{report.coverage.checked} of {report.coverage.total}"
    assert rows["Words"] == str(report.metadata.words)
    assert report.provenance.run in rows["Thread"]
    assert {"Confidence", "Hallucination score", "Review", "Sources", "Research", "Spent", "Finished"} <= set(rows)
    published = {name for section in report.sections for s in section.sentences for name in s.claims}
    for claim in report.claims:
        assert (f"**{claim.id}** {claim.mark}" in text) == (claim.id in published)
        if claim.id in published:
            for span in claim.spans:
                assert f"{span.source}, characters {span.start}-{span.end} of `{span.document[:12]}`" in text


@pytest.mark.requirement("L-11", "X-08")
def test_markdown_is_prose_with_what_was_searched_and_who_disagrees(library: LibraryRun) -> None:
    text, report = library.report.markdown, library.report
    for section in report.sections:
        paragraphs = text.partition(f"## {section.title}")[2].strip().split("\n\n")
        if section.role == "body":
            assert "- " not in paragraphs[0][:2], "sentences, and no list"
    [missing] = report.not_found
    assert missing.queries
    assert all(f"“{query}”" in text for query in missing.queries)
    assert f"{missing.documents} documents read for it" in text
    open_ones = [dispute for dispute in report.disputes if not dispute.resolved]
    titles = {card.id: card.title for card in report.sources}
    for side in (side for dispute in open_ones for side in dispute.sides):
        assert titles[side.sources[0]] in text.partition("## What the sources disagree on")[2]
    assert "| improvement potential |" in text


@pytest.mark.requirement("X-08")
def test_a_side_of_an_open_dispute_is_never_told_as_plain_fact(library: LibraryRun) -> None:
    report = library.report
    disputed = {name for d in report.disputes if not d.resolved for side in d.sides for name in side.claims}
    plain = {name for s in report.sections if s.role == "body" for sentence in s.sentences for name in sentence.claims}
    assert disputed
    assert not disputed & plain
    for section in (section for section in report.sections if section.role == "abstract"):
        for before, sentence in pairwise(section.sentences):
            if disputed & set(sentence.claims):
                assert "disagree" in before.text or disputed & set(before.claims)


@pytest.mark.requirement("F-06")
def test_a_report_has_title_abstract_sections_conclusion_and_references(library: LibraryRun) -> None:
    roles = [section.role for section in library.report.sections]
    assert (roles[0], roles[-1]) == ("abstract", "conclusion")
    assert roles.count("body") >= 2
    assert "## References" in library.report.markdown


FULL = {
    "answers": (
        ShortAnswer(text="412 km²", claims=(), citations=("S1",), mark=Mark.VERIFIED, about="Lake Marrow"),
        ShortAnswer(text="412 km²", claims=(), citations=("S1",), disputed=True),
        ShortAnswer(text="500 km²", claims=(), citations=("S2",), disputed=True),
    ),
    "figures": (KeyFigure(what="size | area", value="412 km²", when="2019", claims=(), citations=("S1",)),),
    "errors": ("web: the provider *refused*",),
}


@pytest.mark.requirement("L-11", "S-10")
def test_markdown_has_answers_figures_and_errors(library: LibraryRun) -> None:
    text = library.report.model_copy(update=FULL).markdown
    assert "**Answer**: 412 km² (Lake Marrow) ✓ [[S1]](#s1)" in text
    assert "Sources disagree: 412 km² [[S1]](#s1); 500 km² [[S2]](#s2)" in text
    assert text.index("**Answer**") < text.index("## Abstract")
    assert "| size \\| area | 412 km² | 2019 | [[S1]](#s1) |" in text
    assert "## What went wrong\n\n- web: the provider \\*refused\\*" in text


# Hostile text


class Tags(HTMLParser):
    """Every element with its attributes, and the text as a reader sees it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


HOSTILE = (
    "Lake Marrow <script>alert(1)</script> covered 412 square kilometres & <img src=x onerror=alert(2)> in 2019.",
    "Lake Marrow is [described here](javascript:alert(3)) as **very large** by `experts` and ![pixel](https://evil.example/x).",
    "Lake Marrow lost water </summary></details><iframe src='https://evil.example'></iframe> in the dry year 2018.",
)
TITLE = "<b onclick='alert(4)'>Lake Marrow</b> | [x](javascript:alert(5)) # now"


@pytest.fixture
async def hostile(lab: Make) -> Report:
    def read(real: Any, request: ReadRequest) -> list[Quote]:
        return [Quote(passage=0, text=line, relevance=0.9) for line in HOSTILE]

    here = lab(read=read)
    here.holds(make_document("\n".join(HOSTILE), title=TITLE, url="javascript:alert(6)"))
    report = await here.report("How large is Lake Marrow <u>really</u>?", depth="quick")
    quotes = {span.quote for claim in report.claims for span in claim.spans}
    assert quotes == set(HOSTILE)
    return report


@pytest.mark.requirement("X-01")
def test_html_shows_hostile_text_and_runs_none_of_it(hostile: Report) -> None:
    page = Tags(hostile._repr_html_())

    used = {tag for tag, _ in page.elements}
    assert used <= {
        "div", "style", "h1", "h2", "p", "details", "summary", "span", "small", "blockquote", "ol", "li", "a",
        "ul", "b", "br", "cite", "table", "tr", "th", "td",
    }  # fmt: skip
    for tag, attributes in page.elements:
        assert set(attributes) <= {"class", "value", "id", "href", "title"}, tag
        assert not str(attributes.get("href") or "").startswith("javascript")
    for line in HOSTILE:
        assert line in page.text
    assert TITLE in page.text
    assert "<u>really</u>" in page.text


@pytest.mark.requirement("L-11")
def test_markdown_shows_hostile_text_and_renders_none_of_it(hostile: Report) -> None:
    page = Tags(MarkdownIt("commonmark").enable("table").render(hostile.markdown))

    used = {tag for tag, _ in page.elements}
    assert not used & {"script", "img", "iframe", "b", "u", "details", "code-block"}
    links = [str(attributes["href"]) for tag, attributes in page.elements if tag == "a" and "href" in attributes]
    assert links
    assert all(link.startswith("#s") for link in links), links
    assert "<javascript:" not in hostile.markdown
    for line in HOSTILE:
        assert line in page.text


@pytest.mark.requirement("L-11")
async def test_a_title_of_the_writer_is_no_markup_either(lab: Make) -> None:
    async def write(real: Any, request: Any) -> Draft:
        draft: Draft = await real(request)
        claim: Claim = request.claims[0]
        own = DraftSection(title="<script>x</script>", sentences=(DraftSentence(text=claim.text, claims=(claim.id,)),))
        return draft.model_copy(update={"title": "# <h1>Ha</h1>", "sections": (*draft.sections, own)})

    here = lab(write=write)
    here.holds(*LAKE)

    made = await here.report("How large is Lake Marrow?", depth="quick")
    report = made.model_copy(update={"title": "# <h1>Ha</h1>"})  # such a title is not published; if it were

    assert "<script>" not in "".join(section.title for section in made.sections)
    for rendering in (report.html, MarkdownIt("commonmark").render(report.markdown)):
        page = Tags(rendering)
        assert "script" not in {tag for tag, _ in page.elements}
        assert [tag for tag, _ in page.elements].count("h1") == 1
        assert "<h1>Ha</h1>" in page.text
