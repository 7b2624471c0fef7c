"""Everything behind the support score, from texts to the two files that ship.

    PYTHONPATH=. python benchmarks/train_support.py pairs   --downloads FOLDER --out pairs.jsonl.xz
    PYTHONPATH=. python benchmarks/train_support.py held    --vitaminc task.json --out held.json
    PYTHONPATH=. python benchmarks/train_entailment.py      --pairs pairs.jsonl.xz --held held.json --out FOLDER
    PYTHONPATH=. python benchmarks/train_support.py export  --weights FOLDER/entailment.npz
    PYTHONPATH=. python benchmarks/train_support.py fit

`pairs` makes statements from running text with evidence that bears them out, or does not (see support_pairs). It
wants textblob and lemminflect, the training a machine with an accelerator, `export` onnx, `fit` what OpenAssay needs.

| origin | what is taken | licence |
|---|---|---|
| hotpotqa/corpus.json (shared data) | 994 introductions of Wikipedia | CC BY-SA 4.0 |
| gensim's wheel, test data | 106 articles of Wikipedia | CC BY-SA |
| evals' wheel, schelling_point | 1,000 passages of Wikipedia | package MIT, texts CC BY-SA |
| deepscholar/corpus.jsonl (shared data) | 1,546 abstracts | MIT |
| extraction/ground-truth.json (shared data) | 181 news pages | MIT |
| wordnet-base of Debian | WordNet 3.0: synonyms, antonyms, hypernyms, glosses | WordNet licence |

All statements and labels are made by rule: no set of labelled pairs is trained on. `fit` sets the weights of some
thirty numbers on wice/dev.jsonl and fever-symmetric/dev.jsonl, which the cross-encoder never sees; what
cross-validation makes of it is printed by bench_support. `held.json` has sets of labelled pairs that training looks at
and never learns from; at which of six steps it stopped was picked on 3,088 pairs of VitaminC (CC BY-SA 3.0).
"""

import argparse
import json
import lzma
import os
import random
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.export_minilm import LAYERS, LONGEST, WIDTH, Graph, attention, feed_forward, norm, sha256, table
from openassay.verification.support import select_sentences

EMBEDDING = Path(__file__).parent.parent / "src" / "openassay" / "text" / "data"
DATA = Path(os.environ.get("OPENASSAY_EVAL_DATA", Path(__file__).parents[2] / "shared" / "data"))
LEAST_COMMON = 16_000  # of the encoder's word pieces, which are in order of frequency


def pairs(arguments: argparse.Namespace) -> None:
    from benchmarks.support_corpora import WordNet, texts
    from benchmarks.support_pairs import make

    vocabulary = json.loads((EMBEDDING / "tokenizer.json").read_text())["model"]["vocab"]
    common = {word for word, rank in vocabulary.items() if rank < LEAST_COMMON and word.isalpha() and len(word) > 2}
    corpus = [text for text in texts(arguments.data, arguments.downloads) if text.sentences]
    wordnet = WordNet(arguments.downloads / "wn" / "usr" / "share" / "wordnet", common)
    made = list(dict.fromkeys(make(corpus, wordnet, told=lambda line: print(line, file=sys.stderr))))
    random.Random(1).shuffle(made)
    with lzma.open(arguments.out, "wt") as file:
        for pair in made:
            file.write(json.dumps(list(pair), ensure_ascii=False) + "\n")
    print(f"{len(made)} pairs")


def held(arguments: argparse.Namespace) -> None:
    """Labelled pairs that training looks at and never learns from. VitaminC as BIG-bench prints it, 250 pages."""
    from benchmarks.evaluation import support as bench

    found: dict[str, list[tuple[str, str, int]]] = {}
    for case in bench.load_cases(arguments.data):
        if case.set in ("fever", "wice"):
            evidence = " ".join(select_sentences(case.statement, case.quote))
            found.setdefault(case.set, []).append((case.statement, evidence, int(case.supported)))
    lines = []
    for example in json.loads(arguments.vitaminc.read_text())["examples"]:
        page, _, rest = example["input"].partition(": ")
        evidence, _, claim = rest.partition("\nClaim: ")
        if "-LRB-" not in evidence and "-RRB-" not in evidence:  # those are of FEVER
            lines.append((page, (claim, evidence, example["target_scores"]["True"])))
    lines = lines[:40_000]
    pages = sorted({page for page, _ in lines})
    random.Random(0).shuffle(pages)
    found["vitaminc"] = [line for page, line in lines if page in set(pages[:250])]
    arguments.out.write_text(json.dumps(found))


def _embeddings(graph: Graph) -> str:
    """Words, positions and which of the two texts a token belongs to."""
    weights = graph.weights
    length = graph.step("Gather", graph.step("Shape", "input_ids"), graph.constant("one", np.int64(1)))
    places = graph.step("Range", graph.constant("zero", np.int64(0)), length, "one")
    words = table(graph, "words", weights["embeddings.word_embeddings.weight"], "input_ids")
    positions = table(graph, "positions", weights["embeddings.position_embeddings.weight"][:LONGEST], places)
    types = graph.constant("types", weights["embeddings.token_type_embeddings.weight"])
    total = graph.step("Add", words, graph.step("Gather", types, "token_type_ids"))
    total = graph.step("Add", total, positions)
    return graph.step("LayerNormalization", total, *norm(graph, "embeddings.LayerNorm"), axis=-1, epsilon=1e-12)


def _head(graph: Graph, tokens: str, weights: Mapping[str, Any]) -> None:
    from onnx import helper

    mask = graph.step("Unsqueeze", graph.cast("attention_mask", "FLOAT"), graph.integers(-1))
    total = graph.step("ReduceSum", graph.step("Mul", tokens, mask), graph.integers(1), keepdims=0)
    mean = graph.step("Div", total, graph.step("ReduceSum", mask, graph.integers(1), keepdims=0))
    for name in ("hidden", "last"):
        weight, bias = (graph.constant(f"{name}.{part}", weights[f"{name}.{part}"]) for part in ("weight", "bias"))
        mean = graph.step("Gemm", mean, weight, bias, transB=1)
        mean = graph.step("Tanh", mean) if name == "hidden" else mean
    graph.nodes.append(helper.make_node("Identity", [mean], ["scores"]))


def build(weights: Mapping[str, Any]) -> Any:
    from onnx import TensorProto, helper, numpy_helper

    graph = Graph({name.removeprefix("bert."): value for name, value in weights.items()})
    tokens = _embeddings(graph)
    mask = graph.cast("attention_mask", "INT32")
    for layer in (f"encoder.layer.{i}" for i in range(LAYERS)):
        tokens = feed_forward(graph, layer, attention(graph, layer, tokens, mask))
    _head(graph, tokens, weights)
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"])
        for name in ("input_ids", "attention_mask", "token_type_ids")
    ]
    output = helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", 3])
    tensors = [numpy_helper.from_array(value, name) for name, value in graph.constants.items()]
    made = helper.make_graph(graph.nodes, "support cross-encoder int8", inputs, [output], tensors)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(made, opset_imports=opsets, ir_version=9, producer_name="openassay")


def export(arguments: argparse.Namespace) -> None:
    from onnx import checker

    with np.load(arguments.weights) as stored:
        weights = {name: stored[name].astype(np.float32) for name in stored.files}
    assert weights["bert.embeddings.word_embeddings.weight"].shape[1] == WIDTH
    built = build(weights)
    checker.check_model(built)
    path = arguments.out / "entailment.int8.onnx"
    path.write_bytes(built.SerializeToString(deterministic=True))
    print(f"{sha256(path)}  {path.name}  {path.stat().st_size / 1e6:.1f} MB")


def fit(arguments: argparse.Namespace) -> None:
    """The weights of both combinations, with and without the cross-encoder, on all cases."""
    from benchmarks.evaluation import support as bench
    from openassay.text.embeddings import CrossEncoder, MiniLM
    from openassay.verification.support import WEIGHTS, feature_names

    found = bench.load_cases(arguments.data)
    rows = bench.compute_features(found, MiniLM(), CrossEncoder())
    truth = np.array([float(case.supported) for case in found])
    everything, stored = feature_names(read=True), {}
    for kind in ("words", "read"):
        wanted = feature_names(read=kind == "read")
        own = rows[:, [everything.index(name) for name in wanted]]
        model = bench.fit_model(own, truth, bench.case_weights(found), wanted)
        numbers = zip(wanted, zip(model.centre, model.spread, model.weights, strict=True), strict=True)
        stored[kind] = {
            "bias": round(model.bias, 5),
            "numbers": {name: [round(float(value), 5) for value in three] for name, three in numbers},
        }
    WEIGHTS.write_text(json.dumps(stored, indent=1) + "\n")
    print(f"{len(found)} cases, {WEIGHTS.name} written")


def main() -> None:
    parser = argparse.ArgumentParser(description="Make pairs, export the cross-encoder, fit the combination.")
    steps = parser.add_subparsers(required=True)
    step = steps.add_parser("pairs")
    step.add_argument("--data", type=Path, default=DATA)
    step.add_argument("--downloads", type=Path, required=True)
    step.add_argument("--out", type=Path, required=True)
    step.set_defaults(run=pairs)
    step = steps.add_parser("held")
    step.add_argument("--data", type=Path, default=DATA)
    step.add_argument("--vitaminc", type=Path, required=True)
    step.add_argument("--out", type=Path, required=True)
    step.set_defaults(run=held)
    step = steps.add_parser("export")
    step.add_argument("--weights", type=Path, required=True)
    step.add_argument("--out", type=Path, default=EMBEDDING)
    step.set_defaults(run=export)
    step = steps.add_parser("fit")
    step.add_argument("--data", type=Path, default=DATA)
    step.set_defaults(run=fit)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
