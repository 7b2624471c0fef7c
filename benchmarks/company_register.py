"""Makes the package data of `openassay.companies`: the register of companies and the list of ordinary words.

`companies.tsv.gz` is the list of companies and tickers that the U.S. Securities and Exchange Commission publishes (a
work of the United States government), in its order, which is nearly by market value. A line is a company: its number,
its tickers, its name. `words.txt.gz` has the 8,000 most frequent words of a frequency list, an empty line, and then the
rest of its first 40,000 with the whole words of the vocabulary that the embedding model has. Made again with the same
zlib, both are the same to the byte.

How to run it, in an environment of its own:

    pip install pyarrow
    pip download --no-deps edgartools==5.62.1 symspellpy==6.10.1
    python benchmarks/company_register.py edgartools-5.62.1-py3-none-any.whl symspellpy-6.10.1-py3-none-any.whl
"""

import argparse
import gzip
import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parent.parent / "src" / "openassay"
DATA = SOURCE / "companies" / "data"
VOCABULARY = SOURCE / "embedding" / "data" / "tokenizer.json"
TICKERS = "edgar/reference/data/company_tickers.parquet"
FREQUENCIES = "symspellpy/frequency_dictionary_en_82_765.txt"
# Nothing is made from other bytes than these.
UPSTREAM = {
    TICKERS: "992d61ad828ae74192f261e4c2a891966c69928ca56bd092d636c7d001e0b562",
    FREQUENCIES: "68e9dc81c7e73bd7310b57e516ecaea0d8b6387ff71344a57c04174650a407a7",
}
COMMON, KNOWN = 8_000, 40_000  # words


def taken(wheel: Path, name: str) -> bytes:
    content = zipfile.ZipFile(wheel).read(name)
    found = hashlib.sha256(content).hexdigest()
    if found != UPSTREAM[name]:
        raise SystemExit(f"{name} has the sha256 {found}, not the one this was written for")
    return content


def register(parquet: bytes) -> str:
    import pyarrow.parquet  # type: ignore[import-not-found,unused-ignore]

    rows: list[dict[str, Any]] = pyarrow.parquet.read_table(io.BytesIO(parquet)).to_pylist()
    names: dict[int, str] = {}
    tickers: dict[int, list[str]] = {}
    for row in rows:
        cik = int(row["cik"])
        names.setdefault(cik, " ".join(row["name"].split()))
        tickers.setdefault(cik, []).append(row["ticker"])
    return "".join(f"{cik}\t{' '.join(tickers[cik])}\t{name}\n" for cik, name in names.items())


def words(frequencies: bytes) -> str:
    listed = [line.split()[0] for line in frequencies.decode("utf-8-sig").splitlines()]
    ordered = [word for word in dict.fromkeys(listed[:KNOWN]) if word.isascii() and word.isalpha()]
    vocabulary: dict[str, int] = json.loads(VOCABULARY.read_text("utf-8"))["model"]["vocab"]
    whole = {word for word in vocabulary if len(word) > 1 and word.isascii() and word.isalpha()}
    common = set(ordered[:COMMON])
    rarer = (set(ordered) | whole) - common
    return "\n".join(sorted(common)) + "\n\n" + "\n".join(sorted(rarer))


def write(name: str, text: str) -> None:
    packed = gzip.compress(text.encode(), compresslevel=9, mtime=0)
    (DATA / name).write_bytes(packed)
    print(f"| `{name}` | {len(packed)} | `{hashlib.sha256(packed).hexdigest()}` |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("companies", type=Path, help="the wheel with the list of companies")
    parser.add_argument("frequencies", type=Path, help="the wheel with the list of words")
    arguments = parser.parse_args()
    DATA.mkdir(exist_ok=True)
    write("companies.tsv.gz", register(taken(arguments.companies, TICKERS)))
    write("words.txt.gz", words(taken(arguments.frequencies, FREQUENCIES)))


if __name__ == "__main__":
    main()
