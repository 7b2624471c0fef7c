"""GDELT: the world's online news of the last months, in all languages, found by their English translation."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta

from openassay.models.evidence import ProviderResult, ProviderTerms, SearchRequest
from openassay.search.base import (
    ApiSource,
    ProviderEntry,
    ProviderRequest,
    parse_entries,
    parse_iso_date,
    query_keywords,
    repair_json,
    today,
)
from openassay.search.http import HttpRequest, HttpResponse

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
LONGEST = 240  # characters of a query; from about 250 on it is refused as too long
FILTERS = 140  # of them, for sites and language; what does not fit is not asked for
SHORTEST = 3  # of a word
QUOTE = '"'
_LIMITED = re.compile(r"limit requests", re.I)
_UNSEARCHABLE = re.compile(r"too (?:short|long|common)", re.I)
# A backslash that begins no escape of JSON: in titles they stand as they were found.
_ESCAPE = re.compile(r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})|\\')
_LOOSE = re.compile(r" ([,.;:!?%)\]])")


class GdeltArticle(ProviderEntry):
    url: str
    title: str
    seendate: str | None = None


class GdeltResponse(ProviderEntry):
    articles: tuple[object, ...] | None = None  # nothing found is {}


class GdeltSource(ApiSource):
    name = "gdelt"
    types = ("news",)
    kind = "news"
    endpoint = "https://api.gdeltproject.org/api/v2/doc/doc"
    # "Please limit requests to one every 5 seconds."
    own_terms = ProviderTerms(per_minute=12, at_once=1)

    def build_request(self, inquiry: SearchRequest) -> ProviderRequest:
        last = inquiry.until or today()
        first = inquiry.since or last - timedelta(days=self.settings.news_days)
        params: dict[str, str | int] = {
            "query": _build_query(inquiry),
            "mode": "artlist",
            "format": "json",
            "sort": "hybridrel",
            "maxrecords": inquiry.limit,
            "startdatetime": f"{first:%Y%m%d}000000",
            "enddatetime": f"{last:%Y%m%d}235959",
        }
        return ProviderRequest(params=params)

    async def fetch(self, outgoing: HttpRequest, seconds: float) -> HttpResponse:
        """Its refusals are text, also with the status of a success."""
        reply = await super().fetch(outgoing, seconds)
        limited = reply.status == 200 and not reply.text.lstrip().startswith("{") and _LIMITED.search(reply.text[:500])
        return reply._replace(status=429) if limited else reply

    def parse_results(self, body: str) -> Sequence[ProviderResult]:
        told = body.strip()
        if len(told) < 500 and _UNSEARCHABLE.search(told) and not told.startswith(("{", "<")):
            return []  # refused for its words: nothing is found by them
        results = GdeltResponse.read(repair_json(_ESCAPE.sub(_escape, told), strict=False))
        if results.articles is None:
            if told.strip("{} \n"):
                raise ValueError("it has no articles")
            return []
        return [_to_result(article) for article in parse_entries(GdeltArticle, results.articles)]


def _build_query(inquiry: SearchRequest) -> str:
    """Words, then filters. Alternatives stand in brackets, and nothing else may."""
    filters = _fit(_filters(inquiry), FILTERS)
    room = LONGEST - len(" ".join(filters)) - 3
    words = _fit(_words(inquiry.query), room, " OR ")
    asked = " ".join(words) if len(words) <= 4 else f"({' OR '.join(words)})"
    return " ".join((asked or f'"{inquiry.query[:room].replace(QUOTE, " ")}"', *filters))


def _fit(parts: Iterable[str], room: int, between: str = " ") -> list[str]:
    kept: list[str] = []
    for part in parts:
        if len(between.join((*kept, part))) <= room:
            kept.append(part)
    return kept


def _words(question: str) -> list[str]:
    """A hyphen would exclude what follows it, and a short word has the whole query refused."""
    parts = [part for word in query_keywords(question, 12) for part in re.findall(r"[^\W_]+", word)]
    return list(dict.fromkeys(part for part in parts if len(part) >= SHORTEST or not part.isascii()))


def _filters(inquiry: SearchRequest) -> Iterator[str]:
    sites = _fit((f"domain:{site.removeprefix('www.')}" for site in inquiry.sites), FILTERS - 2, " OR ")
    if sites:
        yield sites[0] if len(sites) == 1 else f"({' OR '.join(sites)})"
    if inquiry.language in LANGUAGES:
        yield f"sourcelang:{LANGUAGES[inquiry.language]}"
    for site in inquiry.without:
        yield f"-domain:{site.removeprefix('www.')}"


def _escape(found: re.Match[str]) -> str:
    return found[0] if found[1] else r"\\"


def _to_result(article: GdeltArticle) -> ProviderResult:
    """Titles come as words and signs with spaces between all of them."""
    return ProviderResult(
        url=article.url,
        title=_LOOSE.sub(r"\1", " ".join(article.title.split())),
        published=parse_iso_date(article.seendate),
    )
