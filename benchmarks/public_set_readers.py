"""The readers of benchmarks/public_sets.py: each takes what shows a file of a repository, and yields a set's rows."""

import csv
import io
import json
import re
import tarfile
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from importlib import import_module
from typing import Any

from lxml import etree

Show = Callable[[str, str], bytes]
Row = dict[str, str]

LABEL_WORDS = {
    "supported": "e entailment entailed support supports supported completelysupport attributable",
    "refuted": "c contradiction contradict refute refutes refuted",
    "neither": "n neutral unknown notmentioned notenoughinfo partiallysupport irrelevant",
    "not_supported": "notentailment notentailed notattributable",
}
LABELS = {"": ""} | {word: label for label, words in LABEL_WORDS.items() for word in words.split()}
LONGEST_TABLE = 2500  # characters
LONGEST_LEGEND = 600


def squeeze(text: str) -> str:
    return " ".join(text.split())


def label_of(said: str) -> str:
    """The label that a set's own word for it stands for; none for a dash."""
    return LABELS[re.sub(r"[^a-z]", "", said.lower())]


def supported_if(true: bool) -> str:
    return "supported" if true else "not_supported"


def pair(claim: str, evidence: str, label: str, title: str = "", date: str = "") -> Row:
    """A row, with title and date only where there are any."""
    row = {"claim": claim.strip(), "evidence": evidence.strip(), "label": label}
    known = {"title": title.strip(), "date": date}
    return row | {name: value for name, value in known.items() if value}


def keep_once(rows: Iterable[Row]) -> list[Row]:
    """The rows with text on both sides and a label, each pair of texts once, and none that has two labels."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row["claim"] and row["evidence"] and row["label"]:
            groups.setdefault((row["claim"], row["evidence"]), []).append(row)
    return [same[0] for same in groups.values() if len({row["label"] for row in same}) == 1]


def json_lines(data: bytes) -> Iterator[dict[str, Any]]:
    return (json.loads(line) for line in data.decode().split("\n") if line.strip())


def csv_rows(data: bytes, delimiter: str = ",", *, quoted: bool = True) -> Iterator[dict[str, str]]:
    """The rows of a table with a header."""
    text = io.StringIO(data.decode("utf-8-sig"), newline="")
    return csv.DictReader(text, delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE)


def unzip(data: bytes, name: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return archive.read(name)


def untar(data: bytes, name: str) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        file = archive.extractfile(name)
        assert file is not None
        return file.read()


def words_of(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def shorten_table(claim: str, caption: str, lines: list[str], legend: str = "") -> str:
    """A table's text, in its order; of a long one the lines that share most words with the claim."""
    room = LONGEST_TABLE - len(caption) - len(legend)
    kept = list(range(len(lines)))
    if sum(len(line) + 1 for line in lines) > room:
        wanted = words_of(claim)
        ranked = sorted(kept, key=lambda at: -len(wanted & words_of(lines[at])))
        kept = []
        for at in ranked:
            if len(lines[at]) < room:
                room -= len(lines[at]) + 1
                kept.append(at)
    return "\n".join(filter(None, [caption, *(lines[at] for at in sorted(kept)), legend]))


def table_line(header: Iterable[str], values: Iterable[str]) -> str:
    """A row of a table as "header: value; header: value"."""
    return "; ".join(f"{name}: {value}" if name else value for name, value in zip(header, values, strict=False))


def join_pages(parts: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """The evidence from parts of a title and a text, and its title; the titles of several stand before their texts."""
    pages: dict[str, list[str]] = defaultdict(list)
    for title, text in parts:
        pages[title.strip()].append(text.strip())
    texts = {title: " ".join(found) for title, found in pages.items()}
    if len(texts) == 1:
        [(title, text)] = texts.items()
        return text, title
    return "\n".join(f"{title}: {text}" for title, text in texts.items()), ""


def read_vitaminc_real_test(show: Show) -> Iterator[Row]:
    """VitaminC, the half from real revisions of Wikipedia, its test part."""
    packed = show("TalSchuster/talschuster.github.io", "static/vitaminc_real.zip")
    for row in json_lines(unzip(packed, "vitaminc_real/test.jsonl")):
        yield pair(row["claim"], row["evidence"], label_of(row["label"]), row["page"])


def read_mnli_part(show: Show) -> Iterator[Row]:
    """MultiNLI's dev parts, and the other pairs of it that TaxiNLI has."""

    def unquote(text: str) -> str:
        """A field that was quoted twice, without the second quoting."""
        return text[1:-1].replace('""', '"') if '""' in text and text[0] == text[-1] == '"' else text

    rows = csv_rows(show("felipessalvatore/NLI_datasets", "nli_datasets/mnli/dev.csv"))
    dev = keep_once(pair(row["hypothesis"], row["premise"], label_of(row["label"])) for row in rows)
    yield from dev
    known = {(row["claim"], row["evidence"]) for row in dev}
    for row in csv_rows(show("microsoft/TaxiNLI", "taxinli10k.tsv"), "\t"):
        found = pair(unquote(row["hyp"]), unquote(row["prem"]), label_of(row["label"]))
        if (found["claim"], found["evidence"]) not in known:  # of those that are, it labels one in eight otherwise
            yield found


def read_snli_counterfactual(show: Show) -> Iterator[Row]:
    """Pairs of SNLI and their revisions that change the label."""
    for kind in ("original", "revised_premise", "revised_hypothesis"):
        for part in ("train", "dev", "test"):
            for row in csv_rows(show("acmi-lab/counterfactually-augmented-data", f"NLI/{kind}/{part}.tsv"), "\t"):
                yield pair(row["sentence2"], row["sentence1"], label_of(row["gold_label"]))


def read_snli_devtest(show: Show) -> Iterator[Row]:
    """SNLI's dev and test parts, as e-SNLI has them."""
    for part in ("dev", "test"):
        files = [show("OanaMariaCamburu/e-SNLI", f"dataset/eSNLI/{name}.{part}") for name in ("s1", "s2", "labels")]
        for premise, hypothesis, said in zip(*(data.decode().split("\n") for data in files), strict=True):
            yield pair(hypothesis, premise, label_of(said))


def read_scitail_dev(show: Show) -> Iterator[Row]:
    """SciTail, the part that its mirror calls dev."""
    for row in csv_rows(show("felipessalvatore/NLI_datasets", "nli_datasets/scitail/dev.csv")):
        yield pair(row["hypothesis"], row["premise"], label_of(row["label"]))


def read_breaking_nli(show: Show) -> Iterator[Row]:
    """Breaking NLI: sentences of SNLI with one word exchanged."""
    packed = show("BIU-NLP/Breaking_NLI", "breaking_nli_dataset.zip")
    for row in json_lines(unzip(packed, "data/dataset.jsonl")):
        yield pair(row["sentence2"], row["sentence1"], label_of(row["gold_label"]))


def read_conjnli(show: Show) -> Iterator[Row]:
    """ConjNLI's dev part and its adversarial train pairs; its test part has no labels."""
    for part in ("conj_dev", "adversarial_train_15k"):
        for row in csv_rows(show("swarnaHub/ConjNLI", f"data/NLI/{part}.tsv"), "\t", quoted=False):
            yield pair(squeeze(row["Hypothesis"]), squeeze(row["Premise"]), label_of(row["Label"]))


def read_dnc_megaveridicality(show: Show) -> Iterator[Row]:
    """MegaVeridicality as recast in DNC: whether what a verb's complement says has happened."""
    for part in ("train", "dev", "test"):
        path = f"{part}/recast_megaveridicality_data.json"
        for row in json.loads(show("decompositional-semantics-initiative/DNC", path)):
            yield pair(row["hypothesis"], row["context"], label_of(row["label"]))


def read_neg_nli(show: Show) -> Iterator[Row]:
    """Pairs of RTE, SNLI and MNLI with negations put in; RTE has only two labels."""
    for name in ("MNLI", "RTE", "SNLI"):
        data = show("mosharafhossain/negation-and-nli", f"data/new_benchmarks/clean_data/{name}.txt")
        for line in data.decode("cp1252").splitlines()[1:]:
            _, premise, hypothesis, said = line.split("\t")
            yield pair(hypothesis, premise, label_of(said))


def read_scone(show: Show) -> Iterator[Row]:
    """ScoNe: negations inside and outside of scope, without the sentences that its replacements have garbled
    ("tsombrero" for "that")."""
    kinds = ("no_negation", "one_not_scoped", "one_scoped", "one_scoped_one_not_scoped", "two_not_scoped", "two_scoped")
    for path in (f"scone_nli/{part}/{kind}.csv" for part in ("train", "test") for kind in kinds):
        for row in csv_rows(show("selenashe/ScoNe", path)):
            end = "_edited" if "sentence1_edited" in row else ""
            premise, hypothesis = row[f"sentence1{end}"], row[f"sentence2{end}"]
            if not re.search(r"the case t(?!hat\b)", f"{premise}\n{hypothesis}"):
                yield pair(hypothesis, premise, label_of(row[f"gold_label{end}"]))


def read_med(show: Show) -> Iterator[Row]:
    """MED: entailment by monotonicity; what it calls neutral may be a contradiction."""
    for row in csv_rows(show("verypluming/MED", "MED.tsv"), "\t", quoted=False):
        yield pair(row["sentence2"], row["sentence1"], supported_if(row["gold_label"] == "entailment"))


def read_help_part(show: Show) -> Iterator[Row]:
    """HELP's conjunctions and disjunctions."""
    for name in ("and", "or"):
        for row in csv_rows(show("verypluming/HELP", f"output_en/leskexppmb_{name}.tsv"), "\t"):
            claim, evidence = (row[key].replace("~", " ") for key in ("new_sentence", "ori_sentence"))
            yield pair(claim, evidence, label_of(row["gold_label"]))


def read_infotabs(show: Show) -> Iterator[Row]:
    """InfoTabS: statements on infoboxes of Wikipedia."""
    repository = "infotabs/infotabs"
    for part in ("train", "dev", "test_alpha1", "test_alpha2", "test_alpha3"):
        for row in csv_rows(show(repository, f"data/maindata/infotabs_{part}.tsv"), "\t"):
            box = json.loads(show(repository, f"data/tables/json/{row['table_id']}.json"))
            title = " ".join(box.pop("title", []))
            lines = [f"{name}: {', '.join(values)}" for name, values in box.items()]
            claim = row["hypothesis"]
            yield pair(claim, shorten_table(claim, title, lines), label_of(row["label"]), title)


def read_tabfact_part(show: Show) -> Iterator[Row]:
    """TabFact's val and test parts, and of its train part the pairs of a true and a false statement."""
    repository = "wenhuchen/Table-Fact-Checking"

    def statements() -> Iterator[tuple[str, str, str, bool]]:
        for part in ("val", "test"):
            examples = json.loads(show("wenhuchen/GNN-TabFact", f"data/{part}_examples.json"))
            for table, (claims, _, truths, caption) in examples.items():
                for claim, true in zip(claims, truths, strict=True):
                    yield table, caption, claim, bool(true)
        pages = json.loads(show(repository, "data/table_to_page.json"))
        train = set(json.loads(show(repository, "data/train_id.json")))
        for table, right, wrong in json.loads(show(repository, "pairwise_data/all_positive_negative_pairs.json")):
            if table in train:
                caption = pages.get(table, [""])[0]
                yield table, caption, right, True
                yield table, caption, wrong, False

    for table, caption, claim, true in statements():
        header, *rows = (line.split("#") for line in show(repository, f"data/all_csv/{table}").decode().splitlines())
        lines = [table_line(header, row) for row in rows]
        yield pair(claim, shorten_table(claim, caption, lines), "supported" if true else "refuted", caption)


def grid_of(table: Any) -> list[list[tuple[int, str]]]:
    """The cells of a table by row and column, each with its number, and repeated over all that it spans."""
    cells: dict[tuple[int, int], tuple[int, str]] = {}
    for number, cell in enumerate(table.iter("cell")):
        top, bottom, left, right = (int(cell.get(key)) for key in ("row-start", "row-end", "col-start", "col-end"))
        for row in range(top, bottom + 1):
            for column in range(left, right + 1):
                cells.setdefault((row, column), (number, squeeze(cell.get("text") or "")))
    height, width = (max((place[axis] for place in cells), default=-1) + 1 for axis in (0, 1))
    return [[cells.get((row, column), (-1, "")) for column in range(width)] for row in range(height)]


def grid_lines(grid: list[list[tuple[int, str]]]) -> list[str]:
    """The lines of a table below its header: the rows before the first with numbers if these are at most three, or else
    one row."""
    numeric = (any(re.match(r"[^A-Za-z]*\d[^A-Za-z]*$", text) for _, text in row[1:]) for row in grid[:4])
    head = max(1, next((at for at, found in enumerate(numeric) if found), 1))
    columns = zip(*grid[:head], strict=True)
    header = [" ".join(dict.fromkeys(text for _, text in column if text)) for column in columns]
    lines = []
    for row in grid[head:]:
        cells: dict[int, tuple[str, str]] = {}
        for name, (number, text) in zip(header, row, strict=True):
            if text:
                cells.setdefault(number, (name, text))
        if len(cells) == 1 and len(header) > 1:
            lines += [text for _, text in cells.values()]
        elif cells:
            lines.append(table_line(*zip(*cells.values(), strict=True)))
    return lines or ["; ".join(header)]


def read_semtabfacts(show: Show) -> Iterator[Row]:
    """SEM-TAB-FACTS, its manual train part and its dev part: statements on tables of scientific articles."""

    def text_of(table: Any, tag: str) -> str:
        return " ".join(filter(None, (squeeze(part.get("text") or "") for part in table.iter(tag))))

    def tables(packed: bytes) -> Iterator[Any]:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            for path in sorted(archive.namelist()):
                if re.match(r"v[\d.]+/output/\w+\.xml$", path):
                    parser = etree.XMLParser(resolve_entities=False)
                    yield from etree.fromstring(archive.read(path), parser).iter("table")

    for part in ("train_manual_v1.3.2", "dev_v1.1"):
        for table in tables(show("IvonaBirlad/ThesisSemTabFact", f"xml/{part}.zip")):
            caption, legend = text_of(table, "caption"), text_of(table, "legend")[:LONGEST_LEGEND]
            lines = grid_lines(grid_of(table))
            for statement in table.iter("statement"):
                claim = squeeze(statement.get("text") or "")
                evidence = shorten_table(claim, caption, lines, legend)
                yield pair(claim, evidence, label_of(statement.get("type")), caption)


def read_scitab(show: Show) -> Iterator[Row]:
    """SciTab: claims with tables of papers, without the marks for bold and italic."""

    def plain(text: str) -> str:
        return squeeze(re.sub(r"\[(?:BOLD|ITALIC|EMPTY)\]|</?(?:bold|italic)>", " ", text))

    for row in json.loads(show("XinyuanLu00/SciTab", "dataset/sci_tab.json")):
        header = [plain(name) for name in row["table_column_names"]]
        lines = [table_line(header, map(plain, values)) for values in row["table_content_values"]]
        evidence = shorten_table(row["claim"], plain(row["table_caption"]), lines)
        yield pair(row["claim"], evidence, label_of(row["label"]), row["paper"])


def read_contractnli_devtest(show: Show) -> Iterator[Row]:
    """ContractNLI's dev and test parts: 17 statements on each whole contract."""
    for part in ("dev", "test"):
        data = json.loads(show("nguyenviethoa95/Graph-based-ContractNLI", f"data/contractNLI/{part}.json"))
        claims = {key: squeeze(said["hypothesis"]) for key, said in data["labels"].items()}
        for contract in data["documents"]:
            for key, answer in contract["annotation_sets"][0]["annotations"].items():
                yield pair(claims[key], contract["text"], label_of(answer["choice"]))


def read_scifact(show: Show) -> Iterator[Row]:
    """SciFact's train and dev parts: each claim with every abstract that it cites; neither, if without a rationale."""
    packed = show("suzhentxt/healthver_mcqa", "data (1).tar.gz")
    papers = {row["doc_id"]: row for row in json_lines(untar(packed, "data/corpus.jsonl"))}
    for part in ("train", "dev"):
        for row in json_lines(untar(packed, f"data/claims_{part}.jsonl")):
            labels = {int(number): label_of(found[0]["label"]) for number, found in row["evidence"].items()}
            for number in dict.fromkeys([*labels, *row["cited_doc_ids"]]):
                paper = papers[number]
                evidence = squeeze(" ".join(paper["abstract"]))
                yield pair(squeeze(row["claim"]), evidence, labels.get(number, "neither"), squeeze(paper["title"]))


def read_healthver(show: Show) -> Iterator[Row]:
    """HealthVer: its train part by claim and whole abstract, its dev and test parts by claim and sentence."""
    packed = show("suzhentxt/healthver_mcqa", "data.tar.gz")
    papers = {row["doc_id"]: row for row in json_lines(untar(packed, "data/healthver/corpus.jsonl"))}
    for row in json_lines(untar(packed, "data/healthver/claims_train.jsonl")):
        for number in row["doc_ids"]:
            labels = {label_of(found["label"]) for found in row["evidence"].get(str(number), [])} or {"neither"}
            if len(labels) == 1:
                paper = papers[number]
                yield pair(row["claim"], " ".join(paper["abstract"]), labels.pop(), paper["title"])
    for part in ("dev", "test"):
        for line in csv_rows(show("sarrouti/HealthVer", f"data/healthver_{part}.csv")):
            yield pair(line["claim"], line["evidence"], label_of(line["label"]))


def read_check_covid(show: Show) -> Iterator[Row]:
    """Check-COVID: claims with chosen sentences. Neither means other sentences of the same abstract, so that the whole
    abstract cannot be shown."""
    repository = "posuer/Check-COVID"
    papers = {row["cord_id"]: row for row in json_lines(show(repository, "Check-COVID/corpus.json"))}
    for part in ("train/covidCheck_train_composed+extracted", "dev/covidCheck_dev_composed+extracted",
                 "test/covidCheck_test_composed", "test/covidCheck_test_extracted"):  # fmt: skip
        for row in json_lines(show(repository, f"Check-COVID/{part}.json")):
            paper = papers[row["cord_id"]]
            chosen = sorted({found["sent_index"] for found in row["evidence_set"]})
            evidence = " ".join(paper["abstract"][at] for at in chosen)
            yield pair(row["claim"], evidence, label_of(row["label"]), paper["title"])


def read_covidfact(show: Show) -> Iterator[Row]:
    """COVID-Fact: claims and their altered counterparts, with sentences of a source."""
    for row in json_lines(show("asaakyan/covidfact", "COVIDFACT_dataset.jsonl")):
        yield pair(row["claim"], " ".join(row["evidence"]), label_of(row["label"]))


def read_citint(show: Show) -> Iterator[Row]:
    """Sentences with a citation, and five sentences of the cited paper. What the set calls refuted is any citation that
    is not accurate."""
    repository = "jedick/MLE-capstone-project"
    papers = {row["doc_id"]: row["abstract"] for row in json_lines(show(repository, "data/citint/corpus.jsonl"))}
    for part in ("train", "dev", "test"):
        for row in json_lines(show(repository, f"data/citint/claims_{part}.jsonl")):
            claim = re.sub(r"\s*(?:\[\s*<\|\w*cit\|>\s*\]|\(\s*<\|\w*cit\|>\s*\)|<\|\w*cit\|>)", "", row["claim"])
            said = [found["label"] for group in row["evidence"].values() for found in group]
            label = supported_if(said[0] == "SUPPORT") if said else "neither"
            yield pair(claim, " ".join(papers[row["cited_doc_ids"][0]]), label)


def read_climate_fever(show: Show) -> Iterator[Row]:
    """Climate-FEVER: claims with five sentences of Wikipedia, each a row of its own."""
    for row in json_lines(show("tdiggelm/climate-fever-dataset", "dataset/climate-fever.jsonl")):
        for found in row["evidences"]:
            yield pair(row["claim"], found["evidence"], label_of(found["evidence_label"]), found["article"])


def read_feverous_dev_sent(show: Show) -> Iterator[Row]:
    """FEVEROUS's dev claims that rest on sentences alone."""

    def sentences(evidence: str) -> Iterator[tuple[str, str]]:
        title = ""
        for line in evidence.split("\n"):
            head, tab, sentence = line.partition("\t")
            title, sentence = (squeeze(head), sentence) if tab else (title, head)
            sentence = squeeze(re.sub(r"\[\[(?:[^\[\]|]*\|)?([^\[\]]*)\]\]", r"\1", sentence))
            if sentence:
                yield title, sentence

    for row in json.loads(show("teacherpeterpan/ProgramFC", "datasets/FEVEROUS/claims/dev.json")):
        evidence, title = join_pages(sentences(row["evidence"]))
        yield pair(squeeze(row["claim"]), evidence, label_of(row["label"]), title)


def read_sufficient_facts(show: Show) -> Iterator[Row]:
    """Claims of HoVer and VitaminC with their whole evidence, and without a part of it that they may need."""
    for name in ("hover", "vitaminc"):
        path = f"data/sufficient_facts/{name}_sufficient_facts.jsonl"
        for row in json_lines(show("copenlu/sufficient_facts", path)):
            label = label_of(row["label_before"])
            evidence, title = join_pages((title, text) for title, text in row["evidence"])
            yield pair(row["claim"], evidence, "neither" if row["label_after"] == "NOT ENOUGH" else label, title)
            whole = re.sub(r"</?span[^>]*>", "", row["text_orig"])
            parts = re.findall(r"\[\[(.*?)\]\](.*?)(?=\[\[|$)", whole, re.DOTALL)
            evidence, title = join_pages((title, squeeze(text)) for title, text in parts)
            yield pair(row["claim"], evidence, label, title)


def read_fm2_devtest(show: Show) -> Iterator[Row]:
    """Fool Me Twice's dev and test parts, with the gold sentences, as the pages are not there."""
    for part in ("dev", "test"):
        for row in json_lines(show("google-research/fool-me-twice", f"dataset/{part}.jsonl")):
            evidence = " ".join(found["text"].strip() for found in row["gold_evidence"])
            yield pair(row["text"], evidence, label_of(row["label"]), row["wikipedia_page"])


SNOPES_OLD = re.compile(
    r"^Claim:\s*(?P<claim>.{10,500}?)\s*"
    r"(?:Status:\s*(?P<status>True|False)\b\.?|(?P<verdict>\b(?:TRUE|FALSE)\b))(?P<rest>.*)$",
    re.DOTALL,
)
SNOPES_OTHER = re.compile(
    r"\b(?:MIXTURE|UNDETERMINED|PARTLY|MOSTLY|OUTDATED|MULTIPLE|ATTRIBUTED|PROBABLY|UNPROVEN|LEGEND|Status:)"
)
YES_NO = re.compile(r"^(?:Did|Does|Do|Is|Are|Was|Were|Has|Have|Had|Will|Can|Could)\b.*\?$", re.DOTALL)
RATINGS = {
    "True": "supported",
    "Correct Attribution": "supported",
    "False": "refuted",
    "Fake": "refuted",
    "Misattributed": "refuted",
}
FINFACT_TOPICS = (
    "accountability asset banking budget collateral credit debt dividend economy equity finance funds income inflation "
    "insurance interest investment liability lien loan loss mortgage profit returns share stockmarket taxes"
)
SHORTEST_ARTICLE = 200  # characters


def finfact_pair(row: dict[str, Any]) -> Row | None:
    """One fact check, or None where it is not sure that the rating is that of the claim."""
    claim = (row.get("claim") or row.get("title") or "").strip()
    article = row.get("justification") or row.get("paragraphs") or ""
    article = (article if isinstance(article, str) else " ".join(article)).strip()
    rating = row["label"].removesuffix("About this rating")
    if article.startswith("Claim:"):  # an old page has claim and rating in its text; its label is another page's
        found = SNOPES_OLD.match(article)
        if not found or SNOPES_OTHER.search(found["claim"]):
            return None
        claim, rating = found["claim"], (found["status"] or found["verdict"]).title()
        origins = re.search(r"\bOrigins?:\s*", found["rest"])
        article = found["rest"][origins.end() if origins else 0 :]
    elif "politifact.com" in row["url"]:
        rating = rating.title()
    elif rating == row["label"] or not YES_NO.match(claim):
        return None
    if rating not in RATINGS or len(article) < SHORTEST_ARTICLE:
        return None
    try:
        date = datetime.strptime(row.get("posted") or "", "%m/%d/%Y").date().isoformat()
    except ValueError:
        date = ""
    return pair(claim, article, RATINGS[rating], date=date)


def read_finfact_debunk(show: Show) -> Iterator[Row]:
    """Fin-Fact: claims with the article of Snopes or PolitiFact that checks them; no page that is rated in two ways."""
    topics = [f"filtered_jsons/filtered_{topic}.json" for topic in FINFACT_TOPICS.split()]
    pages: dict[str, list[Row]] = defaultdict(list)
    for path in ("economy_data.json", *topics, "filtered_jsons/jsons/b.json"):
        for row in json.loads(show("IIT-DM/Fin-Fact", path)):
            if found := finfact_pair(row):
                pages[row["url"]].append(found)
    for same in pages.values():
        if len({row["label"] for row in same}) == 1:
            yield same[0]


def read_defacto(show: Show) -> Iterator[Row]:
    """DeFacto: summaries of XSum as they were judged, and as the annotators corrected them."""
    for part in ("train", "val", "test"):
        for row in json_lines(show("microsoft/DeFacto", f"data/{part}.jsonl")):
            yield pair(squeeze(row["candidate"]), row["article"], supported_if(not row["has_error"]))
            if row["has_error"]:
                yield pair(squeeze(row["feedback"]["summary"] or ""), row["article"], "supported")


FIB_SYSTEMS = {
    "cnn_dm": "banditsumm bert_lstm_pn_rl heter_graph lead3 matchsumm mi_unsup neusumm oracle_disco oracle pacsum_bert "
    "pacsum_tfidf refresh rnn_ext_rl textrank textrank_st",
    "xsum": "bart-base bart-large bloom-560m distil-bart distil-pegasus pegasus t5-large",
}


def read_fib(show: Show) -> Iterator[Row]:
    """FIB: the consistent summary and the inconsistent one of each choice."""

    def untag(text: str) -> str:
        """Without marks of sentences and codes of brackets."""
        text = re.sub(r"</?t>", " ", text)
        for code, sign in (("-lrb-", "("), ("-rrb-", ")"), ("-lsb-", "["), ("-rsb-", "]")):
            text = text.replace(code, sign)
        return squeeze(text)

    for source, systems in FIB_SYSTEMS.items():
        for folder, system in (("fir", "non_factual_gold"), *(("fib", system) for system in systems.split())):
            path = f"multiple_choice-dataset/{source}/{folder}/binary_choice-using_{system}_distractors.jsonl"
            for row in json_lines(show("r-three/fib", path)):
                evidence = untag(row["input"]) if source == "cnn_dm" else row["input"]
                for at, choice in enumerate(row["list_choices"]):
                    yield pair(untag(choice), evidence, supported_if(at == row["lbl"]))


def read_bump(show: Show) -> Iterator[Row]:
    """BUMP: reference summaries, and the same with one error put in."""
    for part in (1, 2):
        for row in json.loads(show("dataminr-ai/BUMP", f"data/task{part}_dataset.json")):
            yield pair(squeeze(row["reference_summary"]), row["article"], "supported")
            yield pair(squeeze(row["edited_summary"]), row["article"], "not_supported")


def xsum_articles(show: Show) -> dict[str, str]:
    """The articles in the sheets of AggreFact, by their number at the BBC."""
    openpyxl = import_module("openpyxl")  # needed by this set alone, not installed
    articles: dict[str, str] = {}
    for part in ("val", "test"):
        data = show("Liyan06/AggreFact", f"data/AggreFact-Unified-{part}.xlsx")
        for sheet in openpyxl.load_workbook(io.BytesIO(data), read_only=True):
            header, *rows = sheet.iter_rows(values_only=True)
            for row in (dict(zip(header, values, strict=False)) for values in rows):
                if row.get("doc") and row["dataset"] == "xsumfaith":
                    articles.setdefault(str(row["id"]), row["doc"])
    return articles


def read_xsumfaith(show: Show) -> Iterator[Row]:
    """XSumFaith: a summary is not supported if most of its annotators marked something in it as hallucinated."""
    repository = "google-research-datasets/xsum_hallucination_annotations"
    marked: dict[tuple[str, str, str], dict[str, bool]] = defaultdict(lambda: defaultdict(bool))
    for row in csv_rows(show(repository, "hallucination_annotations_xsum_summaries.csv")):
        marked[row["bbcid"], row["system"], row["summary"]][row["worker_id"]] |= row["hallucination_type"] != "NULL"
    articles = xsum_articles(show)
    for (number, _, summary), by_worker in marked.items():
        share = sum(by_worker.values()) / len(by_worker)
        if number in articles and share != 0.5:
            claim = squeeze(summary.replace("\\'", "'").replace("``", '"').replace("''", '"'))
            yield pair(claim, articles[number], supported_if(share < 0.5))


def read_summedits(show: Show) -> Iterator[Row]:
    """SummEdits: summaries whose edits are consistent with the document or not, in eight of the ten domains."""
    for name in ("ectsum", "news", "podcast", "qmsumm", "sales_call", "sales_email", "samsum", "scitldr"):
        for row in json.loads(show("salesforce/factualNLG", f"data/summedits/summedits_{name}.json")):
            yield pair(row["summary"], row["doc"], supported_if(row["label"] == 1))


def read_qags(show: Show) -> Iterator[Row]:
    """QAGS: sentences of summaries with their articles, by the majority of three answers."""
    for part in ("cnndm", "xsum"):
        for row in json_lines(show("W4ngatang/qags", f"data/mturk_{part}.jsonl")):
            for sentence in row["summary_sentences"]:
                answers = [answer["response"] == "yes" for answer in sentence["responses"]]
                yield pair(sentence["sentence"], row["article"], supported_if(2 * sum(answers) > len(answers)))


def read_attributionbench_dev(show: Show) -> Iterator[Row]:
    """AttributionBench's dev part: statements of generated answers with the references that they cite."""
    for row in json_lines(show("OSU-NLP-Group/AttributionBench", "data/dev_all_subset_balanced.jsonl")):
        yield pair(row["claim"], "\n".join(row["references"]), label_of(row["attribution_label"]))


def read_factcheck_gpt(show: Show) -> Iterator[Row]:
    """Factcheck-GPT: claims with passages of the web; one that supports only a part counts as neither."""
    for row in json_lines(show("yuxiaw/Factcheck-GPT", "subtasks/subtask3_claim_evidence_stance.jsonl")):
        yield pair(row["claim"], row["evidence"], label_of(row["stance"]))


def read_q2_wow(show: Show) -> Iterator[Row]:
    """Q²: answers of two dialogue systems with the knowledge that they were given."""
    for system in ("dodeca", "memnet"):
        for kind in ("consistent", "inconsistent"):
            for row in csv_rows(show("orhonovich/q-squared", f"third_party/data/{system}_{kind}.csv")):
                yield pair(row["response"], row["knowledge"], supported_if(kind == "consistent"), row["topic"])


def read_dialfact_small(show: Show) -> Iterator[Row]:
    """DialFact: 300 responses of its test part, with all their sentences of evidence."""
    for row in json_lines(show("salesforce/DialFact", "scripts/testsmall.jsonl")):
        titles = dict.fromkeys(found[0] for found in row["evidence_list"])
        evidence = " ".join(found[2].strip() for found in row["evidence_list"])
        yield pair(row["response"], evidence, label_of(row["response_label"]), "; ".join(titles))
