"""Writing without a model: verified claims in their own words, in the order of the plan, each said once, as prose."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from openassay.models.evidence import Claim, Disagreement, Mark, Verdict
from openassay.models.plan import Depth, Plan
from openassay.models.report import Issue
from openassay.protocols import Embedder
from openassay.reasoning.base import Draft, DraftSection, DraftSentence, WriteRequest
from openassay.reasoning.rules.paragraphs import (
    CONTRAST,
    LONG,
    WRITING_STYLES,
    JoinContext,
    WritingStyle,
    asks_for_development,
    build_paragraphs,
    can_follow,
    find_common_words,
    find_ranking,
    find_sides,
    has_figure,
    is_free_of,
    join_paragraph,
    rephrase,
    score_worth,
    side_of,
    to_sentence,
)
from openassay.reasoning.rules.plan import FINANCE, NEWS, classify_aspect, is_about_a_company
from openassay.reasoning.rules.themes import Theme, ThemedClaims, find_themes
from openassay.text.frames import frame
from openassay.text.other_languages import find_other_language
from openassay.text.relations import find_years, statement_facts
from openassay.text.sentences import is_statement, is_table_row
from openassay.text.words import fold, jaccard, pluralize, stems

# What the sources disagree on: every matter with both sides, who stands behind each, and why it is open.

DISPUTES_TITLE = "What the sources disagree on"
DISPUTES_SHARE = 4  # a quarter of the words
PER_SIDE = 3  # statements
MOST_REPLACED = 4
ORDINALS = "first second third".split()
UNSAID = ("", "unresolved", "open", "newer supersedes older")  # resolutions that give no reason a reader would want

Sentences = tuple[DraftSentence, ...]


class DisputeSides(NamedTuple):
    sides: tuple[tuple[Claim, ...], ...]
    settled: bool
    reason: str
    question: str  # the sub-question it is about

    @property
    def claims(self) -> set[str]:
        return {claim.id for side in self.sides for claim in side}


def find_disputes(disagreements: Sequence[Disagreement], claims: dict[str, Claim], plan: Plan) -> list[DisputeSides]:
    """Those that have a statement on each side, open ones first."""
    found = []
    for item in disagreements:
        sides = tuple(tuple(sorted((claims[id] for id in side if id in claims), key=_sureness)) for side in item.sides)
        if len(sides) > 1 and all(sides):
            # The first sub-question that every side answers, or any.
            asked = [{id for claim in side for id in claim.questions} for side in sides]
            wanted = (set.intersection(*asked), set.union(*asked))
            texts = [question.text for ids in wanted for question in plan.questions if question.id in ids]
            found.append(DisputeSides(sides, item.resolved, item.resolution, texts[0] if texts else ""))
    return sorted(found, key=lambda matter: matter.settled)


def _sureness(claim: Claim) -> tuple[bool, float, str]:
    """Who reads one statement of a side should read its surest."""
    return claim.mark is not Mark.CORROBORATED, -claim.relevance, claim.id


def write_disputes(found: Sequence[DisputeSides], words: int, told: Collection[str] = ()) -> Sentences:
    """As many matters as a quarter of the words holds, but at least one; `told` are claims that were told before."""
    # Each matter in short, and in full where it takes more.
    every: list[tuple[Sentences, Sentences]] = []
    asked: list[str] = []
    for matter in (matter for matter in found if not matter.settled):
        asked.append(matter.question)
        number = asked.count(matter.question)
        if number == 1:
            lead = f"{f'On “{matter.question}”' if matter.question else 'Here'} the sources do not agree"
        elif number <= len(ORDINALS):
            lead = f"The sources also differ on a {ORDINALS[number - 1]} point"
        else:
            lead = f"That makes {number} points on which the sources differ"
        every.append((tuple(_write_open(matter, lead, 1)), tuple(_write_open(matter, lead, PER_SIDE))))
    settled = [matter for matter in found if matter.settled]
    shown = {*told, *(claim for matter in found if not matter.settled for claim in matter.claims)}
    above = [matter for matter in settled if matter.sides[0][0].id in shown]
    if above:
        every.append((tuple(_write_replacement(above[:1])), tuple(_write_replacement(above[:MOST_REPLACED]))))
    for matter in [matter for matter in settled if matter not in above][:PER_SIDE]:
        reason = "" if matter.reason in UNSAID else f": {matter.reason.rstrip('.')}"
        frame = f"Here the statement given last stands, and what comes before it does not{reason}."
        last, *before = (to_sentence(side[0]) for side in matter.sides)
        every.append(((DraftSentence(text=frame, opens=True), *before, last),) * 2)
    room, taken = words // DISPUTES_SHARE, 0
    sentences: list[DraftSentence] = []
    for versions in every:
        known = {id for sentence in sentences for id in sentence.claims}
        # What a section has told it does not tell again. Of a matter with one side told, the other is still due.
        fitted: list[Sentences] = []
        for version in versions:
            opening, *facts = version
            fresh = [sentence for sentence in facts if not set(sentence.claims) <= known]
            stated = [sentence for sentence in fresh if sentence.claims]
            if len(fresh) < len(facts):
                lead = (
                    f"{opening.text.partition(';')[0].rstrip('.')}: what follows does not agree with a statement above."
                )
                texts = [_capitalize(sentence.text.removeprefix(CONTRAST)) for sentence in stated]
                bare = [s.model_copy(update={"text": text}) for s, text in zip(stated, texts, strict=True)]
                version = (opening.model_copy(update={"text": lead}), *bare) if bare else ()
            fitted.append(version)
        short, full = fitted
        chosen = full if taken + _count_words(full) <= room else short
        if chosen and (not taken or taken + _count_words(chosen) <= room):
            taken += _count_words(chosen)
            sentences += chosen
    return tuple(sentences)


def _capitalize(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _write_open(matter: DisputeSides, lead: str, most: int) -> Iterator[DraftSentence]:
    who = "."
    if most > 1:
        backing = []  # counted, because one text may have many copies
        for side in matter.sides:
            several = len({span.document for claim in side for span in claim.spans}) > 1
            confirmed = any(claim.mark is Mark.CORROBORATED for claim in side)
            plain = "several documents" if several else "one source"
            backing.append("two or more independent sources" if confirmed else plain)
        who = "; there are more than two views"
        if len(set(backing)) == 1:
            who = f"; each view rests on {backing[0]}"
        elif len(backing) == 2:
            who = f"; the first view rests on {backing[0]}, the other on {backing[1]}"
        who += ", and none read in this run settles it."
    yield DraftSentence(text=f"{lead}{who}", opens=True)
    lower = find_common_words([claim for side in matter.sides for claim in side])
    for number, side in enumerate(matter.sides):
        for at, claim in enumerate(side[:most]):
            joint = CONTRAST if number and not at and can_follow(claim.text, lower) else ""
            yield to_sentence(claim, joint)
    if most > 1 and matter.reason not in UNSAID:
        yield DraftSentence(text=f"Why the sources leave this open: {matter.reason.rstrip('.')}.")


def _write_replacement(settled: Sequence[DisputeSides]) -> Iterator[DraftSentence]:
    """What stands no more; what took its place is told above."""
    frame = "What was published before has been superseded by newer statements of the same origin, told above."
    yield DraftSentence(text=frame, opens=True)
    older = {side[0].id: side[0] for matter in settled for side in matter.sides[1:]}
    yield from map(to_sentence, sorted(older.values(), key=lambda claim: min(find_years(claim.text), default=0)))


# The abstract: what a reader needs who reads nothing else.

ABSTRACT_WORDS = 210  # of 150 to 250
ABSTRACT_SHARE = 5  # a fifth of the words
OF_ALL = 0.5  # of what the report tells: more would be the report once more
NO_ABSTRACT = 300  # a report shorter than this is its own summary
COUNTS = "none one two three four five six".split()
FEWEST_STATEMENTS = 4  # statements of a report worth summing up


def write_abstract(
    told: Sequence[Claim], matters: Sequence[DisputeSides], request: WriteRequest, most: int, voice: WritingStyle
) -> list[DraftSentence]:
    """The best statement of each sub-question and the first dispute, then the best of the rest. `told` are the claims
    of the body; corroborated ones come first, in the words of another source where there are some."""
    open_ones = [matter for matter in matters if not matter.settled]
    disputed = {claim.id: claim for matter in open_ones for side in matter.sides for claim in side}
    matter = sum(len(claim.text.split()) for claim in (*told, *disputed.values()))
    left = min(most, int(matter * OF_ALL))
    sentences: list[DraftSentence] = []
    # In the order of the sub-questions; a dispute stands at the sub-question it is about.
    ranked = sorted((claim for claim in told if not is_table_row(claim.text)), key=_sureness)
    groups: list[list[DraftSentence]] = []
    led: set[str] = set()
    waiting = open_ones[:1]
    for question in request.plan.questions:
        groups += [_write_dispute(dispute) for dispute in waiting if dispute.question == question.text]
        waiting = [dispute for dispute in waiting if dispute.question != question.text]
        lead = next((claim for claim in ranked if question.id in claim.questions and claim.id not in led), None)
        if lead is not None:
            led.add(lead.id)
            groups.append([_retell(lead)])
    groups += [*map(_write_dispute, waiting), *([_retell(claim)] for claim in ranked if claim.id not in led)]
    for group in groups:
        words = sum(len(sentence.text.split()) for sentence in group)
        if words <= left:
            left -= words
            opens = voice.brief or not sentences  # point by point, or one paragraph
            sentences += [group[0].model_copy(update={"opens": opens}), *group[1:]]
    return sentences


def _retell(claim: Claim) -> DraftSentence:
    return to_sentence(claim, text=rephrase(claim) or "")


def _write_dispute(matter: DisputeSides) -> list[DraftSentence]:
    """A statement of each side, said to be disputed: neither stands as fact."""
    one, *others = (side[0] for side in matter.sides)
    lower = find_common_words([one, *others])
    count = COUNTS[len(others) + 1] if len(others) + 1 < len(COUNTS) else "many"
    frame = DraftSentence(text=f"The sources disagree, as the next {count} statements show.")
    sentences = [frame, _retell(one)]
    for other in others:
        text = rephrase(other) or other.text
        sentences.append(to_sentence(other, CONTRAST if can_follow(text, lower) else "", text=text))
    return sentences


# What a reviewer asked for, as this writer can do it, and a note on each item (F-06).

MIN_STEMS = 3  # stems a complaint shares with the statement it means
MIN_OVERLAP = 0.3


@dataclass
class RevisionPlan:
    """What is done differently, and what is said about it."""

    shorter: bool = False
    fewer_alike: bool = False
    shorter_sentences: bool = False
    newest_first: bool = False
    surest_first: bool = False
    shorter_summary: bool = False
    on_topic: bool = False  # what shares no word with the question is left out
    whole: bool = False  # rows and fragments are left out
    unjoined: bool = False
    missing: list[str] = field(default_factory=list)  # what nothing is said of
    struck: set[str] = field(default_factory=set)  # claims that are left out
    banned: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)


def plan_revision(request: WriteRequest) -> RevisionPlan:
    """Critical and major items first; a fix without an issue is an item too."""
    made = RevisionPlan()
    severe = ("critical", "major")
    issues = sorted(request.issues, key=lambda issue: issue.severity not in severe)
    known = {issue.fix for issue in issues}
    issues += [
        Issue(category="style", severity="minor", location="", description=fix, fix=fix)
        for fix in request.fixes
        if fix not in known
    ]
    for issue in issues:
        # The first thing that the words of an item ask for.
        said, done = f"{issue.fix} {issue.description}".lower(), ""
        if found := re.search(r"banned word: (.+)", issue.description):
            made.banned.add(found[1].strip())
            done = "put in other words"
        elif re.search(_UNSUPPORTED, said):
            done = _drop_statement(issue, request, made)
        elif re.search(r"says nothing of", said):
            made.missing += [part.strip() for part in issue.description.partition("nothing of ")[2].split(" or ")]
            done = "it is named under “What could not be found”"
        else:
            for pattern, flag, note in _KNOWN_FIXES:
                if re.search(pattern, said):
                    if flag:
                        setattr(made, flag, True)
                    done = note
                    break
        if not done and issue.severity in severe:
            done = _drop_doubtful(issue, request, made)
        place = f"{issue.severity}, {issue.location}: " if issue.location else ""
        made.notes.append(f"{place}{issue.description} → {done or 'nothing to do in the text'}")
    return made


def _drop_statement(issue: Issue, request: WriteRequest, made: RevisionPlan) -> str:
    """The statement an item quotes, or the one it speaks of."""
    quoted = fold(issue.description.partition(": ")[2])[:70]
    supported = [claim for claim in request.claims if claim.verdict is Verdict.SUPPORTED]
    meant = [claim for claim in supported if quoted and fold(claim.text).startswith(quoted)]
    if not meant:
        said = set(stems(issue.description))
        named = [claim for claim in supported if len(said & set(stems(claim.text))) >= MIN_STEMS]
        meant = sorted(named, key=lambda claim: -jaccard(claim.text, issue.description))[:1]
        meant = [claim for claim in meant if jaccard(claim.text, issue.description) >= MIN_OVERLAP]
    made.struck |= {claim.id for claim in meant}
    return "the statement was left out" if meant else ""


def _drop_doubtful(issue: Issue, request: WriteRequest, made: RevisionPlan) -> str:
    """A doubt about the truth, or a critical one, in words this writer does not know: what it speaks of goes, else the
    least sure of the place it names. Any other item in such words is noted and changes nothing."""
    of_truth = issue.category in ("accuracy", "citation")
    if not of_truth and issue.severity != "critical":
        return ""
    if of_truth and (done := _drop_statement(issue, request, made)):
        return done
    sections = request.previous.sections if request.previous else ()
    bodies = [section for section in sections if section.role == "body"]
    named = [section for section in bodies if fold(section.title) in fold(issue.location)] or bodies
    ids = dict.fromkeys(id for section in named for sentence in section.sentences for id in sentence.claims)
    by_id = {claim.id: claim for claim in request.claims}
    told = [by_id[id] for id in ids if id in by_id]
    doubtful = [claim for claim in told if claim.mark is Mark.SINGLE] or sorted(told, key=lambda c: c.relevance)[:1]
    if not doubtful or len(doubtful) == len(told):
        return ""
    made.struck |= {claim.id for claim in doubtful}
    return f"the {len(doubtful)} least sure of its statements {'was' if len(doubtful) == 1 else 'were'} left out"


_UNSUPPORTED = r"drop the sentence|(?:not |un)supported|no span|leave it out|as the passage has it|refers to nothing"
# What the words of an item ask for, what is done differently, and what is said about it.
_KNOWN_FIXES = (
    (r"nothing to do with the question|beside the point|off topic|irrelevant", "on_topic", "they were left out"),
    (r"snippets|whole sentences|fragments", "whole", "only whole sentences were kept"),
    (r"concludes", "unjoined", "sentences stand as their sources have them"),
    (r"summary of \d+ words|shorten the (?:summary|abstract)", "shorter_summary", "the summary was shortened"),
    (
        r"shorten the sentences|shorten it|readab|long sentences|shorter sentences|words on average",
        "shorter_sentences",
        "long sentences made room for shorter ones",
    ),
    (r"\bshorten\b|too long|words where", "shorter", "the report was shortened by a quarter"),
    (r"keep one|said twice|repeat|duplicat|redundan", "fewer_alike", "of statements much alike one was kept"),
    (r"\brecent|outdated|newer|too old|older|stale", "newest_first", "the newest statements were taken first"),
    (
        r"sources? (?:is|are) cited|corroborat|second source|single source|independent source",
        "surest_first",
        "the statements with most sources were taken first",
    ),
    (r"unanswered|what could not be found|owned up|is open", "", "it is named under “What could not be found”"),
    (r"both sides", "", "both sides stand under “What the sources disagree on”"),
)


# The body: which statements stand in which section, within the words there are.

REPEATED, REPEATED_WHEN_TOLD = 0.6, 0.4
QUICK_STATEMENTS = 10
MOST_ROWS = 8  # of tables, in a section: the quarters of two years

SectionClaims = dict[str, list[Claim]]


def place_claims(
    request: WriteRequest, claims: Sequence[Claim], words: int, voice: WritingStyle, orders: RevisionPlan
) -> SectionClaims:
    """Each claim goes to the first section it answers that has room; a section has its share of the words, or one
    statement. Words that are left over then go to whoever has more to tell."""
    told: SectionClaims = {section: [] for section in request.plan.sections}
    asked = set(stems(" ".join([request.plan.goal, *(question.in_context for question in request.plan.questions)])))
    wanted = [
        claim
        for claim in claims
        if claim.id not in orders.struck
        and not (orders.whole and (is_table_row(claim.text) or not is_statement(claim.text)))
        and (not orders.on_topic or asked & set(stems(claim.text)))
    ]
    # Where a claim may stand, the person's own questions first: they come first in the plan. What speaks of one side of
    # a comparison may stand in the section that compares.
    plan, homes = request.plan, dict[str, list[str]]()
    sides = find_sides(plan.goal)
    for claim in wanted:
        answered = [question.section for question in plan.questions if question.id in claim.questions]
        first = [plan.sections[0]] if sides and side_of(claim, sides) is not None else []
        homes[claim.id] = list(dict.fromkeys([*first, *answered])) or [plan.sections[0]]
        if is_about_a_company(plan.sections):
            homes[claim.id] = [classify_aspect(claim.text)]
    share = words // max(1, len({home[0] for home in homes.values()}))
    left: list[Claim] = []
    # Without what repeats another in words; a reviewer who said so need not find the same figures and names.
    said: list[tuple[frozenset[str], frozenset[str]]] = []
    alike = orders.fewer_alike
    for claim in sorted(wanted, key=_sort_key(voice, orders)):
        own, stated = frozenset(stems(claim.text)), statement_facts(claim.text)
        overlaps = ((len(own & other) / (len(own | other) or 1), facts == stated) for other, facts in said)
        most = REPEATED_WHEN_TOLD if alike else REPEATED
        if any(overlap >= most and (alike or same) for overlap, same in overlaps):
            continue
        said.append((own, stated))
        # The first statement of a section always fits; a report is no book of tables.
        row = is_table_row(claim.text)
        rooms = [
            home
            for home in homes[claim.id]
            if not row or sum(is_table_row(other.text) for other in told[home]) < MOST_ROWS
            if not told[home] or sum(map(_claim_length, (*told[home], claim))) <= share
        ]
        (told[rooms[0]] if rooms else left).append(claim)
    taken = sum(_claim_length(claim) for section in told.values() for claim in section)
    for claim in left:
        if taken + _claim_length(claim) <= words and not is_table_row(claim.text):
            told[homes[claim.id][0]].append(claim)
            taken += _claim_length(claim)
    limit = QUICK_STATEMENTS if request.plan.depth is Depth.QUICK else None
    return {section: placed[:limit] for section, placed in told.items()}


def _claim_length(claim: Claim) -> int:
    return len(claim.text.split())


def _sort_key(voice: WritingStyle, orders: RevisionPlan) -> Callable[[Claim], tuple[object, ...]]:
    def key(claim: Claim) -> tuple[object, ...]:
        return (
            orders.newest_first and -max(find_years(claim.text), default=0),
            orders.surest_first and claim.mark is not Mark.CORROBORATED,
            orders.surest_first and -len(claim.spans),
            orders.shorter_sentences and _claim_length(claim) > LONG,
            voice.figures_first and not has_figure(claim),
            -score_worth(claim, voice),
            claim.id,
        )

    return key


# The conclusion: the surest findings, and how far the answer carries.

SUREST = 2
FEWEST_FOR_FINDINGS = 8  # statements from which on the surest are worth naming again
NO_FINDINGS = 300  # words of a report that has no room for them


def write_conclusion(
    request: WriteRequest, claims: Sequence[Claim], matters: Sequence[DisputeSides], target: int, voice: WritingStyle
) -> list[DraftSentence]:
    """How far it carries, in sentences that speak of the research. A quick answer has none."""
    if request.plan.depth is Depth.QUICK:
        return []
    total = len(request.plan.questions)
    borne_out = total - len(request.unanswered)
    reach = f"Of {total} sub-questions, {borne_out} have statements that hold against the sources read"
    # Only where something is open: sub-questions overlap, and one statement may stand for three of them.
    frames = []
    if request.unanswered:
        frames = [f"{reach}; “{request.unanswered[0]}” is open." if len(request.unanswered) == 1 else f"{reach}."]
    disputed = list(dict.fromkeys(matter.question for matter in matters if not matter.settled and matter.question))
    if disputed:
        which = f"On “{disputed[0]}” sources disagree;" if len(disputed) == 1 else "Where sources disagree,"
        frames.append(f"{which} both sides are given and none is preferred.")
    if any(claim.mark is Mark.CORROBORATED for claim in claims):
        told = frame("Statements marked {mark} rest on two or more independent sources.", request.plan.goal)
        frames.append(told.format(mark=Mark.CORROBORATED))
    elif claims:
        told = frame("No statement here is confirmed by a second independent source.", request.plan.goal)
        frames.append(told)
    most = 1 if target < NO_FINDINGS else 2 if voice.brief else len(frames)
    return [DraftSentence(text=text) for text in frames[:most]]


def select_surest(
    told: Sequence[Claim], request: WriteRequest, summary: Sequence[DraftSentence]
) -> list[DraftSentence]:
    """The surest answers to what was asked first, in words that the summary has not used. What is neither corroborated
    nor told by anybody in other words stands in the body and is not said again."""
    if len(told) < FEWEST_FOR_FINDINGS:
        return []
    order = {question.id: at for at, question in enumerate(request.plan.questions)}
    said = {sentence.text for sentence in summary}
    options = [
        (claim, rephrase(claim, said) or claim.text)
        for claim in told
        if claim.mark is not Mark.SINGLE and not is_table_row(claim.text)
    ]

    def key(option: tuple[Claim, str]) -> tuple[bool, bool, int, float, str]:
        claim, text = option
        asked = min((order[id] for id in claim.questions if id in order), default=len(order))
        return claim.mark is not Mark.CORROBORATED, text == claim.text, asked, -claim.relevance, claim.id

    sure = [(c, text) for c, text in options if text not in said and (c.mark is Mark.CORROBORATED or text != c.text)]
    fresh = sorted(sure, key=key)
    return [
        DraftSentence(text=text, claims=(claim.id,))
        for claim, text in fresh[: 1 if request.style == "executive" else SUREST]
    ]


# What could not be found: sub-questions without an answer, and parts of the outline that nothing was found for.

NOT_FOUND_TITLE = "What could not be found"


def write_not_found(
    request: WriteRequest, claims: Sequence[Claim], missing: Sequence[str]
) -> tuple[DraftSentence, ...]:
    """`claims` are all that may be told, wherever they are told; `missing` is what a reviewer looked for in vain."""
    goal = request.plan.goal
    unanswered = frame("No source read in this run answered: “{question}”", goal)
    silent = frame("No source read in this run had a statement for: “{question}”", goal)
    lines = [unanswered.format(question=question) for question in request.unanswered]
    # What every answer about a company is expected to have; elsewhere, sections whose sub-questions nobody named as
    # unanswered although nothing was found.
    if is_about_a_company(request.plan.sections):
        there = {classify_aspect(claim.text) for claim in claims}
        empty = [part for part in (NEWS, FINANCE) if part not in there]
    else:
        spoken = {id for claim in claims for id in claim.questions}
        by_section: dict[str, list[str]] = {section: [] for section in request.plan.sections}
        for question in request.plan.questions:
            by_section[question.section].append(question.id)
        owned = {question.section for question in request.plan.questions if question.text in request.unanswered}
        empty = [part for part, ids in by_section.items() if part not in owned and ids and not spoken & set(ids)]
    lines += [silent.format(question=part) for part in (*empty, *missing)]
    return tuple(DraftSentence(text=line, opens=True) for line in lines)


def write_cross_references(
    request: WriteRequest, placed: SectionClaims, matters: Sequence[DisputeSides]
) -> dict[str, list[DraftSentence]]:
    """What is added to a section: that it stands in for an empty one, and that part of it is disputed."""
    added: dict[str, list[DraftSentence]] = {section: [] for section in placed}
    also: dict[str, list[str]] = {}
    for section in (section for section, claims in placed.items() if not claims):
        # The section that tells most of what another was planned for.
        ids = {question.id for question in request.plan.questions if question.section == section}
        hosts = [host for host, claims in placed.items() for claim in claims if ids & set(claim.questions)]
        if host := max(hosts, key=hosts.count, default=None):
            also.setdefault(host, []).append(section)
    for host, sections in also.items():
        told = " and ".join(f"“{section}”" for section in sections)
        added[host].append(DraftSentence(text=f"This also tells what was found on {told}", opens=True))
    disputed = {matter.question for matter in matters if not matter.settled}
    for section in dict.fromkeys(q.section for q in request.plan.questions if q.text in disputed):
        told = f"Where the sources disagree on this is told under “{DISPUTES_TITLE}”."
        added[section].append(DraftSentence(text=told))
    return added


# The draft as a whole.

QUICK_WORDS = 220
SHORT = 0.75  # of the words asked for: a report with less matter says so

_QUOTED = re.compile("“[^”]*”")


MOST_ANSWERING = 4  # statements in answer to a question for one thing


LEFT_TITLE = "Also found"


def write_count(documents: int) -> tuple[DraftSentence, ...]:
    text = f"{pluralize(documents, 'document')} speak{'s' * (documents == 1)} of this."
    return (DraftSentence(text=text, opens=True),)


def write(request: WriteRequest, embedder: Embedder | None = None) -> Draft:
    """With an embedder a broad question is answered by themes; a comparison or a ranking has an order of its own."""
    writer = _DraftWriter(request, plan_revision(request))
    goal = request.plan.goal
    if (
        embedder
        and request.plan.asks_for_themes
        and not find_other_language(goal)
        and not find_sides(goal)
        and not find_ranking(goal)
    ):
        told = [claim for claim in writer.plain if claim.id not in writer.orders.struck]
        themed = find_themes(
            goal, told, embedder, request.titles, request.dates if asks_for_development(goal) else None
        )
        if themed:
            return writer.build_themed_draft(themed)
    return writer.build_draft()


class _DraftWriter:
    """What the parts of one draft share."""

    def __init__(self, request: WriteRequest, asked: RevisionPlan) -> None:
        self.request, self.orders = request, asked
        self.voice: WritingStyle = WRITING_STYLES[request.style]
        self.target = request.target * 3 // 4 if asked.shorter else request.target
        self.usable = [claim for claim in request.claims if claim.verdict is Verdict.SUPPORTED]
        by_id = {claim.id: claim for claim in self.usable}
        self.matters: list[DisputeSides] = find_disputes(request.disagreements, by_id, request.plan)
        # Not told as plain fact: all sides of an open matter, and what lost in a settled one.
        disputed = [side for matter in self.matters for side in (matter.sides[1:] if matter.settled else matter.sides)]
        hidden = {claim.id for side in disputed for claim in side}
        self.plain = [claim for claim in self.usable if not claim.superseded_by and claim.id not in hidden]
        self.banned = {*request.banned, *asked.banned}

    def build_draft(self) -> Draft:
        quick = self.request.plan.depth is Depth.QUICK
        summary = 0 if quick or self.target < NO_ABSTRACT else min(ABSTRACT_WORDS, self.target // ABSTRACT_SHARE)
        summary = summary * (3 if self.orders.shorter_summary else 4) // 4
        closing = write_conclusion(self.request, self.usable, self.matters, self.target, self.voice)
        missing = write_not_found(self.request, self.usable, self.orders.missing)
        left = self.target - summary - _count_words((*write_disputes(self.matters, self.target), *missing, *closing))
        words = min(left, QUICK_WORDS) if quick else left
        pointed = self.request.plan.asks_one_thing
        body = (
            {self.request.plan.sections[0]: self._choose_answering()}
            if pointed
            else place_claims(self.request, self.plain, words, self.voice, self.orders)
        )
        told = [claim for claims in body.values() for claim in claims]
        enough = len(told) >= FEWEST_STATEMENTS and not pointed
        short = write_abstract(told, self.matters, self.request, summary, self.voice) if enough else []
        summed_up = {id for sentence in short for id in sentence.claims}
        surest = select_surest(told, self.request, short) if short else []
        dispute = write_disputes(self.matters, self.target, [claim.id for claim in told])
        ending = DraftSection(
            title=self._title(self.voice.conclusion), role="conclusion", sentences=(*surest, *closing)
        )
        sections = [DraftSection(title=self._title(self.voice.abstract), role="abstract", sentences=tuple(short))]
        added = write_cross_references(self.request, body, self.matters if self.target >= NO_ABSTRACT else ())
        voice = self.voice._replace(joints=self.voice.joints and not self.orders.unjoined)
        joints = JoinContext(voice, self.banned, find_sides(self.request.plan.goal), find_common_words(self.plain))
        for title, claims in body.items():
            whole = [claims] if pointed and claims else []
            parts = whole or build_paragraphs(title, claims, self.voice, self.request.plan.goal)
            in_turn = joints.sides or find_ranking(f"{self.request.plan.goal} {title}")  # the order says something
            if not in_turn and parts and parts[0][0].id in summed_up:
                # Begins with another paragraph or sentence than what the abstract has just said, if it has any.
                heads = [part for part in parts if part[0].id not in summed_up and not is_table_row(part[0].text)]
                if heads:
                    parts = [heads[0], *(part for part in parts if part is not heads[0])]
                else:
                    fresh = next((claim for claim in parts[0] if claim.id not in summed_up), parts[0][0])
                    parts[0] = [fresh, *(claim for claim in parts[0] if claim is not fresh)]
            prose = [sentence for part in parts for sentence in join_paragraph(part, joints)]
            sections.append(DraftSection(title=title, sentences=(*prose, *added[title])))
        sections.append(DraftSection(title=DISPUTES_TITLE, role="disagreements", sentences=dispute))
        sections.append(DraftSection(title=self._title(NOT_FOUND_TITLE), role="not_found", sentences=missing))
        # Who is in a hurry is told at once how far the points carry.
        sections.insert(1 if self.voice.brief else len(sections), ending)
        kept = tuple(
            s for s in map(self._clean_section, sections) if s.sentences and (told or dispute or s.role != "conclusion")
        )
        words, notes = sum(_count_words(section.sentences) for section in kept), list(self.orders.notes)
        if not self.request.previous and not quick and words < SHORT * self.target:
            notes.append(f"The sources had matter for {words} words where {self.target} were asked for.")
        return Draft(title=self.request.plan.goal.lstrip("¿").rstrip("?!.？。 "), sections=kept, notes=tuple(notes))

    def _title(self, title: str) -> str:
        return frame(title, self.request.plan.goal)

    def build_themed_draft(self, found: ThemedClaims) -> Draft:
        """The best answer, then a section for each theme; no statement is told twice."""
        closing = write_conclusion(self.request, self.usable, self.matters, self.target, self.voice)
        missing = write_not_found(self.request, self.usable, self.orders.missing)
        left = self.target - _count_words((*write_disputes(self.matters, self.target), *missing, *closing))
        left -= _claim_length(found.lead)
        # Statements of several documents on one matter rarely follow from each other.
        joints = JoinContext(self.voice._replace(joints=False), self.banned)
        told = [found.lead]
        bodies = list[DraftSection]()
        for theme in (*found.themes, Theme(LEFT_TITLE, found.left, 0)):
            room = [
                one for at, one in enumerate(theme.claims) if sum(map(_claim_length, theme.claims[: at + 1])) <= left
            ]
            title = f"{theme.title} ({theme.years})" if theme.years else theme.title
            if room:
                left -= sum(map(_claim_length, room))
                told += room
                count = write_count(theme.documents) if theme.documents else ()
                bodies.append(DraftSection(title=title, sentences=(*join_paragraph(room, joints), *count)))
        dispute = write_disputes(self.matters, self.target, [claim.id for claim in told])
        lead = DraftSection(title=self.voice.abstract, role="abstract", sentences=(to_sentence(found.lead),))
        ending = DraftSection(title=self.voice.conclusion, role="conclusion", sentences=tuple(closing))
        sections = [
            lead,
            *bodies,
            DraftSection(title=DISPUTES_TITLE, role="disagreements", sentences=dispute),
            DraftSection(title=NOT_FOUND_TITLE, role="not_found", sentences=missing),
        ]
        sections.insert(1 if self.voice.brief else len(sections), ending)
        kept = tuple(section for section in map(self._clean_section, sections) if section.sentences)
        return Draft(title=self.request.plan.goal.rstrip("?!. "), sections=kept, notes=tuple(self.orders.notes))

    def _choose_answering(self) -> list[Claim]:
        """Of a question for one thing the few statements that answer it best, the best first."""
        usable = [claim for claim in self.plain if claim.id not in self.orders.struck]
        return sorted(usable, key=lambda claim: (-claim.relevance, claim.id))[:MOST_ANSWERING]

    def _clean_section(self, section: DraftSection) -> DraftSection:
        """Words of our own that nobody wants to read are left out; what a source says stays as it is."""
        kept = []
        for sentence in section.sentences:
            text = sentence.text
            if sentence.claims and text.startswith(CONTRAST) and not self._is_clean(CONTRAST):
                text = _capitalize(text.removeprefix(CONTRAST))
            elif not sentence.claims and not self._is_clean(text):
                # A dispute is announced in any case, in fewer words if need be.
                shorter = f"{text.partition(';')[0].rstrip('.')}."
                spare = [one for one in (shorter, "Sources differ.") if self._is_clean(one)]
                if not spare or section.role != "disagreements":
                    continue
                text = spare[0]
            kept.append(sentence.model_copy(update={"text": text}))
        return section.model_copy(update={"sentences": tuple(kept)})

    def _is_clean(self, text: str) -> bool:
        return is_free_of(_QUOTED.sub("", text), self.banned)


def _count_words(sentences: Sequence[DraftSentence]) -> int:
    return sum(len(sentence.text.split()) for sentence in sentences)
