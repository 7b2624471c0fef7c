"""Figures: what holds, what is kept, what a page says of it, and curves that can be read."""

import json
import re
from datetime import date
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks.evaluation import measure as records
from benchmarks.evaluation.measure import (
    MEASURE_MODULES,
    EvalCurve,
    EvalMeasure,
    EvalRecord,
    EvalValue,
    EvalValues,
    Figure,
    MeasureResult,
    dump_record,
    hash_data,
    load_measure,
    load_measures,
    read_record,
    require_data_folder,
    run_measure,
)
from benchmarks.evaluation.page import (
    EMPTY_PAGE,
    build_axis,
    build_rows,
    describe_curve,
    draw_curve,
    draw_pictures,
    format_number,
    record_path,
    render_measures,
    render_page,
)
from openassay.errors import NotFoundError, PathError, UsageError

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "quality.md"
SVG = "{http://www.w3.org/2000/svg}"


def found(data: Path, quick: bool) -> EvalValues:
    """What stands in a file, and nothing of slips in a quick run."""
    values = {name: EvalValue(value) for name, value in json.loads((data / "made/up.json").read_text()).items()}
    return {name: one for name, one in values.items() if not (quick and name == "slips")}


MADE_UP = EvalMeasure(
    name="made-up",
    about="Whether a number is a number.",
    needs=("made",),
    licence="MIT",
    whole="3 numbers",
    quick="1 number",
    figures=(
        Figure("share", floor=0.9, quick=0.8, published={"a coin": 0.5}),
        Figure("slips", floor=2, less_is_better=True, form=".0f"),
    ),
    run=found,
    notes="Nothing was tuned.",
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "up.json").write_text('{"share": 0.912345, "slips": 1}', encoding="utf-8")
    return tmp_path


# What must hold --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("share", "slips", "quick", "missed"),
    [
        (0.9, 2, False, []),
        (0.85, 2, False, ["made-up, share: .850 is below .900"]),
        (0.95, 3, False, ["made-up, slips: 3 is above 2"]),
        (0.85, 9, True, []),
        (0.79, 9, True, ["made-up, share: .790 is below .800"]),
    ],
)
def test_a_figure_that_is_worse_than_it_may_be_is_told(
    share: float, slips: float, quick: bool, missed: list[str]
) -> None:
    assert MADE_UP.list_failures({"share": EvalValue(share), "slips": EvalValue(slips)}, quick) == missed


def test_a_figure_that_was_not_taken_does_not_hold() -> None:
    assert MADE_UP.list_failures({"share": EvalValue(1.0)}, False) == ["made-up, slips: not measured"]
    assert MADE_UP.list_failures({"share": EvalValue(1.0)}, True) == []


@pytest.mark.parametrize(
    ("value", "form", "shown"), [(0.983, ".3f", ".983"), (1.0, ".3f", "1.000"), (-0.02, ".2f", "-.02"), (0, ".0f", "0")]
)
def test_numbers_are_written_as_in_the_docs(value: float, form: str, shown: str) -> None:
    assert Figure("x", floor=0, form=form).format_value(value) == shown


# Which measures there are ----------------------------------------------------------------------------


def test_every_measure_is_whole() -> None:
    """Each figure has floors, a quick one somewhere, and a name of its own."""
    for one in load_measures():
        names = [figure.name for figure in one.figures]
        assert MEASURE_MODULES[one.name]
        assert len(set(names)) == len(names)
        assert any(figure.quick is not None for figure in one.figures), one.name
        assert one.about.endswith((".", "?"))
        assert all([one.licence, one.whole, one.quick])
        assert one.needs or one.licence == "ours", one.name
        assert not one.command or (ROOT / one.command).is_file()
        for figure in one.figures:
            if figure.quick is not None and not figure.less_is_better and figure.name != "recall@20":
                assert figure.quick <= figure.floor, (one.name, figure.name)  # a sample is noisier than the whole


def test_every_set_of_the_data_is_measured(eval_data: Path) -> None:
    needed = {name for one in load_measures() for name in one.needs}
    kept_for_training, written = {"train"}, {"wikinews"}  # the latter by `python -m benchmarks.corpora`
    kept = {path.name for path in eval_data.iterdir() if path.is_dir()}
    assert needed - kept_for_training - written == kept - kept_for_training - written


def test_a_name_that_is_nearly_right_is_guessed() -> None:
    with pytest.raises(NotFoundError) as error:
        load_measure("extracton")
    assert "Did you mean extraction?" in error.value.help


# What is kept ----------------------------------------------------------------------------------------


def test_a_record_says_what_was_measured_on_what(data: Path) -> None:
    one = run_measure(MADE_UP, data, quick=False)
    assert one.figures["share"].value == 0.9123
    assert (one.sample, one.quick) == ("3 numbers", False)
    assert {"openassay", "python"} <= one.versions.keys()
    assert one.data == hash_data(data, ["made"])
    (data / "made" / "up.json").write_text('{"share": 1, "slips": 1}', encoding="utf-8")
    assert one.data != hash_data(data, ["made"])


def test_a_record_comes_back_as_it_was_kept(data: Path) -> None:
    record = EvalRecord(measures={"made-up": run_measure(MADE_UP, data, quick=True)}, curves={"growth": GROWTH})
    file = data / "record.json"
    file.write_text(dump_record(record), encoding="utf-8")
    assert read_record(file) == record
    assert read_record(data / "none.json") == EvalRecord()


@pytest.mark.parametrize("text", ["", "[]", '{"measures": {"x": {"date": "today"}}}', '{"mesures": {}}'])
def test_what_is_no_record_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "record.json").write_text(text, encoding="utf-8")
    with pytest.raises(PathError, match=r"record\.json is no record of figures"):
        read_record(tmp_path / "record.json")


def test_data_that_is_not_there_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENASSAY_EVAL_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(PathError, match=r"no evaluation data at .*nowhere"):
        require_data_folder()
    assert require_data_folder(tmp_path) == tmp_path


# What a page says ------------------------------------------------------------------------------------


def test_rows_have_what_to_beat_and_what_must_be(data: Path) -> None:
    one = run_measure(MADE_UP, data, quick=False)
    one.figures["share"].beside["a die"] = 0.17
    assert [tuple(row) for row in build_rows(MADE_UP, one)] == [
        ("made-up", "share", ".912", "a die .170; given with the data: a coin .500", "≥ .900", True),
        ("made-up", "slips", "1", "", "≤ 2", True),
    ]


def test_the_table_says_when_with_what_and_what_does_not_hold(data: Path) -> None:
    record = EvalRecord(measures={"made-up": run_measure(MADE_UP, data, quick=False)})
    record.measures["made-up"].figures["slips"].value = 5
    text = render_measures([MADE_UP], record)
    assert "| [made-up](#made-up) | share | **.912** | given with the data: a coin .500 | ≥ .900 |" in text
    assert "|  | slips | **5** (does not hold) |  | ≤ 2 |" in text
    assert "Nothing was tuned." in text
    assert "`python -m benchmarks.evaluation made-up`: 3 numbers; 0 s on " in text
    assert re.search(r"Measured with python 3[^\n]*, openassay \d[^\n]* on \d+ cores[^\n]*, unless said\.", text)


def test_what_people_wrote_on_a_page_stays() -> None:
    curve = "<!-- curve growth -->\n<!-- /curve growth -->"
    page = f"# Ours\n\n<!-- eval -->\nold\n<!-- /eval -->\n\nWords.\n\n{curve}\nEnd.\n"
    text = render_page(page, EvalRecord(curves={"growth": GROWTH}))
    assert text.startswith("# Ours\n\n<!-- eval -->\n")
    assert "old" not in text
    assert "\n\nWords.\n\n<!-- curve growth -->\n![Growth. " in text
    assert text.endswith("\n<!-- /curve growth -->\nEnd.\n")
    assert render_page(text, EvalRecord(curves={"growth": GROWTH})) == text


@pytest.mark.parametrize("page", ["# No marks\n", "<!-- eval -->\nno end\n", EMPTY_PAGE])
def test_a_page_without_a_place_is_refused(page: str) -> None:
    with pytest.raises(UsageError, match="no place for what was measured"):
        render_page(page, EvalRecord(curves={"growth": GROWTH}))


def test_the_page_of_figures_is_what_its_record_says() -> None:
    """`python -m benchmarks.evaluation --render --out docs/quality.md` writes it again."""
    record = read_record(record_path(PAGE))
    text = PAGE.read_text(encoding="utf-8")
    assert render_page(text, record) == text
    for file, picture in draw_pictures(PAGE, record).items():
        assert file.read_text(encoding="utf-8") == picture, file.name


def test_measures_on_the_page_were_taken_in_full_and_hold() -> None:
    record = read_record(record_path(PAGE))
    assert set(record.measures) == set(MEASURE_MODULES)
    for name, one in record.measures.items():
        assert not one.quick
        assert load_measure(name).list_failures(one.values(), False) == []


# Curves ----------------------------------------------------------------------------------------------

GROWTH = EvalCurve(
    title="Growth",
    x="passages",
    y="seconds & more",
    lines={"SQLite": [(10_000, 1.6), (100_000, 16.7), (1_000_000, 221.4)], "Postgre<SQL": [(10_000, 8.4)]},
    date=date(2026, 11, 16),
    command="benchmarks/bench_library.py",
)


def test_a_curve_is_a_picture_that_says_what_it_shows() -> None:
    tree = ElementTree.fromstring(draw_curve(GROWTH))  # noqa: S314 - our own
    texts = [element.text for element in tree.iter(f"{SVG}text")]
    assert {"Growth", "passages", "seconds & more", "SQLite", "Postgre<SQL", "221", "1.6", "1 M"} <= set(texts)
    assert tree.findtext(f"{SVG}desc") == describe_curve(GROWTH)
    assert "SQLite: 1.6 at 10,000, 16.7 at 100,000, 221 at 1 M" in describe_curve(GROWTH)
    assert "prefers-color-scheme: dark" in (tree.findtext(f"{SVG}style") or "")


def test_points_lie_inside_and_in_order() -> None:
    across = build_axis([10_000, 1_000_000], 70, 490, log=True)
    assert across.ticks == (10_000, 100_000, 1_000_000)
    assert [across.place(value) for value in across.ticks] == pytest.approx([70, 280, 490])
    up = build_axis([1.6, 221.4], 310, 50, log=True)
    assert 310 >= up.place(1.6) > up.place(221.4) >= 50


@pytest.mark.parametrize(("low", "high"), [(1, 4), (50, 510), (0.5, 0.9), (1, 1), (3, 2_000_000), (7, 10)])
@pytest.mark.parametrize("log", [True, False])
def test_axes_hold_all_values_with_few_ticks(low: float, high: float, log: bool) -> None:
    found = build_axis([low, high], 0, 100, log=log)
    assert found.ticks[0] <= low
    assert found.ticks[-1] >= high
    assert list(found.ticks) == sorted(set(found.ticks))
    assert 2 <= len(found.ticks) <= 9


def test_a_logarithmic_axis_has_no_place_for_nothing() -> None:
    with pytest.raises(ValueError, match="no place for 0"):
        build_axis([0, 1], 0, 1, log=True)


@pytest.mark.parametrize(
    ("value", "shown"), [(0.5, "0.5"), (9.9, "9.9"), (57.7, "57.7"), (2207.9, "2,208"), (1_000_000, "1 M"), (0, "0")]
)
def test_numbers_on_an_axis(value: float, shown: str) -> None:
    assert format_number(value) == shown


def test_a_curve_of_the_record_has_points_people_can_add_to(tmp_path: Path) -> None:
    """By hand: a pair in the list of a line."""
    file = tmp_path / "record.json"
    file.write_text(dump_record(EvalRecord(curves={"growth": GROWTH})), encoding="utf-8")
    plain: Any = json.loads(file.read_text(encoding="utf-8"))
    plain["curves"]["growth"]["lines"]["Postgre<SQL"].append([100_000, 78.5])
    file.write_text(json.dumps(plain), encoding="utf-8")
    assert "78.5 at 100,000" in describe_curve(read_record(file).curves["growth"])


def test_versions_are_those_that_figures_depend_on(data: Path) -> None:
    one: MeasureResult = run_measure(MADE_UP, data, quick=True)
    assert set(one.versions) == {"python", *records.PACKAGES}
