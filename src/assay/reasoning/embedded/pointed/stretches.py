"""Stretches of a text that may be what a question wants."""

from collections.abc import Callable, Iterator

from assay.reasoning.embedded.pointed.barred import free
from assay.reasoning.embedded.pointed.classes import classes
from assay.reasoning.embedded.pointed.dates import dates
from assay.reasoning.embedded.pointed.names import names
from assay.reasoning.embedded.pointed.numbers import numbers
from assay.reasoning.embedded.pointed.places import places
from assay.reasoning.embedded.pointed.view import LONGEST, Read, Stretch
from assay.reasoning.embedded.pointed.wanted import Kind, Wanted
from assay.text.words import stems

_FIND: dict[Kind, Callable[[Wanted, Read], Iterator[Stretch]]] = {
    "date": dates, "number": numbers, "name": names, "place": places, "class": classes,
}  # fmt: skip


def stretches(wanted: Wanted, text: str, title: str = "") -> list[Stretch]:
    """Best first; of equal ones the earlier. `title` is that of the document."""
    found = _FIND[wanted.kind](wanted, Read(wanted, text))
    fitting = [one for one in found if 0 < len(one.of(text).split()) <= LONGEST and not _repeats(wanted, one.of(text))]
    return sorted(free(wanted, text, fitting, title), key=lambda one: (-one.score, one.start))


def _repeats(wanted: Wanted, answer: str) -> bool:
    """ "A dam" tells nobody what the Kestrel Dam is."""
    return wanted.kind == "class" and not wanted.words and set(stems(answer)) <= set(stems(wanted.subject))
