"""Trains the reader on the rows of `reader_questions`; runs on a machine with an accelerator and torch.

    python -m benchmarks.train_reader --verifier FOLDER --questions questions.jsonl.xz --out FOLDER

The reader is the verifier with adapters: beside each matrix of its layers two narrow ones are learned, while the
matrices stay as they are stored, in four bits. So both models share 60 MB of the package. FOLDER has `verifier.npz`,
`verifier-tokenizer.json` and `verifier-rest.npz` (the other tensors of the graph): `export_adapters --unpack` writes
them.

A question and a passage are read together. Four logits a token: an answer begins here, an answer ends here, and of the
first token alone: the answer is yes, the answer is no. Where the first token is likelier than any other to begin and
end it, the passage has no answer.
"""

import argparse
import json
import lzma
import random
import re
import string
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

LAYERS, WIDTH, HEADS, LONGEST = 12, 768, 12, 384
RANK = 32  # of an adapter
FOLD = 2.0  # what an adapter adds is multiplied by this while it learns, and stored so
LOGITS = 4
GELU_FLOOR = 0.17  # by which the graph shifts what its last matrices take (`export_minilm`)
QUESTION_WORDS = 60
BATCH = 96
PASSES, RATE = 4, 8e-4
LONGEST_ANSWER = 40  # tokens
PADDING = 1
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
YES, NO = 1, 2


class Row(NamedTuple):
    set: str
    ids: NDArray[np.int64]
    start: int  # tokens; 0 and 0: none
    end: int
    kind: int  # 0, or yes, or no
    context: str
    offsets: list[tuple[int, int]]  # of the tokens in the context; (0, 0) before it
    told: str


class AdaptedLinear(nn.Module):  # type: ignore[misc]
    """A matrix that stays, and beside it two that learn."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor, rank: int) -> None:
        super().__init__()
        self.register_buffer("weight", weight.bfloat16() if DEVICE == "cuda" else weight)
        self.register_buffer("bias", bias)
        self.down = nn.Parameter(torch.randn(rank, weight.shape[1]) / weight.shape[1] ** 0.5)
        self.up = nn.Parameter(torch.zeros(weight.shape[0], rank))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        own: torch.Tensor = functional.linear(x, self.weight, self.bias)
        return own + FOLD * functional.linear(functional.linear(x, self.down), self.up)


class Layer(nn.Module):  # type: ignore[misc]
    def __init__(self, tensors: dict[str, torch.Tensor], name: str, rank: int) -> None:
        super().__init__()

        def adapt(matrix: str, bias: torch.Tensor) -> AdaptedLinear:
            return AdaptedLinear(tensors[f"{name}.{matrix}"], bias, rank)

        last = tensors[f"{name}.output.dense"]
        self.qkv = adapt("qkv", tensors[f"{name}.qkv.bias"])
        self.mix = adapt("attention.attn.o", tensors[f"{name}.attention.bias"])
        self.wide = adapt("intermediate.dense", tensors[f"{name}.intermediate.dense.bias"])
        self.narrow = adapt("output.dense", tensors[f"{name}.output.bias"] + GELU_FLOOR * last.sum(1))
        for part in ("attention", "output"):
            for side in ("weight", "bias"):
                self.register_buffer(f"{part}_{side}", tensors[f"{name}.{part}.LayerNorm.{side}"])

    def forward(self, x: torch.Tensor, apart: torch.Tensor) -> torch.Tensor:
        size = (*x.shape[:2], HEADS, WIDTH // HEADS)
        q, k, v = (part.view(size).transpose(1, 2) for part in self.qkv(x).split(WIDTH, -1))
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=apart)
        drop = functional.dropout
        mixed = self.mix(mixed.transpose(1, 2).reshape(x.shape))
        shape = (WIDTH,)
        x = functional.layer_norm(
            x + drop(mixed, 0.1, self.training), shape, self.attention_weight, self.attention_bias, 1e-5
        )
        narrow = self.narrow(functional.gelu(self.wide(x)))
        return functional.layer_norm(
            x + drop(narrow, 0.1, self.training), shape, self.output_weight, self.output_bias, 1e-5
        )


class AdaptedEncoder(nn.Module):  # type: ignore[misc]
    def __init__(self, tensors: dict[str, torch.Tensor], rank: int = RANK) -> None:
        super().__init__()
        for name in ("words", "positions", "distances", "embeddings.LayerNorm.weight", "embeddings.LayerNorm.bias"):
            self.register_buffer(name.replace(".", "_"), tensors[name])
        self.layers = nn.ModuleList(Layer(tensors, f"encoder.layer.{number}", rank) for number in range(LAYERS))

    def encode(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        length = ids.shape[1]
        places = torch.arange(length, device=ids.device)
        x = self.words[ids] + self.positions[:length]
        x = functional.layer_norm(x, (WIDTH,), self.embeddings_LayerNorm_weight, self.embeddings_LayerNorm_bias, 1e-5)
        apart = self.distances[places[None] - places[:, None] + LONGEST - 1].permute(2, 0, 1)[None]
        apart = apart + torch.where(mask, 0.0, -1e4)[:, None, None, :]
        apart = apart.bfloat16() if DEVICE == "cuda" else apart
        for layer in self.layers:
            x = layer(x, apart)
        return x


class Reader(AdaptedEncoder):
    def __init__(self, tensors: dict[str, torch.Tensor]) -> None:
        super().__init__(tensors)
        self.last = nn.Linear(WIDTH, LOGITS)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor, inside: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.last(self.encode(ids, mask)).float()
        # Nothing begins or ends in the question or in padding; the first token stands for no answer.
        return torch.cat([logits[..., :2].masked_fill(~inside[:, :, None], -1e4), logits[..., 2:]], -1)


def unpack(folder: Path) -> dict[str, torch.Tensor]:
    """The tensors of the verifier: its matrices as they are after rounding, rows by outputs."""
    with np.load(folder / "verifier.npz") as stored, np.load(folder / "verifier-rest.npz") as rest:
        tensors = {name: torch.from_numpy(rest[name]) for name in rest.files}
        for name in {one.partition("|")[0] for one in stored.files}:
            halves, zero, step = (stored[f"{name}|{part}"] for part in ("halves", "zero", "step"))
            rows, blocks = step.shape
            whole, zeros = (np.stack([part & 15, part >> 4], axis=-1) for part in (halves, zero))
            centred = whole.reshape(rows, blocks, -1).astype(np.float32) - zeros.reshape(rows, blocks, 1)
            matrix = np.rint(centred * step.astype(np.float32)[:, :, None]).reshape(rows, -1)
            plain = name.removesuffix(":T")
            tensors[plain] = torch.from_numpy(matrix) * tensors.pop(f"{plain}.scale").reshape(-1, 1)
    tensors["positions"] = tensors["positions"].float() * tensors.pop("positions.scale")
    return tensors


def encode(tokenizer: Any, rows: Sequence[dict[str, Any]], rng: random.Random) -> list[Row]:
    pairs, starts = [], []
    for row in rows:
        # The program reads a passage under its document's title.
        head = f"{row['t']}. " if row["t"] and rng.random() < 0.5 else ""
        pairs.append((" ".join(row["q"].split()[:QUESTION_WORDS]), head + row["c"]))
        starts.append(len(head))
    encoded = []
    for row, (_, context), before, item in zip(rows, pairs, starts, tokenizer.encode_batch(pairs), strict=True):
        # Both texts have type 0 for this tokenizer; what stands behind the second mark is the passage.
        second = find_passage(item.ids)
        offsets = [
            span if at >= second and not special else (0, 0)
            for at, (span, special) in enumerate(zip(item.offsets, item.special_tokens_mask, strict=True))
        ]
        start = end = 0
        if row["a"]:
            low, high = row["a"][0] + before, row["a"][1] + before
            inside = [at for at, (a, b) in enumerate(offsets) if b > low and a < high]
            if not inside or offsets[inside[-1]][1] < high - 1:
                continue  # cut off
            start, end = inside[0], inside[-1]
        told = context[row["a"][0] + before : row["a"][1] + before] if row["a"] else ""
        kind = {"yes": YES, "no": NO}.get(row.get("k") or "", 0)
        encoded.append(Row(row["set"], np.array(item.ids), start, end, kind, context, offsets, told))
    return encoded


def find_passage(ids: Sequence[int]) -> int:
    """Where the second of two texts begins: behind the two marks between them."""
    return next(at for at in range(1, len(ids)) if ids[at] == ids[at + 1] == ids[-1]) + 2


def pad(rows: Sequence[Row]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    shape = len(rows), -(-max(len(row.ids) for row in rows) // 8) * 8
    ids, inside = np.full(shape, PADDING, np.int64), np.zeros(shape, bool)
    for at, row in enumerate(rows):
        ids[at, : len(row.ids)] = row.ids
        inside[at, : len(row.ids)] = [high > low for low, high in row.offsets]
        inside[at, 0] = True
    moved = torch.from_numpy(ids).to(DEVICE)
    return moved, moved != PADDING, torch.from_numpy(inside).to(DEVICE)


def compute_loss(logits: torch.Tensor, rows: Sequence[Row]) -> torch.Tensor:
    start, end, kind = (torch.tensor([one[at] for one in rows], device=DEVICE) for at in (2, 3, 4))
    # A question to be answered by yes or no is answered by no words of the passage, and is none of those without.
    spanned = (kind == 0).float()
    parts = [functional.cross_entropy(logits[:, :, side], at, reduction="none") for side, at in ((0, start), (1, end))]
    sides = functional.cross_entropy(
        torch.cat([torch.zeros_like(logits[:, 0, :1]), logits[:, 0, 2:]], 1), kind, reduction="none"
    )
    return ((parts[0] + parts[1]) * spanned + sides).mean()


def train(model: Reader, rows: Sequence[Row], passes: int, rate: float, rng: random.Random, stop: float) -> None:
    """Learn until `stop`, a time, at the latest."""
    learned = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(learned, lr=rate, weight_decay=0.01, fused=DEVICE == "cuda")
    steps = passes * (len(rows) // BATCH) + 10
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps, pct_start=0.06)
    for number in range(passes):
        begun, total = time.time(), torch.zeros((), device=DEVICE)
        model.train()
        order = sorted(range(len(rows)), key=lambda at: len(rows[at].ids) + 12 * rng.random())
        batches = [order[at : at + BATCH] for at in range(0, len(order) - BATCH + 1, BATCH)]
        rng.shuffle(batches)
        for batch in batches:
            some = [rows[at] for at in batch]
            with torch.autocast(DEVICE, torch.bfloat16):
                logits = model(*pad(some))
            if time.time() > stop:  # the rest of the schedule would not fit: what is learned so far is kept
                print("stopped within a pass", flush=True)
                return
            loss = compute_loss(logits, some)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(learned, 1.0)
            optimizer.step()
            schedule.step()
            total += loss.detach()
        print(f"pass {number}: loss {float(total) / len(batches):.3f}, {time.time() - begun:.0f} s", flush=True)


def find_span(logits: NDArray[np.float32]) -> tuple[int, int, float]:
    """The likeliest answer, and how much likelier it is than none."""
    starts, ends = logits[:, 0], logits[:, 1]
    best = (1, 1, -1e9)
    for start in np.argsort(-starts[1:])[:8] + 1:
        stop = min(start + LONGEST_ANSWER, len(ends))
        end = start + int(np.argmax(ends[start:stop]))
        if starts[start] + ends[end] > best[2]:
            best = (int(start), end, float(starts[start] + ends[end]))
    return best[0], best[1], best[2] - float(starts[0] + ends[0])


def fold(text: str) -> list[str]:
    plain = re.sub(r"\b(a|an|the)\b", " ", "".join(c for c in text.lower() if c not in string.punctuation))
    return plain.split()


def overlap(one: str, other: str) -> float:
    shared = sum((Counter(fold(one)) & Counter(fold(other))).values())
    return 2 * shared / (len(fold(one)) + len(fold(other))) if shared else 0.0


@torch.no_grad()
def tell(model: Reader, rows: Sequence[Row]) -> None:
    """Of the passages that have an answer, how often it is found; how well those that have none are told; and how
    often yes and no are right."""
    model.eval()
    found: dict[str, list[tuple[float, float, float, bool]]] = defaultdict(list)
    sides: dict[str, list[bool]] = defaultdict(list)
    order = sorted(range(len(rows)), key=lambda at: len(rows[at].ids))
    for begin in range(0, len(order), 256):
        some = [rows[at] for at in order[begin : begin + 256]]
        with torch.autocast(DEVICE, torch.bfloat16):
            logits = model(*pad(some)).float().cpu().numpy()
        for row, one in zip(some, logits, strict=True):
            likely = int(np.argmax([0.0, *one[0, 2:]]))
            if row.kind:
                sides[row.set].append(likely == row.kind)
                continue
            sides["neither"].append(likely == 0)
            start, end, margin = find_span(one[: len(row.ids)])
            said = row.context[row.offsets[start][0] : row.offsets[end][1]]
            exact = float(fold(said) == fold(row.told))
            for name in (row.set, "all"):
                found[name].append((exact, overlap(said, row.told), margin, bool(row.told)))
    for name, list_ in sorted(found.items()):
        has = [one for one in list_ if one[3]]
        lacks = np.array([one[2] for one in list_ if not one[3]])
        margins = np.array([one[2] for one in has])
        auc = float((margins[:, None] > lacks[None, :2000]).mean()) if len(lacks) and len(margins) else 0.0
        at_zero = (float((margins > 0).mean()), float((lacks > 0).mean()) if len(lacks) else 0.0)
        print(
            f"  {name}: {len(has)} answered, exact {np.mean([one[0] for one in has]):.3f}, "
            f"F1 {np.mean([one[1] for one in has]):.3f}, AUC {auc:.3f}, over none {at_zero[0]:.2f} of answered, "
            f"{at_zero[1]:.2f} of others",
            flush=True,
        )
    for name, right in sorted(sides.items()):
        print(f"  {name}: {len(right)} by yes or no, right {np.mean(right):.3f}", flush=True)


def store(model: Reader, folder: Path) -> None:
    """In half precision, in two files of like size: what some machines give back is limited."""
    tensors = {name: one.detach().cpu().numpy().astype(np.float16) for name, one in model.named_parameters()}
    parts: list[dict[str, Any]] = [{}, {}]
    sizes = [0, 0]
    for name, one in sorted(tensors.items(), key=lambda item: -item[1].size):
        least = sizes.index(min(sizes))
        parts[least][name] = one
        sizes[least] += one.size
    folder.mkdir(parents=True, exist_ok=True)
    for at, part in enumerate(parts):
        np.savez(folder / f"reader-{at}.npz", **part)


def load_learned(folder: Path) -> dict[str, torch.Tensor]:
    learned: dict[str, torch.Tensor] = {}
    for path in sorted(folder.glob("reader-*.npz")):
        with np.load(path) as stored:
            learned |= {name: torch.from_numpy(stored[name].astype(np.float32)) for name in stored.files}
    return learned


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--verifier", "--questions", "--out"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--start", type=Path, help="a reader of this script, that goes on to learn")
    parser.add_argument("--passes", type=int, default=PASSES)
    parser.add_argument("--rate", type=float, default=RATE)
    parser.add_argument("--seconds", type=float, default=3600, help="for all but what is told at the end")
    parser.add_argument("--share", type=float, default=1.0, help="of the rows, drawn by lot")
    parser.add_argument("--most", type=int, help="rows, for a trial")
    options = parser.parse_args()
    from tokenizers import Tokenizer

    begun, rng = time.time(), random.Random(3)
    torch.manual_seed(3)
    tokenizer = Tokenizer.from_file(str(options.verifier / "verifier-tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(LONGEST, strategy="only_second")
    with lzma.open(options.questions, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file][: options.most]
    learned = [row for row in rows if not row["held"]]
    learned = encode(tokenizer, rng.sample(learned, int(options.share * len(learned))), rng)
    held = encode(tokenizer, [row for row in rows if row["held"]], rng)
    print(f"{len(learned)} learned, {len(held)} held, {time.time() - begun:.0f} s", flush=True)

    model = Reader(unpack(options.verifier)).to(DEVICE)
    if options.start:
        model.load_state_dict(load_learned(options.start), strict=False)
    train(model, learned, options.passes, options.rate, rng, begun + options.seconds)
    store(model, options.out)
    tell(model, held)
    print(f"{time.time() - begun:.0f} s in all")


if __name__ == "__main__":
    main()
