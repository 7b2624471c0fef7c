"""A report in every format, opened by what people open such files with; and with hostile text in every field."""

import csv
import io
import json
import re
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any, get_args

import pytest

from openassay.errors import ConfigurationError, PathError, UsageError
from openassay.export import FORMATS, ZIP, FormatName, Report, get_file_format, get_format, pdf_docx
from openassay.export.citations import build_bibliography, parse_authors
from openassay.export.layout import BulletList, Paragraph, SentenceTable, split_blocks
from openassay.export.pdf_docx import build_document, build_pandoc_tree
from openassay.models.evidence import Mark, Verdict
from openassay.models.report import (
    Coverage,
    Critique,
    Dispute,
    DisputeSide,
    Issue,
    KeyFigure,
    Metadata,
    OpenSubQuestion,
    Provenance,
    ReportClaim,
    ReportSpan,
    ReportStatus,
    Section,
    Sentence,
    ShortAnswer,
    SourceCard,
    TableCell,
)
from tests import readers

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = [
    '#import "@preview/evil:1.0.0": * #panic("x") #read("/etc/passwd") <ref-1> @ref',
    r"\input{/etc/passwd} } @article{evil, title={x}} $\foo$ \end{document} 100% ~ ^ _ { {{",
    "A line\nER  - \nTY  - BOOK\nTI  - Evil\r\n\r\nTY  - BOOK",
    "---\nevil: true\n---\n# Evil",
    '{{< include /etc/passwd >}} `r system("id")` ```{python}\nprint(1)\n```',
    "[@evil; @worse] ![a](javascript:alert(1)) [b](javascript:alert(2)) <https://evil.example/a> https://evil.example",
    "<script>window.hit=1</script></style><img src=x onerror=alert(1)><svg/onload=alert(2)>&lt;b&gt; &copy;",
    '=cmd|"/c calc"!A1',
    "[[Another note]] #tag ==marked== %%gone%% $x^2$ ~~struck~~ ^block |a|b|",
    "bell \x00\x07\x1b[31mred\x1b[0m \x7f\x85 \u2028 \u2029 end",
    "\u202eevil‮ \u2066isolated\u2069 \ufeff \ufffe \uffff",
    "1. first", "- item", "A. letter", "(iv) roman", "--- ", ": definition", "Table: caption", "+ plus", "::: {.evil}",
    "中文 日本語 한국어 ไทย 😀 مرحبا שלום हिन्दी Ελληνικά Ω̈",
    "x" * 3000, "https://evil.example/" + "a/" * 400, "Z̸̡̢̛̗" * 40,
    "]]>&amp;'\" </w:t></w:r><!-- --> %PDF-1.7 %%EOF endobj",
    '"}], "evil": [{"id": "', "{{}}${title}$style %s %(x)s {0}", " ",
]  # fmt: skip
# What other fields refer to, what is one of a few words, and what is no text at all.
OURS = set(
    "id claims citations source sources groups role kind mark status verdict basis confidence severity category "
    "recommendation disputed_by superseded_by same_as by_model".split()
)


def whole() -> Report:
    """Every part that a report can have."""
    spans = tuple(
        ReportSpan(source=source, document=number * 64, start=10, end=32, quote=f"a range of 16.3 metres ({source})")
        for source, number in (("S1", "1"), ("S2", "2"))
    )
    fact = Sentence(text="The range is 16.3 metres.", kind="fact", claims=("C1",), citations=("S1", "S2"),
                    mark=Mark.CORROBORATED, opens=True)  # fmt: skip
    other = Sentence(text="It was 14.5 metres in 2020.", kind="fact", claims=("C2", "C1"), citations=("S2",),
                     mark=Mark.SINGLE)  # fmt: skip
    frame = Sentence(text="Both were measured.", kind="frame")
    named = other.model_copy(update={"text": "Spring tides: they are the highest.", "lead": "Spring tides:"})
    item = named.model_copy(update={"opens": True, "item": True})
    cells = [
        fact.model_copy(update={"text": f"{row}, Range: 16.3 metres", "opens": False,
                                "cell": TableCell(row=row, column="Range", text="16.3 metres")})
        for row in ("North", "South")
    ]  # fmt: skip
    side = DisputeSide(claims=("C1",), sources=("S1", "S2"), groups=("G1", "G2"))
    claim = ReportClaim(id="C1", text=fact.text, verdict=Verdict.SUPPORTED, confidence=0.9, mark=Mark.CORROBORATED,
                        spans=spans, reasons=("two agree",), questions=("Q1",))  # fmt: skip
    return Report(
        question="How high are the tides?",
        title="Tides of the Bay",
        status=ReportStatus.COMPLETE,
        confidence="high",
        confidence_score=0.91,
        notices=("One page was not read.",),
        errors=("A page timed out.",),
        coverage=Coverage(checked=2, total=2),
        answers=(
            ShortAnswer(text="16.3 metres", about="the bay", claims=("C1",), citations=("S1",), mark=Mark.VERIFIED),
            ShortAnswer(text="14.5 metres", claims=("C2",), citations=("S2",), mark=Mark.SINGLE, disputed=True),
        ),
        sections=(
            Section(title="Abstract", role="abstract", sentences=(fact, frame)),
            Section(
                title="Body",
                sentences=(fact, other, *cells, item, frame, item, frame.model_copy(update={"opens": True})),
            ),
            Section(title="Disagreements", role="disagreements", sentences=(other,)),
            Section(
                title="Not found",
                role="not_found",
                sentences=(Sentence(text="Nothing answered: “How old is it?”", kind="frame"),),
            ),
            Section(title="Please note", role="notice", sentences=(Sentence(text="No advice.", kind="frame"),)),
        ),
        figures=(
            KeyFigure(
                what="the range",
                value="16.3 m",
                when="2020",
                claims=("C1",),
                citations=("S1",),
                mark=Mark.VERIFIED,
                disputed=True,
            ),
        ),
        disputes=(Dispute(about="range", sides=(side, side), resolution="none"),),
        not_found=(
            OpenSubQuestion(question="How old is it?", queries=("bay age",), documents=3, reason="nobody says"),
        ),
        claims=(
            claim,
            claim.model_copy(update={"id": "C2", "text": other.text, "spans": spans[1:], "disputed_by": ("C1",)}),
        ),
        sources=(
            SourceCard(
                id="S1",
                title="Tides & currents",
                url="https://port.example/tides?a=1&b=2_3#top",
                document="1" * 64,
                group="G1",
                why_used="supports C1",
                host="port.example",
                kind="web",
                author="Jane A. Doe, Bo Li",
                published="2024-03-12",
                primary=True,
                credibility=0.8,
                credibility_reasons=("dated", "official"),
            ),
            SourceCard(
                id="S2",
                title="Harbour report",
                url="file:///srv/harbour.pdf",
                document="2" * 64,
                group="G2",
                why_used="supports C2",
                author="The Harbour Office",
                published="2021",
            ),
        ),
        review=Critique(
            scores={"accuracy": 9.5},
            score=8.4,
            recommendation="approve",
            issues=(Issue(category="style", severity="minor", location="Body", description="Long."),),
        ),
        metadata=Metadata(
            started="2026-11-16T09:10:36+00:00",
            finished="2026-11-16T09:10:46+00:00",
            settings="fa9e",
            version="0.1.0",
            reasoning={"fake:model": 3},
        ),
        provenance=Provenance(
            question="How high are the tides?",
            sub_questions=("How high?",),
            queries=("bay tides",),
            thread="abc123",
            run="run1",
        ),
    )


def poisoned(value: Any, words: Iterator[str], key: str = "") -> Any:
    """Every text that somebody else may have written."""
    if isinstance(value, dict):
        if key in ("scores", "reasoning"):
            return {next(words): held for held in value.values()}
        return {name: poisoned(held, words, name) for name, held in value.items()}
    if isinstance(value, list | tuple):
        return [poisoned(held, words, key) for held in value]
    return next(words) if isinstance(value, str) and key not in OURS else value


def hostile(words: Iterator[str]) -> Report:
    """A source's kind is a word of somebody else's, too; what was not found is told of by its question; and a text
    begins with its lead."""
    plain = poisoned(whole().plain(), words)
    plain["sections"][3]["sentences"][0]["text"] = f"Nothing answered: “{plain['not_found'][0]['question']}”"
    plain["sources"][0]["kind"] = next(words)
    for sentence in plain["sections"][1]["sentences"]:
        if sentence["item"]:
            sentence["text"] = f"{sentence['lead']} {sentence['text']}"
    return Report.model_validate(plain)


def marked(texts: list[str]) -> Iterator[str]:
    """Each with a word of its own at its end, to find it by."""
    return (f"{text} mk{number}z" for number, text in enumerate(cycle(texts)))


def mark_of(text: str) -> str:
    return text.rsplit(maxsplit=1)[-1]


def shown_marks(report: Report) -> set[str]:
    """Of what every page has to show."""
    shown = [report.title, *(section.title for section in report.sections), *(card.title for card in report.sources)]
    shown += [sentence.visible_text.rstrip("”") for section in report.sections for sentence in section.sentences]
    shown += [span.quote for claim in report.claims for span in claim.spans]
    shown += [answer.text for answer in report.answers] + [figure.value for figure in report.figures]
    return {mark_of(text) for text in shown}


@pytest.fixture(scope="module", params=["ours", "naughty"])
def attack(request: pytest.FixtureRequest) -> Report:
    if request.param == "ours":
        return hostile(marked(HOSTILE))
    folder: Path = request.getfixturevalue("eval_data") / "hostile"
    scripts = (folder / "xss.txt").read_text("utf-8", "replace").splitlines()
    naughty = [text for text in json.loads((folder / "naughty-strings.json").read_text("utf-8")) if text.strip()]
    few = [text for text in [*naughty, *scripts] if text.isprintable() or "\n" not in text]
    return hostile(marked([" / ".join(few[at : at + 12]) for at in range(0, len(few), 12)]))


# How a section is laid out -----------------------------------------------------------------------------


def test_the_parts_of_a_section_stand_where_they_were_written() -> None:
    said = Sentence(text="So.", kind="frame")
    opens, item = said.model_copy(update={"opens": True}), said.model_copy(update={"item": True})
    cell, dated = (
        said.model_copy(update={"cell": TableCell(row="2020", column=column, text="16.3")}) for column in ("Range", "")
    )
    found = list(split_blocks([opens, said, cell, cell, said, item, said, item, opens, cell, dated]))
    assert found == [
        Paragraph([opens, said]),
        SentenceTable(["", "Range"], {"2020": [[cell, cell]]}),
        Paragraph([said]),
        BulletList([[item, said], [item]]),
        Paragraph([opens]),
        SentenceTable(["", "Range"], {"2020": [[cell]]}),
        SentenceTable(["When", "What"], {"2020": [[dated]]}),
    ]
    assert list(split_blocks([])) == []


@pytest.mark.parametrize(
    ("lead", "parts"),
    [("Cost:", ("Cost:", " It fell.")), ("Cost: ", ("Cost:", " It fell.")), ("It", ("", "Cost: It fell."))],
)
def test_a_lead_is_shown_only_where_the_text_begins_with_it(lead: str, parts: tuple[str, str]) -> None:
    sentence = Sentence(text="Cost: It fell.", kind="frame", lead=lead)
    assert sentence.split_lead() == parts
    cell = TableCell(row="2020", text="Cost: It fell.")
    assert sentence.model_copy(update={"cell": cell}).split_lead() == ("", cell.text)


def test_lists_leads_and_tables_are_written_in_each_format() -> None:
    text = whole().markdown
    table = "| North | 16.3 metres ✓✓ "
    listed = "- **Spring tides:** they are the highest. ⚠ [[S2]](#s2) Both were measured.\n- **Spring tides:** they"
    assert text.index("It was 14.5 metres") < text.index(table) < text.index(listed) < text.index("\n\nBoth were")

    page = readers.read_page(FORMATS["html"].write(whole()))
    one, two = page.xpath("//ul[@class='items']/li")
    assert (one.xpath("string(.//summary/b)"), two.xpath("string(.//summary/b)")) == ("Spring tides:", "Spring tides:")
    assert one.xpath("preceding::table")
    assert "they are the highest. ⚠ [S2]" in " ".join(one.text_content().split())

    blocks = build_pandoc_tree(build_document(whole()))["blocks"]
    [bullets] = [block for block in blocks if block["t"] == "BulletList"]
    assert [item[0]["c"][:2] for item in bullets["c"]] == [
        [{"t": "Strong", "c": [{"t": "Str", "c": "Spring tides:"}]}, {"t": "Str", "c": " they are the highest."}]
    ] * 2
    assert blocks[blocks.index(bullets) - 1]["t"] == "Table"
    assert "• Spring tides: they are the highest." in readers.read_pdf(FORMATS["pdf"].write(whole())).text


# The list ---------------------------------------------------------------------------------------------


def test_there_is_one_list_of_formats() -> None:
    assert tuple(FORMATS) == get_args(FormatName)
    for name, format in FORMATS.items():
        assert get_file_format(Path(f"a{format.ending}")) is FORMATS["md" if name == "obsidian" else name]
    for file, name in {"A.HTM": "html", "a.txt": "md", "a": "md", "x/.json": "md", "a.CSL.JSON": "csl"}.items():
        assert get_file_format(Path(file)) is FORMATS[name]
    with pytest.raises(PathError, match=r"OpenAssay writes \.md, \.qmd, \.html, \.pdf, \.docx"):
        get_file_format(Path("a.xlsx"))
    with pytest.raises(UsageError) as unknown:
        get_format("pdff")
    assert unknown.value.help.startswith("Did you mean pdf? Formats: md, ")


@pytest.mark.parametrize("format", FORMATS.values(), ids=list(FORMATS))
def test_the_same_report_gives_the_same_file(format: Any) -> None:
    assert format.write(whole()) == format.write(whole())


def test_what_is_not_installed_is_named_before_anything_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf_docx, "find_spec", lambda name: None)
    monkeypatch.setattr(pdf_docx, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", "")
    for name in ("pdf", "docx"):
        with pytest.raises(ConfigurationError, match="needs the extra `export`") as missing:
            FORMATS[name].need()
        assert missing.value.help == "In the checkout: make venv"
        with pytest.raises(ConfigurationError):
            FORMATS[name].write(whole())


# Each opened by its reader ----------------------------------------------------------------------------


@pytest.mark.requirement("F-13")
def test_a_pdf_has_contents_marks_and_the_passages_at_its_foot() -> None:
    found = readers.read_pdf(FORMATS["pdf"].write(whole()))
    assert found.title == "Tides of the Bay"
    sections = ["Abstract", "Body", "Key figures", "Disagreements", "Not found", "References", "Review",
                "What went wrong", "About this report"]  # fmt: skip
    assert found.outline == sections
    assert "Contents" in found.text
    for text in (
        "✓✓",
        "⚠",
        "two or more independent sources agree",
        "“a range of 16.3 metres (S1)”",
        "characters 10–32",
        "[S1] Tides & currents",
        "C1: see note 1.",
        "https://port.example/tides?a=1&b=2_3#top",
        "Sources disagree:",
        "View 2: 2 independent sources",
        "Searched for: “bay age”; 3 documents read for it",
        "No advice.",
        "confidence high",
        "A page timed out.",
        "One page was not read.",
        "abc123 (run run1",
    ):
        assert text in found.text, text  # fmt: skip


def test_a_pdf_says_which_writing_it_cannot_show() -> None:
    assert FORMATS["pdf"].caveats(whole()) == []
    report = whole().model_copy(update={"title": "潮汐 😀 tides Приливы"})
    (caveat,) = FORMATS["pdf"].caveats(report)
    assert caveat.startswith("This report has Chinese, emoji writing, which the fonts of a PDF lack")
    assert caveat in readers.read_pdf(FORMATS["pdf"].write(report)).text


def test_the_marks_and_scripts_that_are_promised_can_be_shown() -> None:
    """Each has shapes of its own: a character that a font lacks is drawn as the same box as all others."""
    import typst

    def drawn(text: str) -> bytes:
        fonts = '("Libertinus Serif", "DejaVu Sans Mono")'
        source = f'#set page(width: 40pt, height: 40pt)\n#set text(font: {fonts})\n#"{text}"'
        return typst.compile(source.encode(), format="png", ignore_system_fonts=True)

    lacking = drawn("漢")
    assert drawn("字") == lacking, "this is how one sees it"
    for text in ("✓", "⚠", "é", "Ж", "Ω", "ש", "م", "ह", "Ա", "ა", "“", "±", "–", "…", "μ", "→", "≤"):
        assert drawn(text) != lacking, text


@pytest.mark.requirement("F-13")
def test_a_word_document_has_headings_tables_links_and_footnotes() -> None:
    found = readers.read_docx(FORMATS["docx"].write(whole()))
    assert found.title == "Tides of the Bay"
    assert found.headings == ["Abstract", "Body", "Key figures", "Disagreements", "Not found", "References", "Review",
                              "What went wrong", "About this report"]  # fmt: skip
    assert found.tables == 4
    assert found.links == {"https://port.example/tides?a=1&b=2_3#top"}
    assert any(
        "“a range of 16.3 metres (S1)” [S1] Tides & currents, characters 10–32" in one for one in found.footnotes
    )
    assert "The range is 16.3 metres. ✓✓" in found.text
    assert "two or more independent sources agree" in found.text


@pytest.mark.requirement("L-11")
def test_a_note_for_obsidian_has_properties_and_links_within_itself() -> None:
    about, body = readers.read_front_matter(FORMATS["obsidian"].write(whole()))
    assert {name: str(about[name]) for name in ("title", "question", "date", "confidence", "status")} == {
        "title": "Tides of the Bay", "question": "How high are the tides?", "date": "2026-11-16", "confidence": "high",
        "status": "complete",
    }  # fmt: skip
    assert about["aliases"] == ["Tides of the Bay"]
    assert about["tags"] == ["openassay", "openassay/complete", "openassay/confidence-high"]
    assert about["sources"] == ["https://port.example/tides?a=1&b=2_3#top", "Harbour report"]
    assert "[[" not in body, "which is a link to another note"
    assert set(re.findall(r"\(#\^(\w+)\)", body)) <= set(re.findall(r" \^(\w+)$", body, re.M))
    assert re.search(r"^- \*\*C1\*\* .* \^c1$", body, re.M)


@pytest.mark.requirement("L-11")
def test_a_quarto_document_resolves_its_citations() -> None:
    written = FORMATS["quarto"].write(whole())
    about, _ = readers.read_front_matter(written)
    assert (about["engine"], list(about["format"])) == ("markdown", ["html", "pdf", "docx"])
    tree = json.dumps(readers.read_quarto(written), ensure_ascii=False)
    cited = set(re.findall(r'"citationId": "(\w+)"', tree))
    assert cited == {work.key for work in build_bibliography(whole())} == {"doe2024tides", "harbour2021harbour"}
    assert "ref-doe2024tides" in tree, "the bibliography"


def test_bibtex_ris_and_csl_tell_the_same_works() -> None:
    web, file = readers.read_bibtex(FORMATS["bibtex"].write(whole()))
    assert (web["type"], web["key"], web["year"], web["date"]) == ("online", "doe2024tides", "2024", "2024-03-12")
    assert (web["author"], web["organization"]) == ("Doe, Jane A. and Li, Bo", "port.example")
    assert (web["title"], web["url"]) == (r"{Tides \& currents}", "https://port.example/tides?a=1&b=2_3#top")
    assert web["urldate"] == "2026-11-16"
    assert (file["type"], file["author"], "url" in file) == ("misc", "{The Harbour Office}", False)
    assert file["annote"].startswith("S2. File harbour.pdf. Text read by OpenAssay: SHA-256 2222")

    one, two = readers.read_ris(FORMATS["ris"].write(whole()))
    assert (one["type_of_reference"], one["id"], one["title"]) == ("ELEC", "doe2024tides", "Tides & currents")
    assert (one["authors"], one["urls"], one["year"]) == (
        ["Doe, Jane A.", "Li, Bo"], ["https://port.example/tides?a=1&b=2_3#top"], "2024",
    )  # fmt: skip
    assert (two["type_of_reference"], two["authors"]) == ("RPRT", ["The Harbour Office"])

    lines = readers.read_csl(FORMATS["csl"].write(whole()))
    assert any("Doe" in line and "2024" in line and "Tides & currents" in line for line in lines)
    items = json.loads(FORMATS["csl"].write(whole()))
    assert items[0]["issued"] == {"date-parts": [[2024, 3, 12]]}
    assert items[1]["author"] == [{"literal": "The Harbour Office"}]


@pytest.mark.parametrize(
    ("author", "expected"),
    [
        ("Adam G. Riess, Stefano Casertano and Wenlong Yuan", "Riess/Adam G. Casertano/Stefano Yuan/Wenlong"),
        ("Riess, A. G.; Casertano, S.", "Riess/A. G. Casertano/S."),
        ("Ludwig van Beethoven", "van Beethoven/Ludwig"),
        ("Anne-Marie O'Brien", "O'Brien/Anne-Marie"),
        ("Planck Collaboration", "Planck Collaboration/"),
        ("Science desk, Meridian Science Wire", "Science desk, Meridian Science Wire/"),
        ("Reuters Staff", "Reuters Staff/"),
        ("NASA", "NASA/"),
        ("王小明", "王小明/"),
        ("", ""),
    ],
)
def test_names_are_split_where_that_is_sure(author: str, expected: str) -> None:
    assert " ".join(f"{name.family}/{name.given}" for name in parse_authors(author)) == expected


def test_keys_of_works_are_unique_and_dates_are_as_far_as_they_are_known() -> None:
    card = whole().sources[0]
    dates = ["2024-03-12", "2024-13", "2024-02-31", "03/2024", "0000-00-00", None]
    cards = [card.model_copy(update={"id": f"S{at}", "published": date}) for at, date in enumerate(dates)]
    cards += [card.model_copy(update={"id": f"T{at}"}) for at in range(30)]
    found = build_bibliography(whole().model_copy(update={"sources": tuple(cards)}))
    assert [work.issued for work in found[:6]] == [(2024, 3, 12), (2024,), (2024, 2), (), (), ()]
    assert len({work.key for work in found}) == len(found)
    assert all(re.fullmatch(r"[a-z][a-z0-9]+", work.key) for work in found)


@pytest.mark.requirement("F-13")
def test_json_is_what_its_schema_says() -> None:
    plain = readers.read_json(FORMATS["json"].write(whole()))
    assert Report.model_validate(plain) == whole()


def test_a_page_stands_alone_and_its_links_lead_somewhere() -> None:
    page = readers.read_page(FORMATS["html"].write(whole()))
    assert page.get("lang") == "en"
    assert page.findtext(".//title") == "Tides of the Bay"
    (policy,) = page.xpath("//meta[@http-equiv='Content-Security-Policy']/@content")
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    inside = [href[1:] for href in page.xpath("//a/@href") if href.startswith("#")]
    ids = page.xpath("//@id")
    assert len(ids) == len(set(ids))
    assert set(inside) <= set(ids)
    assert {"ref1", "ref2", "st1"} <= set(inside), "there and back"


# Hostile text in every field --------------------------------------------------------------------------


def test_every_field_is_poisoned() -> None:
    plain = hostile(marked(["evil"])).model_dump_json()
    for word in ("Tides", "harbour", "16.3", "Jane", "2024", "bay age", "fa9e", "fake:model", "accuracy", "abc123"):
        assert word not in plain, word


@pytest.mark.requirement("L-11")
def test_hostile_text_adds_nothing_to_markdown(attack: Report) -> None:
    assert readers.markdown_shape(attack.markdown) == readers.markdown_shape(benign(attack).markdown)


def benign(attack: Report) -> Report:
    """The same report, with nothing in it that means anything."""
    words = marked(["Word"])
    plain = hostile(words)
    cards = [
        own.model_copy(update={"url": other.url}) for own, other in zip(plain.sources, attack.sources, strict=True)
    ]
    return plain.model_copy(update={"sources": tuple(cards)})


def test_hostile_text_adds_nothing_to_a_note(attack: Report) -> None:
    about, body = readers.read_front_matter(FORMATS["obsidian"].write(attack))
    other, plain = readers.read_front_matter(FORMATS["obsidian"].write(benign(attack)))
    assert set(about) == set(other)
    assert mark_of(about["title"]) == mark_of(attack.title)
    assert len(about["sources"]) == 2
    assert readers.markdown_shape(body) == readers.markdown_shape(plain)
    unescaped = re.sub(r"`[^`]*`|\\.", "", body)
    assert not re.search(r"\[\[|==|%%|\$|(?<!^)(?<!^#)#\w|!\[", unescaped.replace("(#^", "("), re.M)


def kinds(tree: Any) -> Iterator[str]:
    if isinstance(tree, dict):
        if isinstance(tree.get("t"), str):
            yield tree["t"]
        for held in tree.values():
            yield from kinds(held)
    elif isinstance(tree, list):
        for held in tree:
            yield from kinds(held)


@pytest.mark.slow
def test_hostile_text_adds_nothing_to_a_quarto_document(attack: Report) -> None:
    written = FORMATS["quarto"].write(attack)
    tree = readers.read_quarto(written)
    text = {"Str", "Space", "SoftBreak", "MetaInlines", "MetaString"}
    shape = [kind for kind in kinds(tree["blocks"]) if kind not in text]
    assert not {"RawInline", "RawBlock", "Image", "Math", "CodeBlock", "Subscript", "Superscript"} & set(shape)
    plain = readers.read_quarto(FORMATS["quarto"].write(benign(attack)))
    blocks = [block["t"] for block in tree["blocks"]]
    assert blocks == [block["t"] for block in plain["blocks"]]
    assert "{{<" not in written.decode()


def test_hostile_text_adds_nothing_to_a_page(attack: Report) -> None:
    page = readers.read_page(FORMATS["html"].write(attack))
    plain = readers.read_page(FORMATS["html"].write(benign(attack)))
    assert [one.tag for one in page.iter()] == [one.tag for one in plain.iter()]
    assert {name for one in page.iter() for name in one.attrib} == {name for one in plain.iter() for name in one.attrib}
    assert shown_marks(attack) <= set(re.findall(r"mk\d+z", page.text_content()))


@pytest.mark.slow
def test_hostile_text_adds_nothing_to_a_pdf(attack: Report) -> None:
    found = readers.read_pdf(FORMATS["pdf"].write(attack))
    assert mark_of(found.title) == mark_of(attack.title)
    assert len(found.outline) == 9
    read = set(re.findall(r"mk\d+z", re.sub(r"\bz(\d+)mk\b", r"mk\1z", found.text)))  # turned round within Arabic
    assert shown_marks(attack) <= read


def test_hostile_text_adds_nothing_to_a_word_document(attack: Report) -> None:
    found = readers.read_docx(FORMATS["docx"].write(attack))
    assert len(found.headings) == 9
    assert found.tables == 4
    assert all(link.startswith(("http://", "https://")) for link in found.links)
    assert len(found.links) <= sum(card.url.startswith("http") for card in attack.sources)
    quotes = {mark_of(span.quote) for claim in attack.claims for span in claim.spans}
    assert quotes <= set(re.findall(r"mk\d+z", " ".join(found.footnotes)))


def test_hostile_text_adds_no_work_and_no_field(attack: Report) -> None:
    entries = readers.read_bibtex(FORMATS["bibtex"].write(attack))
    records = readers.read_ris(FORMATS["ris"].write(attack))
    lines = readers.read_csl(FORMATS["csl"].write(attack))
    assert len(entries) == len(records) == len(lines) == 2
    for entry, record, card in zip(entries, records, attack.sources, strict=True):
        assert mark_of(card.title) in entry["title"]
        assert record["title"].endswith(mark_of(card.title))
        assert set(entry) <= {"type", "key", "title", "author", "organization", "institution", "journal", "url", "doi",
                              "urldate", "annote", "year", "month", "date"}  # fmt: skip
        assert set(record) <= {"type_of_reference", "id", "title", "authors", "publisher", "urls", "notes", "year",
                               "date", "access_date", "doi", "journal_name"}  # fmt: skip


def test_hostile_text_is_no_formula_and_no_row(attack: Report) -> None:
    rows = readers.read_csv(FORMATS["csv"].write(attack))
    assert [len(row) for row in rows] == [7, 7, 7]
    assert not [cell for row in rows for cell in row if re.match(r"\s*[=+\-@]", cell)]
    assert mark_of(rows[1][1]) == mark_of(attack.claims[0].text)


def test_hostile_text_is_the_same_after_json(attack: Report) -> None:
    written = FORMATS["json"].write(attack)
    assert readers.read_json(written)["title"] == attack.title
    assert Report.model_validate_json(written) == attack


@pytest.mark.parametrize("status", [ReportStatus.NO_DATA, ReportStatus.CANCELLED])
@pytest.mark.parametrize("name", FORMATS)
def test_a_report_of_nothing_is_a_file_too(name: str, status: ReportStatus) -> None:
    reply = Section(title="", sentences=(Sentence(text="Nothing was found.", kind="frame"),))
    empty = Report(question="?", title="", status=status, sections=(reply,), provenance=Provenance(question="?"))
    written = FORMATS[name].write(empty)
    match name:
        case "pdf":
            assert "Nothing was found." in readers.read_pdf(written).text
        case "docx":
            assert "Nothing was found." in readers.read_docx(written).text
        case "bibtex" | "ris":
            assert written == b""
        case "csl":
            assert json.loads(written) == []
        case "csv":
            assert len(list(csv.reader(io.StringIO(written.decode())))) == 1
        case _:
            assert "Nothing was found" in written.decode()


def test_the_page_offers_every_format() -> None:
    page = (ROOT / "src/openassay/server/static/artifacts/artifacts.js").read_text()
    assert set(re.findall(r'format: "(\w+)"', page)) == {*FORMATS, ZIP}
