"""Who thinks: keys, names, tiers, and what may see a person's documents."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from openassay.errors import ConfigurationError
from openassay.llm.names import parse_name
from openassay.llm.prices import find_price
from openassay.llm.selection import ModelSelection, needs_model_consent, select_models
from openassay.models.thread import ResearchOptions
from openassay.settings import load

CLAUDE, GPT, GEMINI = "anthropic:claude-sonnet-5-5", "openai:gpt-4o", "google:gemini-2.5-flash-lite"


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def give(*vendors: str) -> None:
        for vendor in vendors:
            monkeypatch.setenv(f"{vendor.upper()}_API_KEY", "sk-test-not-a-key")

    return give


def names(chosen: ModelSelection | None, role: Any = "writer") -> list[str]:
    assert chosen is not None
    return [str(model) for model in chosen.by_role[role]]


def test_without_a_key_the_embedded_reasoner_thinks() -> None:
    assert select_models(load(), ResearchOptions()) is None


@pytest.mark.requirement("L-09")
def test_three_tiers_in_order_as_far_as_there_are_keys(keys: Callable[..., None]) -> None:
    keys("openai")
    assert names(select_models(load(), ResearchOptions())) == [GPT]
    keys("anthropic", "google")
    chosen = select_models(load(), ResearchOptions())
    assert names(chosen) == [CLAUDE, GPT, GEMINI]
    assert chosen is not None
    assert str(chosen.budget) == GEMINI


@pytest.mark.requirement("L-09")
def test_a_role_may_have_a_model_of_its_own(keys: Callable[..., None]) -> None:
    keys("anthropic", "openai")
    chosen = select_models(load(judge_model="openai:gpt-4o-mini"), ResearchOptions())
    assert names(chosen, "judge") == ["openai:gpt-4o-mini", GPT]
    assert names(chosen, "planner") == [CLAUDE, GPT]


def test_a_model_named_for_one_question_comes_first(keys: Callable[..., None]) -> None:
    keys("anthropic", "openai")
    chosen = select_models(load(judge_model="openai:gpt-4o-mini"), ResearchOptions(model="openai:gpt-5"))
    assert names(chosen, "judge") == ["openai:gpt-5", GPT]


def test_tiers_can_be_switched_off(keys: Callable[..., None]) -> None:
    keys("anthropic", "openai", "google")
    chosen = select_models(load(llm={"fallback_model": "none", "budget_model": "none"}), ResearchOptions())
    assert names(chosen) == [CLAUDE]
    assert chosen is not None
    assert chosen.budget is None


def test_embedded_switches_models_off(keys: Callable[..., None]) -> None:
    keys("anthropic")
    assert select_models(load(), ResearchOptions(model="embedded")) is None
    assert select_models(load(llm={"model": "embedded"}), ResearchOptions()) is None


@pytest.mark.parametrize("model", ["anthropic:claude-x", "google:gemini-x"])
def test_a_named_model_without_its_key_is_refused_and_the_variable_named(model: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        select_models(load(), ResearchOptions(model=model))
    assert f"{model.partition(':')[0].upper()}_API_KEY" in caught.value.help


@pytest.mark.parametrize("model", ["antropic:claude-x", "nonesuch", "openai:", "local:/nowhere/model.gguf"])
def test_a_name_that_cannot_be_is_refused(model: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        select_models(load(), ResearchOptions(model=model))
    assert caught.value.help


class TestDocumentsStayHere:
    DOCS = ResearchOptions(docs=("notes",))

    def test_no_hosted_model_sees_them_by_default(self, keys: Callable[..., None]) -> None:
        keys("anthropic", "openai")
        assert select_models(load(), self.DOCS) is None
        assert needs_model_consent(load(), self.DOCS)

    def test_a_model_asked_for_by_name_does_and_no_other(self, keys: Callable[..., None]) -> None:
        keys("anthropic", "openai", "google")
        chosen = select_models(load(), self.DOCS.model_copy(update={"model": GPT}))
        assert names(chosen) == [GPT]
        assert chosen is not None
        assert chosen.budget is None
        assert names(select_models(load(llm={"model": CLAUDE}), self.DOCS)) == [CLAUDE]

    def test_with_the_web_asked_for_the_usual_tiers_think(self, keys: Callable[..., None]) -> None:
        keys("anthropic")
        assert names(select_models(load(), self.DOCS.model_copy(update={"web": True}))) == [CLAUDE]
        assert not needs_model_consent(load(), ResearchOptions())

    def test_a_model_on_this_machine_may_see_them_and_is_not_followed_by_a_hosted_one(
        self, keys: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("openassay.llm.selection.require_llamacpp", lambda: None)  # the extra `local`
        keys("openai")
        for options in (self.DOCS, ResearchOptions()):
            assert names(select_models(load(llm={"model": "ollama:qwen"}), options)) == ["ollama:qwen"]
        file = tmp_path / "small.gguf"
        file.write_bytes(b"GGUF and so on")
        assert names(select_models(load(), self.DOCS.model_copy(update={"model": f"local:{file}"}))) == [
            f"local:{file}"
        ]

    def test_not_even_a_named_fallback_follows_a_model_on_this_machine(self, keys: Callable[..., None]) -> None:
        keys("openai")
        settings = load(llm={"model": "ollama:qwen", "fallback_model": GPT, "budget_model": GPT})
        assert names(select_models(settings, self.DOCS)) == ["ollama:qwen"]
        assert names(select_models(settings, ResearchOptions())) == ["ollama:qwen", GPT]

    def test_a_model_named_for_one_role_sees_only_what_that_role_sees(self, keys: Callable[..., None]) -> None:
        keys("openai")
        chosen = select_models(load(writer_model=GPT), self.DOCS)
        assert names(chosen) == [GPT]
        assert names(chosen, "searcher") == []

    def test_a_fallback_that_is_written_down_asks_for_nothing_by_itself(self, keys: Callable[..., None]) -> None:
        keys("openai")
        assert select_models(load(llm={"fallback_model": GPT, "budget_model": GPT}), self.DOCS) is None

    def test_a_thread_that_was_about_documents_is_private(self, keys: Callable[..., None]) -> None:
        keys("anthropic")
        assert select_models(load(), ResearchOptions(private=True)) is None
        assert needs_model_consent(load(), ResearchOptions(private=True))


def test_every_default_model_has_a_price() -> None:
    """A model that vendors have retired loses it in time; then the default must change."""
    settings = load()
    for name in (settings.llm.model, settings.llm.fallback_model, settings.llm.budget_model):
        assert find_price(parse_name(name), settings)(1_000_000, 0) > 0
