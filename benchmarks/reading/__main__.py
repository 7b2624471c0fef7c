"""`python -m benchmarks.reading baseline|run|replay|pair`: a round of blind reading; README.md tells how it is done."""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.corpora import CORPORA
from benchmarks.reading.baseline import build_prompt, load_documents
from benchmarks.reading.pairing import pair_reports
from benchmarks.reading.trial import run_question

QUESTIONS = Path(__file__).with_name("questions.json")


def load_question(name: str, number: int | None) -> str:
    """The questions of a corpus are numbered from 1; without a number, its newest."""
    questions: list[str] = json.loads(QUESTIONS.read_text(encoding="utf-8"))[name]
    return questions[number - 1 if number else -1]


def write_baseline(options: argparse.Namespace) -> int:
    documents = load_documents(options.data / options.name / "docs")
    prompt = build_prompt(documents, load_question(options.name, options.question))
    folder = options.out / options.name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "baseline_prompt.txt").write_text(prompt, encoding="utf-8")
    print(f"{options.name}: {len(prompt):,} characters of {len(documents)} documents")
    return 0


def run_trial(options: argparse.Namespace) -> int:
    question = load_question(options.name, options.question)
    folder = options.out / options.name
    documents, calls = options.data / options.name / "docs", folder / "bridge"
    return run_question(question, documents, folder, [str(options.bridge)], options.port, calls)


def replay_trial(options: argparse.Namespace) -> int:
    """Run a question again with the answers that its run has left, which takes the program's own time."""
    question = load_question(options.name, options.question)
    folder = options.out / options.name
    again, calls, server = folder / "replay", folder / "bridge", ["-m", "benchmarks.reading.recording"]
    begun = time.monotonic()
    code = run_question(question, options.data / options.name / "docs", again, server, options.port, calls)
    served = json.loads((calls / "served.json").read_text(encoding="utf-8"))
    told = ", ".join(f"{count} {how}" for how, count in served.items())
    print(f"{options.name}: {time.monotonic() - begun:.0f} s of its own; answers: {told}")
    return code


def write_pair(options: argparse.Namespace) -> int:
    folder = options.out / options.name
    ours, baseline = ((folder / file).read_text(encoding="utf-8") for file in ("report.md", "baseline_report.md"))
    pair = pair_reports(ours, baseline, options.seed)
    shown = folder / f"readers-{options.seed}"
    shown.mkdir(exist_ok=True)
    (shown / "A.md").write_text(pair.a, encoding="utf-8")
    (shown / "B.md").write_text(pair.b, encoding="utf-8")
    key = json.dumps(pair.key)
    (folder / f"key-{options.seed}.json").write_text(key, encoding="utf-8")  # not where readers look
    print(f"{shown}: A has {len(pair.a.split()):,} words, B {len(pair.b.split()):,}")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reading", description=__doc__)
    commands = parser.add_subparsers(required=True)
    baseline = commands.add_parser("baseline", help="write the prompt of the baseline")
    run = commands.add_parser("run", help="run the question with a model behind a bridge")
    replay = commands.add_parser("replay", help="run it again with the answers that were given")
    pair = commands.add_parser("pair", help="make the two reports alike for readers")
    acts = ((baseline, write_baseline), (run, run_trial), (replay, replay_trial), (pair, write_pair))
    for command, act in acts:
        command.set_defaults(act=act)
        command.add_argument("out", type=Path, help="folder of the round")
        command.add_argument("name", choices=CORPORA, help="corpus")
    for command in (baseline, run, replay):
        command.add_argument("--data", type=Path, required=True, help="folder that benchmarks.corpora wrote")
        command.add_argument("--question", type=int, help="its number in questions.json; the newest if none")
    run.add_argument("--bridge", type=Path, required=True, help="script that serves a FOLDER on a PORT")
    for command in (run, replay):
        command.add_argument("--port", type=int, default=8199)
    pair.add_argument("--seed", type=int, required=True, help="sets the order; one for each reader")
    options = parser.parse_args(arguments)
    code: int = options.act(options)
    return code


if __name__ == "__main__":
    sys.exit(main())
