"""All settings, with their defaults, and the only place that reads the environment.

Priority: defaults < config.yaml < environment (and .env) < what the caller passes. Every key can be set as
`ASSAY_<KEY>`, nested ones as `ASSAY_LLM__MODEL`. API keys keep their vendors' names.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any, Literal, get_args

from dotenv import dotenv_values
from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, YamlConfigSettingsSource
from pydantic_settings.exceptions import SettingsError

from assay.errors import ConfigurationError
from assay.model.exchange import Role
from assay.model.plan import FEWEST_WORDS, MOST_WORDS, Style
from assay.model.question import Depth, Mode
from assay.settings.faults import explain, nearest
from assay.settings.parts import (
    USER,
    Breakpoints,
    Budget,
    Caching,
    Condition,
    CustomBreakpoint,
    Fleet,
    Harvesting,
    McpSource,
    Models,
    Operator,
    Part,
    Persistence,
    Place,
    Price,
    Reading,
    RoleTuning,
    Searching,
    Serving,
    Standards,
    Telemetry,
)

__all__ = [
    "USER", "Breakpoints", "Budget", "Caching", "Condition", "CustomBreakpoint", "Fleet", "Harvesting", "Keys",
    "McpSource", "Models", "Operator", "Part", "Persistence", "Place", "Price", "Reading", "RoleTuning", "Searching",
    "Serving", "Settings", "Standards", "Telemetry", "config_file", "eval_data", "load",
]  # fmt: skip

# Variables with our prefix that are not settings of a run.
NOT_SETTINGS = frozenset(
    {
        "ASSAY_CONFIG",
        "ASSAY_EVAL_DATA",
        "ASSAY_STORAGE_KEY",
        "ASSAY_STORAGE_KEY_BEFORE",
        "ASSAY_TEST_MODEL_URL",
        "ASSAY_TEST_MODEL_FILE",
    }
)


class Keys(BaseSettings):
    """Secrets under their vendors' own names; none is ever printed."""

    model_config = SettingsConfigDict(env_file=".env", extra="ignore", frozen=True)

    anthropic_api_key: SecretStr | None = None
    openai_api_key: SecretStr | None = None
    google_api_key: SecretStr | None = None
    compatible_api_key: SecretStr | None = None
    tavily_api_key: SecretStr | None = None
    exa_api_key: SecretStr | None = None
    serper_api_key: SecretStr | None = None
    brave_api_key: SecretStr | None = None
    news_api_key: SecretStr | None = None
    semantic_scholar_api_key: SecretStr | None = None
    openalex_api_key: SecretStr | None = None
    github_token: SecretStr | None = None
    redis_url: SecretStr | None = None
    database_url: SecretStr | None = None
    assay_storage_key: SecretStr | None = None  # seals what is stored, and encrypts it where that is asked for
    assay_storage_key_before: SecretStr | None = None  # the one that `assay storage seal` replaces


class Settings(BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix="ASSAY_", env_nested_delimiter="__", env_file=".env", extra="forbid", frozen=True
    )

    data_dir: Path = Path("data")
    log_level: Literal["debug", "info", "warning", "error"] = "warning"

    depth: Depth = Depth.STANDARD
    mode: Mode = Mode.AUTO
    auto_gate: bool = True
    user: str = Field(default="local", pattern=USER)  # whose memory is used
    style_guide: Style = "academic"
    target_length: int = Field(default=2000, ge=FEWEST_WORDS, le=MOST_WORDS)
    banned_words: tuple[str, ...] = (
        "delve", "realm", "harness", "unlock", "tapestry", "paradigm", "cutting-edge", "revolutionize",
        "landscape", "crucial", "pivotal", "groundbreaking", "leverage", "synergy", "innovative",
        "game-changer", "holistic", "transformative", "seamless", "robust", "breakthrough", "empower",
    )  # fmt: skip

    max_iterations: int = Field(default=3, ge=1, le=10)
    max_search_iterations: int = Field(default=5, ge=1, le=20)
    max_gap_searches: int = Field(default=2, ge=0, le=2)  # three rounds at most (F-08)
    max_search_errors: int = Field(default=3, ge=1, le=100)
    max_clarifications: int = Field(default=2, ge=0, le=5)
    query_variations: int = Field(default=3, ge=1, le=5)
    results_per_query: int = Field(default=50, ge=1, le=50)

    hitl_after_planning: bool = False
    hitl_before_output: bool = False

    planner_model: str | None = None
    searcher_model: str | None = None
    analyst_model: str | None = None
    writer_model: str | None = None
    reviewer_model: str | None = None
    judge_model: str | None = None

    source: str = "auto"  # several with commas between them
    offline: bool = False  # ask nothing of the network: no search provider, no page
    llm: Models = Models()
    budget: Budget = Budget()
    persistence: Persistence = Persistence()
    breakpoints: Breakpoints = Breakpoints()
    standards: Standards = Standards()
    reading: Reading = Reading()
    search: Searching = Searching()
    harvest: Harvesting = Harvesting()
    cache: Caching = Caching()
    server: Serving = Serving()
    fleet: Fleet = Fleet()
    telemetry: Telemetry = Telemetry()
    keys: Keys = Field(default_factory=Keys, exclude=True)

    def model_for(self, role: Role) -> str:
        """The model a role asks: its own where one is set, else the first tier."""
        return getattr(self, f"{role}_model") or self.llm.model

    def fingerprint(self) -> str:
        """What a run stores to say which settings made it; where data lie does not matter to a result."""
        values = self.model_dump(mode="json", exclude={"data_dir", "log_level", "server", "fleet", "telemetry", "keys"})
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        yaml = YamlConfigSettingsSource(settings_cls, yaml_file=config_file())
        return init_settings, env_settings, _OurVariables(settings_cls, dotenv_settings), yaml


class _OurVariables(PydanticBaseSettingsSource):
    """A .env file also holds other programs' variables and our API keys: only our prefix counts here."""

    def __init__(self, settings_cls: type[BaseSettings], dotenv: PydanticBaseSettingsSource) -> None:
        super().__init__(settings_cls)
        self._dotenv = dotenv

    def get_field_value(self, field: Any, field_name: str) -> tuple[Any, str, bool]:
        return self._dotenv.get_field_value(field, field_name)

    def __call__(self) -> dict[str, Any]:
        return {key: value for key, value in self._dotenv().items() if key in self.settings_cls.model_fields}


def _named(variable: str) -> str | None:
    """Of the environment, or else of .env, as settings are."""
    return os.environ[variable] if variable in os.environ else dotenv_values(".env").get(variable)


def config_file() -> Path:
    named = _named("ASSAY_CONFIG")
    return Path("config.yaml" if named is None else named)


def eval_data() -> Path | None:
    """Where the data lie that `assay eval` measures on; it is no setting of a run."""
    named = _named("ASSAY_EVAL_DATA")
    return Path(named) if named else None


def load(**overrides: object) -> Settings:
    """Settings from all layers; anything wrong is one ConfigurationError that names every bad key."""
    from yaml import YAMLError

    try:
        if _named("ASSAY_CONFIG") is not None and not config_file().is_file():
            raise ConfigurationError(
                f"ASSAY_CONFIG names {config_file()}, which is not a file", help="Correct it or unset it."
            )
        _refuse_unknown_variables()
        given = {"log_level": _common_level(), **overrides}
        return Settings(**{key: value for key, value in given.items() if value is not None})  # type: ignore[arg-type]
    except ValidationError as error:
        raise ConfigurationError("; ".join(explain(error, Settings)), help=_HELP) from error
    except SettingsError as error:
        raise ConfigurationError(f"cannot read the configuration: {error}", help=_JSON) from error
    except (YAMLError, OSError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise ConfigurationError(f"cannot read the configuration: {reason}", help=_HELP) from error
    except (TypeError, ValueError) as error:  # a list or a lone word where keys with values should stand
        raise ConfigurationError(f"{config_file()} does not hold keys with values", help=_HELP) from error


def _common_level() -> str | None:
    """LOG_LEVEL, which many programs share, where nothing was said to Assay itself. A level of other programs' own is
    not ours to judge."""
    level = os.environ.get("LOG_LEVEL", "").lower()
    level = {"warn": "warning", "critical": "error", "fatal": "error"}.get(level, level)
    known = get_args(Settings.model_fields["log_level"].annotation)
    return level if level in known and "ASSAY_LOG_LEVEL" not in os.environ else None


_JSON = """Lists and mappings in variables are JSON, as in ASSAY_HARVEST__ALLOW_ADDRESSES='["10.1.0.0/16"]'."""
_HELP = "See docs/reference/settings.md for every key and its values."


def _refuse_unknown_variables() -> None:
    """A misspelt ASSAY_DETPH would otherwise be ignored without a word."""
    known = {f"ASSAY_{name}".upper() for name in Settings.model_fields}
    for variable in sorted({*os.environ, *dotenv_values(".env")}):
        stem = variable.upper().split("__")[0]
        if variable.startswith("ASSAY_") and stem not in known and variable not in NOT_SETTINGS:
            raise ConfigurationError(f"unknown variable {variable}{nearest(stem, known)}", help=_HELP)
