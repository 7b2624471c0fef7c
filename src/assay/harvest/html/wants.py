"""What a page without content asks for: that scripts run, or that its reader is let in."""

import re
from typing import TYPE_CHECKING

from assay.harvest.extracted import Want
from assay.harvest.html.about import structured
from assay.harvest.html.body import INERT, body_text
from assay.harvest.html.element import length, text_of

if TYPE_CHECKING:
    from lxml.html import HtmlElement

ENOUGH = 1_500  # characters, some 250 words; a page that gives more wants nothing
_HARDLY = 400

_ROOTS = {"root", "app", "__next", "__nuxt", "___gatsby", "react-root", "app-root", "main-app", "svelte"}
_SCRIPT = re.compile(
    r"(?:enable|activate|turn on|allow|requires?|needs?|without|supports?)\s+java\s?script|"
    r"java\s?script\s+(?:is|to be|must be|aktivieren|einschalten)|"
    r"(?:activer|habilit\w+|activ\w+|abilitare?)\s+(?:le\s+|o\s+|el\s+)?java\s?script",
    re.IGNORECASE,
)
_GATE = re.compile(
    r"(?:subscribe|sign in|log ?in|register|create (?:a|your) (?:free )?account|sign up)[^.\n]{,30}"
    r" to (?:continue|read|view|access|keep)|to (?:continue|keep) reading|already (?:a |an )?(?:subscriber|member)|"
    r"(?:subscriber|member)s?[- ](?:only|exclusive)|exclusive (?:to|for) subscribers|"
    r"(?:reached|used) your (?:\w+ )?(?:limit|number) of|reached your (?:\w+ )?(?:article )?limit|"
    r"jetzt abonnieren|réservé aux abonnés|solo para suscriptores",
    re.IGNORECASE,
)
_CHECK = re.compile(
    r"just a moment\W*$|checking (?:your browser|if the site connection)|attention required|are you a (?:human|robot)|"
    r"verify(?:ing)? (?:that )?you are (?:a |not a )?(?:human|robot)|access (?:to this page has been )?denied|"
    r"pardon our interruption|unusual traffic|complete the (?:security check|captcha)|"
    r"enable (?:javascript and )?cookies to continue|(?:accept|agree to) (?:all |the use of |our )?cookies to|"
    r"(?:before you continue|we (?:and our \w+ )?(?:use|value)) .{,60}(?:cookies|privacy)",
    re.IGNORECASE,
)


def wants(tree: "HtmlElement", text: str) -> Want | None:
    """Judges a freshly parsed page, nothing dropped, by it and the text that was read from it."""
    if len(text) >= ENOUGH:
        return None
    if behind_wall(tree, text):
        return "access"
    return "javascript" if needs_javascript(tree, text) else None


def needs_javascript(tree: "HtmlElement", text: str) -> bool:
    scripts = list(tree.iter("script"))
    if len(text) >= _HARDLY or not scripts:
        return False
    if any(element.get("id") in _ROOTS and length(element) < 50 for element in tree.iter("div", "main", "app-root")):
        return True
    if any(_SCRIPT.search(text_of(notice)) for notice in tree.iter("noscript")):
        return True
    code = sum(len(script.text or "") for script in scripts)
    return len(text) < _HARDLY // 2 and code > 50_000 and code > 100 * len(text)


def behind_wall(tree: "HtmlElement", text: str) -> bool:
    if len(text) >= ENOUGH:
        return False
    if any(str(item.get("isAccessibleForFree")).lower() == "false" for item in structured(tree)):
        return True
    if len(text) < _HARDLY and any((field.get("type") or "").lower() == "password" for field in tree.iter("input")):
        return True
    if _GATE.search(body_text(tree, without=INERT)):
        return True
    title = " ".join((tree.findtext(".//title") or "").split())
    return len(text) < 2 * _HARDLY and _CHECK.search(f"{text}\n{title}") is not None
