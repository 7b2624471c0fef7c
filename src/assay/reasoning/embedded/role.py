"""Messages that are no more than what somebody or something has: "their CEO?", "and the market cap?"."""

import re

from assay.reasoning.embedded.discourse import Discourse
from assay.reasoning.embedded.phrases import listed, possessive

_ROLES = {
    "Who is": "ceo|cfo|coo|cto|chair(?:man|woman|person)?|president|(?:co-?)?founder|owner|boss|head|leader|director|"
    "chief executive(?: officer)?|inventor|parent(?: company)?|wife|husband|spouse|father|mother|successor|predecessor",
    "Who are": "ceos|(?:co-?)?founders|owners|leaders|directors|executives|competitors|rivals|customers|suppliers|"
    "shareholders|investors|parents|children|board(?: of directors| members)?",
    "Where is": "headquarters?|hq|head office|seat",
    "Where are": "offices|factories|plants|stores",
    "What is": "revenue|turnover|(?:stock|share) price|market cap(?:itali[sz]ation)?|market share|valuation|debt|"
    "(?:(?:net|operating) )?(?:income|profit|margin)|profit margin|cash flow|dividend|eps|p/e ratio|net worth|"
    "headcount|ticker(?: symbol)?|number of employees|business model",
    "What are": "revenues|profits|earnings|sales|margins|results|products|financials|subsidiaries|brands",
}
_ADJECTIVE = r"(?:(?:current|new|former|first|latest|annual|quarterly|yearly|total|main|biggest|largest) )?"
_PLURAL = {"Who is": "Who are", "Where is": "Where are", "What is": "What are"}
_KINDS = {opening: re.compile(f"{_ADJECTIVE}(?:{roles})", re.I) for opening, roles in _ROLES.items()}
_MESSAGE = re.compile(
    r"(?:(?:and|but|so|ok|what about|how about)[,]? )*(?P<whose>(?:their|its|his|her|the) )?"
    rf"(?P<role>{_ADJECTIVE}(?:{'|'.join(_ROLES.values())}))(?P<many>s?)[ ?!.]*",
    re.I,
)


def of_role(asked: str, so_far: Discourse) -> str | None:
    """ "Who is Apple's CEO?"; after "What was Apple's profit in 2022?", "and revenue?" is of 2022 too."""
    found = _MESSAGE.fullmatch(asked.replace("’", "'"))
    whose = found["whose"] if found else None
    owner = _owner((whose or "").strip().lower(), so_far)
    if not found or not owner:
        return None
    role = found["role"]
    opening, kind = next((opening, kind) for opening, kind in _KINDS.items() if kind.fullmatch(role))
    if found["many"]:
        return f"{_PLURAL.get(opening, opening)} {possessive(owner)} {role}s?"
    before = re.compile(rf"(?<={re.escape(possessive(owner))} )(?:{kind.pattern})\b", re.I)
    if before.search(so_far.asked):
        return before.sub(lambda _: role, so_far.asked, count=1)
    return f"{opening} {possessive(owner)} {role}?"


def _owner(whose: str, so_far: Discourse) -> str:
    if whose == "their" and so_far.group:
        return listed(so_far.group)
    topic = so_far.current or (so_far.topic if whose in ("their", "its") else None)
    return topic.name if topic else ""
