"""Trains the verifier on the pairs of `verifier_pairs`; runs on a machine with an accelerator, torch and transformers.

    python benchmarks/train_verifier.py --base FOLDER --pairs pairs.jsonl.xz --held held.json.xz --out FOLDER

A teacher of twelve layers learns from the labels; a student of six, made of every other layer of it, learns from the
labels and from what the teacher says of the same pairs. `--base` is all-mpnet-base-v2 (Apache-2.0) as it was published.
Both read the statement, then the evidence, and give three logits: supported, refuted, neither.

Large batches, because 20,000 tokens at a time leave such a machine idle: 164,000 pairs take the teacher 70 seconds a
pass and the student 40.
"""

import argparse
import json
import lzma
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

LAYERS, WIDTH, LONGEST = 12, 768, 320
KEPT = (0, 2, 4, 7, 9, 11)  # of the teacher's layers
PADDING = 1
BATCH_TOKENS, BATCH_PAIRS = 40_000, 320
STATEMENT_WORDS = 90
EITHER = 3  # a label: refuted or neither
FROM_TEACHER = 0.6  # of the student's loss
SMOOTHING = 0.03
DEVICE = "cuda"

Lines = list[NDArray[np.int64]]


class Verifier(nn.Module):  # type: ignore[misc]
    def __init__(self, layers: int) -> None:
        from transformers import MPNetConfig, MPNetModel

        super().__init__()
        config = MPNetConfig(
            vocab_size=30_527, hidden_size=WIDTH, num_hidden_layers=layers, num_attention_heads=12,
            intermediate_size=3_072, max_position_embeddings=514, layer_norm_eps=1e-5,
            pad_token_id=PADDING, bos_token_id=0, eos_token_id=2,
        )  # fmt: skip
        self.body = MPNetModel(config, add_pooling_layer=False)
        self.drop = nn.Dropout(0.1)
        self.hidden = nn.Linear(WIDTH, WIDTH)
        self.last = nn.Linear(WIDTH, 3)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        first = self.body(input_ids=ids, attention_mask=mask).last_hidden_state[:, 0]
        scores: torch.Tensor = self.last(torch.tanh(self.hidden(self.drop(first))))
        return scores


def encode(base: Path, pairs: Sequence[tuple[str, str]]) -> Lines:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(base / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(LONGEST, strategy="only_second")
    short = [(" ".join(claim.split()[:STATEMENT_WORDS]), evidence) for claim, evidence in pairs]
    return [np.array(item.ids, np.int64) for item in tokenizer.encode_batch(short)]


def split_batches(lines: Lines, rng: random.Random) -> list[list[int]]:
    """Neighbours in length share a batch, in shuffled order."""
    order = sorted(range(len(lines)), key=lambda at: len(lines[at]) + 4 * rng.random())
    found: list[list[int]] = []
    for at in order:
        full = found and (len(found[-1]) + 1) * len(lines[at]) > BATCH_TOKENS
        if not found or full or len(found[-1]) == BATCH_PAIRS:
            found.append([])
        found[-1].append(at)
    rng.shuffle(found)
    return found


def pad(lines: Lines) -> tuple[torch.Tensor, torch.Tensor]:
    longest = -(-max(map(len, lines)) // 8) * 8
    ids = np.full((len(lines), longest), PADDING, np.int64)
    for row, line in enumerate(lines):
        ids[row, : len(line)] = line
    moved = torch.from_numpy(ids).pin_memory().to(DEVICE, non_blocking=True)
    return moved, (moved != PADDING).long()


@torch.no_grad()
def score(model: nn.Module, lines: Lines) -> NDArray[np.float32]:
    model.eval()
    rows = np.zeros((len(lines), 3), np.float32)
    order = sorted(range(len(lines)), key=lambda at: len(lines[at]))
    for batch in (order[start : start + 512] for start in range(0, len(order), 512)):
        with torch.autocast(DEVICE, torch.bfloat16):
            rows[batch] = model(*pad([lines[at] for at in batch])).float().cpu().numpy()
    return rows


def auc(truth: NDArray[np.bool_], scores: NDArray[np.float32]) -> float:
    order = scores.argsort(kind="stable").argsort(kind="stable") + 1.0
    yes = truth.sum()
    return float((order[truth].sum() - yes * (yes + 1) / 2) / (yes * (len(truth) - yes)))


def tell(model: nn.Module, held: Mapping[str, tuple[Lines, NDArray[np.bool_]]], part: str) -> None:
    """AUC, and balanced accuracy where supported is likelier than not."""
    said = []
    for name, (lines, truth) in held.items():
        if name.startswith(part):
            rows = score(model, lines)
            margin = rows[:, 0] - np.logaddexp(rows[:, 1], rows[:, 2])
            balanced = ((margin[truth] >= 0).mean() + (margin[~truth] < 0).mean()) / 2
            said.append(f"{name.removeprefix(part + ':')} {auc(truth, margin):.3f} {balanced:.3f}")
    print(f"{part}: {', '.join(said)}", flush=True)


def train(
    model: nn.Module,
    lines: Lines,
    labels: Sequence[int],
    weights: Sequence[float],
    held: Mapping[str, tuple[Lines, NDArray[np.bool_]]],
    *,
    rate: float,
    passes: int,
    taught: NDArray[np.float32] | None = None,
) -> None:
    """`taught` is what the teacher says of each pair, for a student."""
    model.to(DEVICE)
    rng = random.Random(1)
    torch.manual_seed(1)
    steps = passes * len(split_batches(lines, random.Random(0)))
    plain = [one for one in model.parameters() if one.ndim < 2]
    groups: list[dict[str, Any]] = [{"params": [one for one in model.parameters() if one.ndim >= 2]}]
    groups.append({"params": plain, "weight_decay": 0.0})
    optimiser = torch.optim.AdamW(groups, lr=rate, weight_decay=0.01, betas=(0.9, 0.98), fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min(1.0, (step + 1) / (0.08 * steps)) * max(0.0, 1 - step / (steps + 1))
    )
    truth = torch.tensor(labels, device=DEVICE)
    worth = torch.tensor(weights, device=DEVICE)
    teacher = None if taught is None else torch.tensor(taught, device=DEVICE).softmax(1)
    for number in range(1, passes + 1):
        began, total = time.monotonic(), torch.zeros((), device=DEVICE)
        batches = split_batches(lines, rng)
        for batch in batches:
            model.train()
            with torch.autocast(DEVICE, torch.bfloat16):
                scores = model(*pad([lines[at] for at in batch])).float()
            at = torch.as_tensor(batch, device=DEVICE)
            chances, label = scores.log_softmax(1), truth[at]
            known = chances.gather(1, label.clamp(max=2)[:, None])[:, 0]
            said = torch.where(label == EITHER, torch.logsumexp(chances[:, 1:], 1), known)
            loss = -((1 - SMOOTHING) * said + SMOOTHING * chances.mean(1))
            if teacher is not None:
                wanted = teacher[at]
                apart = (wanted * (wanted.clamp_min(1e-8).log() - chances)).sum(1)
                loss = (1 - FROM_TEACHER) * loss + FROM_TEACHER * apart
            loss = (loss * worth[at]).sum() / worth[at].sum()
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            total += loss.detach()
        seconds = time.monotonic() - began
        print(f"pass {number} of {passes}: loss {total.item() / len(batches):.3f}, {seconds:.0f} s", flush=True)
        tell(model, held, "dev")


def make_student(teacher: nn.Module) -> Verifier:
    student = Verifier(len(KEPT))
    state = {}
    for name, value in teacher.state_dict().items():
        before, found, after = name.partition(".layer.")
        number, _, rest = after.partition(".")
        if not found:
            state[name] = value
        elif int(number) in KEPT:
            state[f"{before}.layer.{KEPT.index(int(number))}.{rest}"] = value
    student.load_state_dict(state)
    return student


def save(model: nn.Module, path: Path) -> None:
    """Matrices as int8 with a scale for each row, as the export stores them; all else as it is."""
    stored: dict[str, NDArray[Any]] = {}
    for name, value in model.state_dict().items():
        weight = value.float().cpu().numpy()
        if weight.ndim == 2 and weight.size > 100_000:
            scale = np.abs(weight).max(axis=1, keepdims=True) / 127
            scale[scale == 0] = 1
            stored[f"{name}:int8"], stored[f"{name}:scale"] = np.round(weight / scale).astype(np.int8), scale
        else:
            stored[name] = weight
    np.savez(path, **stored)  # type: ignore[arg-type]  # the dictionary might name an option, says the stub


def read_pairs(path: Path) -> Iterator[list[Any]]:
    with lzma.open(path, "rt") as file:
        yield from map(json.loads, file)


def main() -> None:
    from safetensors.torch import load_file

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, required=True, help="all-mpnet-base-v2, with its tokenizer.json")
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--held", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--passes", type=int, nargs=2, default=(3, 6), help="of the teacher, and of the student")
    arguments = parser.parse_args()
    rows = list(read_pairs(arguments.pairs))
    labels, weights = [row[2] for row in rows], [row[3] for row in rows]
    lines = encode(arguments.base, [(row[0], row[1]) for row in rows])
    with lzma.open(arguments.held, "rt") as file:
        held = {
            name: (
                encode(arguments.base, [(one[0], one[1]) for one in found]),
                np.array([one[2] for one in found], bool),
            )
            for name, found in json.load(file).items()
        }
    teacher = Verifier(LAYERS)
    teacher.body.load_state_dict(load_file(arguments.base / "model.safetensors"), strict=False)
    train(teacher, lines, labels, weights, held, rate=6e-5, passes=arguments.passes[0])
    tell(teacher, held, "test")
    student = make_student(teacher)
    taught = score(teacher, lines)
    train(student, lines, labels, weights, held, rate=1.2e-4, passes=arguments.passes[1], taught=taught)
    tell(student, held, "test")
    save(student, arguments.out / "verifier.npz")


if __name__ == "__main__":
    main()
