"""A whole question with a real small model, on request: it takes minutes.

OPENASSAY_TEST_MODEL_URL names an OpenAI-compatible server on this machine, OPENASSAY_TEST_MODEL_FILE a .gguf file
(with the
extra `local` installed).
"""

import asyncio
import os
from pathlib import Path
from typing import Any

import httpx2
import pytest

from openassay.bootstrap import open_engine
from openassay.models.thread import ResearchOptions
from openassay.settings import load
from tests.scenario.checking import check_report, stored_texts
from tests.system.command import LIBRARY

URL = os.environ.get("OPENASSAY_TEST_MODEL_URL")
FILE = os.environ.get("OPENASSAY_TEST_MODEL_FILE")
QUESTION = "What is the Hubble tension and how large is it?"
SHARE = 0.8  # of the steps, at least, must be the model's


async def _researched(folder: Path, model: str, llm: dict[str, Any]) -> None:
    async with open_engine(load(data_dir=folder, llm=llm)) as engine:
        options = ResearchOptions.model_validate({"depth": "quick", "docs": (str(LIBRARY),), "model": model})
        run = await engine.start(QUESTION, options)
        async with asyncio.timeout(3_000):
            outcome = await engine.wait(run.id)
    report = outcome.report
    assert report is not None, outcome.run.error
    check_report(report, stored_texts(folder))
    facts = [sentence for section in report.sections for sentence in section.sentences if sentence.kind == "fact"]
    assert facts
    assert all(sentence.citations for sentence in facts)
    steps = report.metadata.reasoning
    assert steps.get(model, 0) >= SHARE * sum(steps.values()), steps
    assert report.spend.usd == 0
    assert report.spend.tokens > 0


@pytest.mark.skipif(URL is None, reason="OPENASSAY_TEST_MODEL_URL names no server")
@pytest.mark.timeout(3_600)
async def test_a_question_with_a_model_behind_a_url(tmp_path: Path) -> None:
    served = httpx2.get(f"{URL}/models", timeout=10).json()["data"][0]["id"]
    await _researched(tmp_path / "data", f"compatible:{served}", {"base_url": URL})


@pytest.mark.skipif(FILE is None, reason="OPENASSAY_TEST_MODEL_FILE names no .gguf file")
@pytest.mark.timeout(3_600)
async def test_a_question_with_a_model_in_a_file(tmp_path: Path) -> None:
    await _researched(tmp_path / "data", f"local:{FILE}", {})
