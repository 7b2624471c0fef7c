"""The research plan, and what makes one valid."""

from typing import Literal

from pydantic import Field, model_validator

from assay.model.question import Depth
from assay.model.record import Record

QueryType = Literal["web", "academic", "news", "code"]
Style = Literal["academic", "technical", "executive"]

MOST_QUESTIONS, MOST_QUERIES = 7, 15
MOST_USD = 10_000
FEWEST_WORDS, MOST_WORDS = 50, 20_000  # of a report

# Which kinds of source a depth may ask.
TYPES_BY_DEPTH: dict[Depth, tuple[QueryType, ...]] = {
    Depth.QUICK: ("web",),
    Depth.STANDARD: ("web", "academic"),
    Depth.COMPREHENSIVE: ("web", "academic", "news"),
}


class SearchQuery(Record):
    id: str
    text: str = Field(min_length=1)
    question: str
    type: QueryType = "web"
    priority: int = Field(default=1, ge=1, le=5)
    status: Literal["pending", "completed", "failed"] = "pending"


class SubQuestion(Record):
    id: str
    text: str = Field(min_length=1)
    section: str
    topic: str = ""  # what the whole question is about, and when, where the sub-question itself does not say

    @property
    def in_context(self) -> str:
        return f"{self.text} ({self.topic})" if self.topic else self.text


class Plan(Record):
    goal: str
    topic: str = ""  # what it is about and when, in few words: what a person adds is asked with regard to it
    depth: Depth
    constraints: tuple[str, ...] = ()
    deliverable: str = "report"
    questions: tuple[SubQuestion, ...]
    queries: tuple[SearchQuery, ...]
    sections: tuple[str, ...]
    methodology: str
    reasoning: tuple[str, ...] = ()
    confidence: float = Field(ge=0, le=1)
    warnings: tuple[str, ...] = ()
    estimated_complexity: Literal["simple", "moderate", "complex"] = "moderate"
    words: int | None = Field(default=None, ge=1)  # how long the person wants the report; None: as long as it may be
    style: Style | None = None  # what its use asks for; None: as the person or the settings have it
    sources: tuple[str, ...] = ()  # those the run asks, by name
    usd: float | None = Field(default=None, ge=0, le=MOST_USD)  # the most the run may cost
    edited: bool = False  # by a person, who may want fewer sub-questions than a planner must give

    def target(self, words: int) -> int:
        """The words a report may have where `words` is the most."""
        return min(words, self.words or words)

    @model_validator(mode="after")
    def _bounded(self) -> "Plan":
        """3-7 sub-questions and 5-15 queries; a quick answer may do with one of each. Nothing at all to ask is a plan
        too: the run goes on with what it has."""
        if not self.questions and not self.queries:
            return self
        fewest_questions, fewest_queries = (1, 1) if self.depth is Depth.QUICK or self.edited else (3, 5)
        if not fewest_questions <= len(self.questions) <= MOST_QUESTIONS:
            raise ValueError(
                f"a {self.depth} plan has {fewest_questions}-{MOST_QUESTIONS} sub-questions, not {len(self.questions)}"
            )
        if not fewest_queries <= len(self.queries) <= MOST_QUERIES:
            raise ValueError(
                f"a {self.depth} plan has {fewest_queries}-{MOST_QUERIES} queries, not {len(self.queries)}"
            )
        known = {question.id for question in self.questions}
        if len(known) < len(self.questions) or len({query.id for query in self.queries}) < len(self.queries):
            raise ValueError("two sub-questions or two queries have the same id")
        if strays := {query.question for query in self.queries} - known:
            raise ValueError(f"queries for unknown sub-questions: {sorted(strays)}")
        if missing := {question.section for question in self.questions} - set(self.sections):
            raise ValueError(f"sub-questions for unknown sections: {sorted(missing)}")
        return self
