"""The seams of Assay: what the pipeline needs from the world.

    Source          where hits come from             search/*        registered as entry points `assay.sources`
    Remote          a source over the network        search/*
    Pages           an address -> Document           harvest/
    Cache           what was asked or read before    storage/
    Signals         news between processes           storage/
    Rates           how often something may be done  storage/
    FileReader      a file on disk -> Document       harvest/
    PassageIndex    search over passages, by words and by meaning  storage/
    PassageRanker   the passages that answer best    search/
    DocumentStore   snapshots by content hash        storage/
    Notes           what the state of a thread refers to  storage/
    ThreadStore     threads and their runs           storage/
    RunLocks        one worker a thread              storage/
    Dispatch        who takes up runs in line        server/ worker/
    ReviewStore     questions put to people          storage/
    Memory          what is remembered of a person   memory/
    Companies       a name, ticker or description -> a company  companies/
    EventLog        what happened, in order          storage/
    Integrity       whether what is stored was written so  storage/
    Embedder        text -> vectors                  embedding/
    Entailment      a statement and its evidence -> scores  embedding/
    SupportScorer   does a quote support a sentence  trust/
    LanguageModel   a prompt -> an answer            llm/
    Ledger          every paid call, before it is made storage/
    Account         what one run has spent           llm/
    Reasoner        all thinking                     reasoning/      (reasoning/protocol.py)

`bootstrap.py` and `choosing.py` alone choose implementations; `testing/` has a fake of each that passes
the same contract tests.
"""

from assay.ports.kept import DocumentStore, EventLog, Integrity, Memory, Notes, ReviewStore, ThreadStore
from assay.ports.library import (
    BarePassage,
    FileReader,
    FileStamp,
    Folder,
    Holdings,
    IndexedFile,
    IndexedPassage,
    PassageIndex,
    PassageRanker,
)
from assay.ports.shared import Bucket, Cache, Rates, Signals, Taken
from assay.ports.sources import (
    Answer,
    Assessed,
    Choice,
    Choose,
    Companies,
    Indexed,
    Page,
    Pages,
    Prepared,
    Purse,
    Remote,
    Source,
)
from assay.ports.thinking import (
    Account,
    Embedder,
    Emit,
    Entailment,
    LanguageModel,
    Ledger,
    OnText,
    Stream,
    SupportScorer,
)
from assay.ports.work import Dispatch, Lease, RunLocks

__all__ = [
    "Account",
    "Answer",
    "Assessed",
    "BarePassage",
    "Bucket",
    "Cache",
    "Choice",
    "Choose",
    "Companies",
    "Dispatch",
    "DocumentStore",
    "Embedder",
    "Emit",
    "Entailment",
    "EventLog",
    "FileReader",
    "FileStamp",
    "Folder",
    "Holdings",
    "Indexed",
    "IndexedFile",
    "IndexedPassage",
    "Integrity",
    "LanguageModel",
    "Lease",
    "Ledger",
    "Memory",
    "Notes",
    "OnText",
    "Page",
    "Pages",
    "PassageIndex",
    "PassageRanker",
    "Prepared",
    "Purse",
    "Rates",
    "Remote",
    "ReviewStore",
    "RunLocks",
    "Signals",
    "Source",
    "Stream",
    "SupportScorer",
    "Taken",
    "ThreadStore",
]
