"""A copy of each run in files that people and other machines can read, from which alone it can be restored.

{data_dir}/checkpoints/{run}/
    run.json thread.json     what is needed to have the run and its thread again
    events.jsonl             everything that happened; each line's seal is over the line before it, too
    checkpoint_{step}.json   the state after a step, with checkpoint_{step}.json.sha256 as `sha256sum -c` reads it
    writes_{step}.jsonl      results of tasks that have ended since; only those after the last are still needed
    ledger.jsonl             every call that was paid for, each time it changed
    documents/ notes.jsonl   what the state refers to
    progress.md              for people; not where storage is encrypted

lines      a line or a file with its seal        files     what a crash leaves whole
chain      lines that hang on each other
book       a folder that is being written        reading   one that is checked and read
progress   the page for people
"""

from assay.journal.book import Book, discard, exchange, run_of, set_aside
from assay.journal.lines import Sealing
from assay.journal.progress import Progress
from assay.journal.reading import Kept, read

__all__ = ["Book", "Kept", "Progress", "Sealing", "discard", "exchange", "read", "run_of", "set_aside"]
