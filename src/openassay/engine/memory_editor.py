"""What is remembered of one person, changed by words: a preference by its name, a fact by its id."""

import re
from difflib import get_close_matches

from pydantic import ValidationError

from openassay.errors import NotFoundError, UsageError
from openassay.models.user import MemoryFact, Preferences
from openassay.nodes.preferences import language_code
from openassay.protocols import Memory
from openassay.search.registry import parse_host_or_source
from openassay.settings import load
from openassay.text.words import is_readable

ALLOWED_VALUES = {
    "style": "academic, technical or executive",
    "words": "a number from 50 to 20,000",
    "prefer": "hosts or sources with commas between them, as in nasa.gov,arxiv",
    "avoid": "hosts or sources with commas between them, as in reddit.com,gdelt",
    "region": "a country or region, up to 80 characters",
    "language": "a language, as in German or de",
}
MAX_LISTED = 12  # names of what is remembered
_OPPOSITE = {"prefer": "avoid", "avoid": "prefer"}


class MemoryEditor:
    """Shows and changes the memory of one user."""

    def __init__(self, memory: Memory, user: str) -> None:
        self._memory = memory
        self._user = user

    async def list_preferences(self) -> list[tuple[str, str]]:
        """List the preferences that are set, with how they are shown."""
        return format_preferences(await self._memory.preferences(self._user))

    async def facts(self) -> list[MemoryFact]:
        return await self._memory.facts(self._user)

    async def set(self, key: str, value: str) -> list[str]:
        """Set one preference and say so in lines; the others stay, but for what contradicts it."""
        name = key.strip().lower()
        if name not in ALLOWED_VALUES:
            near = get_close_matches(name, ALLOWED_VALUES, n=1)
            known = f"Preferences are {', '.join(ALLOWED_VALUES)}."
            raise UsageError(
                f"{key!r} is no preference" + (f"; did you mean {near[0]}?" if near else ""),
                help=f"{known} A fact is kept with: openassay memory remember TEXT",
            )
        before = await self._memory.preferences(self._user)
        after = change_preference(before, name, value)
        await self._memory.set_preferences(self._user, after)
        shown = dict(format_preferences(after))
        lines = [f"{name}: {shown.get(name, '')}"]
        opposite = _OPPOSITE.get(name)
        if opposite and getattr(before, opposite) != getattr(after, opposite):
            lines.append(f"{opposite}: {shown.get(opposite, 'nobody')}")
        if name == "language" and language_code(after) is None:
            lines.append("The planner knows; sources cannot be asked in this language.")
        return lines

    async def edit(self, id: str, text: str) -> MemoryFact:
        return await self._memory.edit(self._user, id, text)

    async def forget(self, what: str) -> str:
        """Forget a fact by its id or a preference by its name, and say so."""
        name = what.strip().lower()
        if name in ALLOWED_VALUES:
            before = await self._memory.preferences(self._user)
            after = Preferences.model_validate(before.model_dump(exclude={name}))
            await self._memory.set_preferences(self._user, after)
            return f"{name} is forgotten: the settings decide."
        try:
            await self._memory.forget(self._user, what)
        except NotFoundError as error:
            known = [name for name, _ in await self.list_preferences()] + [fact.id for fact in await self.facts()]
            some = ", ".join(known[:MAX_LISTED]) + (" ..." if known[MAX_LISTED:] else "")
            is_fact = re.fullmatch(r"m\d+", what.strip(), re.I)
            message = error.message if is_fact else f"nothing called {what.strip()[:80]!r} is remembered"
            raise NotFoundError(message, help=f"There are: {some}." if known else "There are none.") from error
        return f"{name.upper()} is forgotten."


def format_preferences(preferences: Preferences) -> list[tuple[str, str]]:
    values = {name: getattr(preferences, name) for name in ALLOWED_VALUES}
    return [
        (name, ", ".join(value) if isinstance(value, tuple) else str(value)) for name, value in values.items() if value
    ]


def change_preference(before: Preferences, name: str, value: str) -> Preferences:
    """Set one preference; what is preferred from now on is no longer avoided, and the other way round."""
    refused = UsageError(f"{name} cannot be {value!r}", help=f"It takes {ALLOWED_VALUES[name]}.")
    text = " ".join(value.split())
    if not is_readable(text) or not any(map(str.isalnum, text)):
        raise refused
    parsed: object = text
    if name in _OPPOSITE:
        settings = load()
        parsed = tuple(dict.fromkeys(parse_host_or_source(part, settings) for part in text.split(",") if part.strip()))
    elif name == "words":
        parsed = text.replace(",", "")
    elif name == "style":
        parsed = text.lower()
    fields = {**before.model_dump(), name: parsed}
    if other := _OPPOSITE.get(name):
        fields[other] = tuple(one for one in fields[other] if one not in fields[name])
    try:
        return Preferences.model_validate(fields)
    except ValidationError as error:
        raise refused from error
