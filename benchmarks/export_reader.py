"""Adds the reader that `train_reader` has trained to `verifier.onnx` in `openassay/text/data`.

    PYTHONPATH=. python benchmarks/export_reader.py --unpack FOLDER      writes what `train_reader` starts from
    PYTHONPATH=. python benchmarks/export_reader.py --weights FOLDER     adds reader-0.npz and reader-1.npz of FOLDER

Wants onnx. The graph gets one more input, `reading`: at 0 it is the verifier to the bit but for rounding, at 1 what the
adapters beside its matrices make of a token is added, and a second output, `spans`, tells where an answer begins and
ends. One set of matrices is unpacked and held for both. Adapters are stored in int8 with a scale for each row.
"""

import argparse
import shutil
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


def load_adapters(folder: Path) -> dict[str, Floats]:
    weights = dict[str, Floats]()
    for path in sorted(folder.glob("reader-*.npz")):
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


def add_reader(model: Any, weights: dict[str, Floats]) -> None:
    from onnx import TensorProto, helper

    editor = GraphEditor(model)
    graph = editor.graph
    nodes = list(graph.node)
    makers = {name: node for node in nodes for name in node.output}
    del graph.node[:]
    graph.input.append(helper.make_tensor_value_info("reading", TensorProto.FLOAT, [1]))
    last = ""
    for node in nodes:
        if node.op_type == "SkipLayerNormalization":
            last = node.output[0]
        # A product is scaled back by the token's scale: there the adapter's part is added.
        product = makers.get(node.input[0]) if node.op_type == "Mul" else None
        if product is None or product.op_type != "MatMulIntegerToFloat":
            graph.node.append(node)
            continue
        matrix = product.input[1].removesuffix(":T")
        layer, _, part = matrix.removeprefix("encoder.layer.").partition(".")
        name = f"layers.{layer}.{ADAPTED[part]}"
        taken = find_float_input(product.input[0], makers)
        down = editor.int8(f"{matrix}.down", weights[f"{name}.down"].T)
        up = editor.int8(f"{matrix}.up", FOLD * weights[f"{name}.up"].T)
        narrow = editor.step("Mul", editor.step("MatMul", taken, down), "reading")
        added = editor.step("MatMul", narrow, up)
        whole, plain = node.output[0], f"{node.output[0]}_plain"
        node.output[0] = plain
        graph.node.append(node)
        graph.node.append(helper.make_node("Add", [plain, added], [whole]))
    logits = editor.step("MatMul", last, editor.constant("reader.last", weights["last.weight"].T))
    spans = editor.step("Add", logits, editor.constant("reader.last.bias", weights["last.bias"]))
    graph.node.append(helper.make_node("Identity", [spans], ["spans"]))
    graph.node.append(helper.make_node("Identity", [graph.output[0].name], ["scores"]))
    graph.output[0].name = "scores"
    graph.output.append(helper.make_tensor_value_info("spans", TensorProto.FLOAT, ["batch", "length", LOGITS]))


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
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--out", type=Path, default=DATA)
    arguments = parser.parse_args()
    from onnx import load

    model = load(DATA / "verifier.onnx", load_external_data=False)
    if arguments.unpack:
        unpack_rest(model, arguments.unpack)
    if arguments.weights:
        if any(one.name == "reading" for one in model.graph.input):
            raise SystemExit("verifier.onnx has a reader already: export the verifier first, or take it from git")
        add_reader(model, load_adapters(arguments.weights))
        path = arguments.out / "verifier.onnx"
        path.write_bytes(model.SerializeToString(deterministic=True))
        print(f"{sha256(path)}  {path.name}  {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
