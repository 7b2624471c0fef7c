"""A bundle of evidence: the same bytes for the same run, and refused as soon as one of them is another."""

import io
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from openassay.cli.evidence import Verification, verify_bundle
from openassay.errors import EvidenceError, OpenAssayError, UsageError
from openassay.export.bundles import (
    KEY_FILE,
    Manifest,
    build_members,
    compute_fingerprint,
    digest_content,
    format_sums,
    load_key,
    pack_members,
    resolve_fingerprint,
    sign_digest,
    to_canonical_json,
)
from openassay.models.evidence import Document, Mark, Verdict
from openassay.models.report import (
    Coverage,
    KeyFigure,
    Metadata,
    Provenance,
    ReportClaim,
    ReportData,
    ReportSpan,
    ReportStatus,
    Section,
    Sentence,
    ShortAnswer,
    SourceCard,
)
from openassay.testing import make_document

pytestmark = pytest.mark.requirement("X-04")

SURVEY = make_document(
    "Lake Marrow covered 412 square kilometres in 2019.", title="Survey", url="https://survey.example/a"
)
GAZETTE = make_document(
    "Née 1900: Lake Marrow covered 412 square kilometres.", title="Gazette", url="https://gazette.example/b"
)
TEXT = "Lake Marrow covered 412 square kilometres."


def span(source: str, document: Document, quote: str) -> ReportSpan:
    start = document.text.index(quote)
    return ReportSpan(source=source, document=document.hash, start=start, end=start + len(quote), quote=quote)


def card(id: str, document: Document, group: str) -> SourceCard:
    return SourceCard(
        id=id, title=document.title, url=document.url, document=document.hash, group=group, why_used="C1", kind="web"
    )


def small(**changes: Any) -> ReportData:
    quotes = (span("S1", SURVEY, "Lake Marrow covered 412 square kilometres in 2019"), span("S2", GAZETTE, TEXT))
    bound: dict[str, Any] = {"claims": ("C1",), "citations": ("S1", "S2"), "mark": Mark.CORROBORATED}
    return ReportData.model_validate(
        {
            "question": "How large is Lake Marrow?", "title": "Lake Marrow", "status": ReportStatus.COMPLETE,
            "answers": (ShortAnswer(text="412 square kilometres", **bound),),
            "sections": (
                Section(title="Size", sentences=(Sentence(text=TEXT, kind="fact", **bound),
                                                 Sentence(text="Two sources agree.", kind="frame"))),
            ),
            "figures": (KeyFigure(what="area", value="412 square kilometres", when="2019", **bound),),
            "claims": (
                ReportClaim(id="C1", text=TEXT, verdict=Verdict.SUPPORTED, confidence=0.9, mark=bound["mark"],
                            spans=quotes),
            ),
            "sources": (card("S1", SURVEY, "G1"), card("S2", GAZETTE, "G2")),
            "coverage": Coverage(checked=1, total=1),
            "metadata": Metadata(settings="abc", version="0.1.0", finished="2026-01-01T00:00:00+00:00"),
            "provenance": Provenance(question="How large is Lake Marrow?", thread="t1", run="r1"),
            **changes,
        }
    )  # fmt: skip


def members(report: ReportData | None = None, key: Ed25519PrivateKey | None = None) -> dict[str, bytes]:
    return build_members(report or small(), [SURVEY, GAZETTE], key)


def resealed(files: Mapping[str, bytes], key: Ed25519PrivateKey | None = None) -> dict[str, bytes]:
    """As somebody would who changes a member and everything that tells of it."""
    kept = {name: content for name, content in files.items() if name not in ("manifest.json", "SHA256SUMS")}
    kept["SHA256SUMS"] = format_sums({name: digest_content(content).sha256 for name, content in kept.items()})
    manifest = Manifest.model_validate_json(files["manifest.json"])
    listed = {name: digest_content(content) for name, content in kept.items()}
    bare = manifest.model_copy(update={"members": listed, "signature": None})
    signed = sign_digest(bare.compute_digest(), key) if key else None
    sealed = bare.model_copy(update={"digest": bare.compute_digest(), "signature": signed})
    return kept | {"manifest.json": to_canonical_json(sealed.plain())}


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Ed25519PrivateKey:
    return load_key(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def good(key: Ed25519PrivateKey) -> bytes:
    return b"".join(pack_members(members(key=key)))


@pytest.fixture
def check(tmp_path: Path) -> Callable[..., Verification]:
    def check(content: bytes, *, key: str | None = None) -> Verification:
        path = tmp_path / "x.openassay"
        path.write_bytes(content)
        return verify_bundle(path, key)

    return check


def test_a_good_bundle_holds(good: bytes, check: Callable[..., Verification]) -> None:
    found = check(good)
    assert not found.refused, found.reason
    assert {row.state for row in found.rows} == {"ok"}
    assert {row.name: row.checked for row in found.rows if row.name in ("spans", "statements", "figures")} == {
        "spans": 2, "statements": 1, "figures": 3,
    }  # fmt: skip


def test_the_same_run_gives_the_same_bytes_and_any_unzip_reads_them(good: bytes, key: Ed25519PrivateKey) -> None:
    assert b"".join(pack_members(members(key=key))) == good
    with zipfile.ZipFile(io.BytesIO(good)) as zip:
        assert zip.testzip() is None
        assert zip.namelist() == sorted(zip.namelist())
        assert zip.read(f"snapshots/{GAZETTE.hash}.txt").decode() == GAZETTE.text
        assert json.loads(zip.read("manifest.json"))["settings"] == "abc"


def test_it_is_checked_by_hand_with_sha256sum(good: bytes, tmp_path: Path) -> None:
    if shutil.which("sha256sum") is None:
        pytest.skip("there is no sha256sum here")
    with zipfile.ZipFile(io.BytesIO(good)) as zip:
        zip.extractall(tmp_path)
    done = subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=tmp_path, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(b": OK") == len(members()) - 2


@pytest.mark.slow
def test_to_verify_it_nothing_is_read_but_the_file(good: bytes, tmp_path: Path) -> None:
    """With settings that are wrong, in a folder that is empty: what is imported and opened are code and the bundle."""
    (tmp_path / "x.openassay").write_bytes(good)
    (tmp_path / "config.yaml").write_text("no: such: setting", encoding="utf-8")
    env = {**os.environ, "OPENASSAY_DATA_DIR": "/nowhere", "OPENASSAY_CONFIG": "config.yaml", "OPENASSAY_NONSENSE": "1"}
    command = [sys.executable, "-m", "openassay", "verify", "x.openassay", "--json"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ok"] is True
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.yaml", "x.openassay"]


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_with_any_one_byte_changed_it_is_refused(part: int, key: Ed25519PrivateKey, tmp_path: Path) -> None:
    """Every one of them, of a bundle whose copies for people are short."""
    short = resealed(members() | {"report.html": b"<p>412</p>\n", "report.md": b"412\n"}, key)
    whole = b"".join(pack_members(short))
    path = tmp_path / "x.openassay"
    path.write_bytes(whole)
    held = []
    with path.open("r+b", buffering=0) as file:
        for at in range(part, len(whole), 4):
            byte = whole[at]
            file.seek(at)
            file.write(bytes([byte ^ (1 << at % 8)]))
            if not verify_bundle(path).refused:
                held.append(at)
            file.seek(at)
            file.write(bytes([byte]))
    assert held == []
    assert not verify_bundle(path).refused


def test_what_was_changed_is_named(good: bytes, check: Callable[..., Verification]) -> None:
    for name, content in members().items():
        if name in ("manifest.json", "SHA256SUMS", "README.txt"):
            continue
        at = good.index(content) + len(content) // 2
        found = check(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        assert any(name in problem for row in found.rows for problem in row.problems), name


@pytest.mark.slow
@given(data=st.data())
def test_cut_off_lengthened_or_shuffled_it_is_refused_without_a_traceback(
    data: st.DataObject, tmp_path_factory: Any
) -> None:
    whole = b"".join(pack_members(members()))
    at = data.draw(st.integers(0, len(whole) - 1))
    more = data.draw(st.binary(min_size=1, max_size=64))
    kind = data.draw(st.sampled_from(["cut", "behind", "before", "within", "swap"]))
    spoiled = {
        "cut": whole[:at], "behind": whole + more, "before": more + whole, "within": whole[:at] + more + whole[at:],
        "swap": whole[at:] + whole[:at] if at else b"",
    }[kind]  # fmt: skip
    path = tmp_path_factory.getbasetemp() / "spoiled.openassay"
    path.write_bytes(spoiled)
    assert verify_bundle(path).refused


def test_noise_is_refused(check: Callable[..., Verification]) -> None:
    noise = random.Random(7)
    for size in (0, 1, 21, 22, 23, 5000):
        assert check(noise.randbytes(size)).refused
    assert check(struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 0, 0, 0, 0, 0)).refused  # an empty zip


def zipped(files: list[tuple[str, bytes]], method: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as zip:
        for name, content in files:
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.external_attr, info.compress_type = 0o100644 << 16, method
            zip.writestr(info, content)
    return file.getvalue()


def test_the_library_writes_the_same_zip(good: bytes, key: Ed25519PrivateKey) -> None:
    """So the tests below change what they say they change."""
    assert zipped(sorted(members(key=key).items())) == good


@pytest.mark.parametrize(
    ("name", "said"),
    [("../../outside.txt", "leads out"), ("/etc/passwd", "leads out"), ("C:\\x.txt", "leads out"),
     ("snapshots/../x", "leads out"), ("a\\..\\b", "leads out"), ("notes.txt", "no part"),
     ("snapshots/x.txt", "no part"), ("Report.json", "no part"), ("snapshots/", "no part")],
)  # fmt: skip
def test_other_names_are_refused(name: str, said: str, check: Callable[..., Verification]) -> None:
    assert said in check(zipped(sorted([*members().items(), (name, b"x")]))).reason


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_stands_twice_and_another_order_are_refused(check: Callable[..., Verification]) -> None:
    files = sorted(members().items())
    assert "twice" in check(zipped(sorted([*files, ("report.json", b"{}")]))).reason
    assert "order" in check(zipped(files[::-1])).reason
    swapped = dict(files) | {"report.md": dict(files)["report.html"], "report.html": dict(files)["report.md"]}
    assert "report.html was changed" in check(zipped(sorted(swapped.items()))).reason


def test_a_link_a_comment_and_a_password_are_refused(good: bytes, check: Callable[..., Verification]) -> None:
    with zipfile.ZipFile(io.BytesIO(good)) as zip:
        infos = zip.infolist()
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as zip:
        for info in infos:
            link = zipfile.ZipInfo(info.filename, (1980, 1, 1, 0, 0, 0))
            link.external_attr = (0o120777 if info.filename == "report.json" else 0o100644) << 16
            zip.writestr(link, members()[info.filename])
    assert "report.json" in check(file.getvalue()).reason
    commented = bytearray(good)
    commented[-2:] = struct.pack("<H", 5)
    assert check(bytes(commented) + b"hello").refused
    entry = good.index(b"PK\x01\x02")
    locked = good[: entry + 8] + b"\x01" + good[entry + 9 :]
    assert "encrypted" in check(locked).reason


def test_a_bomb_is_not_inflated(check: Callable[..., Verification], monkeypatch: pytest.MonkeyPatch) -> None:
    """50 MB here; that a member is compressed is enough."""
    bomb = zipped([("manifest.json", b"0" * 50_000_000)], zipfile.ZIP_DEFLATED)
    assert len(bomb) < 100_000
    monkeypatch.setattr(zlib, "decompressobj", lambda *_: pytest.fail("it was inflated"))
    assert "compressed" in check(bomb).reason
    lying = bytearray(b"".join(pack_members(members())))
    at = lying.index(b"PK\x01\x02") + 20
    lying[at : at + 8] = struct.pack("<II", 0xFFFFFFF0, 0xFFFFFFF0)
    assert "the most" in check(bytes(lying)).reason


def test_what_is_larger_than_the_limits_is_neither_written_nor_read(
    check: Callable[..., Verification], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = b"".join(pack_members(members()))
    monkeypatch.setattr("openassay.export.bundles.MOST_BYTES", len(whole) - 1)
    assert "the most" in check(whole).reason
    with pytest.raises(EvidenceError, match="the most"):
        list(pack_members(members()))


def test_a_missing_snapshot_is_named(check: Callable[..., Verification]) -> None:
    name = f"snapshots/{SURVEY.hash}.txt"
    files = members()
    del files[name]
    assert f"{name} is missing" in check(b"".join(pack_members(files))).reason
    assert f"{name} is missing" in check(b"".join(pack_members(resealed(files)))).reason
    with pytest.raises(EvidenceError, match="missing"):
        build_members(small(), [SURVEY])


def test_a_snapshot_that_nothing_names_is_refused(check: Callable[..., Verification]) -> None:
    stray = make_document("Nobody asked.", title="Stray", url="https://stray.example/")
    files = members() | {f"snapshots/{stray.hash}.txt": stray.text.encode()}
    assert "not in the manifest" in check(b"".join(pack_members(files))).reason
    assert "named by nothing" in check(b"".join(pack_members(resealed(files)))).reason


def test_who_changes_a_snapshot_and_every_hash_is_caught_by_its_name(check: Callable[..., Verification]) -> None:
    files = members()
    name = f"snapshots/{SURVEY.hash}.txt"
    files[name] = files[name].replace(b"412", b"214")
    assert "the hash of" in check(b"".join(pack_members(resealed(files)))).reason


@pytest.mark.parametrize("name", ["manifest.json", "report.json", "sources.json"])
@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"[]\n", b"nonsense", b"\xff\xfe", b"[" * 200_000, b'{"a": NaN}', b'{\n "a": 1,\n "a": 2\n}\n',
     b"9" * 9999, b'"\\ud800"'],
    ids=["empty", "bare", "list", "words", "bytes", "deep", "nan", "twice", "digits", "half"],
)  # fmt: skip
def test_hostile_json_is_refused(name: str, content: bytes, check: Callable[..., Verification]) -> None:
    files = members() | {name: content}
    assert check(b"".join(pack_members(files if name == "manifest.json" else resealed(files)))).refused


def test_a_snapshot_that_is_no_text_is_refused(check: Callable[..., Verification]) -> None:
    raw = b"\xff\xfe Lake Marrow"
    name = digest_content(raw).sha256
    changed = small().model_dump(mode="json")
    for one in (changed["claims"][0]["spans"][0], changed["sources"][0]):
        one["document"] = name
    files = members()
    records = json.loads(files["sources.json"])
    next(one for one in records if one["document"] == SURVEY.hash)["document"] = name
    del files[f"snapshots/{SURVEY.hash}.txt"]
    files |= {
        f"snapshots/{name}.txt": raw,
        "report.json": to_canonical_json(changed),
        "sources.json": to_canonical_json(records),
    }
    assert "UTF-8" in check(b"".join(pack_members(resealed(files)))).reason


def test_a_newer_format_says_so(check: Callable[..., Verification]) -> None:
    manifest = json.loads(members()["manifest.json"]) | {"edition": 2}
    assert (
        "edition 2" in check(b"".join(pack_members(members() | {"manifest.json": to_canonical_json(manifest)}))).reason
    )


def test_a_page_that_says_something_else_is_noted(check: Callable[..., Verification]) -> None:
    """Hashes do not show it: who made the bundle wrote the page, too."""
    found = check(b"".join(pack_members(resealed(members() | {"report.html": b"<h1>Lake Marrow is huge</h1>"}))))
    assert not found.refused
    assert next(row for row in found.rows if row.name == "renderings").state == "note"


def test_a_signature_is_held_to_who_is_named(
    good: bytes, check: Callable[..., Verification], tmp_path: Path, key: Ed25519PrivateKey
) -> None:
    mine = compute_fingerprint(sign_digest("", key).key)
    other = compute_fingerprint(sign_digest("", load_key(tmp_path)).key)
    assert not check(good, key=mine).refused
    assert "and not" in check(good, key=other).reason
    assert "nobody has signed" in check(b"".join(pack_members(members())), key=mine).reason
    unsigned = check(b"".join(pack_members(members())))
    assert not unsigned.refused
    assert next(row for row in unsigned.rows if row.name == "signature").state == "note"


def test_a_signature_of_another_bundle_is_no_good(
    good: bytes, key: Ed25519PrivateKey, check: Callable[..., Verification]
) -> None:
    theirs = json.loads(members(small(title="Another"), key)["manifest.json"])["signature"]
    manifest = json.loads(members(key=key)["manifest.json"]) | {"signature": theirs}
    assert (
        "signature" in check(b"".join(pack_members(members() | {"manifest.json": to_canonical_json(manifest)}))).reason
    )


def test_a_data_directory_has_one_key_that_only_its_owner_reads(tmp_path: Path) -> None:
    first, second = sign_digest("x", load_key(tmp_path)), sign_digest("x", load_key(tmp_path))
    assert first == second
    assert (tmp_path / KEY_FILE).stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir() if "evidence" in path.name] == [KEY_FILE]
    (tmp_path / KEY_FILE).write_text("no key", encoding="ascii")
    with pytest.raises(OpenAssayError, match="does not hold a key"):
        load_key(tmp_path)


def test_a_fingerprint_is_understood_as_people_write_it(tmp_path: Path) -> None:
    shown = compute_fingerprint("00" * 32)
    (tmp_path / "key.txt").write_text(f"Ada's bundles: {shown}\n", encoding="utf-8")
    assert (
        resolve_fingerprint(shown)
        == resolve_fingerprint(shown.replace("-", "").upper())
        == resolve_fingerprint(str(tmp_path / "key.txt"))
        == shown
    )
    for wrong in ("1234", "", str(tmp_path), str(tmp_path / "absent")):
        with pytest.raises(UsageError):
            resolve_fingerprint(wrong)
