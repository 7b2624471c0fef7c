"""Selects the models of a run: for each role the models to ask, in order.

A hosted model is used when its key is set, another one when it was named. A person's documents go to no hosted model
unless it was asked for by name; a model on this machine is followed by hosted ones only if those were named too.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import get_args

from openassay.errors import ConfigurationError
from openassay.llm.local import require_llamacpp
from openassay.llm.names import ModelName, base_url, check_file, has_key, is_on_this_machine, key_variable, parse_name
from openassay.models.spend import ModelRole
from openassay.models.thread import ResearchOptions
from openassay.settings import Settings

EMBEDDED = "embedded"
NONE = "none"  # in place of a tier's model: there is no such tier
ROLES: tuple[ModelRole, ...] = get_args(ModelRole)

PRIVATE = "Your documents stay on this machine, so the embedded reasoner is used. Name a model (--model) to use one."


@dataclass(frozen=True, slots=True)
class ModelSelection:
    by_role: dict[ModelRole, tuple[ModelName, ...]]
    budget: ModelName | None  # asked first when the cap is near

    @property
    def models(self) -> list[ModelName]:
        named = [model for models in self.by_role.values() for model in models]
        return list(dict.fromkeys([*named, *([self.budget] if self.budget else [])]))

    @property
    def first(self) -> ModelName:
        return self.models[0]

    def remote_models(self, settings: Settings) -> list[ModelName]:
        """Return the models that run on somebody else's machine."""
        return [model for model in self.models if not is_on_this_machine(model, settings)]


@dataclass(frozen=True, slots=True)
class _ModelTier:
    model: ModelName
    named: bool  # by the person, rather than by our defaults
    first: bool = False


def select_models(settings: Settings, options: ResearchOptions) -> ModelSelection | None:
    """Select the models of a run; None for the embedded reasoner."""
    if (options.model or settings.llm.model) == EMBEDDED:
        return None
    private = is_private(options)
    by_role: dict[ModelRole, tuple[ModelName, ...]] = {}
    for role in ROLES:
        models: list[ModelName] = []
        for tier in _tiers(role, settings, options):
            if tier.model not in models and _can_use(tier, settings, private, models):
                models.append(tier.model)
        by_role[role] = tuple(models)
    first = next((models[0] for models in by_role.values() if models), None)
    if first is None:
        return None
    if settings.llm.budget_model == NONE:
        return ModelSelection(by_role, None)
    tier = _ModelTier(parse_name(settings.llm.budget_model), "budget_model" in settings.llm.model_fields_set)
    is_used = _can_use(tier, settings, private, [first]) and tier.model != first
    return ModelSelection(by_role, tier.model if is_used else None)


def is_private(options: ResearchOptions) -> bool:
    """Tell whether a run is about a person's documents."""
    return options.private or (bool(options.docs) and not options.web)


def needs_model_consent(settings: Settings, options: ResearchOptions) -> bool:
    """Tell whether there is a model with a key that may not see the documents, since nobody named it."""
    if not is_private(options) or (options.model or settings.llm.model) == EMBEDDED:
        return False
    without = options.model_copy(update={"docs": (), "private": False})
    return select_models(settings, options) is None and select_models(settings, without) is not None


def _tiers(role: ModelRole, settings: Settings, options: ResearchOptions) -> Iterator[_ModelTier]:
    llm, given = settings.llm, settings.llm.model_fields_set
    if options.model:
        yield _ModelTier(parse_name(options.model), True, first=True)
    else:
        was_named = bool(getattr(settings, f"{role}_model")) or "model" in given
        yield _ModelTier(parse_name(settings.model_for(role)), was_named, first=True)
    for tier in ("fallback_model", "budget_model"):
        if (name := getattr(llm, tier)) != NONE:
            yield _ModelTier(parse_name(name), tier in given)


def _can_use(tier: _ModelTier, settings: Settings, private: bool, before: list[ModelName]) -> bool:
    nearby = any(is_on_this_machine(model, settings) for model in before)
    if private and nearby and not is_on_this_machine(tier.model, settings):
        return False  # choosing a model on this machine for documents means that they stay there
    if private and not tier.first and not before:
        return False  # a fallback in the settings, perhaps the default, does not by itself ask for a model
    if tier.named:
        check_file(tier.model)
        base_url(tier.model, settings)  # raises where it is invalid
        if tier.model.vendor == "local":
            require_llamacpp()
        if not has_key(tier.model, settings.keys):
            raise ConfigurationError(
                f"{tier.model} was asked for, but there is no key for {tier.model.vendor}",
                help=f"Set {key_variable(tier.model)}, name another model, or use --model {EMBEDDED}.",
            )
        return True
    return not private and not nearby and has_key(tier.model, settings.keys)
