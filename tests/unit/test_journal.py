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

from openassay.engine.journal import JournalContents, JournalWriter, ProgressPage, Sealer, move_aside, read_journal
from openassay.engine.journal import to_json as line_of
from openassay.engine.recovery import decode_value, encode_value
from openassay.errors import IntegrityError, OpenAssayError, UsageError
from openassay.storage.rows import Seals

KEY = "a key that only these tests have"
TEXT = "The tides in the Bay of Fundy are up to 16.3 metres high. \u2028 Größe."
HASH = hashlib.sha256(TEXT.encode()).hexdigest()
NOTE = "0" * 40
PLAIN = Seals()

KINDS = [pytest.param(Seals(), id="plain"), pytest.param(Seals(KEY), id="keyed"),
         pytest.param(Seals(KEY, encrypt=True), id="encrypted")]  # fmt: skip


def happening(seq: int, kind: str = "notice", parent: int | None = 1, **data: Any) -> dict[str, Any]:
    return {"seq": seq, "run": "r1", "time": "2026-01-01T00:00:00Z", "kind": kind, "stage": "read", "parent": parent,
            "data": data}  # fmt: skip


def moment(step: int, id: str) -> dict[str, Any]:
    return {"id": id, "step": step, "time": "2026-01-01T00:00:00Z", "checkpoint": {"n": step}, "documents": [HASH],
            "notes": [NOTE]}  # fmt: skip


def written(folder: Path, seals: Sealer = PLAIN) -> Path:
    """A run of two checkpoints, the second with a result."""
    book = JournalWriter(folder, "r1", seals)
    book.write_rows({"id": "r1", "question": "How high?"}, {"id": "t1"})
    book.write_events([happening(1, "enter", parent=None), happening(2, text="Ein „Hinweis“ 🙂 \ud800")])
    document = {"hash": HASH, "text": TEXT, "title": "Tides"}
    book.attach([document], [{"name": NOTE, "note": [1, 2.5, None], "documents": [HASH]}])
    book.write_checkpoint(moment(-1, "c1"))
    book.write_calls([{"run": "r1", "cap_micros": 5}, {"run": "r1", "key": "k", "time": "t", "answer": "yes, high"}])
    book.write_events([happening(3)])
    book.write_checkpoint(moment(0, "c2"))
    book.write_result("c2", {"task": "t", "path": "", "writes": [["read", 1]], "documents": [HASH], "notes": []})
    book.write_result("c2", {"task": "u", "path": "", "writes": [["read", 2]], "documents": [], "notes": [NOTE]})
    book.write_events([happening(4)])
    book.write_progress("# How high?\n")
    book.close()
    return folder


@pytest.mark.requirement("L-06", "L-07")
@pytest.mark.parametrize("seals", KINDS)
def test_what_was_written_is_read_again(tmp_path: Path, seals: Seals) -> None:
    kept = read_journal(written(tmp_path / "r1", seals), seals)
    assert [event["seq"] for event in kept.events] == [1, 2, 3, 4]
    assert kept.events[1]["data"]["text"] == "Ein „Hinweis“ 🙂 \ud800"
    assert [event["step"] for event in kept.events[:2]] == ["read-1", "read-1"], "what belongs together has one step"
    assert list(kept.checkpoints) == ["-1", "0"]
    assert [line["task"] for line in kept.results] == ["t", "u"]
    assert kept.documents[HASH]["text"] == TEXT
    assert kept.notes[NOTE] == [1, 2.5, None]
    assert [row.get("key") for row in kept.calls] == [None, "k"]
    assert (kept.run["run"]["question"], kept.thread["thread"], kept.remarks) == ("How high?", {"id": "t1"}, [])


def test_where_storage_is_encrypted_nothing_can_be_read(tmp_path: Path) -> None:
    seals = Seals(KEY, encrypt=True)
    folder = written(tmp_path / "r1", seals)
    everything = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert not any(word in everything for word in (b"How high", b"Fundy", b"Hinweis", b"Tides", b"yes, high"))
    assert not (folder / "progress.md").exists()
    with pytest.raises(IntegrityError, match=r"run\.json is encrypted"):
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
    book.write_rows({}, {})
    monkeypatch.setattr(os, "replace", put)
    monkeypatch.setattr(os, "fsync", synced)
    book.write_events([happening(1)])
    assert done == [], "an event waits for no disk"
    book.write_checkpoint({**moment(3, "c"), "documents": [], "notes": []})
    *first, one, other, last = done
    assert sorted(first) == [
        "sync checkpoint_3.json.sha256.tmp", "sync checkpoint_3.json.tmp", "sync events.jsonl", "sync ledger.jsonl",
        "sync notes.jsonl",
    ]  # fmt: skip
    assert (one, other, last) == (
        "replace checkpoint_3.json.tmp -> checkpoint_3.json",
        "replace checkpoint_3.json.sha256.tmp -> checkpoint_3.json.sha256",
        "sync r1",
    )
    digest = hashlib.sha256((tmp_path / "r1/checkpoint_3.json").read_bytes()).hexdigest()
    assert (tmp_path / "r1/checkpoint_3.json.sha256").read_text() == f"{digest}  checkpoint_3.json\n"


@pytest.mark.slow
@pytest.mark.requirement("L-07")
def test_a_crash_at_any_byte_leaves_a_folder_that_is_read_and_gone_on_with(tmp_path: Path) -> None:
    """Every growing file is cut at every byte after the last checkpoint, as kill -9 leaves it."""
    folder = written(tmp_path / "r1")
    whole = {name: (folder / name).read_bytes() for name in ("events.jsonl", "writes_0.jsonl")}
    mark = whole["events.jsonl"].rindex(b'{"kind": "checkpoint"')
    for name, first in (("events.jsonl", mark), ("writes_0.jsonl", 0)):
        for length in range(first, len(whole[name])):
            (folder / name).write_bytes(whole[name][:length])
            (folder / "checkpoint_7.json.tmp").write_bytes(b'{"id"')
            kept = read_journal(folder, PLAIN)
            assert list(kept.checkpoints) == ["-1", "0"]
            assert bool(kept.remarks) == (not whole[name][:length].endswith(b"\n") and length > 0)
        (folder / name).write_bytes(whole[name])


@pytest.mark.requirement("L-07")
def test_a_checkpoint_that_was_not_finished_gives_way_to_the_one_before(tmp_path: Path) -> None:
    folder = written(tmp_path / "r1")
    book = JournalWriter(folder, "r1", PLAIN, read_journal(folder, PLAIN))
    book.write_rows({"id": "r1"}, {})
    before = (folder / "events.jsonl").read_bytes()
    book.write_checkpoint(moment(1, "c3"))
    book.close()
    (folder / "events.jsonl").write_bytes(before)
    assert list(read_journal(folder, PLAIN).checkpoints) == ["-1", "0", "1"], (
        "whole, though the events do not say so yet"
    )
    (folder / "checkpoint_1.json.sha256").unlink()
    kept = read_journal(folder, PLAIN)
    assert list(kept.checkpoints) == ["-1", "0"]
    assert kept.remarks == ["checkpoint_1.json was not finished and is left out; the run goes on from the one before"]
    again = JournalWriter(folder, "r1", PLAIN, kept)
    again.write_rows({"id": "r1"}, {})
    again.write_checkpoint(moment(1, "c3"))
    again.write_events([happening(4), happening(5)])
    again.close()
    kept = read_journal(folder, PLAIN)
    assert (list(kept.checkpoints), len(kept.events), kept.remarks) == (["-1", "0", "1"], 5, [])
    assert not list(folder.glob("*.tmp"))


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
    ("ledger.jsonl line 2", altered("ledger.jsonl", lambda held: held.replace(b"yes", b"yea"))),
    ("ledger.jsonl", altered("ledger.jsonl", without_line(2))),
    ("writes_0.jsonl line 1", altered("writes_0.jsonl", without_line(1))),
    ("checkpoint_0.json", altered("checkpoint_0.json", lambda held: held.replace(b'"n": 0', b'"n": 9'))),
    ("checkpoint_0.json", another_sum),
    ("checkpoint_-1.json", swapped("checkpoint_-1.json", "checkpoint_0.json")),
    ("checkpoint_0.json.sha256", without("checkpoint_0.json.sha256")),
    ("checkpoint_0.json", without("checkpoint_0.json", "checkpoint_0.json.sha256")),
    ("thread.json", without("thread.json")),
    ("run.json", altered("run.json", lambda held: held.replace(b"How high", b"How deep"))),
    (f"documents/{HASH}.json", altered(f"documents/{HASH}.json", lambda held: held.replace(b"Tides", b"Tidez"))),
    (f"documents/{HASH}.json", without(f"documents/{HASH}.json")),
    ("notes.jsonl", without("notes.jsonl")),
    ("notes.jsonl line 1", altered("notes.jsonl", lambda held: held.replace(b"2.5", b"2.6"))),
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
    held = json.loads((folder / "run.json").read_bytes())
    (folder / "run.json").write_text(json.dumps({**held, "key": Seals(KEY).key_id}))
    with pytest.raises(IntegrityError, match=r"run\.json is not what was written"):
        read_journal(folder, Seals(KEY))


def test_a_row_is_not_put_back_to_an_older_one(tmp_path: Path) -> None:
    folder = tmp_path / "r1"
    book = JournalWriter(folder, "r1", Seals(KEY))
    book.write_rows({"question": "first"}, {})
    older = (folder / "run.json").read_bytes()
    book.write_events([happening(1)])
    book.write_rows({"question": "second"}, {})
    book.write_events([happening(2)])
    book.write_checkpoint({**moment(0, "c"), "documents": [], "notes": []})
    book.close()
    assert read_journal(folder, Seals(KEY)).run["run"]["question"] == "second"
    (folder / "run.json").write_bytes(older)
    with pytest.raises(IntegrityError, match=r"run\.json was put back"):
        read_journal(folder, Seals(KEY))


@pytest.mark.slow
@pytest.mark.requirement("L-07")
def test_no_flipped_bit_goes_unnoticed(tmp_path: Path) -> None:
    """Refused, or harmless: of what is read, only events after the last checkpoint, or results, may be left out."""
    folder = written(tmp_path / "r1")
    whole = read_journal(folder, PLAIN)
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "progress.md")
    chance = random.Random(7)
    refused = 0
    for _ in range(400):
        path = chance.choice(files)
        content = bytearray(before := path.read_bytes())
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        path.write_bytes(content)
        try:
            assert _says_no_more(read_journal(folder, PLAIN), whole)
        except OpenAssayError:
            refused += 1
        path.write_bytes(before)
    assert refused > 380


def _says_no_more(kept: JournalContents, whole: JournalContents) -> bool:
    same = ("run", "thread", "checkpoints", "documents", "notes", "calls")
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
    (tmp_path / "run.json").write_bytes(b"\xff\x00")
    with pytest.raises(IntegrityError, match=r"run\.json is not what was written"):
        read_journal(tmp_path, PLAIN)


def test_a_folder_is_set_aside_under_a_name_of_its_own(tmp_path: Path) -> None:
    names = []
    for _ in range(2):
        names.append(move_aside(written(tmp_path / "r1")).name)
    assert names == ["r1.damaged-1", "r1.damaged-2"]


TEXTS = st.text(st.characters())
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS | st.binary()
STATES = st.recursive(
    SCALARS,
    lambda held: (
        st.lists(held)
        | st.dictionaries(TEXTS | st.integers() | st.sampled_from(["$map", "$send", "seal"]), held)
        | st.sets(st.integers() | st.text())
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
def test_the_page_for_people_tells_of_each_sub_question_once_and_takes_no_orders_from_pages() -> None:
    page = ProgressPage("t1")
    finding = {
        "question": "Q1",
        "relevance": 0.9,
        "span": {"document": HASH, "start": 0, "end": 9, "quote": "![x](http://evil) \x1b[2J<b>" + "long " * 60},
    }
    text = page.format_opening("How high?", datetime(2026, 1, 2, 3, 4, tzinfo=UTC))
    text += page.format_plan({"questions": [{"id": "Q1", "text": "How high?"}]})
    text += page.format_event("spend", "read", {"total_usd": 0.0125})
    text += page.format_findings("0:Q1", [finding] * 7, {HASH: "Tides"})
    assert "openassay resume t1" in text
    assert "Begun on 2026-01-02 at 03:04 UTC" in text
    assert "## Q1: How high?" in text
    assert r"\!\[x\](http://evil) \[2J\<b\>long" in text
    assert "(Tides)" in text
    assert "and 2 more" in text
    assert "$0.0125" in text
    assert max(map(len, text.splitlines())) < 300
    assert (
        page.format_findings("0:Q1", [finding], {})
        == page.format_plan({"questions": [{"id": "Q1", "text": "How high?"}]})
        == ""
    )
    assert "Nothing that answers it" in page.format_findings("0:Q2", [], {})


@pytest.mark.requirement("L-06")
@given(
    st.dictionaries(
        st.text(),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
            max_leaves=12,
        ),
        max_size=4,
    ),
    st.integers(0, 4),
)
def test_what_is_laid_out_for_people_reads_the_same(content: dict[str, Any], levels: int) -> None:
    text = line_of(content, levels)

    assert json.loads(text) == content
    assert levels or "\n" not in text


def test_a_checkpoint_is_laid_out_field_by_field(tmp_path: Path) -> None:
    book = JournalWriter(tmp_path, "r1", PLAIN)
    values = {"plan": {"goal": "x", "questions": [1, 2]}, "findings": [1], "round": 1}
    book.write_checkpoint({"id": "c", "step": 1, "time": "t", "checkpoint": {"v": 1, "channel_values": values}})

    lines = (tmp_path / "checkpoint_1.json").read_text().splitlines()
    assert '   "plan": {"goal": "x", "questions": [1, 2]},' in lines
    assert '   "round": 1' in lines


@pytest.mark.requirement("L-08")
def test_how_to_go_on_is_told_last_whatever_tasks_bring_while_the_run_is_being_stopped() -> None:
    page = ProgressPage("t1")
    told = [
        page.format_event("run", "", {"status": "cancelled"}),
        page.format_findings("search:Q1", [], {}),
        page.format_ending(),
    ]
    assert [bool(text) for text in told] == [False, True, True]
    assert told[-1].rstrip().endswith("`openassay resume t1`")
    assert page.format_ending() == "", "and once"
