"""Trains adapters with which the verifier tells whether a sentence follows from several claims; runs on a machine with
an accelerator and torch.

    python -m benchmarks.train_synthesis --verifier FOLDER --rows rows.jsonl.xz --out FOLDER [--trials]

As the reader's (`train_reader`), beside the same matrices, which stay as they are stored. The head is the verifier's.
With `--trials` settings are compared. Else one is learned several times, with other seeds, and what each adds to a
matrix is put together and brought to the rank that is kept: that is better than any of them alone. Groups that are held
back are never learned from; the threshold is chosen on them.
"""

import argparse
import json
import lzma
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from benchmarks.train_reader import DEVICE, LONGEST, PADDING, AdaptedEncoder, unpack

BATCH_TOKENS = 24_000
STATEMENT_WORDS = 90
EITHER = 3  # label: refuted or neither
SMOOTHING = 0.05
TOLD = (0.05, 0.1, 0.15)  # shares of false sentences that pass, at which the share of true ones refused is told


class Follows(AdaptedEncoder):
    def __init__(self, tensors: dict[str, torch.Tensor], rank: int, drop: float) -> None:
        super().__init__(tensors, rank)
        self.drop = nn.Dropout(drop)
        for name in ("hidden.weight", "hidden.bias", "last.weight", "last.bias"):
            self.register_buffer(name.replace(".", "_"), tensors[name].float())

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        first = self.drop(self.encode(ids, mask)[:, 0].float())
        scores: torch.Tensor = torch.tanh(first @ self.hidden_weight + self.hidden_bias) @ self.last_weight
        return scores + self.last_bias


class Setting(NamedTuple):
    rank: int
    rate: float
    passes: int
    statements: float  # share of the statements on passages that a pass shows
    drop: float = 0.1
    seed: int = 1


CHOSEN = Setting(16, 3e-4, 5, 0.25)
TRIALS = (
    Setting(12, 4e-4, 4, 0.15),
    Setting(12, 8e-4, 4, 0.15),
    Setting(12, 4e-4, 8, 0.15),
    Setting(12, 4e-4, 4, 0.5),
    Setting(12, 4e-4, 4, 0.0),
    Setting(12, 2e-4, 6, 0.15),
    Setting(12, 4e-4, 6, 0.3, 0.3),
    Setting(16, 4e-4, 6, 0.3),
)


class Data(NamedTuple):
    lines: list[NDArray[np.int64]]
    rows: Sequence[Sequence[Any]]


def pad(lines: Sequence[NDArray[np.int64]]) -> tuple[torch.Tensor, torch.Tensor]:
    ids = np.full((len(lines), -(-max(map(len, lines)) // 8) * 8), PADDING, np.int64)
    for row, line in enumerate(lines):
        ids[row, : len(line)] = line
    moved = torch.from_numpy(ids).to(DEVICE)
    return moved, moved != PADDING


def split_batches(data: Data, shown: list[int], rng: random.Random) -> list[list[int]]:
    order = sorted(shown, key=lambda at: len(data.lines[at]) + 16 * rng.random())
    batches: list[list[int]] = []
    for at in order:
        if not batches or (len(batches[-1]) + 1) * len(data.lines[at]) > BATCH_TOKENS:
            batches.append([])
        batches[-1].append(at)
    rng.shuffle(batches)
    return batches


def train(model: Follows, data: Data, learned: Sequence[int], setting: Setting) -> None:
    rng = random.Random(setting.seed)
    torch.manual_seed(setting.seed)
    weights = [one for one in model.parameters() if one.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=setting.rate, weight_decay=0.02, betas=(0.9, 0.98))
    drawn = [at for at in learned if data.rows[at][4]]
    others = [at for at in learned if not data.rows[at][4]]
    passes = [
        split_batches(data, drawn + rng.sample(others, int(setting.statements * len(others))), rng)
        for _ in range(setting.passes)
    ]
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, setting.rate, total_steps=sum(map(len, passes)) + 1, pct_start=0.08
    )
    labels = torch.tensor([row[2] for row in data.rows], device=DEVICE)
    worth = torch.tensor([row[3] for row in data.rows], device=DEVICE)
    model.train()
    for number, batches in enumerate(passes):
        total = torch.zeros((), device=DEVICE)
        for batch in batches:
            with torch.autocast(DEVICE, torch.bfloat16):
                scores = model(*pad([data.lines[at] for at in batch])).float()
            at = torch.as_tensor(batch, device=DEVICE)
            chances, label = scores[:, :3].log_softmax(1), labels[at]
            known = chances.gather(1, label.clamp(max=2)[:, None])[:, 0]
            said = torch.where(label == EITHER, torch.logsumexp(chances[:, 1:], 1), known)
            loss = -((1 - SMOOTHING) * said + SMOOTHING * chances.mean(1))
            loss = (loss * worth[at]).sum() / worth[at].sum()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(weights, 1.0)
            optimizer.step()
            schedule.step()
            total += loss.detach()
        print(f"  pass {number}: {float(total) / len(batches):.3f}", flush=True)


@torch.no_grad()
def find_margins(model: Follows, data: Data, asked: Sequence[int]) -> NDArray[np.float64]:
    """How much likelier each is supported than not."""
    model.eval()
    margins = np.zeros(len(asked))
    order = sorted(range(len(asked)), key=lambda at: len(data.lines[asked[at]]))
    for begin in range(0, len(order), 128):
        some = order[begin : begin + 128]
        with torch.autocast(DEVICE, torch.bfloat16):
            scores = model(*pad([data.lines[asked[at]] for at in some])).float().cpu().numpy()
        margins[some] = scores[:, 0] - np.logaddexp(scores[:, 1], scores[:, 2])
    return margins


def tell(name: str, margins: NDArray[np.float64], truth: NDArray[np.bool_]) -> float:
    yes, no = margins[truth], margins[~truth]
    auc = float((yes[:, None] > no[None]).mean())
    cuts = [float(np.quantile(no, 1 - share)) for share in TOLD]
    refused = ", ".join(f"{share}: {(yes <= cut).mean():.3f}" for share, cut in zip(TOLD, cuts, strict=True))
    print(f"  {name}: {len(yes)} true, {len(no)} false, AUC {auc:.3f}; refused at {refused}", flush=True)
    return auc


def merge(models: Sequence[Follows], rank: int) -> dict[str, NDArray[np.float32]]:
    """The mean of what adapters add, as far as it has room in a rank."""
    weights: dict[str, NDArray[np.float32]] = {}
    parts = [dict(model.named_parameters()) for model in models]
    for name in parts[0]:
        if not name.endswith(".down"):
            continue
        other = name.removesuffix(".down") + ".up"
        added = sum(part[other].detach().double() @ part[name].detach().double() for part in parts) / len(parts)
        left, sizes, right = torch.linalg.svd(added, full_matrices=False)
        root = sizes[:rank].sqrt()
        weights[other] = (left[:, :rank] * root).float().cpu().numpy()
        weights[name] = (root[:, None] * right[:rank]).float().cpu().numpy()
    return weights


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--verifier", "--rows", "--out"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--trials", action="store_true")
    parser.add_argument("--seconds", type=float, default=500)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=1, help="the first of the seeds")
    parser.add_argument("--keep", type=int, default=16, help="the rank that is kept")
    for name, kind in Setting.__annotations__.items():
        parser.add_argument(f"--{name}", type=kind, default=getattr(CHOSEN, name))
    options = parser.parse_args()
    from tokenizers import Tokenizer

    begun = time.time()
    tokenizer = Tokenizer.from_file(str(options.verifier / "verifier-tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(LONGEST, strategy="only_second")
    with lzma.open(options.rows, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    pairs = [(" ".join(row[0].split()[:STATEMENT_WORDS]), row[1]) for row in rows]
    data = Data([np.array(one.ids) for one in tokenizer.encode_batch(pairs)], rows)
    tensors = unpack(options.verifier)
    parts = {name: [at for at, row in enumerate(rows) if row[4] and row[5] == name] for name in ("held", "dev")}
    parts["held"] = [at for at in parts["held"] if rows[at][3] > 1]  # not those that lack a claim
    truth = {name: np.array([rows[at][2] == 0 for at in own]) for name, own in parts.items()}
    print(f"{len(rows)} rows, {time.time() - begun:.0f} s", flush=True)
    plain = Follows(tensors, 1, 0.0).to(DEVICE)
    for name, own in parts.items():
        tell(f"as it is, {name}", find_margins(plain, data, own), truth[name])
    settings = [Setting(*(getattr(options, name) for name in Setting._fields))]
    settings = (
        [*TRIALS]
        if options.trials
        else [settings[0]._replace(seed=at) for at in range(options.first, options.first + options.seeds)]
    )
    learned = [at for at, row in enumerate(rows) if not row[5]]
    models = list[Follows]()
    for setting in settings:
        if time.time() - begun > options.seconds:
            print(f"no time for {setting}")
            continue
        print(setting, flush=True)
        models.append(Follows(tensors, setting.rank, setting.drop).to(DEVICE))
        train(models[-1], data, learned, setting)
        for name, own in parts.items():
            tell(name, find_margins(models[-1], data, own), truth[name])
        print(f"  {time.time() - begun:.0f} s", flush=True)
    if not options.trials:
        merged = Follows(tensors, options.keep, 0.0).to(DEVICE)
        weights = merge(models, options.keep)
        merged.load_state_dict({name: torch.from_numpy(one) for name, one in weights.items()}, strict=False)
        for name, own in parts.items():
            margins = [find_margins(model, data, own) for model in models]
            tell(f"all together, {name}", np.mean(margins, axis=0), truth[name])
            tell(f"merged, {name}", find_margins(merged, data, own), truth[name])
        options.out.mkdir(parents=True, exist_ok=True)
        stored: dict[str, Any] = {name: one.astype(np.float16) for name, one in weights.items()}
        np.savez(options.out / "synthesis.npz", **stored)


if __name__ == "__main__":
    main()
