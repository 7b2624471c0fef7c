"""How well follow-up questions are made to stand alone: python benchmarks/bench_followups.py [EVERY]

Data: followups from `ASSAY_EVAL_DATA`, by default ../shared/data. CANARD gives questions about an article of an
encyclopaedia with their answers, MTRAG the questions of people in four fields, without the answers; both give what
people wrote in their place. All goes through `understand`, with the register of companies that comes with Assay.

A thread of CANARD has the article's title as its first message and the section's title as the answer to it; then come
questions and answers in turn. `subject` is the title, as the thread would know it; "no subject" is the same without.
A thread of MTRAG is the person's earlier messages; `subject` is what was understood of the message before.

Measured by words that carry meaning: lower case, two letters or more, without stop words, stemmed, each counted once.
Recall is the share of the reference's words that we have, precision the share of ours that it has; both are averaged
over questions, and of MTRAG only over those that are no first message. So defined, copying the last message gives
.486/.962 and .670/.822. BLEU is that of the whole corpus, with up to four words. Nothing was fitted but the rules,
which were written with samples of all of it in view. Measured:

                            recall  precision  BLEU   copied
    CANARD, 3,430             .761    .886     53.1   .486 .962 34.4
      first, second half      .763    .890            of 1,715 each
                              .758    .883
      no subject              .749    .885     52.4
    MTRAG, 675                .694    .787     38.1   .670 .822 37.9
      clapnq                  .720    .755            180
      cloud                   .728    .829            163
      fiqa                    .662    .772            156
      govt                    .662    .797            176

Of the 3,430 none is asked back about, of the 675 one; a message after ten turns takes 6 to 18 ms,
depending on who else uses the processor.
"""

import json
import math
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from assay.companies import open_companies
from assay.model.question import Turn
from assay.ports import Companies
from assay.reasoning.embedded.understanding import understand
from assay.reasoning.protocol import Conversation
from assay.text.words import stem

DATA = Path(os.environ.get("ASSAY_EVAL_DATA", "../shared/data")) / "followups"
FIELDS = ("clapnq", "cloud", "fiqa", "govt")
STOP_WORDS = frozenset(
    "i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers herself "
    "it its itself they them their theirs themselves what which who whom this that these those am is are was were be "
    "been being have has had having do does did doing a an the and but if or because as until while of at by for with "
    "about against between into through during before after above below to from up down in out on off over under again "
    "further then once here there when where why how all any both each few more most other some such no nor not only "
    "own same so than too very s t can will just don should now".split()
)


class FollowUp(NamedTuple):
    said: tuple[Turn, ...]
    subject: str | None
    message: str
    reference: str


Pair = tuple[str, str]  # what we made of a message, and the reference


def canard() -> list[FollowUp]:
    found = []
    for item in json.loads((DATA / "canard-dev.json").read_text("utf-8")):
        roles: Iterator[bool] = (place % 2 == 0 for place in range(len(item["History"])))
        said = tuple(turn(mine, text) for mine, text in zip(roles, item["History"], strict=True))
        subject = re.sub(r"\s*\([^)]*\)$", "", item["History"][0])
        found.append(FollowUp(said, subject, item["Question"], item["Rewrite"]))
    return found


def mtrag(companies: Companies, fields: Sequence[str] = FIELDS) -> list[FollowUp]:
    found = []
    for field in fields:
        wanted = {key: messages[0] for key, messages in _messages(f"{field}_rewrite")}
        for key, messages in _messages(f"{field}_questions"):
            if len(messages) > 1:
                said = tuple(turn(True, text) for text in messages[:-1])
                before = understand(messages[-2], Conversation(turns=said[:-1]), companies).primary_subject
                found.append(FollowUp(said, before, messages[-1], wanted[key]))
    return found


def _messages(name: str) -> Iterator[tuple[str, list[str]]]:
    for line in (DATA / "mtrag" / f"{name}.jsonl").read_text("utf-8").splitlines():
        item = json.loads(line)
        messages = re.split(r"(?:^|\n)\|user\|:", item["text"])
        yield item["_id"], [text.strip() for text in messages if text.strip()]


def turn(mine: bool, text: str) -> Turn:
    return Turn(role="user" if mine else "assistant", content=text)


def answered(questions: Sequence[FollowUp], companies: Companies, *, subject: bool = True) -> list[Pair]:
    pairs = []
    for item in questions:
        conversation = Conversation(turns=item.said, subject=item.subject if subject else None)
        pairs.append((understand(item.message, conversation, companies).question, item.reference))
    return pairs


def telling(text: str) -> set[str]:
    words = re.findall(r"[a-z0-9']+", text.lower().replace("’", "'"))
    return {stem(word) for word in words if word not in STOP_WORDS and len(word) > 1}


def recall(pairs: Sequence[Pair]) -> float:
    return _mean(telling, [(reference, ours) for ours, reference in pairs])


def precision(pairs: Sequence[Pair]) -> float:
    return _mean(telling, pairs)


def _mean(words: Callable[[str], set[str]], pairs: Sequence[Pair]) -> float:
    shares = [len(words(left) & words(right)) / len(words(left)) for left, right in pairs if words(left)]
    return sum(shares) / len(shares)


def bleu(pairs: Sequence[Pair]) -> float:
    split = [(_tokens(ours), _tokens(reference)) for ours, reference in pairs]
    logs = []
    for size in range(1, 5):
        counts = [(_grams(ours, size), _grams(reference, size)) for ours, reference in split]
        same = sum((ours & reference).total() for ours, reference in counts)
        logs.append(math.log(same / sum(ours.total() for ours, _ in counts)))
    length, wanted = sum(len(ours) for ours, _ in split), sum(len(reference) for _, reference in split)
    return 100 * math.exp(sum(logs) / 4 + min(0.0, 1 - wanted / length))


def _tokens(text: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]", text.lower())


def _grams(tokens: Sequence[str], size: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(tokens[at : at + size]) for at in range(len(tokens) - size + 1))


def line(name: str, pairs: Sequence[Pair]) -> None:
    print(
        f"{name:<20} {len(pairs):>5}   {recall(pairs):.3f} {precision(pairs):.3f}   BLEU {bleu(pairs):.1f}", flush=True
    )


def measure(every: int) -> None:
    companies = open_companies()
    articles, people = canard()[::every], mtrag(companies)[::every]
    line("CANARD, copied", [(item.message, item.reference) for item in articles])
    ours = answered(articles, companies)
    line("CANARD", ours)
    line("  first half", ours[: len(ours) // 2])
    line("  second half", ours[len(ours) // 2 :])
    line("  no subject", answered(articles, companies, subject=False))
    line("MTRAG, copied", [(item.message, item.reference) for item in people])
    line("MTRAG", answered(people, companies))
    line("  no subject", answered(people, companies, subject=False))
    for field in FIELDS:
        line(f"  {field}", answered(mtrag(companies, [field])[::every], companies))


if __name__ == "__main__":
    if DATA.is_dir():
        measure(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    else:
        print(f"no data at {DATA}; set ASSAY_EVAL_DATA")
