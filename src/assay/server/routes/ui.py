"""The web UI: one page, and the modules and styles it is made of. They are read once, when the server starts.

Everything a page loads lies under an address that holds the digest of all of it, so a browser keeps it for good and
never mixes two versions.
"""

import hashlib
import json
from base64 import b64encode
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from string import Template
from typing import Annotated, NamedTuple

from fastapi import APIRouter, Path, Response

from assay.errors import NotFoundError

router = APIRouter(include_in_schema=False)
_KEPT = "public, max-age=31536000, immutable"
_MEDIA = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_MODULES = {  # what the vendored modules, and ours, call each other
    "preact": "vendor/preact.js",
    "preact/hooks": "vendor/preact-hooks.js",
    "@preact/signals-core": "vendor/signals-core.js",
    "@preact/signals": "vendor/signals.js",
    "htm": "vendor/htm.js",
}
# Only our own modules run, nothing is ever made into a script or markup from text, and nothing leaves this origin.
_POLICY = (
    "default-src 'none'; script-src 'self' 'sha256-{map}'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)


class Interface(NamedTuple):
    digest: str
    files: dict[str, bytes]
    page: bytes
    policy: str


@cache
def interface() -> Interface:
    found = dict(sorted(_found(files("assay.server") / "static")))
    digest = hashlib.sha256(b"".join(name.encode() + content for name, content in found.items())).hexdigest()[:16]
    base = f"/ui/{digest}"
    modules = json.dumps({"imports": {name: f"{base}/{path}" for name, path in _MODULES.items()}})
    page = Template(found.pop("index.html").decode()).substitute(
        base=base,
        importmap=modules,
        styles=_lines('<link rel="stylesheet" href="{}">', base, found, ".css"),
        preloads=_lines('<link rel="modulepreload" href="{}">', base, found, ".js"),
    )
    policy = _POLICY.format(map=b64encode(hashlib.sha256(modules.encode()).digest()).decode())
    return Interface(digest, found, page.encode(), policy)


def _found(folder: Traversable, under: str = "") -> list[tuple[str, bytes]]:
    names: list[tuple[str, bytes]] = []
    for one in folder.iterdir():
        if one.is_dir():
            names += _found(one, f"{under}{one.name}/")
        elif one.name.endswith(tuple(_MEDIA)) or one.name == "index.html":
            names.append((f"{under}{one.name}", one.read_bytes()))
    return names


def _lines(form: str, base: str, found: dict[str, bytes], suffix: str) -> str:
    """Styles of a pane come after those that all panes have."""
    names = sorted(found, key=lambda name: (name != "base.css", name))
    return "\n".join(form.format(f"{base}/{name}") for name in names if name.endswith(suffix))


@router.get("/")
@router.get("/t/{threadId}")
async def open_ui() -> Response:
    """The same page for every place: what it shows is asked for by the page, and answered to whom it belongs. So it is
    for everybody, and nobody is counted."""
    made = interface()
    headers = {"Content-Security-Policy": made.policy, "Cache-Control": "no-cache"}
    return Response(made.page, headers=headers, media_type="text/html; charset=utf-8")


@router.get("/ui/{digest}/{part:path}")
async def part_of_ui(digest: str, part: Annotated[str, Path(max_length=200)]) -> Response:
    made = interface()
    content = made.files.get(part) if digest == made.digest else None
    if content is None:
        raise NotFoundError("the page has no such part", help="Load the page again.")
    media = _MEDIA[part[part.rindex(".") :]]
    return Response(content, headers={"Cache-Control": _KEPT}, media_type=f"{media}; charset=utf-8")
