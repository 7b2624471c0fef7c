"""Questions in German, French, Spanish and Chinese over documents in the same language, without a language model."""

from pathlib import Path
from typing import NamedTuple

import pytest

from benchmarks.evaluation.reports import open_offline_engine
from openassay.engine.engine import Engine
from openassay.export import Report
from openassay.models.plan import Depth
from openassay.models.thread import ResearchOptions

DOCUMENTS = {
    "de/bruecke.md": "# Die Brücke von Altheim\n\nDie Steinbrücke von Altheim wurde 1786 unter Baumeister "
    "Johann Rieder "
    "errichtet. Sie überspannt die Ahl auf einer Länge von 84 Metern. Seit dem 3. Oktober 2003 dürfen nur noch "
    "Fußgänger "
    "die Brücke benutzen, weil die Pfeiler Risse zeigten.\n",
    "de/museum.md": "# Das Heimatmuseum\n\nDas Heimatmuseum Altheim zeigt Werkzeuge der Flößer. Es wurde 1931 von der "
    "Lehrerin Anna Bock gegründet. Der Eintritt kostet vier Euro, für Kinder ist er frei.\n",
    "fr/pont.md": "# Le pont de Valmoret\n\nLe pont de pierre de Valmoret a été construit en 1786 par "
    "l’architecte Jean "
    "Rivard. Il franchit l’Orve sur une longueur de 84 mètres.\n",
    "fr/musee.md": "# Le musée local\n\nLe musée de Valmoret présente les outils des bateliers. Il a été fondé en 1931 "
    "par l’institutrice Anne Bocquet. L’entrée coûte quatre euros ; elle est gratuite pour les enfants.\n",
    "es/puente.md": "# El puente de Valdehermosa\n\nEl puente de piedra de Valdehermosa fue construido en 1786 por el "
    "maestro Juan Rueda. Cruza el río Orva con una longitud de 84 metros.\n",
    "es/museo.md": "# El museo local\n\nEl museo de Valdehermosa muestra herramientas de barqueros. Lo fundó en "
    "1931 la "
    "maestra Ana Bosque. La entrada cuesta cuatro euros y es gratuita para los niños.\n",
    "zh/bridge.md": "# 青田石桥\n\n青田石桥由工匠李守义于1786年建成。桥全长84米，横跨安河。\n",
    "zh/museum.md": "# 地方博物馆\n\n青田博物馆展出船工和渔民使用的工具。"
    "博物馆由教师安白于1931年创立。门票四元，儿童免费。\n",
}


class Asked(NamedTuple):
    language: str
    question: str
    first: str  # what the report says first
    heading: str


ANSWERED = [
    Asked("de", "Wann wurde die Brücke gebaut?", "Die Steinbrücke von Altheim wurde 1786 unter Baumeister "
        "Johann Rieder "
          "errichtet.", "Antwort"),
    Asked("de", "Was kostet der Eintritt ins Museum?", "Der Eintritt kostet vier Euro, für Kinder ist er frei.",
          "Antwort"),
    Asked("de", "Warum dürfen nur Fußgänger die Brücke benutzen?", "Seit dem 3. Oktober 2003 dürfen nur noch Fußgänger "
          "die Brücke benutzen, weil die Pfeiler Risse zeigten.", "Antwort"),
    Asked("fr", "Quand le pont a-t-il été construit ?", "Le pont de pierre de Valmoret a été construit en 1786 par "
          "l’architecte Jean Rivard.", "Réponse"),
    Asked("fr", "Combien coûte l’entrée du musée ?", "L’entrée coûte quatre euros ; elle est gratuite pour les "
        "enfants.",
          "Réponse"),
    Asked("es", "¿Cuándo se construyó el puente?", "El puente de piedra de Valdehermosa fue construido en 1786 por el "
          "maestro Juan Rueda.", "Respuesta"),
    Asked("es", "¿Quién fundó el museo?", "El museo de Valdehermosa muestra herramientas de barqueros. Lo fundó "
        "en 1931 "
          "la maestra Ana Bosque.", "Respuesta"),
    Asked("zh", "青田石桥是什么时候建成的？", "青田石桥由工匠李守义于1786年建成。", "回答"),
    Asked("zh", "桥有多长？", "桥全长84米，横跨安河。", "回答"),
]  # fmt: skip
UNANSWERED = [
    ("de", "Wie viele Einwohner hat Hamburg?", "Keine Antwort gefunden"),
    ("fr", "Quelle est la population de Marseille ?", "Aucune réponse trouvée"),
    ("es", "¿Quién pintó Las Meninas?", "No se ha encontrado respuesta"),
    ("zh", "长城有多少公里？", "未找到答案"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in DOCUMENTS.items():
        path = tmp_path / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


async def ask(engine: Engine, question: str, docs: Path, depth: Depth = Depth.QUICK) -> Report:
    run = await engine.start(question, ResearchOptions(docs=(str(docs),), depth=depth))
    outcome = await engine.wait(run.id)
    assert outcome.report is not None, outcome.run.error
    return outcome.report


@pytest.mark.slow
async def test_what_is_asked_in_another_language_is_answered_in_it(folder: Path) -> None:
    """Not by a question back, but by the sentence itself, with the mark of one source, under a heading that fits."""
    async with open_offline_engine(folder / "home") as engine:
        for asked in ANSWERED:
            report = await ask(engine, asked.question, folder / "docs" / asked.language)
            assert report.plan is not None
            assert len(report.plan.questions) == 1, asked
            told = [sentence for section in report.sections for sentence in section.sentences if sentence.claims]
            assert told[0].text == asked.first, asked
            assert report.sections[0].title == asked.heading
            claims = {claim.id: claim for claim in report.claims}
            span = claims[told[0].claims[0]].spans[0]
            assert asked.first in span.quote.replace("\n", " ")


@pytest.mark.slow
async def test_what_no_document_speaks_of_is_said_in_the_language_of_the_question(folder: Path) -> None:
    async with open_offline_engine(folder / "home") as engine:
        for language, question, title in UNANSWERED:
            report = await ask(engine, question, folder / "docs" / language)
            assert title in [section.title for section in report.sections], question
            assert not report.claims


@pytest.mark.slow
async def test_a_broad_question_is_one_sub_question_at_any_depth(folder: Path) -> None:
    async with open_offline_engine(folder / "home") as engine:
        for depth in (Depth.STANDARD, Depth.COMPREHENSIVE):
            question = "Erkläre die Geschichte der Brücke von Altheim"
            report = await ask(engine, question, folder / "docs/de", depth)
            assert report.plan is not None
            assert [one.text for one in report.plan.questions] == [question]
            assert "1786" in " ".join(claim.text for claim in report.claims)
