"""How fast PDF files are read and how well: twelve quarterly reports.

Data: sec-10q from `OPENASSAY_EVAL_DATA`, by default ../shared/data. Measured on 2 cores that others used too, which
moves
the wall clock most (6 s was with little else running, 51 s under a load of 8):

                                pypdf 7.0.1, layout mode    pypdfium2 5.14.0, places of characters
    wall clock, all twelve            114 to 158 s                     6 to 51 s
    processor time, a filing         7.2 to 7.8 s                    1.0 to 1.7 s
    prose lines that are whole               .965                          .978
    rows with their headings                 .816                          .849
    rows that say their scale                   0                          .776
"""

import re
import resource
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from benchmarks.evaluation.measure import require_data_folder
from openassay.fetch import pdf

_BARE_ROW = re.compile(r"\D.*?(?:\s[$(]*\d[\d,.]*[)%]*){2,}")
_END = (".", ":", ";", "; and")


class Quality(NamedTuple):
    prose: int
    whole: int
    rows: int
    bound: int
    scaled: int


def quality(text: str) -> Quality:
    lines = text.split("\n")
    prose = [line for line in lines if len(line) > 150 and " — " not in line]
    bound = [line for line in lines if " — " in line and re.search(r": [$(]*[\d—]", line)]
    bare = [line for line in lines if len(line) < 150 and " — " not in line and _BARE_ROW.fullmatch(line)]
    return Quality(
        prose=len(prose),
        whole=sum(line.rstrip("”’)").endswith(_END) for line in prose),
        rows=len(bound) + len(bare),
        bound=len(bound),
        scaled=sum(bool(re.search(r" \(in (?:thousands|millions|billions)\) ", line)) for line in [*bound, *bare]),
    )


def processor_seconds() -> float:
    return sum(
        used.ru_utime + used.ru_stime
        for used in (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    )


def main() -> None:
    paths = sorted((require_data_folder() / "sec-10q" / "docs").glob("*.pdf"))
    began, used = time.perf_counter(), processor_seconds()
    with ThreadPoolExecutor() as pool:
        found = list(pool.map(lambda path: quality(pdf.extract(path).text), paths))
    wall, used = time.perf_counter() - began, processor_seconds() - used
    total = Quality(*(sum(column) for column in zip(*found, strict=True)))
    print(f"{len(paths)} filings read in {wall:.1f} s, {used / len(paths):.2f} s of processor time each")
    print(f"prose lines that are whole  {total.whole / total.prose:.3f} of {total.prose}")
    print(f"rows with their headings    {total.bound / total.rows:.3f} of {total.rows}")
    print(f"rows that say their scale   {total.scaled / total.rows:.3f}")


if __name__ == "__main__":
    main()
