"""How well follow-up questions are made to stand alone: python benchmarks/bench_followups.py [EVERY]

Data: followups from `OPENASSAY_EVAL_DATA`, by default ../shared/data. CANARD gives questions about an article of an
encyclopaedia with their answers, MTRAG the questions of people in four fields, without the answers; both give what
people wrote in their place. All goes through `understand`, with the register of companies that comes with OpenAssay.

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

import sys
from collections.abc import Sequence

from benchmarks.evaluation.followups import (
    FIELDS,
    Pair,
    bleu,
    copy_messages,
    load_canard,
    load_mtrag,
    precision,
    recall,
    rewrite_messages,
)
from benchmarks.evaluation.measure import require_data_folder
from openassay.companies.register import open_companies


def line(name: str, pairs: Sequence[Pair]) -> None:
    print(
        f"{name:<20} {len(pairs):>5}   {recall(pairs):.3f} {precision(pairs):.3f}   BLEU {bleu(pairs):.1f}", flush=True
    )


def measure(every: int) -> None:
    companies = open_companies()
    data = require_data_folder()
    articles, people = load_canard(data)[::every], load_mtrag(data, companies)[::every]
    line("CANARD, copied", copy_messages(articles))
    ours = rewrite_messages(articles, companies)
    line("CANARD", ours)
    line("  first half", ours[: len(ours) // 2])
    line("  second half", ours[len(ours) // 2 :])
    line("  no subject", rewrite_messages(articles, companies, subject=False))
    line("MTRAG, copied", copy_messages(people))
    line("MTRAG", rewrite_messages(people, companies))
    line("  no subject", rewrite_messages(people, companies, subject=False))
    for field in FIELDS:
        line(f"  {field}", rewrite_messages(load_mtrag(data, companies, [field])[::every], companies))


if __name__ == "__main__":
    measure(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
