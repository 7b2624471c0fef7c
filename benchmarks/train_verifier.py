"""Trains the verifier on the pairs of `verifier_pairs`; runs on a machine with an accelerator, torch and transformers.

    python benchmarks/train_verifier.py --base FOLDER --pairs pairs.jsonl.xz --held held.json.xz --out FOLDER

A teacher of twelve layers learns from the labels; a student of six, made of every other layer of it, learns from the
labels and from what the teacher says of the same pairs. `--base` is all-mpnet-base-v2 (Apache-2.0) as it was published.
Both read the statement, then the evidence, and give three logits: supported, refuted, neither. A fourth is for two
documents that report the same: whether they are one voice.

The teacher's last pass is made with its matrices rounded to four bits, as they can be stored.
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

LAYERS, WIDTH, LONGEST = 12, 768, 384
KEPT = (0, 2, 4, 7, 9, 11)  # of the teacher's layers
PADDING = 1
BATCH_TOKENS, BATCH_PAIRS = 40_000, 320
STATEMENT_WORDS = 150
EITHER, TWO_VOICES = 3, 4  # labels: refuted or neither; the first of the two of pairs of documents
BLOCK = 32  # weights of a row that share a scale when they are stored in four bits
SHARES = {"written": 1.0, "voices": 1.0, "copied": 1.0, "elsewhere": 0.3, "alone": 0.4, "removed": 0.5, "buried": 0.4}
SHARE_OF_OTHERS = 0.35  # of the pairs of a set that a pass shows
LATE = 2  # the last passes of a teacher, which show fewer of these
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
        self.last = nn.Linear(WIDTH, 4)

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


def split_batches(
    lines: Lines, sets: Sequence[str], rng: random.Random, others: float = SHARE_OF_OTHERS
) -> list[list[int]]:
    """A pass: neighbours in length share a batch, in shuffled order."""
    shown = [at for at in range(len(lines)) if rng.random() < SHARES.get(sets[at], others)]
    order = sorted(shown, key=lambda at: len(lines[at]) + 4 * rng.random())
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
    rows = np.zeros((len(lines), 4), np.float32)
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
            margin = rows[:, 3] if name.endswith("voices") else rows[:, 0] - np.logaddexp(rows[:, 1], rows[:, 2])
            balanced = ((margin[truth] >= 0).mean() + (margin[~truth] < 0).mean()) / 2
            said.append(f"{name.removeprefix(part + ':')} {auc(truth, margin):.3f} {balanced:.3f}")
    print(f"{part}: {', '.join(said)}", flush=True)


def train(
    model: nn.Module,
    lines: Lines,
    rows: Sequence[Sequence[Any]],
    held: Mapping[str, tuple[Lines, NDArray[np.bool_]]],
    *,
    rate: float,
    passes: int,
    taught: NDArray[np.float32] | None = None,
    seed: int = 1,
    late: float = SHARE_OF_OTHERS,
    keep: Path | None = None,
) -> None:
    """`taught` is what the teacher says of each pair, for a student; `late` the share of others' pairs that the last
    passes show; `keep` where the model is kept after each pass."""
    model.to(DEVICE)
    rng = random.Random(seed)
    torch.manual_seed(seed)
    sets = [row[4] for row in rows]
    shares = [late if left <= LATE else SHARE_OF_OTHERS for left in range(passes, 0, -1)]
    steps = sum(len(split_batches(lines, sets, random.Random(0), share)) for share in shares)
    plain = [one for one in model.parameters() if one.ndim < 2]
    groups: list[dict[str, Any]] = [{"params": [one for one in model.parameters() if one.ndim >= 2]}]
    groups.append({"params": plain, "weight_decay": 0.0})
    optimiser = torch.optim.AdamW(groups, lr=rate, weight_decay=0.01, betas=(0.9, 0.98), fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min(1.0, (step + 1) / (0.08 * steps)) * max(0.0, 1 - step / (steps + 1))
    )
    truth = torch.tensor([row[2] for row in rows], device=DEVICE)
    worth = torch.tensor([row[3] for row in rows], device=DEVICE)
    teacher = None if taught is None else torch.tensor(taught, device=DEVICE)
    for number in range(1, passes + 1):
        began, total = time.monotonic(), torch.zeros((), device=DEVICE)
        batches = split_batches(lines, sets, rng, shares[number - 1])
        for batch in batches:
            model.train()
            with torch.autocast(DEVICE, torch.bfloat16):
                scores = model(*pad([lines[at] for at in batch])).float()
            at = torch.as_tensor(batch, device=DEVICE)
            chances, label = scores[:, :3].log_softmax(1), truth[at]
            known = chances.gather(1, label.clamp(max=2)[:, None])[:, 0]
            said = torch.where(label == EITHER, torch.logsumexp(chances[:, 1:], 1), known)
            loss = -((1 - SMOOTHING) * said + SMOOTHING * chances.mean(1))
            voices = nn.functional.binary_cross_entropy_with_logits(
                scores[:, 3], (label > TWO_VOICES).float() * (1 - 2 * SMOOTHING) + SMOOTHING, reduction="none"
            )
            if teacher is not None:
                wanted = teacher[at][:, :3].softmax(1)
                apart = (wanted * (wanted.clamp_min(1e-8).log() - chances)).sum(1)
                loss = (1 - FROM_TEACHER) * loss + FROM_TEACHER * apart
                told = nn.functional.binary_cross_entropy_with_logits(
                    scores[:, 3], teacher[at][:, 3].sigmoid(), reduction="none"
                )
                voices = (1 - FROM_TEACHER) * voices + FROM_TEACHER * told
            loss = torch.where(label >= TWO_VOICES, voices, loss)
            loss = (loss * worth[at]).sum() / worth[at].sum()
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            total += loss.detach()
        seconds = time.monotonic() - began
        if keep:
            torch.save(model.state_dict(), keep)
        print(f"pass {number} of {passes}: loss {total.item() / len(batches):.3f}, {seconds:.0f} s", flush=True)
        tell(model, held, "dev")


class FourBits(nn.Module):  # type: ignore[misc]
    """Rounds a matrix as it will be stored, and lets what is learnt through to the matrix itself."""

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        blocks = weight.view(weight.shape[0], -1, BLOCK)
        low, high = blocks.amin(2, keepdim=True).clamp(max=0), blocks.amax(2, keepdim=True).clamp(min=0)
        step = ((high - low) / 15).clamp_min(1e-8)
        zero = (-low / step).round()
        near = ((blocks / step + zero).round().clamp(0, 15) - zero) * step
        return weight + (near.view_as(weight) - weight).detach()


def round_matrices(model: nn.Module) -> None:
    for layer in [*model.body.encoder.layer.modules(), model.body.embeddings.word_embeddings]:
        if isinstance(layer, (nn.Linear, nn.Embedding)):
            nn.utils.parametrize.register_parametrization(layer, "weight", FourBits())


def settle_matrices(model: nn.Module) -> None:
    for layer in [*model.body.encoder.layer.modules(), model.body.embeddings.word_embeddings]:
        if isinstance(layer, (nn.Linear, nn.Embedding)):
            nn.utils.parametrize.remove_parametrizations(layer, "weight")


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
    """Matrices of twelve layers in four bits, of six in eight; all else as it is."""
    deep = len(model.body.encoder.layer) == LAYERS
    stored: dict[str, NDArray[Any]] = {}
    for name, value in model.state_dict().items():
        weight = value.float().cpu().numpy()
        if weight.ndim != 2 or weight.size < 100_000:
            stored[name] = weight
        elif deep and (".layer." in name or "word_embeddings" in name):
            blocks = weight.reshape(weight.shape[0], -1, BLOCK)
            low, high = blocks.min(2, keepdims=True).clip(max=0), blocks.max(2, keepdims=True).clip(min=0)
            step = ((high - low) / 15).clip(1e-8)
            zero = np.round(-low / step)
            whole = (np.round(blocks / step) + zero).clip(0, 15).astype(np.uint8).reshape(weight.shape[0], -1)
            stored[f"{name}:four"] = whole[:, ::2] | whole[:, 1::2] << 4
            stored[f"{name}:step"], stored[f"{name}:zero"] = (
                step[:, :, 0].astype(np.float16),
                zero[:, :, 0].astype(np.uint8),
            )
        else:
            scale = np.abs(weight).max(axis=1, keepdims=True) / 127
            scale[scale == 0] = 1
            stored[f"{name}:int8"], stored[f"{name}:scale"] = np.round(weight / scale).astype(np.int8), scale
    np.savez(path, **stored)  # type: ignore[arg-type]  # the dictionary might name an option, says the stub


def read_pairs(path: Path) -> Iterator[list[Any]]:
    with lzma.open(path, "rt") as file:
        yield from map(json.loads, file)


def load_base(folder: Path) -> dict[str, torch.Tensor]:
    """As it was published, or, where that does not fit through the door, in parts with int8 matrices."""
    from safetensors.torch import load_file

    if (folder / "model.safetensors").is_file():
        found: dict[str, torch.Tensor] = load_file(folder / "model.safetensors")
        return found
    state = {}
    for part in sorted(folder.glob("mpnet*.npz")):
        stored = np.load(part)
        for name in stored.files:
            plain, _, kind = name.partition(":")
            if kind == "q":
                state[plain] = stored[name].astype(np.float32) * stored[f"{plain}:s"].astype(np.float32)
            elif not kind:
                state[plain] = stored[name].astype(np.float32)
    return {name: torch.from_numpy(value) for name, value in state.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, required=True, help="all-mpnet-base-v2, with its tokenizer.json")
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--held", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--passes", type=int, nargs=3, default=(5, 2, 0), help="teacher, teacher in 4 bits, student")
    parser.add_argument("--teacher", type=Path, nargs="+", help="kept here when trained, and taken from here if it "
                        "exists; the mean of several is one teacher")  # fmt: skip
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--late", type=float, default=SHARE_OF_OTHERS)
    arguments = parser.parse_args()
    began = time.monotonic()
    rows = list(read_pairs(arguments.pairs))
    lines = encode(arguments.base, [(row[0], row[1]) for row in rows])
    with lzma.open(arguments.held, "rt") as file:
        held = {
            name: (
                encode(arguments.base, [(one[0], one[1]) for one in found]),
                np.array([one[2] for one in found], bool),
            )
            for name, found in json.load(file).items()
        }
    print(f"{len(rows)} pairs after {time.monotonic() - began:.0f} s", flush=True)
    torch.manual_seed(1)  # the same head for all: the mean of two that began apart is none
    teacher = Verifier(LAYERS)
    if arguments.teacher and arguments.teacher[0].is_file():
        states = [torch.load(path) for path in arguments.teacher]
        teacher.load_state_dict({name: sum(one[name] for one in states) / len(states) for name in states[0]})
        teacher.to(DEVICE)
        tell(teacher, held, "dev")
    else:
        teacher.body.load_state_dict(load_base(arguments.base), strict=False)
        keep = arguments.teacher[0] if arguments.teacher else None
        options = {"seed": arguments.seed, "late": arguments.late, "keep": keep}
        train(teacher, lines, rows, held, rate=6e-5, passes=arguments.passes[0], **options)
    if not any(arguments.passes[1:]):
        return
    tell(teacher, held, "test")
    taught = score(teacher, lines)
    if arguments.passes[1]:
        whole = {name: value.clone() for name, value in teacher.state_dict().items()}
        round_matrices(teacher)
        tell(teacher, held, "dev")
        train(teacher, lines, rows, held, rate=1.5e-5, passes=arguments.passes[1], taught=taught)
        tell(teacher, held, "test")
        settle_matrices(teacher)
        save(teacher, arguments.out / "verifier12.npz")
        teacher.load_state_dict(whole)
    if arguments.passes[2]:
        student = make_student(teacher)
        train(student, lines, rows, held, rate=1.2e-4, passes=arguments.passes[2], taught=taught)
        tell(student, held, "test")
        save(student, arguments.out / "verifier6.npz")


if __name__ == "__main__":
    main()
