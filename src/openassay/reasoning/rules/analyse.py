"""What a round of reading brought: confidence by section, gaps, disagreements, and what to ask next."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from openassay.models.evidence import ANSWERED, Analysis, Claim, Disagreement, Gap, KeyFinding, Theme
from openassay.models.plan import Plan, SubQuestion
from openassay.reasoning.base import (
    AnalysisRequest,
    Conflict,
    DisputeContext,
    DraftClaim,
    Evidence,
    collect_known_stems,
    has_only_known_words,
)
from openassay.reasoning.rules.phrases import split_clauses
from openassay.reasoning.rules.plan import ASPECT_QUERIES, find_empty_aspects, is_about_a_company
from openassay.reasoning.rules.read import QuoteStatement, split_statements, stands_alone
from openassay.reasoning.rules.short_answers import compare_answers
from openassay.reasoning.rules.table_answers import tell_cells
from openassay.reasoning.rules.understand import extract_topic
from openassay.text.answer_reader import AnswerReader
from openassay.text.other_languages import find_other_language, is_in_other_language
from openassay.text.questions import ASKING, answer_kinds, find_year_range, has_answer_kind
from openassay.text.relations import find_main_figure, find_years, gives_other_value, is_same_fact, relate
from openassay.text.sentences import split_sentences
from openassay.text.words import QueryKey, content_words, find_names, fold, interleave_groups, query_key, stem, stems

# Which claims cannot all hold, what settles it, and what the matter is.

OPEN = "unresolved"
BETTER = "studies and official records go before news, news before other pages"
NEWER = "newer supersedes older"
FIRST_HAND = "it speaks at first hand, and is not older"
MATTER_WORDS = 9  # of the words two statements share; more is no heading


def describe_overlap(left: str, right: str) -> str:
    """What two statements share, in the words and the order of the first."""
    shared = set(stems(left)) & set(stems(right))
    small = {word.lower() for name in find_names(left) for word in name.split()}
    kept = [
        word.strip(".,;:()[]\"“”'’")
        for word in left.split()
        if set(stems(word)) & shared and not any(letter.isdigit() for letter in word)
    ]
    told = [word if word.lower() in small else word.lower() for word in dict.fromkeys(kept)]
    return " ".join(told[:MATTER_WORDS]) or " ".join(content_words(left)[:MATTER_WORDS])


def find_disagreements(
    claims: Sequence[Claim],
    conflicts: Sequence[Conflict] = (),
    known: DisputeContext | None = None,
    rivals: Collection[frozenset[str]] = (),
    reader: AnswerReader | None = None,
) -> list[Disagreement]:
    """A newer figure of the same origin settles a matter; of what still stands, opposites are grouped into sides.

    `conflicts` are what a judge saw that words do not show, `rivals` pairs of claims that give one quantity different
    figures; what is settled stays settled. With `known`, different
    answers to the question on the same thing are opposites too, and a better kind of source settles a matter.
    """
    known = known or DisputeContext()
    # Each outdated claim once, with the newest that replaces it.
    newest: dict[str, Claim] = {}
    by_id = {claim.id: claim for claim in claims}
    for old in claims:
        for new in claims:
            if relate(new.text, old.text) == "newer":
                best = newest.get(old.id)
                if best is None or max(find_years(new.text)) > max(find_years(best.text)):
                    newest[old.id] = new
    settled = [
        Disagreement(
            about=describe_overlap(new.text, by_id[id].text), sides=((new.id,), (id,)), resolution=NEWER, resolved=True
        )
        for id, new in newest.items()
    ]
    outdated = {matter.sides[1][0] for matter in settled}
    current = [claim for claim in claims if claim.id not in outdated]
    texts = {name: origin.text for name, origin in known.origins.items()}
    groups = {name: origin.group for name, origin in known.origins.items() if origin.group}
    answered = compare_answers(known.question, current, texts, groups, reader or AnswerReader())
    opposed: list[Disagreement] = []
    for matter, sides in answered.disputes:
        first, second = (tuple(dict.fromkeys(reading.claim for reading in side)) for side in sides)
        # A claim that holds both answers stands on no side, and a sentence does not contradict itself.
        if not set(first) & set(second) and not _share_words([by_id[id] for id in first], [by_id[id] for id in second]):
            opposed.append(Disagreement(about=matter, sides=(first, second), resolution=OPEN))
    for at, left in enumerate(current):
        for right in current[at + 1 :]:
            # Measurements that state their uncertainty may disagree whenever they were made.
            measured = [figure.uncertainty for one in (left, right) if (figure := find_main_figure(one.text))]
            uncertain = len(measured) == 2 and None not in measured
            apart = frozenset((left.id, right.id)) in answered.apart and not uncertain
            if not apart and _are_at_odds(left, right, rivals):
                _add_conflict(opposed, left, right, by_id, rivals)
    standing = {claim.text: claim for claim in current}
    for conflict in conflicts:
        if conflict.first != conflict.second and {conflict.first, conflict.second} <= standing.keys():
            _add_conflict(opposed, standing[conflict.first], standing[conflict.second], by_id, rivals, conflict.about)
    return [_weigh_sources(matter, by_id, known) for matter in (*opposed, *settled)]


def _share_words(some: Sequence[Claim], others: Sequence[Claim]) -> bool:
    """Whether claims rest on the same words of one document, one with more of them than the other."""
    return any(
        one.document == other.document and (one.quote in other.quote or other.quote in one.quote)
        for claim in some
        for one in claim.spans
        for rival in others
        for other in rival.spans
    )


def _are_at_odds(left: Claim, right: Claim, rivals: Collection[frozenset[str]]) -> bool:
    """In the words of the claims, or of a sentence that each rests on: another source may put it so that nobody sees
    what it is held against."""
    if _share_words([left], [right]):
        return False
    if frozenset((left.id, right.id)) in rivals or relate(left.text, right.text) == "disagree":
        return True
    ours, theirs = ({claim.text, *(span.quote for span in claim.spans)} for claim in (left, right))
    return any(
        gives_other_value(one, other)
        for one in ours
        for other in theirs
        if len(split_sentences(one)) == len(split_sentences(other)) == 1
    )


def _add_conflict(
    found: list[Disagreement],
    left: Claim,
    right: Claim,
    claims: Mapping[str, Claim],
    rivals: Collection[frozenset[str]],
    matter: str = "",
) -> None:
    """A claim that already stands on one side of a matter gains an opponent; else a new matter is opened."""
    for at, known in enumerate(found):
        if known.resolved:
            continue
        first, second = known.sides
        for claim, opponent in ((left, right), (right, left)):
            for mine, other in ((first, second), (second, first)):
                if claim.id not in mine:
                    continue
                if opponent.id not in mine:
                    if any(_are_at_odds(opponent, claims[id], rivals) for id in other):
                        continue  # two who contradict a third may contradict each other: no one side
                    sides = (mine, tuple(dict.fromkeys((*other, opponent.id))))
                    found[at] = known.model_copy(update={"sides": sides if mine is first else sides[::-1]})
                return
    matter = matter or describe_overlap(left.text, right.text)
    found.append(Disagreement(about=matter, sides=((left.id,), (right.id,)), resolution=OPEN))


def _weigh_sources(matter: Disagreement, claims: dict[str, Claim], known: DisputeContext) -> Disagreement:
    """Who stands behind each side, and what follows: a better kind of source settles a matter, a majority is told but
    settles nothing, since many may repeat one error."""
    documents = [{span.document for id in side for span in claims[id].spans} for side in matter.sides]
    if not known.origins or not all(documents):
        return matter
    origins = {name: known.origins.get(name) for side in documents for name in side}
    groups = {name: origin.group if origin and origin.group else name for name, origin in origins.items()}
    backing = tuple(len({groups[name] for name in side}) for side in documents)
    matter = matter.model_copy(update={"backing": backing})
    if matter.resolved:
        return matter
    ranks = [max((origin.rank for name in side if (origin := origins[name])), default=1) for side in documents]
    published = {name: (origin.published if origin else None) or "" for name, origin in origins.items()}
    by_side = [[published[name] for name in side] for side in documents]
    # Nobody who spoke earlier can settle what is said of a later year.
    said = [max((year for id in side for year in find_years(claims[id].text)), default=0) for side in matter.sides]
    written = [max((int(day[:4]) for day in days if day), default=0) for days in by_side]
    better = 0 if ranks[0] > ranks[1] else 1
    if ranks[0] != ranks[1] and (said[better] or written[better] or said[1 - better]) >= said[1 - better]:
        return _resolve_for(matter, better == 0, "it rests on a better kind of source: " + BETTER)
    # The newest date of a side; none where one of its documents is undated.
    dates = [max(days) if all(days) else "" for days in by_side]
    hosts = {origin.host if origin else "" for origin in origins.values()}
    if all(dates) and dates[0] != dates[1] and len(hosts) == 1 and "" not in hosts:
        return _resolve_for(matter, dates[0] > dates[1], NEWER)
    # A later word of the same source at first hand replaces its earlier one, whoever repeats either.
    own_words = [
        {origin.host: origin.published or "" for name in side if (origin := origins[name]) and origin.primary}
        for side in documents
    ]
    shared = own_words[0].keys() & own_words[1].keys()
    if shared and all(own_words[0][host] > own_words[1][host] > "" for host in shared):
        return _resolve_for(matter, True, NEWER)
    if shared and all(own_words[1][host] > own_words[0][host] > "" for host in shared):
        return _resolve_for(matter, False, NEWER)
    # Who speaks at first hand is believed against those who do not, unless they are newer: much may have changed.
    newest = [max(days) for days in by_side]
    first_hand = [any(origin.primary for name in side if (origin := origins[name])) for side in documents]
    if first_hand[0] != first_hand[1]:
        own = first_hand.index(True)
        if newest[own] and newest[own] >= newest[1 - own]:
            return _resolve_for(matter, own == 0, FIRST_HAND)
    # Told first: who speaks at first hand, then what is newest.
    if (first_hand[1], newest[1]) > (first_hand[0], newest[0]):
        matter = matter.model_copy(update={"sides": matter.sides[::-1], "backing": backing[::-1]})
    most, least = max(backing), min(backing)
    why = f"{most} independent sources stand against {least}, and none of them is of a better kind"
    return matter.model_copy(update={"resolution": OPEN if most == least else why})


def _resolve_for(matter: Disagreement, first: bool, why: str) -> Disagreement:
    order = slice(None) if first else slice(None, None, -1)
    sides, backing = matter.sides[order], matter.backing[order]
    return matter.model_copy(update={"sides": sides, "backing": backing, "resolved": True, "resolution": why})


# What the evidence for a sub-question does not have, said so that it can be searched for (C-09).

MOST_MISSING = 3
LONGEST_QUERY = 5  # words a query has besides what is missing
DEFAULT_NEEDS = ("overview", "news", "figures")  # to look for where nothing was found at all
CONFIRMATION = "independent confirmation"
SETTLEMENT = "what settles the disagreement"
# What is lacking and is no word to search for: the kinds of text that could have it.
QUERIES_BY_NEED = {
    CONFIRMATION: ("independent study", "official data", "original report"),
    SETTLEMENT: ("latest review", "comparison of measurements", "official revised figures"),
}


def find_missing(plan: Plan, quotes: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """By sub-question, for those that lack something; `quotes` are what was found for each."""
    missing: dict[str, tuple[str, ...]] = {}
    if is_about_a_company(plan.sections):
        # Sides of a company nothing speaks of, each laid to the sub-question it belongs to, or to the first.
        homes = {question.section: question.id for question in reversed(plan.questions)}
        every = [quote for told in quotes.values() for quote in told]
        for section in find_empty_aspects(every) if plan.questions else ():
            home = homes.get(section, plan.questions[0].id)
            missing[home] = (*missing.get(home, ()), ASPECT_QUERIES[section])
        return missing
    for question in plan.questions:
        # The kind of answer that is asked for, the period, then words of the question that nothing found has.
        found = quotes.get(question.id, ())
        kinds = [kind for kind in answer_kinds(question.text) if not any(has_answer_kind(kind, one) for one in found)]
        asked, years = find_year_range(question.in_context), set[int]()
        if asked and not any(asked.overlaps(find_years(quote)) for quote in found):
            years = {asked.first, asked.last} & find_years(question.in_context)
        there = {known for quote in found for known in stems(quote)}  # called `stem`, Python 3.12 takes it below
        words = [word for word in content_words(question.text) if stem(word) not in there | ASKING]
        lacks = dict.fromkeys((*kinds, *map(str, sorted(years)), *(words if found else DEFAULT_NEEDS)))
        if lacks:
            missing[question.id] = tuple(lacks)[:MOST_MISSING]
    return missing


def build_need_queries(question: SubQuestion, lacks: Sequence[str], *, found: bool) -> list[str]:
    """What the sub-question is about, or its names where something was `found`, with one thing it lacks."""
    whole = content_words(f"{question.topic} {extract_topic(question.text)}")
    named = content_words(" ".join(find_names(question.in_context)[:2]))
    about = list(dict.fromkeys((named if found else whole) or whole))[:LONGEST_QUERY]
    texts = []
    for lack in lacks:
        # A kind of text says nothing of the matter, so the matter is said in full.
        head = list(dict.fromkeys(whole or about))[:LONGEST_QUERY] if lack in QUERIES_BY_NEED else about
        texts += [" ".join([*head, sought]) for sought in QUERIES_BY_NEED.get(lack, (lack,)) if sought not in head]
    return texts


# The findings that matter most, with how well each is borne out, and what several sources have in common (F-05).

MOST_FINDINGS = 10
FEWEST_THEMES, MOST_THEMES = 3, 5
LONGEST_UNIT = 3  # letters of what looks like a name and may be a unit: Mpc, GHz
LIKELY = 0.5  # relevance of a quote that speaks to the question
MOST_REFINEMENTS = 3  # new queries for one gap; the others are left for the round after
ENOUGH = 0.6  # confidence below which another round is worth a try: about what one good source gives
MOST_COMPARISONS = 40  # findings compared with each other, since pairs grow by the square

Needs = dict[str, tuple[str, ...]]


def select_key_findings(
    questions: Sequence[SubQuestion],
    evidence: Sequence[Evidence],
    conflicts: Sequence[Disagreement],
    unanswered: Sequence[SubQuestion],
) -> tuple[KeyFinding, ...]:
    """Up to ten: the best of every sub-question first, none that says what another has said."""
    disputed = {id for conflict in conflicts for side in conflict.sides for id in side}
    lacking = {question.id for question in unanswered}
    chosen: list[Evidence] = []
    # The best of each sub-question, then the second best of each, and so on.
    known = {question.id for question in questions}
    asked = [item for item in evidence if item.finding.question in known]
    best = sorted(asked, key=lambda item: (-item.finding.relevance, item.finding.id))
    for item in interleave_groups(best, lambda item: item.finding.question):
        said = item.finding.span.quote
        if len(chosen) < MOST_FINDINGS and not any(is_same_fact(said, one.finding.span.quote) for one in chosen):
            chosen.append(item)
    # Strong: another document says the same and nobody the contrary. Moderate: others speak to the matter too. Weak:
    # one source alone, or a dispute. Gap: the best there is for a sub-question that has no answer.
    graded = []
    for finding in (item.finding for item in chosen):
        elsewhere = [one.finding for one in evidence if one.finding.span.document != finding.span.document]
        others = any(one.question == finding.question for one in elsewhere)
        grade = "moderate" if others and finding.relevance >= LIKELY else "weak"
        if finding.question in lacking:
            grade = "gap"
        elif finding.id in disputed:
            grade = "weak"
        elif any(relate(finding.span.quote, one.span.quote) == "same" for one in elsewhere):
            grade = "strong"
        graded.append(KeyFinding(finding=finding.id, grade=grade))
    return tuple(graded)


def find_themes(questions: Sequence[SubQuestion], by_question: Mapping[str, Sequence[Evidence]]) -> tuple[Theme, ...]:
    """Sub-questions that two or more documents speak to; where these are few, names that two or more bring up."""
    found = [theme for question in questions if (theme := _to_theme(question.text, by_question.get(question.id, ())))]
    if len(found) < FEWEST_THEMES:
        # By names that no sub-question has, those of most documents first.
        asked = {stem for question in questions for stem in stems(question.in_context)}
        behind: dict[str, list[Evidence]] = {}
        spelled: dict[str, str] = {}
        for item in (item for items in by_question.values() for item in items):
            for name in find_names(item.finding.span.quote):
                if set(stems(name)) - asked and (len(name) > LONGEST_UNIT or name.isupper()):
                    behind.setdefault(fold(name), []).append(item)
                    spelled.setdefault(fold(name), name)
        made = [theme for key, items in behind.items() if (theme := _to_theme(spelled[key], items))]
        made.sort(key=lambda theme: (-theme.sources, -len(theme.findings), theme.title))
        found += made[: FEWEST_THEMES - len(found)]
    return tuple(found[:MOST_THEMES])


def _to_theme(title: str, behind: Sequence[Evidence]) -> Theme | None:
    documents = {item.finding.span.document for item in behind}
    if len(documents) < 2:
        return None
    ids = tuple(dict.fromkeys(item.finding.id for item in behind))
    return Theme(title=title, findings=ids, sources=len(documents))


def analyse(request: AnalysisRequest) -> Analysis:
    questions, confidence = request.plan.questions, request.coverage
    by_question: dict[str, list[Evidence]] = {}
    for item in request.evidence:
        by_question.setdefault(item.finding.question, []).append(item)
    by_section: dict[str, list[float]] = {}
    for question in questions:
        by_section.setdefault(question.section, []).append(confidence[question.id])
    sections = {section: sum(values) / len(values) for section, values in by_section.items()}
    unanswered = [question for question in questions if confidence[question.id] < ANSWERED]
    conflicts = _find_conflicts(request.evidence)
    home = {item.finding.id: item.finding.question for item in request.evidence}
    disputed = {home[id] for conflict in conflicts for side in conflict.sides for id in side}
    # By sub-question, what nothing found has, and what would settle a dispute, or somebody else who says so.
    # What one that is not in English lacks, only its grammar could tell.
    english = find_other_language(request.plan.goal) is None
    quotes = {id: [item.finding.span.quote for item in found] for id, found in by_question.items()}
    lacks = find_missing(request.plan, quotes) if english else {}
    for question in questions:
        own = lacks.get(question.id, ())
        if question.id in disputed and confidence[question.id] >= ANSWERED:
            lacks[question.id] = (*own, SETTLEMENT)
        elif by_question.get(question.id) and confidence[question.id] < ENOUGH:
            lacks[question.id] = (*own, CONFIRMATION)
    # Those not sure enough, those in dispute, and sides of a company that nothing speaks of.
    company = is_about_a_company(request.plan.sections)
    wanting = [
        question
        for question in questions
        if confidence[question.id] < ENOUGH
        or SETTLEMENT in lacks.get(question.id, ())
        or (company and question.id in lacks)
    ]
    gaps = tuple(
        Gap(section=question.section, severity="major" if question in unanswered else "minor", question=question.id)
        for question in wanting
    )
    feedback = []
    for question in wanting:
        state = "does not have enough evidence" if question in unanswered else "could be surer"
        state = state if by_question.get(question.id) else "has no evidence yet"
        wanted = f"; missing: {', '.join(lacks[question.id])}" if question.id in lacks else ""
        feedback.append(f"{question.text} {state}{wanted}.")
    major = sum(gap.severity == "major" for gap in gaps)
    return Analysis(
        section_confidence=sections,
        confidence=round(sum(sections.values()) / len(sections), 4) if sections else 0.0,
        previous_confidence=request.previous.confidence if request.previous else 0.0,
        key_findings=select_key_findings(questions, request.evidence, conflicts, unanswered),
        themes=find_themes(questions, by_question),
        gaps=gaps,
        disagreements=tuple(conflicts),
        unanswered=tuple(question.text for question in unanswered),
        refinements=_build_refinements(wanting, lacks, by_question, request) if english else {},
        sufficiency="sufficient" if not gaps else "gaps_major" if major * 2 > len(questions) else "gaps_minor",
        feedback=" ".join(feedback),
    )


def _find_conflicts(evidence: Sequence[Evidence]) -> list[Disagreement]:
    """Pairs among the most relevant findings that cannot both hold."""
    ordered = sorted(evidence, key=lambda item: -item.finding.relevance)[:MOST_COMPARISONS]
    distinct = list({item.finding.span.quote: item for item in ordered}.values())
    found = []
    for at, left in enumerate(distinct):
        for right in distinct[at + 1 :]:
            if relate(left.finding.span.quote, right.finding.span.quote) == "disagree":
                about = describe_overlap(left.finding.span.quote, right.finding.span.quote)
                sides = ((left.finding.id,), (right.finding.id,))
                found.append(Disagreement(about=about, sides=sides, resolution=OPEN))
    return found[:10]


def _build_refinements(
    wanting: Sequence[SubQuestion],
    lacks: Needs,
    by_question: Mapping[str, Sequence[Evidence]],
    request: AnalysisRequest,
) -> dict[str, tuple[str, ...]]:
    """New queries for what is missing, then the question in fewer words: never from page text, none asked before."""
    refined = {}
    known = collect_known_stems(request.plan)
    seen: set[QueryKey] = {query_key(text) for text in request.asked}
    for question in wanting:
        wanted = build_need_queries(question, lacks.get(question.id, ()), found=bool(by_question.get(question.id)))
        # Where the question names something, no query goes without a name; what it only means, its topic says.
        words, topic = content_words(question.text), content_words(question.topic)[:3]
        fewer = [words[:3], words[-3:], sorted(words, key=len, reverse=True)[:2]]
        shorter = [" ".join(dict.fromkeys([*topic, *some])) for some in fewer]
        named = {stem for name in find_names(question.in_context) for stem in stems(name)}
        wanted += [text for text in shorter if not named or named & set(stems(text))]
        texts = [text for text in wanted if text and has_only_known_words(text, known)]
        distinct = {meant: text for text in reversed(texts) if (meant := query_key(text)) not in seen}
        fresh = list(distinct.values())[::-1][:MOST_REFINEMENTS]
        seen.update(map(query_key, fresh))
        if fresh:
            refined[question.id] = tuple(fresh)
    return refined


# Claims from findings: a source's own sentences, one fact each; those that say the same become one claim.

MOST_WORDINGS = 5
# Of a question for one thing. Each is verified, .3 to .5 s on one core, and a short answer is told by the first few.
MOST_POINTED_CLAIMS = 6
MOST_BROAD_CLAIMS = 30  # of a broad question: six themes of two to four statements, and some that fail

_LEAD = re.compile(
    r"^(?:however|moreover|furthermore|in addition|additionally|meanwhile|nevertheless|nonetheless|by contrast|"
    r"in contrast|similarly|likewise|as a result|consequently|therefore|thus|indeed|notably|importantly|in fact|"
    r"of course|also|still|and|but|so|yet|hence|accordingly|in turn|in other words|that said|for example|for instance|"
    r"on the other hand|on the one hand|in particular|specifically|overall|in short|in sum)\b,?\s+",
    re.I,
)
# What stands ahead of a sentence and is none of it: where an agency wrote from, the label of a figure, a heading that
# the sentence repeats.
_DATELINE = re.compile(
    r"^[A-Z][\w.]*(?:[ ,]+[A-Z\d][\w.]*){0,6},? \((?:Reuters|AP|AFP|UPI|dpa|PTI|Bloomberg)\)\s*[-–—]+\s*"
)
_CAPTION = re.compile(
    r"^(?:(?:Fig(?:ure|\.)?|Table|Box|Chart|Photo|Image|Caption)\s*\d*[.:)]\s+|.{0,80}\[ ?edit ?\]\s+)(?=[A-Z])"
)
_HEADING = re.compile(r"^((?:[A-Z0-9][\w’'&.-]*\s){1,6})(?:\([^)]*\)\s)?(?=(?:The\s|An?\s)?\1)")
_REFERENCE = re.compile(r"\s?\[ ?(?:\d{1,3}|[a-z]|note \d+|citation needed) ?\]")
# Told from the day of writing, which a reader of the report does not see.
_DEICTIC = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|(?:last|this|next) (?:year|month|week|quarter|summer|winter|spring|autumn|"
    r"fall|monday|tuesday|wednesday|thursday|friday|saturday|sunday)|(?:a|one|two|three|\d+) (?:years?|months?|weeks?|"
    r"days?) ago|earlier this)\b",
    re.I,
)
DEICTIC_FACTOR = 0.9  # of its relevance


class _SourceStatement(NamedTuple):
    text: str
    stands: bool
    item: Evidence


def extract_claims(plan: Plan, evidence: Sequence[Evidence]) -> list[DraftClaim]:
    """One claim a fact, best first; what cannot be understood alone only where nothing else answers its question."""
    known = find_names(f"{plan.goal} {plan.topic}")
    cells = [item for item in evidence if item.finding.cells]
    ordered = sorted(
        (item for item in evidence if not item.finding.cells),
        key=lambda item: (-item.finding.relevance, item.finding.id),
    )
    groups: list[list[_SourceStatement]] = []
    for item in ordered:
        quote = _strip_debris(item.finding.span.quote)
        statements = [QuoteStatement(quote, True)]
        if not (find_other_language(plan.goal) or is_in_other_language(quote)):
            statements = split_statements(quote, item.title, known)
        parts = ((statement, part) for statement in statements for part in split_clauses(statement.text))
        for statement, part in parts:
            said = _SourceStatement(to_report_sentence(part), statement.stands, item)
            for group in groups:
                if is_same_fact(group[0].text, said.text):
                    group.append(said)
                    break
            else:
                groups.append([said])
    answered = {said.item.finding.question for group in groups for said in group if said.stands}
    most = MOST_POINTED_CLAIMS if plan.asks_one_thing else MOST_BROAD_CLAIMS if plan.asks_for_themes else len(groups)
    if plan.asks_for_themes:  # what cannot be told by itself need not be verified, where anything else can
        alone = [group for group in groups if any(stands_alone(said.text) for said in group)]
        told_alone = {said.item.finding.question for group in alone for said in group}
        groups = [
            group for group in groups if group in alone or any(s.item.finding.question not in told_alone for s in group)
        ]
    if plan.paired:  # as many of each
        groups = interleave_groups(groups, lambda group: group[0].item.finding.question)
    firsts = {group[0].item.finding.question: group for group in reversed(groups)}
    claims = list[DraftClaim]()
    for group in groups:
        if len(claims) == most:
            break
        # What answers a question for one thing best is told whether or not it names whom it speaks of.
        best = plan.asks_one_thing and group is firsts[group[0].item.finding.question]
        if not best and not any(said.stands or said.item.finding.question not in answered for said in group):
            continue
        # The statement as it can be told alone, and last the whole quote: should a part of it not be borne out, the
        # source's own words are.
        told = sorted(group, key=lambda said: not said.stands)
        wordings = list(dict.fromkeys(said.text for said in told))[: MOST_WORDINGS - 1]
        relevance = group[0].item.finding.relevance
        dated = any(not _DEICTIC.search(said.text) for said in group)
        claim = DraftClaim(
            wordings=tuple(dict.fromkeys([*wordings, to_report_sentence(told[0].item.finding.span.quote)])),
            findings=tuple(dict.fromkeys(said.item.finding.id for said in group)),
            questions=tuple(dict.fromkeys(said.item.finding.question for said in group)),
            relevance=relevance if dated else round(DEICTIC_FACTOR * relevance, 4),
        )
        claims.append(claim)
    return [*(claim for item in cells for claim in _state_cells(item)), *claims]


def _state_cells(item: Evidence) -> Iterator[DraftClaim]:
    """A claim for each figure of a row that answers."""
    finding = item.finding
    for text in tell_cells(finding.span.quote, finding.cells):
        yield DraftClaim(
            wordings=(text,), findings=(finding.id,), questions=(finding.question,), relevance=finding.relevance
        )


def to_report_sentence(quote: str) -> str:
    """A quote as a sentence of a report: one line, no heading ahead of it, no connective to a neighbour."""
    text = _LEAD.sub("", _strip_debris(quote))
    first = text.split(" ", 1)[0]
    text = text[:1].upper() + text[1:] if first.islower() else text  # "the team" but not "iPad"
    return text if text.endswith((".", "!", "?", "。", "！", "？", "」", "”", "“", "»", '"')) else f"{text}."


def _strip_debris(quote: str) -> str:
    text = _REFERENCE.sub("", " ".join(quote.split()))
    for debris in (_DATELINE, _CAPTION, _HEADING):
        text = debris.sub("", text) or text
    return text
