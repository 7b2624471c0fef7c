"""What a caller may ask for with a question. Documents are named by the ids of uploads: no path of the server's disk
comes in from outside."""

from typing import Annotated

from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from assay.model.plan import FEWEST_WORDS, MOST_USD, MOST_WORDS, Style
from assay.model.question import Depth
from assay.model.thread import Options
from assay.server.access import Principal
from assay.server.bodies import Body, Id, Number, Text, Truth, Whole
from assay.server.service import Service

LONGEST_CONTEXT = 20_000  # characters
MOST_DOMAINS, MOST_DOCUMENTS = 20, 100
EXAMPLE: JsonDict = {"goal": "How did Tesla's deliveries change over 2023?", "depth": "quick"}

Words = Annotated[Whole, Field(ge=FEWEST_WORDS, le=MOST_WORDS)]
Usd = Annotated[Number, Field(ge=0, le=MOST_USD, allow_inf_nan=False)]
Name = Annotated[Text, Field(min_length=1, max_length=200)]
Documents = Annotated[tuple[Id, ...], Field(max_length=MOST_DOCUMENTS, description="Ids of documents you uploaded.")]


class Wishes(Body):
    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

    goal: Text = Field(description="The question, of at most 2,000 characters.")
    depth: Depth | None = None
    style: Style | None = None
    words: Words | None = None
    source: Name | None = Field(default=None, description="Where to search; several with commas between them.")
    web: Truth = Field(default=False, description="Search the web beside the documents.")
    model: Name | None = None
    usd: Usd | None = Field(default=None, description="The most it may cost.")
    context: Annotated[Text, Field(max_length=LONGEST_CONTEXT)] = ""
    domains: Annotated[tuple[Name, ...], Field(max_length=MOST_DOMAINS)] = ()
    documents: Documents = ()

    async def options(self, service: Service, caller: Principal) -> Options:
        """NotFoundError for a document that is not the caller's."""
        settings = service.settings
        return Options(
            depth=self.depth or settings.depth, user=caller.user, source=self.source or settings.source, web=self.web,
            style=self.style, words=self.words, model=self.model, usd=self.usd, context=self.context,
            domains=self.domains, docs=await given(service, caller, self.documents),
        )  # fmt: skip


async def given(service: Service, caller: Principal, documents: tuple[str, ...]) -> tuple[str, ...]:
    """What a run is told of documents: their names, or NotFoundError for another's."""
    return tuple(map(str, await service.premises.uploads.paths(caller.user, documents))) if documents else ()
