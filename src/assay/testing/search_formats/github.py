"""GitHub's search of repositories, as docs.github.com/rest/search describes it."""

import json
import re
from collections.abc import Sequence
from datetime import date
from typing import Any

from assay.model.inquiry import Found
from assay.testing.search_formats import Asked, Format
from assay.testing.search_formats.papers import number, param, within
from assay.testing.wire import Request

_DAY = r"\d{4}-\d\d-\d\d"
_PUSHED = re.compile(rf"pushed:(?:(?P<first>{_DAY})\.\.(?P<last>{_DAY})|>=(?P<after>{_DAY})|<=(?P<before>{_DAY}))")


class Github(Format):
    name = "github"
    builds = "assay.search.github:Github"
    filters = frozenset({"since", "until"})
    fields = frozenset({"snippet", "published", "author"})
    most = 100
    key_setting = "github_token"

    def asked(self, request: Request) -> Asked:
        query = param(request, "q")
        pushed = _PUSHED.search(query)
        first, last = (pushed["after"] or pushed["first"], pushed["before"] or pushed["last"]) if pushed else ("", "")
        words = within(256, re.sub(r"\b(?:in|is|pushed):\S+", " ", query).strip())
        if len(re.findall(r"\b(?:AND|OR|NOT)\b", words)) > 5:
            raise ValueError("a query with more than five operators is refused")
        return Asked(
            query=" ".join(re.sub(r"\bOR\b", " ", words).split()),
            limit=number(request, "per_page"),
            since=date.fromisoformat(first) if first else None,
            until=date.fromisoformat(last) if last else None,
            key=request.headers.get("authorization", "").removeprefix("Bearer "),
        )

    def answer(self, request: Request, found: Sequence[Found]) -> str:
        return _page([_repository(result) for result in found])

    def spoiled(self, request: Request, found: Sequence[Found]) -> str:
        return _page([{"id": 1, "full_name": None, "html_url": 7}, *map(_repository, found)])


def _page(items: list[dict[str, Any]]) -> str:
    return json.dumps({"total_count": len(items), "incomplete_results": False, "items": items})


def _repository(found: Found) -> dict[str, Any]:
    return {
        "id": 3081286,
        "name": found.title.rpartition("/")[2],
        "full_name": found.title,
        "private": False,
        "owner": {"login": found.author, "id": 872147, "type": "User"} if found.author else None,
        "html_url": found.url,
        "description": found.snippet or None,
        "fork": False,
        "url": "https://api.github.com/repos/example/example",
        "created_at": "2012-01-01T00:31:50Z",
        "updated_at": "2013-01-05T17:58:47Z",
        "pushed_at": f"{found.published}T00:37:02Z" if found.published else None,
        "stargazers_count": 1,
        "language": "Assembly",
        "archived": False,
        "score": 1.0,
    }


FORMAT = Github()
