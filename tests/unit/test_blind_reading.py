"""Blind reading: the baseline's passages fit the limit, and readers cannot tell the reports apart by their marks."""

import json
from pathlib import Path

from starlette.testclient import TestClient

from benchmarks.corpora import CORPORA, clean_restructured, read_pep
from benchmarks.reading.__main__ import QUESTIONS, main
from benchmarks.reading.baseline import Document, build_prompt, pick_passages, split_passages
from benchmarks.reading.pairing import normalise, pair_reports
from benchmarks.reading.recording import Recording, build_app, load_calls

FILLER = "Nothing here bears on the matter at hand, and it goes on for a while. " * 20
DOCUMENTS = [
    Document("On weather", "", "1901-01-01", f"{FILLER}\n\n{FILLER}"),
    Document("On canals", "A. Writer", "1902-02-02", f"{FILLER}\n\nThe canal treaty was given up. {FILLER}"),
]
OURS = """# Canals

They gave it up. ∴ ✓ [[S24]](#s24)[[S17]](#s17) Others <a id="x"></a>held on. ⚠ [[S24]](#s24)

*✓ one source · ⚠ one source only*

## References

<a id="s24"></a>S24 A source
"""
BASELINE = "# Canals\n\nThey gave it up [3, 5]. In [1977] others held on [2–3].\n\n### Sources\n\n[3] A source\n"


def test_the_best_passage_comes_first_and_the_prompt_keeps_within_its_limit() -> None:
    question = "Why was the canal treaty given up?"
    assert "given up" in pick_passages(DOCUMENTS, question)[0].text
    for limit in (4_000, 6_000, 20_000):
        prompt = build_prompt(DOCUMENTS, question, limit)
        assert len(prompt) <= limit
        assert "=== On canals | A. Writer | 1902-02-02\n[1] " in prompt
    assert "On weather" not in build_prompt(DOCUMENTS, question, 4_000)


def test_passages_keep_every_word_and_stay_near_their_length() -> None:
    text = "\n\n".join(f"{n} " + "word " * n for n in (5, 90, 120, 700, 30))
    passages = list(split_passages(text, 200))
    assert " ".join(passages).split() == text.split()
    assert max(len(passage.split()) for passage in passages) <= 250


def test_both_reports_lose_marks_tags_and_sources_and_cite_in_one_form() -> None:
    assert normalise(OURS) == "# Canals\n\nThey gave it up [1, 2]. Others held on [1].\n"
    assert normalise(BASELINE) == "# Canals\n\nThey gave it up [1, 2]. In [1977] others held on [3, 1].\n"


def test_a_heading_that_only_begins_like_an_appendix_stays() -> None:
    assert "Sources of conflict" in normalise("## Sources of conflict\n\nMany.\n")


def test_the_seed_sets_the_order_and_the_key_tells_it() -> None:
    orders = set()
    for seed in range(20):
        pair = pair_reports(OURS, BASELINE, seed)
        assert pair == pair_reports(OURS, BASELINE, seed)
        assert {pair.key["A"]: pair.a, pair.key["B"]: pair.b}["ours"] == normalise(OURS)
        orders.add(pair.key["A"])
    assert orders == {"ours", "baseline"}


def test_the_key_lies_outside_the_folder_of_the_readers(tmp_path: Path) -> None:
    folder = tmp_path / "ethereum_eips"
    folder.mkdir()
    (folder / "report.md").write_text(OURS, encoding="utf-8")
    (folder / "baseline_report.md").write_text(BASELINE, encoding="utf-8")
    assert main(["pair", str(tmp_path), "ethereum_eips", "--seed", "7"]) == 0
    assert sorted(file.name for file in (folder / "readers-7").iterdir()) == ["A.md", "B.md"]
    assert set(json.loads((folder / "key-7.json").read_text(encoding="utf-8")).values()) == {"ours", "baseline"}


def test_every_corpus_but_the_news_has_a_question() -> None:
    """Those of the news are pointed ones, in benchmarks/data/news."""
    assert set(json.loads(QUESTIONS.read_text(encoding="utf-8"))) == set(CORPORA) - {"wikinews", "french_news"}


def test_a_pep_keeps_its_fields_and_its_headings_without_markup() -> None:
    top = "PEP: 1\nTitle: T\nAuthor: A <a at b>,\n  B\n\n"
    fields, body = read_pep(top + "=====\n One\n=====\n\nSee :pep:`8` and ``x``.\n")
    assert fields == {"PEP": "1", "Title": "T", "Author": "A <a at b>, B"}
    assert clean_restructured(body) == "## One\n\nSee PEP 8 and `x`."


def test_a_recorded_run_answers_the_same_prompt_and_what_is_most_like_another(tmp_path: Path) -> None:
    """As a bridge leaves them; a call that nobody answered is none."""
    for part in ("in", "out"):
        (tmp_path / part).mkdir()
    calls = [("Plan", "Plan\nfreight"), ("Judge", "a\nb"), ("Judge", "c\nd"), ("Judge", "e")]
    for number, (form, prompt) in enumerate(calls, 1):
        body = {"messages": [{"role": "user", "content": prompt}], "response_format": {"json_schema": {"name": form}}}
        (tmp_path / "in" / f"{number}.json").write_text(json.dumps(body))
        if number < 4:
            (tmp_path / "out" / f"{number}.txt").write_text(f"answer {number}")
    recording = Recording(load_calls(tmp_path))
    asked = [("Judge", "c\nd"), ("Judge", "c\nx"), ("Plan", "Plan\ntrade"), ("Plan", "Plan\nagain"), ("Judge", "c\nd")]
    answers = [recording.find_answer(*call) for call in asked]
    assert answers == ["answer 3", "answer 2", "answer 1", None, "answer 3"]
    assert recording.counts == {"same prompt": 2, "like it": 2, "none": 1}

    client = TestClient(build_app(tmp_path))
    body = {"messages": [{"role": "user", "content": "a\nb"}], "response_format": {"json_schema": {"name": "Judge"}}}
    plain = client.post("/v1/chat/completions", json=body).json()
    assert plain["choices"][0]["message"]["content"] == "answer 2"
    streamed = client.post("/v1/chat/completions", json={**body, "stream": True}).text
    assert "answer 2" in streamed
    assert streamed.endswith("data: [DONE]\n\n")
    body["response_format"] = {"json_schema": {"name": "Report"}}
    assert client.post("/v1/chat/completions", json=body).status_code == 400
    assert json.loads((tmp_path / "served.json").read_text())["none"] == 1
