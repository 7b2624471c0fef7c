"""Writes public questions with passages as JSON lines: python reader_sets.py MIRROR OUT [SET ...]

MIRROR has bare git clones of the public repositories named in SETS, as OWNER+NAME/repo (or OWNER+NAME.git). OUT gets a
SET.jsonl for each set, a line for each question: question, context, answers (start and text), title and kind ("span",
"yes", "no", or null: the context has no answer). A row is kept where its answers stand in the context at a place that
is certain. Text of tables is told a row a line, its cells divided by " | ".
"""

import gzip
import html
import io
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

Place = tuple[int, int]


class Row(NamedTuple):
    question: str
    context: str
    answers: tuple[Place, ...] = ()  # none: the context has no answer, or it is yes or no
    title: str = ""
    kind: str | None = "span"


class Source(NamedTuple):
    repository: str  # owner/name
    commit: str
    paths: tuple[str, ...]  # a path, or a folder with a trailing slash: all files in it


Files = Sequence[tuple[str, bytes]]  # by path


class Set(NamedTuple):
    sources: tuple[Source, ...]
    read: Callable[[Files], Iterator[Row]]


# --- Reading what was cloned ---


def find_clone(mirror: Path, repository: str) -> Path:
    name = repository.replace("/", "+")
    for folder in (mirror / name / "repo/.git", mirror / name / "repo", mirror / f"{name}.git"):
        if (folder / "objects").is_dir():
            return folder
    raise FileNotFoundError(f"{repository} is not among the clones")


def run_git(clone: Path, *arguments: str, told: bytes | None = None) -> bytes:
    return subprocess.run(
        ["git", f"--git-dir={clone}", *arguments], input=told, capture_output=True, check=True
    ).stdout  # fmt: skip


def read_files(mirror: Path, source: Source) -> Iterator[tuple[str, bytes]]:
    """All files of a source, in one run of git."""
    clone = find_clone(mirror, source.repository)
    paths: list[str] = []
    for path in source.paths:
        if path.endswith("/"):
            listed = run_git(clone, "ls-tree", "-r", "-z", "--name-only", source.commit, path)
            paths += filter(None, listed.decode().split("\0"))
        else:
            paths.append(path)
    asked = "".join(f"{source.commit}:{path}\n" for path in paths).encode()
    stream = io.BytesIO(run_git(clone, "cat-file", "--batch", told=asked))
    for path in paths:
        header = stream.readline().decode(errors="replace").split()
        if header[-1] == "missing":
            raise FileNotFoundError(f"{source.repository} lacks {path}")
        yield path, stream.read(int(header[-1]))
        stream.read(1)


# --- Finding the place of an answer ---


def list_places(context: str, text: str) -> list[int]:
    """Where a text stands as whole words."""
    if not text:
        return []
    before = r"(?<!\w)" if text[0].isalnum() else ""
    after = r"(?!\w)" if text[-1].isalnum() else ""
    return [match.start() for match in re.finditer(before + re.escape(text) + after, context)]


def find_only_place(context: str, text: str) -> Place | None:
    """The place of a text that stands once in a context."""
    text = text.strip()
    places = list_places(context, text)
    return (places[0], places[0] + len(text)) if len(places) == 1 else None


def check_place(context: str, text: str, start: int | None) -> Place | None:
    """The told place of an answer without its outer spaces, or, where it is not there, its only place."""
    if start is not None and start >= 0 and text.strip() and context[start : start + len(text)] == text:
        inner = text.strip()
        start += text.index(inner)
        return start, start + len(inner)
    return find_only_place(context, text)


def check_byte_place(context: str, text: str, start: int) -> Place | None:
    """As check_place, where the place may have been counted in bytes."""
    raw, sought = context.encode(), text.encode()
    if context[start : start + len(text)] != text and raw[start : start + len(sought)] == sought:
        start = len(raw[:start].decode(errors="ignore"))
    return check_place(context, text, start)


def drop_doubles(places: Sequence[Place | None]) -> tuple[Place, ...]:
    return tuple(dict.fromkeys(place for place in places if place))


# --- The form of SQuAD ---


def decode_articles(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Title and paragraph of a file in SQuAD's form, also of the beginning of one."""
    try:
        told = json.loads(text)
    except json.JSONDecodeError:
        yield from decode_beginning(text)
        return
    for article in told["data"]:
        for paragraph in article["paragraphs"]:
            yield article.get("title", ""), paragraph


def decode_beginning(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    decoder, title, end = json.JSONDecoder(), "", 0
    for match in re.finditer(r'"title": ("(?:[^"\\]|\\.)*")|\{"(?:context|qas)"', text):
        if match.start() < end:
            continue
        if match[1]:
            title = json.loads(match[1])
            continue
        try:
            paragraph, end = decoder.raw_decode(text, match.start())
        except json.JSONDecodeError:
            return
        yield title, paragraph


def tell_title(title: str) -> str:
    return title.replace("_", " ").strip()


def read_squad(files: Files) -> Iterator[Row]:
    for _, raw in files:
        for title, paragraph in decode_articles(raw.decode()):
            context = paragraph["context"]
            for asked in paragraph["qas"]:
                if asked.get("is_impossible"):
                    yield Row(asked["question"], context, (), tell_title(title), None)
                    continue
                told = [check_place(context, one["text"], one.get("answer_start")) for one in asked["answers"]]
                if places := drop_doubles(told):
                    yield Row(asked["question"], context, places, tell_title(title))


def begin_like(context: str) -> str:
    """The same for contexts that differ in spaces and marks."""
    return re.sub(r"\W+", "", context.lower())[:60]


def read_squad_parts(files: Files) -> Iterator[Row]:
    """Parts of SQuAD's training set: in its form, or a list of contexts whose answers have no place.

    What they have of the development set, whose pages are among the files, is left out.
    """
    pages = [file for file in files if file[0].endswith(".html")]
    kept_apart = {begin_like(row.context) for _, row in read_explored_squad(pages)}
    for path, raw in files:
        rows = list[Row]()
        if path.startswith("data/squad/"):
            for told in json.loads(raw):
                context = told["context"]
                pairs = [(one["question"], find_only_place(context, one["answer"])) for one in told["qas"]]
                rows += [Row(question, context, (place,)) for question, place in pairs if place]
        elif path.endswith(".json"):
            rows += read_squad([(path, raw)])
        yield from (row for row in rows if begin_like(row.context) not in kept_apart)


def read_explored_squad(files: Files) -> Iterator[tuple[str, Row]]:
    """The development set by id, from pages that show it. Files in SQuAD's form tell places that the pages do not."""
    places: dict[str, list[dict[str, Any]]] = {}
    for path, raw in files:
        if path.endswith(".json"):
            for _, paragraph in decode_articles(raw.decode()):
                places |= {asked["id"]: asked["answers"] for asked in paragraph["qas"]}
    seen = set[str]()
    for path, raw in files:
        if not path.endswith(".html"):
            continue
        page = raw.decode()
        title = re.search(r'<h1 id="title">(.*?)</h1>', page, re.DOTALL)
        for block in page.split('<div class="para-wrap">')[1:]:
            shown = re.search(r"<pre>(.*?)</pre>", block, re.DOTALL)
            if not shown or not title:
                continue
            context = html.unescape(shown[1])
            for asked in block.split('<div class="qa-wrap"')[1:]:
                found = re.match(r' data-id="(\w+)">.*?<strong class="question">(.*?)</strong>', asked, re.DOTALL)
                if not found or found[1] in seen:
                    continue
                truths = asked.split("Ground Truth Answers:", 1)[-1].split("Prediction", 1)[0]
                texts = [html.unescape(one) for one in re.findall(r'<span class="answer">(.*?)</span>', truths)]
                starts = {one["text"]: one["answer_start"] for one in places.get(found[1], ())}
                none = not texts or all(text.startswith("<No Answer>") for text in texts)
                told = [] if none else [check_place(context, text, starts.get(text)) for text in texts]
                answers = drop_doubles(told)
                if answers or none:
                    seen.add(found[1])
                    question, page_title = html.unescape(found[2]).strip(), tell_title(html.unescape(title[1]))
                    yield found[1], Row(question, context, answers, page_title, None if none else "span")


def read_squad_dev(files: Files) -> Iterator[Row]:
    return (row for _, row in read_explored_squad(files))


def read_disfl_qa(files: Files) -> Iterator[Row]:
    """Questions of SQuAD's development set as spoken with slips."""
    disfluent: dict[str, str] = {}
    for path, raw in files:
        if path in ("train.json", "dev.json", "test.json"):
            disfluent |= {key: one["disfluent"] for key, one in json.loads(raw).items()}
    shown = [(path, raw) for path, raw in files if "/" in path]
    for key, row in read_explored_squad(shown):
        if key in disfluent:
            yield row._replace(question=disfluent[key])


def read_tydi(files: Files) -> Iterator[Row]:
    for _, raw in files:
        for title, paragraph in decode_articles(raw.decode()):
            context = paragraph["context"]
            for asked in paragraph["qas"]:
                told = [check_byte_place(context, one["text"], one["answer_start"]) for one in asked["answers"]]
                if places := drop_doubles(told):
                    yield Row(asked["question"], context, places, tell_title(title))


def read_afriqa(files: Files) -> Iterator[Row]:
    """Questions of African languages, as translated, over passages in a pivot language."""
    for _, raw in files:
        for line in raw.decode().splitlines():
            told = json.loads(line)
            pivot, context, question = told["answer_pivot"], told["context"], told["question_translated"]
            if not context or not question:
                continue
            starts = [*pivot["answer_start"], *[None] * len(pivot["text"])]
            pairs = [(text, at) for text, at in zip(pivot["text"], starts, strict=False) if text]
            if places := drop_doubles([check_place(context, text, at) for text, at in pairs]):
                yield Row(question, context, places, told.get("title") or "")


# --- Other forms ---


def read_nq_oracle(files: Files) -> Iterator[Row]:
    """Questions to a search engine, with the passage that answers them."""
    for _, raw in files:
        for line in gzip.decompress(raw).decode().splitlines():
            told = json.loads(line)
            gold = next(one for one in told["ctxs"] if one["isgold"])
            for context in (gold["text"], told["nq_annotated_gold"]["long_answer"]):
                if places := drop_doubles([find_only_place(context, text) for text in told["answers"]]):
                    yield Row(told["question"], context, places, gold["title"])
                    break


def read_qed(files: Files) -> Iterator[Row]:
    """Questions to a search engine, without those of read_nq_oracle, whose file is among the files."""
    had = {row.question for row in read_nq_oracle([one for one in files if one[0].endswith(".gz")])}
    for path, raw in files:
        if path.endswith(".gz"):
            continue
        for line in raw.decode().splitlines():
            told = json.loads(line)
            context = told["paragraph_text"]
            listed = [one[0] for one in told["original_nq_answers"] if len(one) == 1]
            places = drop_doubles([check_place(context, one["string"], one["start"]) for one in listed])
            if places and told["question_text"] not in had:
                yield Row(told["question_text"], context, places, told["title_text"])


def read_time_qa(files: Files) -> Iterator[Row]:
    """Questions about a time, to whole pages, which may not answer them."""
    for _, raw in files:
        for line in gzip.decompress(raw).decode().splitlines():
            told = json.loads(line)
            context, title = told["context"], told["idx"].split("/")[-1].split("#")[0].replace("_", " ")
            if not any(told["targets"]):
                yield Row(told["question"], context, (), title, None)
                continue
            pairs = zip(told["targets"], told["from"], told["end"], strict=True)
            if places := drop_doubles([(start, end) for text, start, end in pairs if context[start:end] == text]):
                yield Row(told["question"], context, places, title)


_BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}", "``": '"', "''": '"'}
_NO_SPACE_BEFORE = frozenset(""". , ; : ? ! ) ] } % ' 's n't 're 've 'll 'd 'm""".split())
_NO_SPACE_AFTER = frozenset(["(", "[", "{", "$", "£", "€"])


def join_tokens(words: Sequence[str]) -> tuple[str, list[Place]]:
    """A sentence of its words and marks, and where each stands in it."""
    text, places, quoted, glued = "", [], False, True
    for told in words:
        word = _BRACKETS.get(told, told)
        closes = word in _NO_SPACE_BEFORE
        if word == '"':
            quoted = told == "``" or (told == '"' and not quoted)
            closes = not quoted
        text += "" if glued or closes else " "
        glued = word in _NO_SPACE_AFTER or (word == '"' and quoted)
        places.append((len(text), len(text) + len(word)))
        text += word
    return text, places


def read_qamr(files: Files) -> Iterator[Row]:
    """Questions about a sentence. Those whose sentence is not told (of the Penn Treebank) are left out."""
    by_path = dict(files)
    sentences = dict(
        line.split("\t", 1) for line in by_path["data/wiki-sentences.tsv"].decode().splitlines() if "\t" in line
    )
    for path, raw in files:
        if "filtered" not in path:
            continue
        for line in raw.decode().splitlines():
            key, _, _, _, _, question, *answers = line.split("\t")
            if key not in sentences:
                continue
            context, places = join_tokens(sentences[key].split(" "))
            told = list[Place | None]()
            for answer in answers:
                found = re.fullmatch(r"(?:\d+:)?(\d+(?: \d+)*)", answer)
                numbers = [int(one) for one in found[1].split()] if found else []
                if numbers and numbers == list(range(numbers[0], numbers[-1] + 1)) and numbers[-1] < len(places):
                    told.append((places[numbers[0]][0], places[numbers[-1]][1]))
            if spans := drop_doubles(told):
                yield Row(question, context, spans)


def read_boolq(files: Files) -> Iterator[Row]:
    for _, raw in files:
        for line in raw.decode().splitlines():
            told = json.loads(line)
            question = told["question"].strip().rstrip("?") + "?"
            yield Row(question, told["passage"], (), told.get("title") or "", "yes" if told["answer"] else "no")


def read_strategy_qa(files: Files) -> Iterator[Row]:
    """Yes or no, of facts of several places."""
    for _, raw in files:
        for told in json.loads(raw):
            facts = [one.strip() for one in told["facts"] if one.strip()]
            if facts:
                context = " ".join(one if one[-1] in ".!?" else f"{one}." for one in facts)
                yield Row(told["question"], context, (), told["term"], "yes" if told["answer"] else "no")


def read_pubmed_qa(files: Files) -> Iterator[Row]:
    for _, raw in files:
        for told in json.loads(raw).values():
            if told["final_decision"] in ("yes", "no"):
                yield Row(told["QUESTION"], "\n".join(told["CONTEXTS"]), (), "", told["final_decision"])


def read_unanswered_clap_nq(files: Files) -> Iterator[Row]:
    """Questions to a search engine whose page does not answer them."""
    for _, raw in files:
        for line in raw.decode().splitlines():
            told = json.loads(line)
            for passage in told["passages"]:
                yield Row(told["input"], passage["text"].strip(), (), passage["title"], None)


# --- Tables ---


def tell_table(rows: Sequence[Sequence[str]]) -> tuple[str, dict[tuple[int, int], Place]]:
    """A table as text, and where its cells stand in it."""
    text, places = "", {}
    for y, row in enumerate(rows):
        text += "\n" if y else ""
        for x, cell in enumerate(row):
            told = " ".join(cell.split())
            text += " | " if x else ""
            places[y, x] = (len(text), len(text) + len(told))
            text += told
    return text, places


def find_only_cell(text: str, places: dict[tuple[int, int], Place], sought: str) -> Place | None:
    """The place of the only cell that says so."""
    sought = " ".join(sought.split()).lower()
    found = [place for place in places.values() if text[place[0] : place[1]].lower() == sought]
    return found[0] if sought and len(found) == 1 else None


_COUNTS = re.compile(
    r"\b(how many|how much|number of|amount of|total|difference|sum|average|combined|times)\b", re.IGNORECASE
)


def read_wiki_tables(files: Files) -> Iterator[Row]:
    """Answers that are one to three cells. A number that may have been counted is not known to be a cell."""
    by_path = dict(files)
    for path, raw in files:
        if not path.startswith("data/"):
            continue
        for line in raw.decode().splitlines()[1:]:
            _, question, table, target = line.split("\t")
            cells = [one.replace("\\p", "|").replace("\\n", " ") for one in target.split("|")]
            if len(cells) > 3 or (_COUNTS.search(question) and all(re.fullmatch(r"[\d.,]+", one) for one in cells)):
                continue
            told = by_path[table.replace(".csv", ".tsv")].decode()
            rows = [
                [cell.replace("\\p", "|").replace("\\n", " ") for cell in one.split("\t")] for one in told.splitlines()
            ]
            context, places = tell_table(rows)
            found = [find_only_cell(context, places, cell) for cell in cells]
            if all(found):
                yield Row(question, context, drop_doubles(found))


def read_feta_qa(files: Files) -> Iterator[Row]:
    """Free answers that have one of the marked cells, where the question does not have it."""
    for _, raw in files:
        for line in raw.decode().splitlines():
            told = json.loads(line)
            rows = told["table_array"]
            context, places = tell_table(rows)
            found = set[str]()
            for y, x in told["highlighted_cell_ids"]:
                cell = " ".join(rows[y][x].split())
                if y and list_places(told["answer"], cell) and cell.lower() not in told["question"].lower():
                    found.add(cell)
            if len(found) == 1 and (place := find_only_cell(context, places, found.pop())):
                title = f"{told['table_page_title']}: {told['table_section_title']}"
                yield Row(told["question"], context, (place,), title)


def read_ait_qa(files: Files) -> Iterator[Row]:
    """Tables of the yearly reports of airlines."""
    by_path = dict(files)
    tables = {}
    for line in by_path["raw_data/aitqa_tables.jsonl"].decode().splitlines():
        told = json.loads(line)
        names = [" ".join(one) for one in told["row_header"]]
        heads = [" ".join(one) for one in told["column_header"]]
        rows = [[""] * bool(names) + heads]
        rows += [[*names[at : at + 1], *cells] for at, cells in enumerate(told["data"])]
        tables[told["id"]] = tell_table(rows)
    for line in by_path["raw_data/aitqa_questions.jsonl"].decode().splitlines():
        told = json.loads(line)
        context, places = tables[told["table_id"]]
        answers = told["answers"]
        if len(answers) == 1 and (place := find_only_cell(context, places, str(answers[0]))):
            yield Row(told["question"], context, (place,))


def read_tat_qa(files: Files) -> Iterator[Row]:
    """Spans of yearly reports: of the table, or of the paragraphs, as their place was told."""
    for _, raw in files:
        for page in json.loads(raw):
            table, cells = tell_table(page["table"]["table"])
            text, starts = table, {}
            for paragraph in sorted(page["paragraphs"], key=lambda one: one["order"]):
                starts[f"paragraph_{paragraph['order']}"] = len(text) + 1
                text += "\n" + paragraph["text"]
            for asked in page["questions"]:
                if asked["answer_type"] != "span" or len(asked["mappings"]) != 1:
                    continue
                [(where, (first, second))] = asked["mappings"][0].items()
                place = cells.get((first, second)) if where == "table" else None
                if where in starts:
                    place = starts[where] + first, starts[where] + second
                answer = " ".join(asked["answer"][0].split())
                if place and answer == " ".join(text[place[0] : place[1]].split()):
                    place = check_place(text, text[place[0] : place[1]], place[0])
                    yield Row(asked["question"].strip(), text, drop_doubles([place]))


def name_afriqa_files(pivot: str, languages: str) -> tuple[str, ...]:
    """By language the parts it has: BCP codes with the first letters of train, dev and test."""
    parts = {"r": "train", "d": "dev", "e": "test"}
    return tuple(
        f"data/gold_passages/{one[:3]}/gold_span_passages.afriqa.{one[:3]}.{pivot}.{parts[part]}.json"
        for one in languages.split()
        for part in one[4:]
    )


# The training parts of the others are too big to be among the clones.
TYDI_LANGUAGES = {
    "ar": "arabic: dev", "bn": "bengali: dev", "fi": "finnish: dev", "id": "indonesian: dev", "ko": "korean: train dev",
    "ru": "russian: dev", "sw": "swahili: train dev", "te": "telugu: dev",
}  # fmt: skip


def name_tydi_files(told: str) -> tuple[str, ...]:
    language, parts = told.split(": ")
    return tuple(f"language_data/{language}/{language}_tydiqa_{part}.json" for part in parts.split())


SQUAD_EXPLORER = Source("rajpurkar/SQuAD-explorer", "e0c66cfec263165fb3c15cb76a22175e371b71d7",
                        ("explore/v2.0/dev/", "explore/1.1/dev/"))  # fmt: skip
# Half of the development set in SQuAD's form.
SQUAD_PLACES = Source("michiyasunaga/squad", "f75c3e5fca", ("data/dev-v2.0.json",))
NQ_ORACLE = Source("nelson-liu/lost-in-the-middle", "29b8a6d042", ("qa_data/nq-open-oracle.jsonl.gz",))
TYDI = Source("sagorbrur/tydiqa-language-specific", "55c6649475", ())
SETS: dict[str, Set] = {
    "squad-train-part": Set((
        Source("tomhosking/squad-du-split", "beac7f3ddc", ("test-v1.1.json",)),
        Source("PhongNTDo/guide_train_MRC_transformers", "631a448de4", ("train-v2.0.json",)),
        Source("ermeba/jupiter_bert", "b893930d07", ("train-v1.1.json",)),
        Source("maddy6/ccs", "bba3f05783", ("train-v1.1.json",)),
        Source("EmptyCityJK/flan-response-evaluator", "050f3fd676", ("data/squad/",)),
        SQUAD_EXPLORER,
    ), read_squad_parts),
    "squad-dev": Set((SQUAD_EXPLORER, SQUAD_PLACES), read_squad_dev),
    "disfl-qa": Set((
        Source("google-research-datasets/Disfl-QA", "1f0c16171c", ("train.json", "dev.json", "test.json")),
        SQUAD_EXPLORER, SQUAD_PLACES,
    ), read_disfl_qa),
    "squadshifts-new_wiki": Set((
        Source("modestyachts/squadshifts-website", "b7cc4d50af", ("datasets/new_wiki_v1.0.json",)),
    ), read_squad),
    "nq-open-gold": Set((NQ_ORACLE,), read_nq_oracle),
    "timeqa-human": Set((
        Source("wenhuchen/Time-Sensitive-QA", "38b0598907",
               ("dataset/human_train.easy.json.gzip", "dataset/human_train.hard.json.gzip")),
    ), read_time_qa),
    "qamr-devtest": Set((
        Source("uwnlp/qamr", "956b0eb2d5",
               ("data/wiki-sentences.tsv", "data/filtered/dev.tsv", "data/filtered/test.tsv")),
    ), read_qamr),
    "wtq-train": Set((
        Source("ppasupat/WikiTableQuestions", "7d455a5a70", ("data/training.tsv", "csv/")),
    ), read_wiki_tables),
    "fetaqa-devtest": Set((
        Source("Yale-LILY/FeTaQA", "bbc441be80", ("data/fetaQA-v1_dev.jsonl", "data/fetaQA-v1_test.jsonl")),
    ), read_feta_qa),
    "aitqa": Set((
        Source("IBM/AITQA", "0efa4da837", ("raw_data/aitqa_tables.jsonl", "raw_data/aitqa_questions.jsonl")),
    ), read_ait_qa),
    "tatqa-test": Set((
        Source("NExTplusplus/TAT-QA", "870accc419", ("dataset_raw/tatqa_dataset_test_gold.json",)),
    ), read_tat_qa),
    "tydiqa-en": Set((
        TYDI._replace(paths=name_tydi_files("english: train dev")),
    ), read_tydi),
    "qed-dev": Set((
        Source("google-research-datasets/QED", "2492920337", ("qed-dev.jsonlines",)), NQ_ORACLE,
    ), read_qed),
    "afriqa-en": Set((
        Source("masakhane-io/afriqa", "5c29933753", name_afriqa_files(
            "en", "bem:rde hau:rde ibo:rde kin:rde swa:e twi:rde yor:re zul:rde")),
    ), read_afriqa),
    "boolq-dev": Set((Source("d-eremeev/BoolQ-Question-Answering", "72c347852e", ("data/dev.jsonl",)),), read_boolq),
    "strategyqa-train": Set((
        Source("eladsegal/strategyqa", "1ba1e97452", ("data/strategyqa/train.json",)),
    ), read_strategy_qa),
    "pubmedqa": Set((Source("pubmedqa/pubmedqa", "1cbae8e92f", ("data/ori_pqal.json",)),), read_pubmed_qa),
    "policyqa-devtest": Set((
        Source("wasiahmad/PolicyQA", "775538bc6d", ("data/dev.json", "data/test.json")),
    ), read_squad),
    "clapnq-dev-none": Set((
        Source("primeqa/clapnq", "eb26840d13", ("annotated_data/dev/clapnq_dev_unanswerable.jsonl",)),
    ), read_unanswered_clap_nq),
    "piaf-fr": Set((Source("psorianom/piaf-combo-huggingface", "45042853f8", ("data/piaf-v1.1.json",)),), read_squad),
    "afriqa-fr": Set((Source("masakhane-io/afriqa", "5c29933753", name_afriqa_files("fr", "fon:rde")),), read_afriqa),
    "cmrc2018-dev-zh": Set((
        Source("ymcui/cmrc2018", "c0eb1b6ba2",
               ("squad-style-data/cmrc2018_dev.json", "squad-style-data/cmrc2018_trial.json")),
    ), read_squad),
    "drcd-devtest-zh": Set((
        Source("DRCKnowledgeTeam/DRCD", "b944790de5", ("DRCD_dev.json", "DRCD_test.json")),
    ), read_squad),
    "jaquad-ja": Set((Source("SkelterLabsInc/JaQuAD", "23f5d72cc2", ("data/train/", "data/dev/")),), read_squad),
    "arcd-ar": Set((Source("husseinmozannar/SOQAL", "1229d34aa2", ("data/arcd.json",)),), read_squad),
    **{
        f"tydiqa-{code}": Set((TYDI._replace(paths=name_tydi_files(told)),), read_tydi)
        for code, told in TYDI_LANGUAGES.items()
    },
}  # fmt: skip


def write_set(mirror: Path, out: Path, name: str) -> Counter[str]:
    """Writes a set; a question asked twice of a context stands once. Says how many rows there are of each kind."""
    asked = SETS[name]
    files = [file for source in asked.sources for file in read_files(mirror, source)]
    count, seen = Counter[str](), set[tuple[str, str]]()
    with (out / f"{name}.jsonl").open("w", encoding="utf-8") as file:
        for row in asked.read(files):
            question = " ".join(row.question.split())
            if not question or not row.context.strip() or (question, row.context) in seen:
                continue
            seen.add((question, row.context))
            if not all(0 <= start < end <= len(row.context) for start, end in row.answers):
                raise ValueError(f"{name}: a place outside of the context of {question!r}")
            answers = [{"start": start, "text": row.context[start:end]} for start, end in row.answers]
            told: dict[str, Any] = {"question": question, "context": row.context, "answers": answers}
            told |= {"title": row.title, "kind": row.kind}
            file.write(json.dumps(told, ensure_ascii=False) + "\n")
            count[row.kind or "no answer"] += 1
    return count


def write_sets(mirror: Path, out: Path, names: Sequence[str]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for name in names or SETS:
        try:
            count = write_set(mirror, out, name)
        except (FileNotFoundError, subprocess.CalledProcessError) as error:
            (out / f"{name}.jsonl").unlink(missing_ok=True)
            print(f"{name}: not there ({error})")
            continue
        print(f"{name}: {count.total()} rows", dict(count), flush=True)


if __name__ == "__main__":
    write_sets(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
