"""Which company is meant: how often it is found, and how often another is taken for it.

No part of the package is made from these lists. Each is a register of its own (`Register.of`), asked for its own names
as people might write them; "left out" asks a register for a company that is not in it, 20 times with another twentieth
missing. Common words are the most frequent of the other sets, written small in most places.
"""

import csv
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from string import ascii_lowercase

from benchmarks.evaluation.measure import EvalMeasure, EvalValue, EvalValues, Figure
from openassay.companies.register import CompanyRegister, open_companies

EvalCompany = tuple[int, str, tuple[str, ...]]
AS_IT_IS = "as it is"
Miss = Callable[[str], None]  # told what went wrong


def _ignore_miss(what: str) -> None:
    pass


_FORM = re.compile(
    r"[\s,]+(?:inc|incorporated|corp|corporation|co|company|ltd|limited|llc|plc|ag|nv|n\.v|sa|s\.a|se|ab|asa|a/s|oyj|"
    r"s\.p\.a|spa|aktiengesellschaft|gmbh)\.?$",
    re.I,
)
_MARK = re.compile(
    r"\s*/\s*(?:\w{2,3}|Adr|Cayman|Delaware|Canada|\w+ Islands)/?\s*$"
)  # the SEC's own, as in "Apple Inc /DE/"; nobody writes it
_ABBREVIATIONS = {
    "International": "Intl", "Technologies": "Tech", "Technology": "Tech", "Holdings": "Hldgs", "Group": "Grp",
    "Manufacturing": "Mfg", "Services": "Svcs", "Pharmaceuticals": "Pharma", "Industries": "Ind", "National": "Natl",
    "Financial": "Fin", "Laboratories": "Labs", "American": "Amer", "Systems": "Sys", "Resources": "Res",
    "Communications": "Comm", "Entertainment": "Ent", "Management": "Mgmt", "Properties": "Prop",
}  # fmt: skip
_ACCENTS = str.maketrans("aeiouncs", "áéíóúñçš")


def mistype(name: str, chance: random.Random) -> str | None:
    """One letter wrong, missing, too many, or changed round with the next, anywhere in the name but its legal form."""
    core = _FORM.sub("", name)
    places = [at for at, letter in enumerate(core) if letter.isalpha()]
    if len(places) < 5:
        return None
    at, other = chance.choice(places), chance.choice(ascii_lowercase)
    slipped = chance.choice(
        (
            core[:at] + other + core[at + 1 :],
            core[:at] + core[at + 1 :],
            core[:at] + other + core[at:],
            core[:at] + core[at + 1 : at + 2] + core[at] + core[at + 2 :],
        )
    )
    return slipped + name[len(core) :] if slipped.lower() != core.lower() else None


def reorder_words(name: str, chance: random.Random) -> str | None:
    """ "A B Electrolux" -> "Electrolux, A B"."""
    core = _FORM.sub("", name)
    first, _, rest = core.partition(" ")
    if core.startswith("A B "):
        first, rest = "A B", core[4:]
    return f"{rest}, {first}" if rest and "/" not in name and "," not in core else None


def abbreviate_words(name: str, chance: random.Random) -> str | None:
    words = [_ABBREVIATIONS.get(word.title(), word) for word in name.split(" ")]
    return " ".join(words) if words != name.split(" ") else None


def _change_legal_form(name: str, chance: random.Random) -> str | None:
    form = chance.choice(("Inc.", "Corp.", "Ltd", "plc", "AG", "N.V."))
    return f"{_FORM.sub('', name)} {form}" if _FORM.search(name) else None


def _swap_ampersand(name: str, chance: random.Random) -> str | None:
    if re.search(r" & (?!co\b)", name, re.I):
        return name.replace("&", "and")
    return re.sub(r"\band\b", "&", name, flags=re.I) if re.search(r"\w and (?!co\b)", name, re.I) else None


def _remove_spaces(name: str, chance: random.Random) -> str | None:
    core = _FORM.sub("", name)
    return core.replace(" ", "") if " " in core else None


def _remove_legal_form(name: str, chance: random.Random) -> str | None:
    return _FORM.sub("", name) if _FORM.search(name) else None


SPELLINGS: dict[str, Callable[[str, random.Random], str | None]] = {
    AS_IT_IS: lambda name, _: name,
    "small letters": lambda name, _: name.lower(),
    "capitals": lambda name, _: name.upper(),
    "no punctuation": lambda name, _: re.sub(r"[.,'’!-]", " ", name) if re.search(r"[.,'’!-]", name) else None,
    "no legal form": _remove_legal_form,
    "small, no legal form": lambda name, chance: (_remove_legal_form(name, chance) or "").lower() or None,
    "other legal form": _change_legal_form,
    "& and and": _swap_ampersand,
    "other order": reorder_words,
    "abbreviated": abbreviate_words,
    "no spaces": _remove_spaces,
    "accents": lambda name, _: name.replace(name[1:4], name[1:4].translate(_ACCENTS), 1),
    "one slip": mistype,
}


def count_resolutions(
    rows: Sequence[EvalCompany], *, sample: int = 2_000, miss: Miss = _ignore_miss
) -> dict[str, tuple[int, int, int]]:
    """By way of writing: asked, right, and resolved to another company."""
    register, chance = CompanyRegister.from_rows(rows), random.Random(7)
    some = rows if len(rows) <= sample else chance.sample(rows, sample)
    counts = {}
    for kind, perturb in SPELLINGS.items():
        asked = right = wrong = 0
        for cik, name, _ in some:
            written = perturb(name if kind == AS_IT_IS else _MARK.sub("", name), chance)
            if written is None:
                continue
            found = register.resolve(written)
            asked, right = asked + 1, right + (found is not None and found.cik == cik)
            wrong += found is not None and found.cik != cik
            if not (found and found.cik == cik):
                miss(f"{kind}: {written!r} of {name!r} -> {found and found.name!r}")
        counts[kind] = asked, right, wrong
    return counts


def sum_spellings(counts: dict[str, tuple[int, int, int]]) -> tuple[int, int, int]:
    """All ways of writing together, save as it is."""
    asked, right, wrong = (
        sum(column) for column in zip(*(counts[kind] for kind in counts if kind != AS_IT_IS), strict=True)
    )
    return asked, right, wrong


def measure_tickers(rows: Sequence[EvalCompany], *, sample: int = 2_000) -> dict[str, float]:
    register, chance = CompanyRegister.from_rows(rows), random.Random(7)
    pairs = [(ticker, cik) for cik, _, held in rows for ticker in held]
    some = chance.sample(pairs, min(sample, len(pairs)))

    def share(written: Callable[[str], str]) -> float:
        return sum((found := register.resolve(written(t))) is not None and found.cik == cik for t, cik in some) / len(
            some
        )

    return {
        "bare": share(str), "with $": share("${}".format), "NYSE: T": share("NYSE: {}".format),
        "BRK.B": share(lambda ticker: ticker.replace("-", ".")),
    }  # fmt: skip


def count_omissions(
    rows: Sequence[EvalCompany], *, folds: int = 20, tried: int | None = None, miss: Miss = _ignore_miss
) -> dict[str, tuple[int, int]]:
    """Companies that are not in the register: asked, and resolved to another one."""
    counts = {kind: [0, 0] for kind in (AS_IT_IS, "no legal form", "one slip")}
    chance = random.Random(7)
    for fold in range(tried or folds):
        register = CompanyRegister.from_rows(row for place, row in enumerate(rows) if place % folds != fold)
        for _, name, _ in rows[fold::folds]:
            for kind in counts:
                if (written := SPELLINGS[kind](name, chance)) is not None:
                    found = register.resolve(written)
                    counts[kind][0] += 1
                    counts[kind][1] += found is not None
                    if found and kind == AS_IT_IS:
                        miss(f"{written!r} -> {found.name!r}")
    return {kind: (asked, wrong) for kind, (asked, wrong) in counts.items()}


def count_sp500(data: Path, rows: Sequence[EvalCompany], *, miss: Miss = _ignore_miss) -> tuple[int, int, int]:
    """Its names, for companies of the list: asked, right, and resolved to another company."""
    register = CompanyRegister.from_rows(rows)
    asked = right = wrong = 0
    listed = {cik for cik, _, _ in rows}
    with (data / "companies/sp500.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if int(row["CIK"]) not in listed:
                continue
            found = register.resolve(row["Security"])
            asked, right = asked + 1, right + (found is not None and found.cik == int(row["CIK"]))
            wrong += found is not None and found.cik != int(row["CIK"])
            if not (found and found.cik == int(row["CIK"])):
                miss(f"{row['Security']!r} {row['Symbol']} -> {found and found.name!r}")
    return asked, right, wrong


def load_common_words(data: Path, count: int) -> list[str]:
    """The most frequent words of the texts beside the companies, written small in most places."""
    small: Counter[str] = Counter()
    all_: Counter[str] = Counter()
    for path in sorted(data.glob("*/*.json*")):
        text = path.read_text("utf-8", errors="replace")[:4_000_000]
        words = re.findall(r"(?<![\w\\'’-])[A-Za-z]{2,}(?![\w'’-])", text)
        all_.update(word.lower() for word in words)
        small.update(word for word in words if word.islower())
    return [word for word, _ in all_.most_common(3 * count) if small[word] > 0.6 * all_[word]][:count]


def find_false_matches(register: CompanyRegister, words: Iterable[str]) -> dict[str, list[str]]:
    """Ordinary words that were taken for companies."""
    words = list(words)
    return {
        "resolve, small": [word for word in words if register.resolve(word)],
        "resolve, Capital": [word for word in words if register.resolve(word.capitalize())],
        "mentioned, small": [w for w in words if register.mentions(f"They said that the {w} was what they expected.")],
        "mentioned, first": [w for w in words if register.mentions(f"{w.capitalize()} was what they expected there.")],
    }


def load_names(data: Path) -> list[EvalCompany]:
    lines = (data / "companies/names.csv").read_text("utf-8").splitlines()
    names = dict.fromkeys(line.split(";")[0].strip() for line in lines if line.strip())
    return [(number, name, ()) for number, name in enumerate(names, 1)]


def load_tickers(data: Path) -> list[EvalCompany]:
    companies: dict[int, tuple[str, list[str]]] = {}
    with (data / "companies/tickers.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            companies.setdefault(int(row["CIK"]), (row["Name"], []))[1].append(row["Ticker"])
    return [(cik, name, tuple(held)) for cik, (name, held) in companies.items()]


def measure_companies(data: Path, quick: bool) -> EvalValues:
    lists = {"names.csv": load_names(data), "tickers.csv": load_tickers(data)}
    counts = {name: count_resolutions(rows, sample=400 if quick else 2_000) for name, rows in lists.items()}
    all_ways = {name: sum_spellings(one) for name, one in counts.items()}
    slips = [one["one slip"] for one in counts.values()]
    out = [one for rows in lists.values() for one in count_omissions(rows, tried=2 if quick else None).values()]
    asked, right, wrong = count_sp500(data, lists["tickers.csv"])
    words = load_common_words(data, 1_500 if quick else 4_000)
    taken = find_false_matches(open_companies(), words)
    found = measure_tickers(lists["tickers.csv"], sample=500 if quick else 2_000)
    return {
        **{f"spellings of {name}, right": EvalValue(good / many) for name, (many, good, _) in all_ways.items()},
        "spellings taken for another company": EvalValue(max(bad / many for many, _, bad in all_ways.values())),
        "one letter wrong, right": EvalValue(min(good / many for many, good, _ in slips)),
        "companies left out, taken for another": EvalValue(max(bad / many for many, bad in out)),
        "tickers, right": EvalValue(min(found.values())),
        "S&P 500 names, right": EvalValue(right / asked),
        "S&P 500 names, wrong": EvalValue(wrong / asked),
        "common words taken for a company": EvalValue(max(len(one) for one in taken.values()) / len(words)),
    }


MEASURES = {
    "companies": EvalMeasure(
        name="companies",
        about="Which company is meant by a perturbed name or a ticker, and what must be none.",
        needs=("companies",),
        licence="PDDL, MIT",
        whole="1,320 names, 2,000 of 7,605 listed companies, S&P 500, 4,000 common words",
        quick="400 names of each list, 1,500 common words",
        figures=(
            Figure("spellings of names.csv, right", floor=0.98, quick=0.975, published={"a prototype": 0.98}),
            Figure("spellings of tickers.csv, right", floor=0.985, quick=0.975),
            Figure("spellings taken for another company", floor=0.002, quick=0.002, less_is_better=True, form=".4f"),
            Figure("one letter wrong, right", floor=0.92, quick=0.92),
            Figure(
                "companies left out, taken for another",
                floor=0.03,
                quick=0.03,
                less_is_better=True,
                published={"a prototype": 0.07},
            ),
            Figure("tickers, right", floor=0.99, quick=0.99),
            Figure("S&P 500 names, right", floor=0.985, quick=0.985, published={"a prototype": 0.972}),
            Figure("S&P 500 names, wrong", floor=0, quick=0, less_is_better=True),
            Figure(
                "common words taken for a company",
                floor=0.007,
                quick=0.007,
                less_is_better=True,
                form=".4f",
                published={"a prototype, at least": 0.002},
            ),
        ),
        run=measure_companies,
        notes="Of several lists and ways of writing the worst is told. The rules were tuned on these lists, and one "
        "name that was missed among the S&P 500 is in the hand-written table; on the 1,383 companies of our register "
        "that the list of tickers lacks, one wrong letter gave .930 to .935. Common words come from the other sets.",
        command="benchmarks/bench_companies.py",
    )
}
