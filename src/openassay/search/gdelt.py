"""GDELT: online news of the last months in all languages, searched in English translation.

https://blog.gdeltproject.org/gdelt-doc-2-0-api-debuts/
"""

import re
from collections.abc import Iterable, Sequence
from datetime import timedelta

from pydantic import Field

from openassay.models.evidence import ProviderResult, ProviderTerms, SearchRequest
from openassay.search.base import ApiSource, ProviderRequest, WebEntry, read_entries
from openassay.search.fields import query_keywords, repair_json, today
from openassay.search.http import HttpResponse

LANGUAGES = dict(
    pair.split(":")
    for pair in (
        "ar:arabic bg:bulgarian bn:bengali ca:catalan cs:czech da:danish de:german el:greek en:english es:spanish "
        "et:estonian fa:persian fi:finnish fr:french gl:galician gu:gujarati he:hebrew hi:hindi hr:croatian "
        "hu:hungarian hy:armenian id:indonesian is:icelandic it:italian ja:japanese ka:georgian kk:kazakh kn:kannada "
        "ko:korean lt:lithuanian lv:latvian mk:macedonian ml:malayalam mn:mongolian mr:marathi ms:malay ne:nepali "
        "nl:dutch no:norwegian pa:punjabi pl:polish pt:portuguese ro:romanian ru:russian si:sinhalese sk:slovak "
        "sl:slovenian so:somali sq:albanian sr:serbian sv:swedish sw:swahili ta:tamil te:telugu th:thai tr:turkish "
        "uk:ukrainian ur:urdu vi:vietnamese zh:chinese"
    ).split()
)
MAX_QUERY = 240  # characters; from about 250 on a query is refused as too long
MAX_FILTERS = 140  # of them, for sites and language; filters that do not fit are left out
MIN_WORD = 3
_LIMITED = re.compile(r"limit requests", re.I)
_UNSEARCHABLE = re.compile(r"too (?:short|long|common)", re.I)
# A backslash that begins no escape of JSON: in titles they stand as they were found.
_ESCAPE = re.compile(r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})|\\')
_LOOSE = re.compile(r" ([,.;:!?%)\]])")


class GdeltArticle(WebEntry):
    published: str | None = Field(None, alias="seendate")


class GdeltSource(ApiSource):
    name = "gdelt"
    types = ("news",)
    kind = "news"
    endpoint = "https://api.gdeltproject.org/api/v2/doc/doc"
    # "Please limit requests to one every 5 seconds."
    own_terms = ProviderTerms(per_minute=12, at_once=1)

    def build_request(self, search: SearchRequest) -> ProviderRequest:
        last = search.until or today()
        first = search.since or last - timedelta(days=self.settings.news_days)
        # Words, then filters. Alternatives stand in brackets, and nothing else may.
        sites = _fit((f"domain:{site.removeprefix('www.')}" for site in search.sites), MAX_FILTERS - 2, " OR ")
        wanted = [sites[0] if len(sites) == 1 else f"({' OR '.join(sites)})"] if sites else []
        if search.language in LANGUAGES:
            wanted.append(f"sourcelang:{LANGUAGES[search.language]}")
        filters = _fit([*wanted, *(f"-domain:{site.removeprefix('www.')}" for site in search.without)], MAX_FILTERS)
        room = MAX_QUERY - len(" ".join(filters)) - 3
        # A hyphen would exclude what follows it, and a short word gets the whole query refused.
        parts = [part for word in query_keywords(search.query, 12) for part in re.findall(r"[^\W_]+", word)]
        words = _fit(dict.fromkeys(part for part in parts if len(part) >= MIN_WORD or not part.isascii()), room, " OR ")
        query = " ".join(words) if len(words) <= 4 else f"({' OR '.join(words)})"
        quoted = search.query[:room].replace('"', " ")
        return ProviderRequest(
            params={
                "query": " ".join((query or f'"{quoted}"', *filters)),
                "mode": "artlist",
                "format": "json",
                "sort": "hybridrel",
                "maxrecords": search.limit,
                "startdatetime": f"{first:%Y%m%d}000000",
                "enddatetime": f"{last:%Y%m%d}235959",
            }
        )

    def read_status(self, reply: HttpResponse) -> int:
        """Recognise refusals, which are text and may come with status 200."""
        limited = reply.status == 200 and not reply.text.lstrip().startswith("{") and _LIMITED.search(reply.text[:500])
        return 429 if limited else reply.status

    def parse_results(self, body: str) -> Sequence[ProviderResult]:
        body = body.strip()
        if len(body) < 500 and _UNSEARCHABLE.search(body) and not body.startswith(("{", "<")):
            return []  # refused for its words: nothing is found by them
        escaped = _ESCAPE.sub(lambda match: match[0] if match[1] else r"\\", body)
        if "".join(body.split()) == "{}":
            return []  # nothing was found
        return [
            article.to_result(title=_LOOSE.sub(r"\1", " ".join(article.title.split())))  # a space before each sign
            for article in read_entries(GdeltArticle, repair_json(escaped, strict=False), "articles")
        ]


def _fit(parts: Iterable[str], room: int, separator: str = " ") -> list[str]:
    """Return the parts that fit into so many characters once joined."""
    fitting: list[str] = []
    for part in parts:
        if len(separator.join((*fitting, part))) <= room:
            fitting.append(part)
    return fitting
