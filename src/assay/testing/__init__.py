"""Fakes of the ports, in memory. Each passes the contract tests of the real thing (tests/contract/).

`FakeProvider` is a server of language models over real HTTP, with `ScriptedModel` to think for it.
"""

from assay.testing.faults import FAULTS, Fault
from assay.testing.index import MemoryIndex
from assay.testing.ledger import MemoryLedger
from assay.testing.pages import FakePages
from assay.testing.policies import Always, Once, Script, Share
from assay.testing.provider import FakeProvider, ProviderCall
from assay.testing.reasoner import ScriptedReasoner
from assay.testing.remote import FakeRemote
from assay.testing.script import ScriptedModel
from assay.testing.seen import SeenPrompt
from assay.testing.sources import FakeSource, snapshot
from assay.testing.stores import (
    MemoryCache,
    MemoryDocuments,
    MemoryEvents,
    MemoryLocks,
    MemoryNotes,
    MemoryReviews,
    MemoryThreads,
)
from assay.testing.thinking import FixedThinking, NothingSpent

__all__ = [
    "FAULTS",
    "Always",
    "FakePages",
    "FakeProvider",
    "FakeRemote",
    "FakeSource",
    "Fault",
    "FixedThinking",
    "MemoryCache",
    "MemoryDocuments",
    "MemoryEvents",
    "MemoryIndex",
    "MemoryLedger",
    "MemoryLocks",
    "MemoryNotes",
    "MemoryReviews",
    "MemoryThreads",
    "NothingSpent",
    "Once",
    "ProviderCall",
    "Script",
    "ScriptedModel",
    "ScriptedReasoner",
    "SeenPrompt",
    "Share",
    "snapshot",
]
