"""Adds adapters that `train_reader` and `train_synthesis` have trained to `verifier.onnx` in `openassay/text/data`.

    PYTHONPATH=. python benchmarks/export_adapters.py --unpack FOLDER           writes what both start from
    PYTHONPATH=. python benchmarks/export_adapters.py --reader FOLDER --synthesis FILE

Wants onnx. The graph gets one more input, `adapters`: at 0 it is the verifier to the bit but for rounding, at 1 what
the adapters beside its matrices make of a token is added; and a second output, `spans`, tells where an answer begins
and ends. One set of matrices is unpacked and held for all. Adapters are stored in int8 with a scale for each row. A
reader that is there stays where none is given.
"""

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.export_minilm import DATA, sha256

ADAPTED = {"qkv": "qkv", "attention.attn.o": "mix", "intermediate.dense": "wide", "output.dense": "narrow"}
FOLD, LOGITS = 2.0, 4  # as in `train_reader`, which wants torch

Floats = NDArray[np.float32]


def unpack_rest(model: Any, folder: Path) -> None:
    from onnx import TensorProto, numpy_helper

    rest = {
        one.name: numpy_helper.to_array(one)
        for one in model.graph.initializer
        if one.data_location != TensorProto.EXTERNAL and one.dims
    }
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "verifier-rest.npz", **{name: one for name, one in rest.items() if one.dtype != np.int64})
    for name in ("verifier.npz", "verifier-tokenizer.json"):
        shutil.copyfile(DATA / name, folder / name)


def load_adapters(folder: Path, pattern: str) -> dict[str, Floats]:
    weights = dict[str, Floats]()
    for path in sorted(folder.glob(pattern)):
        with np.load(path) as stored:
            weights |= {name: stored[name].astype(np.float32) for name in stored.files}
    return weights


class GraphEditor:
    """Puts steps into a graph that is there."""

    def __init__(self, model: Any) -> None:
        self.graph = model.graph
        self._made = 0

    def constant(self, name: str, value: NDArray[Any]) -> str:
        from onnx import numpy_helper

        self.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def int8(self, name: str, value: Floats) -> str:
        """A matrix in int8 with a scale for each row; it is made float once, when the model is loaded."""
        scale = (np.abs(value).max(1, keepdims=True) / 127).clip(1e-12).astype(np.float32)
        stored = self.constant(name, np.round(value / scale).astype(np.int8))
        return self.step("Mul", self.step("Cast", stored, to=1), self.constant(f"{name}.scale", scale))

    def step(self, kind: str, *inputs: str, into: list[Any] | None = None, **attributes: object) -> str:
        from onnx import helper

        self._made += 1
        name = f"reader_{kind}_{self._made}"
        node = helper.make_node(kind, list(inputs), [name], **attributes)
        (self.graph.node if into is None else into).append(node)
        return name


def add_adapters(model: Any, sets: Sequence[dict[str, Floats]]) -> None:
    """Add sets of adapters beside each other: the input `adapters` has a number for each of their columns, 1 where its
    set is at work and 0 elsewhere. The first set is the reader's, with its head."""
    from onnx import TensorProto, helper

    editor = GraphEditor(model)
    graph = editor.graph
    nodes = list(graph.node)
    makers = {name: node for node in nodes for name in node.output}
    del graph.node[:]
    columns = sum(weights["layers.0.mix.down"].shape[0] for weights in sets)
    graph.input.append(helper.make_tensor_value_info("adapters", TensorProto.FLOAT, [columns]))
    last = ""
    for node in nodes:
        if node.op_type == "SkipLayerNormalization":
            last = node.output[0]
        # A product is scaled back by the token's scale: there the adapters' part is added.
        product = makers.get(node.input[0]) if node.op_type == "Mul" else None
        if product is None or product.op_type != "MatMulIntegerToFloat":
            graph.node.append(node)
            continue
        matrix = product.input[1].removesuffix(":T")
        layer, _, part = matrix.removeprefix("encoder.layer.").partition(".")
        name = f"layers.{layer}.{ADAPTED[part]}"
        taken = find_float_input(product.input[0], makers)
        # Joined once, when the model is loaded.
        downs = [editor.int8(f"{matrix}.down{at}", one[f"{name}.down"].T) for at, one in enumerate(sets)]
        ups = [editor.int8(f"{matrix}.up{at}", FOLD * one[f"{name}.up"].T) for at, one in enumerate(sets)]
        narrow = editor.step("Mul", editor.step("MatMul", taken, editor.step("Concat", *downs, axis=1)), "adapters")
        added = editor.step("MatMul", narrow, editor.step("Concat", *ups, axis=0))
        whole, plain = node.output[0], f"{node.output[0]}_plain"
        node.output[0] = plain
        graph.node.append(node)
        graph.node.append(helper.make_node("Add", [plain, added], [whole]))
    logits = editor.step("MatMul", last, editor.constant("reader.last", sets[0]["last.weight"].T))
    spans = editor.step("Add", logits, editor.constant("reader.last.bias", sets[0]["last.bias"]))
    graph.node.append(helper.make_node("Identity", [spans], ["spans"]))
    graph.node.append(helper.make_node("Identity", [graph.output[0].name], ["scores"]))
    graph.output[0].name = "scores"
    graph.output.append(helper.make_tensor_value_info("spans", TensorProto.FLOAT, ["batch", "length", LOGITS]))


def take_adapters(model: Any) -> dict[str, Floats]:
    """Take the reader's adapters out of a graph that has them, which leaves the verifier alone."""
    from onnx import TensorProto, numpy_helper

    graph = model.graph
    own = [one for one in graph.initializer if one.data_location != TensorProto.EXTERNAL]
    stored = {one.name: numpy_helper.to_array(one) for one in own}
    weights = {"last.weight": stored["reader.last"].T, "last.bias": stored["reader.last.bias"]}
    for name, one in stored.items():
        matrix, _, side = name.rpartition(".")
        if matrix.startswith("encoder.layer.") and side in ("down", "up", "down0", "up0"):
            layer, _, part = matrix.removeprefix("encoder.layer.").partition(".")
            value = one.astype(np.float32) * stored[f"{name}.scale"]
            side = side.rstrip("0")
            weights[f"layers.{layer}.{ADAPTED[part]}.{side}"] = (value if side == "down" else value / FOLD).T
    plain: list[Any] = []
    for node in graph.node:
        if node.op_type == "Add" and node.input[0].endswith("_plain"):
            maker = next(one for one in plain if node.input[0] in one.output)
            maker.output[0] = node.output[0]
        elif not node.output[0].startswith("reader_") and node.op_type != "Identity":
            plain.append(node)
    del graph.node[:]
    graph.node.extend(plain)
    used = {name for node in plain for name in node.input}
    kept = [one for one in graph.initializer if one.name in used]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    del graph.input[2:]
    del graph.output[1:]
    graph.output[0].name = plain[-1].output[0]
    return weights


def find_float_input(name: str, makers: dict[str, Any]) -> str:
    """The tensor that was rounded for a product: it is what the first product of its rounding takes."""
    node = makers[name]  # Cast(Add(Mul(tensor, factor), ...))
    while node.op_type != "Mul":
        node = makers[node.input[0]]
    found: str = node.input[0]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--unpack", type=Path)
    parser.add_argument("--reader", type=Path, help="folder with reader-0.npz and reader-1.npz")
    parser.add_argument("--synthesis", type=Path, help="synthesis.npz")
    parser.add_argument("--out", type=Path, default=DATA)
    arguments = parser.parse_args()
    from onnx import load

    model = load(DATA / "verifier.onnx", load_external_data=False)
    known = take_adapters(model) if len(model.graph.input) > 2 else None
    if arguments.unpack:
        unpack_rest(model, arguments.unpack)
    if arguments.reader or arguments.synthesis:
        reader = load_adapters(arguments.reader, "reader-*.npz") if arguments.reader else known
        if reader is None:
            raise SystemExit("verifier.onnx has no reader: give one with --reader")
        sets = [reader]
        if arguments.synthesis:
            sets.append(load_adapters(arguments.synthesis.parent, arguments.synthesis.name))
        add_adapters(model, sets)
        path = arguments.out / "verifier.onnx"
        path.write_bytes(model.SerializeToString(deterministic=True))
        print(f"{sha256(path)}  {path.name}  {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
