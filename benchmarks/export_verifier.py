"""Makes `verifier.onnx` and `verifier.npz` in `openassay/text/data` from the model that `train_verifier` has trained.

    PYTHONPATH=. python benchmarks/export_verifier.py --weights verifier.npz --tokenizer FOLDER/tokenizer.json

Wants onnx. The graph is written node by node for the reasons `export_minilm` gives: a pair's scores must not depend on
the pairs beside it. Pieces of the vocabulary that no English text has (unassigned ones, other scripts) are left out,
which saves 5 MB of 67; what is written in them is read as unknown.
"""

import argparse
import json
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.export_minilm import (
    DATA,
    GELU_FLOOR,
    Graph,
    floored,
    norm,
    places_of_tokens,
    sha256,
    signed,
    table,
    word_table,
)  # fmt: skip
from openassay.text.embeddings import PackedMatrix, unpack_matrix

WIDTH, HEADS, LONGEST = 768, 12, 384
BLOCK = 32  # weights that share a scale
BUCKETS, FAR = 32, 128  # of distances between two tokens; beyond the second all are alike
PADDING_ROWS = 2  # of the table of positions, before the first token's
EPSILON = 1e-5
SCRIPTS = ("LATIN", "GREEK", "DIGIT", "SUPERSCRIPT", "SUBSCRIPT", "VULGAR", "MICRO", "OHM", "KELVIN", "ANGSTROM")

Floats = NDArray[np.float32]


def pack(graph: "VerifierGraph", name: str, rows: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Put a matrix among those that stand in a file of their own, in four bits, and a place for it in the graph: it is
    unpacked when the model is loaded (`openassay.text.embeddings.unpack_matrices`). Returns what it will be, and the
    scale of each of its rows."""
    blocks = rows.reshape(rows.shape[0], -1, BLOCK)
    low, high = blocks.min(2, keepdims=True).clip(max=0), blocks.max(2, keepdims=True).clip(min=0)
    step = ((high - low) / 15).clip(1e-8)
    zero = np.round(-low / step)
    whole = (np.round(blocks / step) + zero).clip(0, 15).astype(np.uint8).reshape(rows.shape)
    scale = (np.abs(blocks).max(axis=(1, 2)) / 127).clip(1e-8).astype(np.float32)
    zeros = zero[:, :, 0].astype(np.uint8)
    graph.packed[name] = PackedMatrix(
        whole[:, ::2] | whole[:, 1::2] << 4,
        zeros[:, ::2] | zeros[:, 1::2] << 4,
        (step[:, :, 0] / scale[:, None]).astype(np.float16),
    )
    return unpack_matrix(graph.packed[name]), scale


class VerifierGraph(Graph):
    """A graph whose large matrices are kept apart, in four bits."""

    def __init__(self, weights: Mapping[str, Floats]) -> None:
        super().__init__(weights)
        self.packed: dict[str, PackedMatrix] = {}


def save_matrices(path: Path, packed: Mapping[str, PackedMatrix]) -> None:
    np.savez(path, **{f"{name}|{part}": value for name, one in packed.items() for part, value in one._asdict().items()})


def dense(graph: VerifierGraph, name: str, weight: Floats, tokens: tuple[str, str, str]) -> tuple[str, Floats]:
    """A product, and what the columns of the matrix sum up to."""
    stored, scale = pack(graph, f"{name}:T", weight.T)
    graph.places[f"{name}:T"] = weight.shape
    quantised, token_scale, zero = tokens
    operands = (quantised, f"{name}:T", graph.number(1), graph.constant(f"{name}.scale", scale), zero)
    product = graph.step("Mul", graph.step("MatMulIntegerToFloat", *operands, contrib=True), token_scale)
    return product, (stored.astype(np.float64).sum(axis=1) * scale).astype(np.float32)


def packed_words(graph: VerifierGraph, values: Floats) -> str:
    stored, scale = pack(graph, "words", values)
    return word_table(graph, stored, scale[:, None])


def load_weights(path: Path) -> dict[str, Floats]:
    """As `train_verifier` stored them."""
    stored, weights = np.load(path), dict[str, Floats]()
    for name in stored.files:
        plain, _, kind = name.removeprefix("body.").partition(":")
        if kind == "":
            weights[plain] = stored[name]
        elif kind == "int8":
            weights[plain] = stored[name].astype(np.float32) * stored[name.replace(":int8", ":scale")]
        elif kind == "four":
            halves, step = stored[name], stored[name.replace(":four", ":step")].astype(np.float32)
            whole = np.stack([halves & 15, halves >> 4], axis=-1).reshape(*step.shape, BLOCK).astype(np.float32)
            zero = stored[name.replace(":four", ":zero")]
            weights[plain] = ((whole - zero[..., None]) * step[..., None]).reshape(halves.shape[0], -1)
    return weights


def is_read(piece: str) -> bool:
    """Whether a piece of the vocabulary may stand in an English text."""
    if piece.startswith("[unused"):
        return False
    letters = [character for character in piece.removeprefix("##") if character.isalnum()]
    return all(character.isascii() or unicodedata.name(character, "").startswith(SCRIPTS) for character in letters)


def prune_vocabulary(tokenizer: dict[str, Any]) -> list[int]:
    """Leave out of the tokenizer what is not read; return the rows that are kept."""
    vocabulary = tokenizer["model"]["vocab"]
    kept = {piece: row for piece, row in vocabulary.items() if is_read(piece)}
    tokenizer["model"]["vocab"] = {piece: number for number, piece in enumerate(kept)}
    for token in tokenizer["added_tokens"]:
        token["id"] = tokenizer["model"]["vocab"][token["content"]]
    tokenizer["truncation"] = tokenizer["padding"] = None
    return list(kept.values())


def bucket(distance: int) -> int:
    """The bucket of a distance from one token to another, as MPNet counts: half of them for each direction, of which
    half are exact and half grow by a factor."""
    side, far = (BUCKETS // 2 if distance > 0 else 0), abs(distance)
    exact = BUCKETS // 4
    if far < exact:
        return side + far
    grown = exact + int(np.log(far / exact) / np.log(FAR / exact) * (BUCKETS // 2 - exact))
    return side + min(grown, BUCKETS // 2 - 1)


def distances(graph: Graph, places: str) -> str:
    """What the distance of two tokens adds to their attention, for each head."""
    learnt = graph.weights["encoder.relative_attention_bias.weight"]
    rows = np.stack([learnt[bucket(distance)] for distance in range(-LONGEST + 1, LONGEST)])
    across = graph.step("Unsqueeze", places, graph.integers(0))
    down = graph.step("Unsqueeze", places, graph.integers(1))
    apart = graph.step("Add", graph.step("Sub", across, down), graph.constant("middle", np.int64(LONGEST - 1)))
    added = graph.step("Gather", graph.constant("distances", rows), apart)
    return graph.step("Unsqueeze", graph.step("Transpose", added, perm=[2, 0, 1]), graph.integers(0))


def residual(graph: Graph, name: str, tensor: str, skip: str, bias: Floats) -> str:
    operands = (tensor, skip, *norm(graph, f"{name}.LayerNorm"), graph.constant(f"{name}.bias", bias))
    return graph.step("SkipLayerNormalization", *operands, contrib=True, epsilon=EPSILON)


def attention(graph: VerifierGraph, layer: str, tokens: str, mask: str, apart: str) -> str:
    parts = [f"{layer}.attention.attn.{part}" for part in "qkv"]
    weight = np.concatenate([graph.weights[f"{part}.weight"].T for part in parts], axis=1)
    bias = np.concatenate([graph.weights[f"{part}.bias"] for part in parts])
    joined, _ = dense(graph, f"{layer}.qkv", weight, signed(graph, tokens))
    three = graph.split("Split", joined, graph.integers(WIDTH, WIDTH, WIDTH), outputs=3, axis=-1)
    operands = (*three, graph.constant(f"{layer}.qkv.bias", bias), mask, apart)
    heads = graph.step("MultiHeadAttention", *operands, contrib=True, num_heads=HEADS)
    name = f"{layer}.attention.attn.o"
    mixed, _ = dense(graph, name, graph.weights[f"{name}.weight"].T, signed(graph, heads))
    return residual(graph, f"{layer}.attention", mixed, tokens, graph.weights[f"{name}.bias"])


def feed_forward(graph: VerifierGraph, layer: str, tokens: str) -> str:
    name = f"{layer}.intermediate.dense"
    wide, _ = dense(graph, name, graph.weights[f"{name}.weight"].T, signed(graph, tokens))
    active = graph.step("BiasGelu", wide, graph.constant(f"{name}.bias", graph.weights[f"{name}.bias"]), contrib=True)
    name = f"{layer}.output.dense"
    narrow, sums = dense(graph, name, graph.weights[f"{name}.weight"].T, floored(graph, active))
    return residual(
        graph, f"{layer}.output", narrow, tokens, graph.weights[f"{name}.bias"] - np.float32(GELU_FLOOR) * sums
    )


def linear(graph: Graph, name: str, tensor: str) -> str:
    product = graph.step("MatMul", tensor, graph.constant(f"{name}.weight", graph.weights[f"{name}.weight"].T))
    return graph.step("Add", product, graph.constant(f"{name}.bias", graph.weights[f"{name}.bias"]))


def build(weights: Mapping[str, Floats], rows: list[int]) -> tuple[Any, dict[str, PackedMatrix]]:
    graph = VerifierGraph(weights)
    places = places_of_tokens(graph)
    words = packed_words(graph, weights["embeddings.word_embeddings.weight"][rows])
    positions = weights["embeddings.position_embeddings.weight"][PADDING_ROWS : PADDING_ROWS + LONGEST]
    total = graph.step("Add", words, table(graph, "positions", positions, places))
    tokens = graph.step("LayerNormalization", total, *norm(graph, "embeddings.LayerNorm"), axis=-1, epsilon=EPSILON)
    mask, apart = graph.cast("attention_mask", "INT32"), distances(graph, places)
    for layer in (f"encoder.layer.{number}" for number in range(sum(".output.dense.bias" in name for name in weights))):
        tokens = feed_forward(graph, layer, attention(graph, layer, tokens, mask, apart))
    first = graph.step("Gather", tokens, graph.constant("first", np.int64(0)), axis=1)
    scores = linear(graph, "last", graph.step("Tanh", linear(graph, "hidden", first)))
    return graph.model("verifier", scores, ["batch", len(weights["last.bias"])]), graph.packed


def main() -> None:
    parser = argparse.ArgumentParser(description="Export the verifier as ONNX.")
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True, help="of all-mpnet-base-v2")
    parser.add_argument("--out", type=Path, default=DATA)
    arguments = parser.parse_args()

    tokenizer = json.loads(arguments.tokenizer.read_text(encoding="utf-8"))
    built, packed = build(load_weights(arguments.weights), prune_vocabulary(tokenizer))
    model, matrices, pieces = (arguments.out / f"verifier{end}" for end in (".onnx", ".npz", "-tokenizer.json"))
    model.write_bytes(built.SerializeToString(deterministic=True))
    save_matrices(matrices, packed)
    pieces.write_text(json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    for file in (model, matrices, pieces):
        print(f"{sha256(file)}  {file.name}  {file.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
