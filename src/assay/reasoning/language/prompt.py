"""Prompts: one file a step, checked when a reasoner is made and filled in one pass.

Text of pages stands between tags that it cannot close, and what looks like a variable in it is never filled.
"""

import re
from collections.abc import Iterable, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

from assay.errors import ConfigurationError

FOLDER = files("assay.reasoning") / "prompts"
TAGS = ("asked", "source", "message", "conversation", "draft", "answer")

_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_SEPARATOR = re.compile(r"^---\s*$", re.M)
_TAG = re.compile(rf"<(?=\s*/?\s*(?:{'|'.join(TAGS)})\b)", re.I)
_HELP = "Prompts are part of the package: install it again, or put the file back as it was."


class Template(NamedTuple):
    """A prompt as it stands in its file."""

    name: str
    system: str
    text: str

    @property
    def variables(self) -> set[str]:
        return set(_VARIABLE.findall(self.system + self.text))

    def fill(self, values: Mapping[str, str]) -> tuple[str, str]:
        """The system part and the user part. What is filled in is not looked at again."""
        if missing := self.variables - set(values):
            raise ConfigurationError(
                f"prompt {self.name}.md has no value for {', '.join(sorted(missing))}", help=_HELP, prompt=self.name
            )

        def value(match: re.Match[str]) -> str:
            return values[match[1]]

        return _VARIABLE.sub(value, self.system), _VARIABLE.sub(value, self.text)


def load(name: str, variables: Iterable[str], folder: Traversable = FOLDER) -> Template:
    """The prompt of a step, if it uses exactly the variables the step fills."""
    try:
        content = (folder / f"{name}.md").read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"cannot read the prompt {name}.md: {error}", help=_HELP, prompt=name) from error
    parts = _SEPARATOR.split(content)
    if len(parts) != 2 or not all(part.strip() for part in parts):
        raise ConfigurationError(
            f"prompt {name}.md needs a system part and a user part with one line --- between them",
            help=_HELP,
            prompt=name,
        )
    template = Template(name, parts[0].strip(), parts[1].strip())
    if wrong := template.variables ^ set(variables):
        raise ConfigurationError(
            f"prompt {name}.md and its step do not agree on: {', '.join(sorted(wrong))}", help=_HELP, prompt=name
        )
    return template


def defused(text: str) -> str:
    """Text of others, unable to open or close a tag of ours."""
    return _TAG.sub("‹", text)


def tagged(tag: str, text: str) -> str:
    return f"<{tag}>\n{defused(text)}\n</{tag}>"


def numbered(lines: Iterable[str]) -> str:
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1))
