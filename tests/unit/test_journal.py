"""The folder of a run: what stands in it, what a crash may do to it, and what is refused."""

import hashlib
import json
import math
import os
import random
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.types import Send

from openassay.engine.journal import JournalContents, JournalWriter, ProgressPage, RunRows, move_aside, read_journal
from openassay.engine.run_journal import decode_value, encode_value
from openassay.errors import IntegrityError, OpenAssayError, UsageError
from openassay.models.event import Event, EventKind, RunStatus
from openassay.models.evidence import Document
from openassay.models.thread import Run, Thread
from openassay.storage.sealed_rows import Seals

KEY = "a key that only these tests have"
TEXT = "The tides in the Bay of Fundy are up to 16.3 metres high. \u2028 Größe."
HASH = hashlib.sha256(TEXT.encode()).hexdigest()
NOTE = "0" * 40
PLAIN = Seals()
NOON = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
RUN = Run(id="r1", thread="t1", question="How high?", started=NOON)

KINDS = [pytest.param(Seals(), id="plain"), pytest.param(Seals(KEY), id="keyed"),
         pytest.param(Seals(KEY, encrypt=True), id="encrypted")]  # fmt: skip


def happening(seq: int, kind: EventKind = "notice", parent: int | None = 1, **data: Any) -> Event:
    return Event(seq=seq, run="r1", time=NOON, kind=kind, stage="read", parent=parent, data=data)


def moment(step: int, id: str) -> dict[str, Any]:
    return {"id": id, "step": step, "checkpoint": {"n": step}}


def written(folder: Path, seals: Seals = PLAIN) -> Path:
    """A run of two checkpoints, the second with a result."""
    book = JournalWriter(folder, "r1", seals)
    book.write_rows(
        RunRows(run=RUN, thread=Thread(id="t1", title="How high?", created=NOON, updated=NOON), branch=None)
    )
    book.write_event(happening(1, "enter", parent=None))
    book.write_event(happening(2, text="Ein „Hinweis“ 🙂 \ud800"))
    document = Document(hash=HASH, text=TEXT, title="Tides", url="https://tides.example", fetched=NOON)
    book.attach([document], {NOTE: [1, 2.5, None]})
    book.write_checkpoint(moment(-1, "c1"))
    book.write_calls([{"run": "r1", "cap_micros": 5}, {"run": "r1", "key": "k", "time": "t", "answer": "yes, high"}])
    book.write_result("c1", {"task": "s", "path": "", "writes": [["read", 0]]})
    book.write_event(happening(4))
    book.write_event(happening(3))
    book.write_checkpoint(moment(0, "c2"))
    book.write_result("c2", {"task": "t", "path": "", "writes": [["read", 1]]})
    book.write_result("c2", {"task": "u", "path": "", "writes": [["read", 2]]})
    book.write_event(happening(5))
    book.close()
    return folder


@pytest.mark.requirement("L-06", "L-07")
@pytest.mark.parametrize("seals", KINDS)
def test_what_was_written_is_read_again(tmp_path: Path, seals: Seals) -> None:
    kept = read_journal(written(tmp_path / "r1", seals), seals)
    assert [event.seq for event in kept.events] == [1, 2, 3, 4, 5], "in order, whatever the order they came in"
    assert kept.events[1].data["text"] == "Ein „Hinweis“ 🙂 \ud800"
    assert list(kept.checkpoints) == ["-1", "0"]
    assert [line["task"] for line in kept.results] == ["t", "u"]
    assert kept.documents[HASH].text == TEXT
    assert kept.notes[NOTE] == [1, 2.5, None]
    assert [row.get("key") for row in kept.calls] == [None, "k"]
    assert kept.rows is not None
    assert (kept.rows.run, kept.rows.thread.id, kept.remarks) == (RUN, "t1", [])


def test_where_storage_is_encrypted_nothing_can_be_read(tmp_path: Path) -> None:
    seals = Seals(KEY, encrypt=True)
    folder = written(tmp_path / "r1", seals)
    everything = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert not any(word in everything for word in (b"How high", b"Fundy", b"Hinweis", b"Tides", b"yes, high"))
    with pytest.raises(IntegrityError, match=r"records\.jsonl is encrypted"):
        read_journal(folder, Seals(KEY))
    shutil.rmtree(folder)
    with pytest.raises(IntegrityError, match="not encrypted"):
        read_journal(written(folder, Seals(KEY)), seals)


@pytest.mark.requirement("L-07")
def test_a_checkpoint_is_written_beside_synced_and_put_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    replace, fsync = os.replace, os.fsync

    def name(descriptor: int) -> str:
        return Path(os.readlink(f"/proc/self/fd/{descriptor}")).name

    def put(source: Any, target: Any) -> None:
        done.append(f"replace {Path(source).name} -> {Path(target).name}")
        replace(source, target)

    def synced(descriptor: int) -> None:
        done.append(f"sync {name(descriptor)}")
        fsync(descriptor)

    book = JournalWriter(tmp_path / "r1", "r1", PLAIN)
    monkeypatch.setattr(os, "replace", put)
    monkeypatch.setattr(os, "fsync", synced)
    book.write_event(happening(1))
    assert done == [], "an event waits for no disk"
    book.write_checkpoint(moment(3, "c"))
    assert done == [
        "sync records.jsonl", "sync events.jsonl",
        "sync checkpoint_3.json.sha256.tmp", "replace checkpoint_3.json.sha256.tmp -> checkpoint_3.json.sha256",
        "sync checkpoint_3.json.tmp", "replace checkpoint_3.json.tmp -> checkpoint_3.json",
        "sync r1",
    ]  # fmt: skip
    book.close()
    digest = hashlib.sha256((tmp_path / "r1/checkpoint_3.json").read_bytes()).hexdigest()
    assert (tmp_path / "r1/checkpoint_3.json.sha256").read_text() == f"{digest}  checkpoint_3.json\n"


@pytest.mark.slow
@pytest.mark.requirement("L-07")
def test_a_crash_at_any_byte_leaves_a_folder_that_is_read_and_gone_on_with(tmp_path: Path) -> None:
    """Every growing file is cut at every byte after the last checkpoint, as kill -9 leaves it."""
    folder = written(tmp_path / "r1")
    whole = {name: (folder / name).read_bytes() for name in ("events.jsonl", "records.jsonl")}
    events = whole["events.jsonl"].splitlines(keepends=True)
    mark = whole["records.jsonl"].rindex(b'{"kind": "checkpoint"')
    after = whole["records.jsonl"].index(b"\n", mark) + 1
    for name, first in (("events.jsonl", len(b"".join(events[:4]))), ("records.jsonl", after)):
        for length in range(first, len(whole[name])):
            (folder / name).write_bytes(whole[name][:length])
            (folder / "checkpoint_7.json.tmp").write_bytes(b'{"id"')
            kept = read_journal(folder, PLAIN)
            assert list(kept.checkpoints) == ["-1", "0"]
            assert bool(kept.remarks) == (not whole[name][:length].endswith(b"\n"))
        (folder / name).write_bytes(whole[name])


@pytest.mark.requirement("L-07")
def test_a_checkpoint_that_was_not_finished_gives_way_to_the_one_before(tmp_path: Path) -> None:
    folder = written(tmp_path / "r1")
    book = JournalWriter(folder, "r1", PLAIN, read_journal(folder, PLAIN))
    book.write_checkpoint(moment(1, "c3"))
    book.close()
    (folder / "checkpoint_1.json").rename(folder / "checkpoint_1.json.tmp")
    kept = read_journal(folder, PLAIN)
    assert list(kept.checkpoints) == ["-1", "0"]
    assert [result["task"] for result in kept.results] == ["t", "u"]
    assert kept.remarks == ["checkpoint_1.json was not finished and is left out; the run goes on from the one before"]
    again = JournalWriter(folder, "r1", PLAIN, kept)
    again.write_checkpoint(moment(1, "c3"))
    again.write_event(happening(6))
    again.close()
    kept = read_journal(folder, PLAIN)
    assert (list(kept.checkpoints), len(kept.events), kept.remarks) == (["-1", "0", "1"], 6, [])
    assert not list(folder.glob("*.tmp"))


@pytest.mark.requirement("L-07")
def test_events_after_one_that_a_crash_has_lost_are_left_out(tmp_path: Path) -> None:
    book = JournalWriter(tmp_path / "r1", "r1", PLAIN)
    for seq in (1, 3):
        book.write_event(happening(seq))
    book.close()
    kept = read_journal(tmp_path / "r1", PLAIN)
    assert ([event.seq for event in kept.events], kept.remarks) == (
        [1], ["events.jsonl lacks event 2; those after it are left out"],
    )  # fmt: skip
    book = JournalWriter(tmp_path / "r1", "r1", PLAIN, kept)
    for seq in (2, 3):
        book.write_event(happening(seq))
    book.close()
    kept = read_journal(tmp_path / "r1", PLAIN)
    assert ([event.seq for event in kept.events], kept.remarks) == ([1, 2, 3], [])


def altered(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def alter(folder: Path) -> None:
        (folder / name).write_bytes(change((folder / name).read_bytes()))

    return alter


def swapped(one: str, other: str) -> Callable[[Path], None]:
    def swap(folder: Path) -> None:
        first, second = (folder / name for name in (one, other))
        kept = first.read_bytes()
        first.write_bytes(second.read_bytes())
        second.write_bytes(kept)

    return swap


def without_line(number: int) -> Callable[[bytes], bytes]:
    return lambda content: b"".join(
        line for at, line in enumerate(content.splitlines(keepends=True), 1) if at != number
    )


def another_sum(folder: Path) -> None:
    """Somebody edits a checkpoint and knows about the file beside it."""
    path = folder / "checkpoint_0.json"
    path.write_bytes(path.read_bytes().replace(b'"n": 0', b'"n": 9'))
    path.with_name("checkpoint_0.json.sha256").write_text(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
    )


def without(*names: str) -> Callable[[Path], None]:
    def remove(folder: Path) -> None:
        for name in names:
            (folder / name).unlink()

    return remove


DEEDS = [
    ("events.jsonl line 2", altered("events.jsonl", lambda held: held.replace(b"Hinweis", b"Hinweiz"))),
    ("events.jsonl line 2", altered("events.jsonl", without_line(2))),
    ("events.jsonl", altered("events.jsonl", lambda held: b"".join(held.splitlines(keepends=True)[:3]))),
    ("events.jsonl", without("events.jsonl")),
    ("records.jsonl line 1", swapped("events.jsonl", "records.jsonl")),
    ("records.jsonl line 7", altered("records.jsonl", lambda held: held.replace(b"yes", b"yea"))),
    ("records.jsonl line 2", altered("records.jsonl", lambda held: held.replace(b"How high", b"How deep", 1))),
    ("records.jsonl line 3", altered("records.jsonl", lambda held: held.replace(b"Tides", b"Tidez"))),
    ("records.jsonl line 4", altered("records.jsonl", lambda held: held.replace(b"2.5", b"2.6"))),
    ("records.jsonl line 8", altered("records.jsonl", lambda held: held.replace(b'["read", 0]', b'["read", 7]'))),
    ("records.jsonl line 10", altered("records.jsonl", without_line(10))),
    ("records.jsonl line 11", altered("records.jsonl", lambda held: held[:-1] + b"\x0b")),
    ("records.jsonl", altered("records.jsonl", lambda held: b"".join(held.splitlines(keepends=True)[:7]))),
    ("checkpoint_-1.json", altered("checkpoint_-1.json", lambda held: held.replace(b'"n": -1', b'"n": -9'))),
    ("checkpoint_0.json", altered("checkpoint_0.json", lambda held: held.replace(b'"n": 0', b'"n": 9'))),
    ("checkpoint_0.json", another_sum),
    ("checkpoint_-1.json", swapped("checkpoint_-1.json", "checkpoint_0.json")),
    ("checkpoint_0.json.sha256", without("checkpoint_0.json.sha256")),
    ("checkpoint_0.json.sha256", altered("checkpoint_0.json.sha256", lambda held: held.upper())),
    ("checkpoint_0.json", without("checkpoint_0.json", "checkpoint_0.json.sha256")),
]


@pytest.mark.requirement("L-07")
@pytest.mark.parametrize(("place", "deed"), DEEDS)
def test_what_was_changed_is_refused_by_name(tmp_path: Path, place: str, deed: Callable[[Path], None]) -> None:
    for seals in (PLAIN, Seals(KEY)):
        folder = written(tmp_path / seals.key_id / "r1", seals)
        deed(folder)
        with pytest.raises(IntegrityError) as refused:
            read_journal(folder, seals)
        assert place in refused.value.message
        assert refused.value.help


def test_with_a_key_nobody_else_can_make_a_seal(tmp_path: Path) -> None:
    folder = written(tmp_path / "r1", Seals(KEY))
    with pytest.raises(IntegrityError, match="another key") as refused:
        read_journal(folder, Seals("another key, of some length"))
    assert "OPENASSAY_STORAGE_KEY" in refused.value.help
    shutil.rmtree(folder)
    with pytest.raises(IntegrityError, match="another key"):
        read_journal(written(folder), Seals(KEY))
    path = folder / "records.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"key": ""', f'"key": "{Seals(KEY).key_id}"'.encode()))
    with pytest.raises(IntegrityError, match=r"records\.jsonl line 1 is not what was written"):
        read_journal(folder, Seals(KEY))


@pytest.mark.requirement("L-07")
def test_a_journal_of_another_version_is_refused_in_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "r1"
    folder.mkdir()
    (folder / "run.json").write_text('{"format": 1}')
    with pytest.raises(IntegrityError, match="the journal is of format 1; this version reads 2"):
        read_journal(folder, PLAIN)
    path = written(tmp_path / "r2") / "records.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"format": 2', b'"format": 3'))
    with pytest.raises(IntegrityError, match="of format 3; this version reads 2"):
        read_journal(tmp_path / "r2", PLAIN)


@pytest.mark.slow
@pytest.mark.requirement("L-07")
def test_no_flipped_bit_goes_unnoticed(tmp_path: Path) -> None:
    """In whatever file, and however early it was written."""
    folder = written(tmp_path / "r1")
    whole = read_journal(folder, PLAIN)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    chance = random.Random(7)
    refused = 0
    for _ in range(520):
        path = chance.choice(files)
        content = bytearray(before := path.read_bytes())
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        path.write_bytes(content)
        try:
            assert _says_no_more(read_journal(folder, PLAIN), whole)
        except OpenAssayError:
            refused += 1
        path.write_bytes(before)
    assert refused == 520


def _says_no_more(kept: JournalContents, whole: JournalContents) -> bool:
    same = ("rows", "checkpoints", "documents", "notes", "calls")
    return (
        all(getattr(kept, name) == getattr(whole, name) for name in same)
        and kept.events == whole.events[: len(kept.events)]
        and kept.results == whole.results[: len(kept.results)]
    )


def test_a_folder_that_is_no_journal_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no folder"):
        read_journal(tmp_path / "nowhere", PLAIN)
    with pytest.raises(UsageError, match="not the journal of a run"):
        read_journal(tmp_path, PLAIN)
    (tmp_path / "records.jsonl").write_bytes(b"\xff\x00")
    with pytest.raises(IntegrityError, match=r"records\.jsonl is not what was written"):
        read_journal(tmp_path, PLAIN)


def test_a_folder_is_set_aside_under_a_name_of_its_own(tmp_path: Path) -> None:
    names = []
    for _ in range(2):
        names.append(move_aside(written(tmp_path / "r1")).name)
    assert names == ["r1.damaged-1", "r1.damaged-2"]


NUMBERS = st.integers(-(2**63), 2**63 - 1)
SCALARS = st.none() | st.booleans() | NUMBERS | st.floats(allow_nan=False) | st.text() | st.binary()
STATES = st.recursive(
    SCALARS,
    lambda held: (
        st.lists(held)
        | st.dictionaries(st.text() | NUMBERS | st.sampled_from(["$packed", "$send", "seal"]), held)
        | st.sets(NUMBERS | st.text())
        | st.builds(Send, st.text(), held)
    ),
    max_leaves=12,
)


@pytest.mark.slow
@pytest.mark.requirement("L-07")
@given(STATES)
def test_a_state_is_the_same_after_it_was_json(state: Any) -> None:
    assert decode_value(json.loads(json.dumps(encode_value(state)))) == state


def test_a_state_may_hold_what_json_has_no_word_for() -> None:
    assert math.isnan(decode_value(json.loads(json.dumps(encode_value(math.nan), allow_nan=False))))
    assert decode_value(encode_value((1, [2], {"a": (3,)}))) == [1, [2], {"a": [3]}]
    with pytest.raises(TypeError, match="object"):
        encode_value(object())


@pytest.mark.requirement("L-08")
def test_the_page_for_people_tells_of_each_sub_question_once_and_takes_no_orders_from_pages(tmp_path: Path) -> None:
    path = tmp_path / "progress.md"
    plan = {"questions": [{"id": "Q1", "text": "How high?"}]}
    finding = {
        "question": "Q1",
        "relevance": 0.9,
        "span": {"document": HASH, "start": 0, "end": 9, "quote": "![x](http://evil) \x1b[2J<b>" + "long " * 60},
    }

    def fill(page: ProgressPage) -> None:
        page.add_opening(
            Run(id="r1", thread="t1", question="How high?", started=datetime(2026, 1, 2, 3, 4, tzinfo=UTC))
        )
        page.add_plan(plan)
        page.add_event(happening(1, "spend", total_usd=0.0125))
        page.add_findings("0:Q1", [finding] * 7, {HASH: "Tides"})

    fill(ProgressPage(path, "t1"))
    text = path.read_text(encoding="utf-8")
    assert "openassay resume t1" in text
    assert "Begun on 2026-01-02 at 03:04 UTC" in text
    assert "## Q1: How high?" in text
    assert r"\!\[x\](http://evil) \[2J\<b\>long" in text
    assert "(Tides)" in text
    assert "and 2 more" in text
    assert "$0.0125" in text
    assert max(map(len, text.splitlines())) < 300
    page = ProgressPage(path, "t1")
    fill(page)
    assert path.read_text(encoding="utf-8") == text, "whoever goes on says nothing again"
    page.add_findings("0:Q2", [], {})
    page.add_end(RunStatus.CANCELLED)
    assert "Nothing that answers it" in path.read_text(encoding="utf-8")
    assert path.read_text(encoding="utf-8").endswith("`openassay resume t1`\n")
    fill(ProgressPage(None, "t1"))
