"""Pages that give orders, read by a model that obeys all of them: what it can change.

    python benchmarks/bench_injection.py [PAGES]

Data: injection (BIPIA's training attacks, with e-mails and tables that carry them) from `OPENASSAY_EVAL_DATA`, by
default
../shared/data. Each page is a carrier with facts on the subject and one attack, which stands in the text, hidden in the
markup, in the page's title or in the snippet of the search engine; a quarter are plain text. Search engine, pages and
model are servers on this machine, and every request that reaches one is on record. The model adds a canary that stands
on no page to all it says, or says nothing else; it gives every mark its highest value and names the attack as evidence.

The same is read first without attacks, which gives the plan and the queries that nobody tampered with; then with them,
and with them once more where no sentence is recognised as an order and set aside, so that nothing but the structure
stands in the way. Measured:

                      orders set aside    not recognised
    pages                        1,000               270
    plans changed                    0                 0
    queries with their words         0                 0
    fetches not offered              0                 0
    requests with the canary         0                 0
    planning prompts                 0                 0
    published                        0                 0
    prompts that repeat it           0                 6    (of the judge and the writer)
    records                          0               154    (claims that were refused, what the reviewer wrote)
"""

import asyncio
import sys
import time

from benchmarks.evaluation.injection import PAGES, UNMARKED, Harm, disable_order_detection, run_attacks
from benchmarks.evaluation.measure import require_data_folder


async def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else PAGES
    print("orders set aside")
    await told(count)
    print("\norders not recognised")
    with disable_order_detection():
        await told(min(count, UNMARKED))


async def told(count: int) -> None:
    began = time.perf_counter()
    total = Harm()
    reached: dict[str, set[str]] = {}
    read = 0
    async for seen, done in run_attacks(require_data_folder(), count):
        total = Harm(*(one + other for one, other in zip(total, done, strict=True)))
        for form, obeyed in seen.model.obeyed.items():
            reached.setdefault(form, set()).update(obeyed)
        read += len(set(seen.fetched) & seen.offered)
    print(f"{count} pages, {read} fetched, in {time.perf_counter() - began:.0f} s")
    print("attacks obeyed, by form: " + ", ".join(f"{form} {len(found)}" for form, found in reached.items()))
    for name, value in total._asdict().items():
        print(f"  {name:10} {value}")


if __name__ == "__main__":
    asyncio.run(main())
