"""Trains the cross-encoder on pairs of `support_pairs`; runs on a machine with an accelerator, torch and transformers.

    python benchmarks/train_entailment.py --pairs pairs.jsonl.xz --held held.json --out folder

Starts from the weights of the shipped `minilm.int8.onnx` (Apache-2.0), multiplied out again. `--held` are sets of
pairs that are only ever scored, to watch what training does to texts nobody here wrote.
"""

import argparse
import json
import lzma
import math
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

DATA = Path(__file__).parent.parent / "src" / "openassay" / "text" / "data"
LAYERS, WIDTH, LONGEST = 6, 384, 256
SEPARATOR = 102
EVERY = 120  # steps between two looks at the held sets


class CrossEncoder(nn.Module):  # type: ignore[misc]
    """A BERT over both texts at once, the mean of its tokens, and three scores: supported, refuted, neither."""

    def __init__(self) -> None:
        from transformers import BertConfig, BertModel

        super().__init__()
        config = BertConfig(
            hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=12, intermediate_size=1536,
            max_position_embeddings=LONGEST, attention_probs_dropout_prob=0.1, hidden_dropout_prob=0.1,
        )  # fmt: skip
        self.bert = BertModel(config, add_pooling_layer=False)
        self.hidden = nn.Linear(WIDTH, WIDTH)
        self.last = nn.Linear(WIDTH, 3)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        # Everything after the first separator is evidence.
        types = ((ids == SEPARATOR).cumsum(1) - (ids == SEPARATOR).long()).clamp(0, 1)
        states = self.bert(input_ids=ids, attention_mask=mask, token_type_ids=types).last_hidden_state
        weights = mask.unsqueeze(-1).to(states.dtype)
        mean = (states * weights).sum(1) / weights.sum(1)
        scores: torch.Tensor = self.last(torch.tanh(self.hidden(mean)))
        return scores


def shipped() -> dict[str, torch.Tensor]:
    """The weights of the shipped encoder under the names of transformers' BERT."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(str(DATA / "minilm.int8.onnx")).graph
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}

    def whole(name: str) -> np.ndarray:
        value: np.ndarray = stored[name].astype(np.float32) * stored[f"{name}.scale"]
        return value

    state = {
        "embeddings.word_embeddings.weight": whole("words"),
        "embeddings.position_embeddings.weight": whole("positions"),
        "embeddings.token_type_embeddings.weight": np.zeros((2, WIDTH), np.float32),
    }
    for name in stored:
        if name.endswith((".LayerNorm.weight", ".LayerNorm.bias")):
            state[name] = stored[name]
    for layer in (f"encoder.layer.{i}" for i in range(LAYERS)):
        weights = np.split(whole(f"{layer}.qkv"), 3, axis=1)
        biases = np.split(stored[f"{layer}.qkv.bias"], 3)
        for part, weight, bias in zip(("query", "key", "value"), weights, biases, strict=True):
            state[f"{layer}.attention.self.{part}.weight"], state[f"{layer}.attention.self.{part}.bias"] = (
                weight.T,
                bias,
            )
        for name in (f"{layer}.attention.output", f"{layer}.intermediate", f"{layer}.output"):
            state[f"{name}.dense.weight"] = whole(name).T
            state[f"{name}.dense.bias"] = stored[f"{name}.bias"]
        # The export took the shift of GELU's output out of this bias (see export_minilm.feed_forward).
        state[f"{layer}.output.dense.bias"] = stored[f"{layer}.output.bias"] + 0.17 * whole(f"{layer}.output").sum(0)
    return {name: torch.tensor(np.ascontiguousarray(value)) for name, value in state.items()}


def encoded(pairs: list[tuple[str, str]]) -> list[list[int]]:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(DATA / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(LONGEST, strategy="only_second")
    short = [(" ".join(left.split()[:90]), right) for left, right in pairs]
    return [item.ids for item in tokenizer.encode_batch(short)]


def batches(lines: list[list[int]], size: int, rng: random.Random | None) -> Iterator[list[int]]:
    """Neighbours in length share a batch; in training, within shuffled stretches and in shuffled order."""
    order = list(range(len(lines)))
    if rng is None:
        order.sort(key=lambda i: len(lines[i]))
        yield from (order[start : start + size] for start in range(0, len(order), size))
        return
    rng.shuffle(order)
    found = []
    for start in range(0, len(order), size * 64):
        stretch = sorted(order[start : start + size * 64], key=lambda i: len(lines[i]))
        found += [stretch[i : i + size] for i in range(0, len(stretch), size)]
    rng.shuffle(found)
    yield from found


def padded(lines: list[list[int]], device: str) -> tuple[torch.Tensor, torch.Tensor]:
    longest = max(map(len, lines))
    ids = torch.zeros(len(lines), longest, dtype=torch.long)
    for row, line in enumerate(lines):
        ids[row, : len(line)] = torch.tensor(line)
    ids = ids.to(device, non_blocking=True)
    return ids, (ids != 0).long()


def auc(labels: np.ndarray, scores: np.ndarray) -> float:
    order = scores.argsort(kind="stable").argsort(kind="stable") + 1.0
    yes = labels.sum()
    return float((order[labels].sum() - yes * (yes + 1) / 2) / (yes * (len(labels) - yes)))


@torch.no_grad()
def scored(model: nn.Module, lines: list[list[int]], device: str) -> np.ndarray:
    model.eval()
    rows = np.zeros((len(lines), 3), np.float32)
    for batch in batches(lines, 512, None):
        with torch.autocast(device, torch.bfloat16):
            rows[batch] = model(*padded([lines[i] for i in batch], device)).float().cpu().numpy()
    return rows


def train(
    lines: list[list[int]], labels: list[int], held: Mapping[str, Any], arguments: argparse.Namespace, device: str
) -> dict[str, torch.Tensor]:
    """One pass, and of it the weights that told the watched set apart best: more only fits the rules of the pairs."""
    torch.manual_seed(1)
    model = CrossEncoder()
    model.bert.load_state_dict(shipped())
    model.to(device)
    optimiser = torch.optim.AdamW(model.parameters(), lr=arguments.rate, weight_decay=0.01, fused=device == "cuda")
    steps = math.ceil(len(lines) / arguments.batch)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min(1, step / 100) * max(0.0, 1 - step / (steps + 1))
    )
    truth = torch.tensor(labels, device=device)
    loss_of = nn.CrossEntropyLoss(label_smoothing=0.05)
    best, kept = 0.0, {}
    for step, batch in enumerate(batches(lines, arguments.batch, random.Random(1)), 1):
        model.train()
        with torch.autocast(device, torch.bfloat16):
            loss = loss_of(model(*padded([lines[i] for i in batch], device)).float(), truth[batch])
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        if step % EVERY == 0 or step == steps:
            figures = {name: _figure(scored(model, one["lines"], device), one["labels"]) for name, one in held.items()}
            print(f"step {step} of {steps}: loss {loss.item():.3f} {figures}", flush=True)
            if figures[arguments.watch] > best:
                best = figures[arguments.watch]
                kept = {name: value.detach().half().cpu() for name, value in model.state_dict().items()}
    return kept


def _figure(rows: np.ndarray, labels: np.ndarray) -> float:
    return round(auc(labels, rows[:, 0] - np.logaddexp(rows[:, 1], rows[:, 2])), 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=Path, required=True, help="lines of [statement, evidence, label], xz")
    parser.add_argument("--held", type=Path, required=True, help="{set: [[statement, evidence, supported], ...]}")
    parser.add_argument("--watch", default="vitaminc", help="the held set that picks the weights")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rate", type=float, default=2e-4)
    parser.add_argument("--batch", type=int, default=512)
    arguments = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with lzma.open(arguments.pairs, "rt") as file:
        rows = [json.loads(line) for line in file]
    lines = encoded([(row[0], row[1]) for row in rows])
    held = {
        name: {
            "lines": encoded([(one[0], one[1]) for one in found]),
            "labels": np.array([bool(one[2]) for one in found]),
        }
        for name, found in json.loads(arguments.held.read_text()).items()
    }
    kept = train(lines, [row[2] for row in rows], held, arguments, device)
    arguments.out.mkdir(parents=True, exist_ok=True)
    np.savez(arguments.out / "entailment.npz", **{name: value.numpy() for name, value in kept.items()})


if __name__ == "__main__":
    main()
