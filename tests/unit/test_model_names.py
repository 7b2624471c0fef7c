"""Names of models, and what follows from them."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from openassay.errors import ConfigurationError
from openassay.llm.names import (
    EXAMPLES,
    LOCAL_LIMITS,
    VENDORS,
    ModelName,
    base_url,
    call_limits,
    check_file,
    find_key,
    has_key,
    is_on_this_machine,
    key_variable,
    parse_name,
)
from openassay.settings import Keys, ModelSettings, Settings

pytestmark = pytest.mark.requirement("L-09")


def settings(**llm: object) -> Settings:
    return Settings(llm=ModelSettings.model_validate(llm))


def keys(**held: str) -> Keys:
    return Keys.model_validate({name: SecretStr(value) for name, value in held.items()})


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in Keys.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)


def test_a_name_and_back() -> None:
    assert parse_name(" anthropic : claude-x ") == ModelName("anthropic", "claude-x")
    assert str(parse_name("ollama:qwen2.5:7b")) == "ollama:qwen2.5:7b"
    assert {str(parse_name(example)) for example in EXAMPLES.values()} == set(EXAMPLES.values())
    assert set(EXAMPLES) == set(VENDORS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("antropic:claude-x", "did you mean anthropic?"),
        ("mistral:large", "unknown vendor 'mistral'"),
        ("gpt-4o", "did you mean openai:gpt-4o?"),
        ("claude-x", "did you mean anthropic:claude-x?"),
        ("something", "does not name the vendor"),
        ("openai:", "names no model"),
        ("openai", "names no model"),
        (":gpt-4o", "unknown vendor"),
        ("", "does not name the vendor"),
    ],
)
def test_a_wrong_name_says_what_a_right_one_is(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=r".*") as caught:
        parse_name(text)
    assert message in caught.value.message
    assert ":" in caught.value.help


def test_keys() -> None:
    model = parse_name("openai:gpt-4o")
    assert find_key(model, keys(openai_api_key=" sk-1 \n")) == "sk-1"
    assert not has_key(model, keys(openai_api_key="  "))
    assert not has_key(model, keys(anthropic_api_key="sk-1"))
    assert key_variable(model) == "OPENAI_API_KEY"
    server = parse_name("ollama:m")
    assert has_key(server, keys())
    assert find_key(server, keys(compatible_api_key="x")) == "x"
    assert key_variable(server) == "COMPATIBLE_API_KEY"
    assert find_key(parse_name("local:m.gguf"), keys(compatible_api_key="x")) is None


def test_a_key_that_cannot_be_sent_is_not_shown() -> None:
    with pytest.raises(ConfigurationError) as caught:
        find_key(parse_name("openai:gpt-4o"), keys(openai_api_key="sk-gehe\u00efm"))
    assert "gehe" not in caught.value.message
    assert "OPENAI_API_KEY" in caught.value.message


@pytest.mark.parametrize(
    ("model", "llm", "address"),
    [
        ("anthropic:m", {}, None),
        ("anthropic:m", {"base_url": "http://127.0.0.1:1/v1"}, None),
        ("anthropic:m", {"endpoints": {"anthropic": "https://gateway.example/a/"}}, "https://gateway.example/a"),
        ("google:m", {"endpoints": {"google": "https://gateway.example"}}, "https://gateway.example"),
        ("openai:m", {"endpoints": {"openai": "https://gateway.example"}}, "https://gateway.example/v1"),
        ("compatible:m", {"base_url": "http://10.0.0.2:8000/v1/"}, "http://10.0.0.2:8000/v1"),
        ("compatible:m", {"base_url": "http://10.0.0.2:8000"}, "http://10.0.0.2:8000/v1"),
        ("ollama:m", {}, "http://127.0.0.1:11434/v1"),
        ("llamacpp:m", {}, "http://127.0.0.1:8080/v1"),
        ("ollama:m", {"base_url": "http://h:1/v1", "endpoints": {"ollama": "http://e:2/v1"}}, "http://e:2/v1"),
        ("local:m.gguf", {"base_url": "http://h:1/v1"}, None),
    ],
)
def test_addresses(model: str, llm: dict[str, object], address: str | None) -> None:
    assert base_url(parse_name(model), settings(**llm)) == address


@pytest.mark.parametrize(
    "address", ["localhost:8080", "ftp://h/v1", "http://", "http://h:port/v1", "http://[::1/v1", "http://h/v1?a=b", ""]
)
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        base_url(parse_name("compatible:m"), settings(endpoints={"compatible": address}))
    assert "http://HOST:PORT/v1" in caught.value.help


def test_a_server_without_an_address_and_a_misspelt_endpoint() -> None:
    with pytest.raises(ConfigurationError) as caught:
        base_url(parse_name("compatible:m"), settings())
    assert "OPENASSAY_LLM__BASE_URL" in caught.value.help
    with pytest.raises(ConfigurationError, match="did you mean openai"):
        base_url(parse_name("anthropic:m"), settings(endpoints={"opnai": "http://h/v1"}))


@pytest.mark.parametrize(
    ("model", "address", "here"),
    [
        ("local:m.gguf", None, True),
        ("ollama:m", None, True),
        ("compatible:m", "http://localhost:1/v1", True),
        ("compatible:m", "http://LOCALHOST:1/v1", True),
        ("compatible:m", "http://127.8.9.1/v1", True),
        ("compatible:m", "http://[::1]:80/v1", True),
        ("compatible:m", "http://0.0.0.0/v1", False),
        ("compatible:m", "http://192.168.0.2/v1", False),
        ("compatible:m", "http://127.0.0.1.example.com/v1", False),
        ("compatible:m", "http://localhost@example.com/v1", False),
        ("anthropic:m", "http://127.0.0.1:1", False),
    ],
)
def test_what_runs_on_this_machine(model: str, address: str | None, here: bool) -> None:
    name = parse_name(model)
    endpoints = {name.vendor: address} if address else {}
    assert is_on_this_machine(name, settings(endpoints=endpoints)) is here


@pytest.mark.requirement("S-03")
def test_how_much_fits_into_a_call_is_told_by_the_settings_and_not_by_where_a_server_is() -> None:
    here = parse_name("compatible:strong")
    address = {"base_url": "http://127.0.0.1:8000/v1"}
    assert call_limits(here, settings(**address)) == LOCAL_LIMITS
    large = call_limits(here, settings(**address, prompt_tokens=32_000))
    assert (large.prompt_tokens, large.answer_tokens, large.at_once) == (32_000, 8_000, 16)
    assert large.seconds == LOCAL_LIMITS.seconds, "it may be slow all the same"
    set_all = settings(**address, prompt_tokens=6_000, answer_tokens=2_000, calls_at_once=3, call_seconds=30)
    assert call_limits(here, set_all) == (6_000, 2_000, 30, 3)
    assert call_limits(parse_name("openai:gpt-4o"), settings(answer_tokens=900)).answer_tokens == 900


def test_a_file_must_be_a_model(tmp_path: Path) -> None:
    good, text, page = tmp_path / "a.gguf", tmp_path / "a.txt", tmp_path / "page.gguf"
    good.write_bytes(b"GGUF\x03\x00")
    text.write_bytes(b"GGUF")
    page.write_bytes(b"<html>")
    check_file(parse_name(f"local:{good}"))
    check_file(parse_name("openai:gpt-4o"))
    for path, message in (
        (text, "is not a .gguf file"),
        (page, "does not hold a GGUF model"),
        (tmp_path / "none.gguf", "No such file"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            check_file(parse_name(f"local:{path}"))
    (tmp_path / "folder.gguf").mkdir()
    with pytest.raises(ConfigurationError, match="cannot read"):
        check_file(parse_name(f"local:{tmp_path / 'folder.gguf'}"))
