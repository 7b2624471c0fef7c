"""The sides of a matter a person can choose, and the sub-question each adds."""

from typing import Literal, NamedTuple

from assay.model.question import Understanding
from assay.reasoning.embedded.matter import Field, act, clause, field_of, matter, spoken
from assay.text.words import fold, stem, stems, words

SHOWN = 4

Kind = Field | Literal["comparison", "cause", "procedure"]


class Side(NamedTuple):
    """`label` is what the person sees, `text` what is asked for it; a question that has a word of `said` asks it
    already."""

    label: str
    text: str
    said: str = ""


# A line a side: its label, its sub-question, and words by which a question asks for it.
_TABLES: dict[Kind, str] = {
    "general": """
        The facts and figures on {topic} | Which figures are given for {topic}? | figures statistics numbers much many
        Why: causes and explanations of {topic} | Which causes and explanations of {topic} are given? | why cause reason
        What is disputed about {topic} | What is uncertain or disputed about {topic}? | disputed disagree controversy
        What comes next for {topic} | What is expected for {topic}? | will expected forecast future outlook next
        How {topic} came about | What is the history of {topic}? | history origin began
        Who is affected by {topic} | Who is affected by {topic}, and how? | affect
        How {topic} differs from place to place | How does {topic} differ between countries and regions? | countries
        """,
    "company": """
        Business and products of {topic} | What does {topic} make and sell? | products business
        Results and share price of {topic} | Which revenue, profit and share price does {topic} report? | revenue \
            profit earnings stock share sales
        Recent news and plans of {topic} | What has {topic} announced recently? | news recent happening
        Risks, lawsuits and rivals of {topic} | Which risks, lawsuits and competitors does {topic} face? | risk \
            lawsuit competitor rival
        Who leads and owns {topic} | Who leads and owns {topic}? | ceo own lead management
        How {topic} became what it is | What is the history of {topic}? | history origin founded
        """,
    "law": """
        What the rules on {topic} say | What do the rules on {topic} require? | require say
        Whom the rules apply to, and exceptions | To whom does {topic} apply, and which exceptions are there? | apply \
            exception whom
        Court decisions and practice | How have courts and authorities applied {topic}? | court ruling
        Deadlines and penalties | Which deadlines and penalties does {topic} set? | deadline penalty fine
        What is disputed or about to change | Which changes to {topic} are proposed or disputed? | change disputed
        How other countries handle {topic} | How do other countries regulate {topic}? | countries
        """,
    "medicine": """
        How well it works | How effective is {topic} in trials? | effective efficacy work
        Side effects and risks | Which side effects and risks of {topic} are known? | safe safety risk harm effects
        What guidelines recommend | What do guidelines recommend on {topic}? | guideline recommend
        For whom it is suited and for whom not | For which patients is {topic} suitable or not? | patients suitable
        Alternatives to {topic} | Which alternatives to {topic} are there? | alternative
        What is not known yet | What is uncertain or disputed about {topic}? | disputed uncertain
        """,
    "software": """
        What {topic} can do and what not | Which features and limits does {topic} have? | feature limit
        How fast and reliable {topic} is | Which benchmarks and measurements of {topic} are given? | benchmark fast
        Cost, licence and upkeep of {topic} | What do licence, use and maintenance of {topic} cost? | cost licence price
        Alternatives to {topic} | Which alternatives to {topic} are there? | alternative
        Security and known problems of {topic} | Which security issues and known problems does {topic} have? | security
        """,
    "science": """
        The evidence on {topic} and how it was measured | Which measurements and evidence are there on {topic}? | \
            evidence measured
        Theories and explanations of {topic} | Which theories explain {topic}? | why explain theory cause
        What is disputed about {topic} | What is uncertain or disputed about {topic}? | disputed disagree controversy
        The newest results on {topic} | What are the most recent results on {topic}? | new newest recent latest
        What follows from {topic} in practice | Which applications or consequences does {topic} have? | application use
        How {topic} was discovered | What is the history of {topic}? | history discovered
        """,
    "economy": """
        The facts and figures on {topic} | Which figures are given for {topic}? | figures statistics numbers much many
        What drives {topic} | Which causes and explanations of {topic} are given? | why cause reason drive
        Who gains and who loses by {topic} | Who is affected by {topic}, and how? | affect gain lose
        What comes next for {topic} | What is expected for {topic}? | will expected forecast future outlook next
        How countries compare in {topic} | How does {topic} differ between countries? | countries
        What is disputed about {topic} | What is uncertain or disputed about {topic}? | disputed disagree controversy
        """,
    "place": """
        Size, nature and climate of {topic} | What are the size, nature and climate of {topic}? | large size area
        People and economy of {topic} | What is known about the people and the economy of {topic}? | population people
        History of {topic} | What is the history of {topic}? | history founded
        Problems and plans in {topic} | Which problems and plans are reported for {topic}? | problem plan
        Visiting {topic} | What do visitors find at {topic}? | visit see travel
        """,
    "comparison": """
        Figures side by side | Which figures set {topic} apart? | figures numbers
        Strengths and weaknesses of each | What are the strengths and weaknesses of {topic}? | strength weakness better
        Costs and benefits of each | What are the costs and benefits of {topic}? | cost price benefit
        For whom or for what each is better | For whom or for what is each of {topic} better? | suit purpose
        What they have in common | What do {topic} have in common? | common alike similar
        How they have changed | How have {topic} changed over time? | change
        """,
    "cause": """
        The immediate causes | Which immediate causes are given: {asked}? |
        Deeper, long-term causes | Which long-term causes are given: {asked}? |
        Where explanations disagree | Which explanations are disputed: {asked}? | disputed disagree
        What followed from it | What were the consequences: {asked}? | consequence effect followed
        The figures behind it | Which figures are given: {asked}? | figures
        """,
    "procedure": """
        What I need before I start | What is needed to {act}? | need require
        The steps one by one | Which steps does it take to {act}? | step
        What it costs in time and money | How long does it take and what does it cost to {act}? | cost expensive
        What can go wrong | What can go wrong for those who {act}? | wrong mistake problem
        Other ways to do it | Which other ways are there to {act}? | alternative
        """,
}


def _side(line: str) -> Side:
    label, text, said = (part.strip() for part in line.split("|"))
    return Side(label, text, said)


_SIDES = {kind: [_side(line) for line in table.strip().splitlines()] for kind, table in _TABLES.items()}


def sides(understanding: Understanding, *, company: bool = False) -> list[Side]:
    """The four that fit the question best, ready to be shown; what it asks for itself is offered last."""
    asked = {*words(understanding.question), *stems(understanding.question)}
    all_of_them = _SIDES[_kind(understanding, company=company)]
    stated = [
        side for side in all_of_them if asked & {form for word in side.said.split() for form in (word, stem(word))}
    ]
    chosen = [*(side for side in all_of_them if side not in stated), *stated][:SHOWN]
    about = spoken(understanding)
    return [Side(side.label.replace("{topic}", about), filled(side.text, understanding)) for side in chosen]


def _kind(understanding: Understanding, *, company: bool) -> Kind:
    if understanding.query_class == "comparison":
        return "comparison"
    if understanding.query_class == "cause" and fold(understanding.question).startswith("why"):
        return "cause"
    if act(understanding):
        return "procedure"
    return "general" if understanding.query_class == "change" else field_of(understanding, company=company)


def filled(template: str, understanding: Understanding) -> str:
    return (
        template.replace("{topic}", matter(understanding))
        .replace("{asked}", clause(understanding))
        .replace("{act}", act(understanding) or matter(understanding))
    )
