"""Addresses: parsed as browsers do, and told apart or taken for the same page as a reader would."""

import base64
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchmarks.evaluation.web_pages import URL_MEASURES, load_url_cases, parse_url_parts, reference_parts
from openassay.text.urls import (
    canonicalize_url,
    host_authority,
    host_of,
    is_official,
    parse_url,
    registrable_domain,
    unwrap_url,
)


@pytest.mark.requirement("W-07")
def test_every_address_of_the_web_platform_tests_is_parsed_as_they_say(eval_data: Path) -> None:
    """All of them, of whatever scheme, and international hosts."""
    wrong = [
        case for case in load_url_cases(eval_data / "urls/urltestdata.json")
        if parse_url_parts(case["input"], case["base"]) != reference_parts(case)
    ]  # fmt: skip
    assert wrong == []
    measure = URL_MEASURES["urls"]
    assert measure.list_failures(measure.run(eval_data, True), True) == []


@pytest.mark.parametrize("junk", ["", "  ", "no address", "http://", "https://[", "http://a b/", "\ud800", "::", "/x"])
def test_what_is_no_address_has_no_parts_and_is_its_own_identity(junk: str) -> None:
    assert parse_url(junk) is None
    assert host_of(junk) == ""
    assert canonicalize_url(f" {junk}\n") == junk.strip()


PAGE = "https://example.org/news/story?id=7"
SAME_PAGE = [
    "http://example.org/news/story?id=7",
    "HTTPS://WWW.Example.ORG:443/news/story/?id=7#comments",
    "http://www.example.org:80/news/./story?id=7",
    "https://example.org./news/old/../story?id=7",
    "https://m.example.org/news/story?id=7",
    "https://mobile.example.org/news/story?id=7",
    "https://amp.example.org/news/story?id=7",
    "https://user:secret@example.org/news/story?id=7",
    "https://example.org/news/story?utm_source=x&id=7&UTM_Medium=y&gclid=1&fbclid=2&mc_cid=3&ref_src=z&igshid=4&spm=5",
    "https://example.org/news/story?id=7&PHPSESSID=deadbeef",
    "https://example.org/news/story;jsessionid=0A1B?id=7",
    "https://example.org/news/story?sid=0123456789abcdef0123456789abcdef&id=7",
    "https://example.org/news/story/amp?id=7",
    "https://example.org/news/story/amp/?id=7",
    "https://example.org/amp/news/story?id=7",
    "https://example.org/news/story.amp?id=7",
    "https://example.org/news/story?amp=1&id=7",
    "https://example.org/news/story?id=7&outputType=amp",
    "https://example.org/news/story/index.html?id=7",
    "https://example.org/news/story/amp/index.html?id=7",
    "https://example.org/news/%73tor%79?id=%37",
    "https://www-example-org.cdn.ampproject.org/c/s/www.example.org/news/story?id=7&amp_js_v=0.1&usqp=mq33",
    "https://www.google.com/amp/s/www.example.org/news/story/amp/?id=7",
    "https://www.google.com/url?sa=t&q=https://example.org/news/story?id%3D7&ved=2ah",
    "https://www.google.co.uk/url?url=https%3A%2F%2Fexample.org%2Fnews%2Fstory%3Fid%3D7&usg=AOv",
    "https://duckduckgo.com/l/?uddg=https%3A%2F%2Fwww.example.org%2Fnews%2Fstory%3Fid%3D7&rut=ab",
    "https://www.bing.com/ck/a?!&&p=1&u=a1" + base64.urlsafe_b64encode(PAGE.encode()).decode().rstrip("=") + "&ntb=1",
    "https://r.search.yahoo.com/_ylt=A/RV=2/RE=1/RO=10/RU=https%3a%2f%2fexample.org%2fnews%2fstory%3fid%3d7/RK=2/RS=x-",
    "https://www.google.com/url?q=" + quote("https://duckduckgo.com/l/?uddg=" + quote(PAGE, safe=""), safe=""),
]


@pytest.mark.requirement("W-07", "L-03")
@pytest.mark.parametrize("url", SAME_PAGE)
def test_other_addresses_of_a_page_are_the_same_page(url: str) -> None:
    assert canonicalize_url(url) == PAGE


@pytest.mark.requirement("W-07")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://x.org/?id=1", "https://x.org/?id=2"),
        ("https://x.org/a", "https://x.org/A"),
        ("https://x.org/a", "https://x.org/a/b"),
        ("https://x.org/a", "https://y.x.org/a"),
        ("https://x.org:8080/a", "https://x.org/a"),
        ("https://x.org/#!/one", "https://x.org/#!/two"),
        ("https://x.org/?a=1&a=2", "https://x.org/?a=2&a=1"),
        ("https://x.org/?sid=12", "https://x.org/?sid=13"),
        ("https://x.org/a%2Fb", "https://x.org/a/b"),
        ("https://x.org/?q=%FF", "https://x.org/?q=%FE"),
        ("https://x.org/?q=a%26b", "https://x.org/?q=a&b"),
        ("https://www.youtube.com/watch?v=abc", "https://www.youtube.com/watch?v=abd"),
        ("https://github.com/somebody/amp", "https://github.com/somebody"),
        ("https://x.org/amp", "https://x.org/"),
        ("https://m.me/", "https://me/"),
        ("https://amp.dev/", "https://dev/"),
        ("https://m.co.uk/", "https://mobile.co.uk/"),
        ("https://www.com/", "https://com/"),
        ("https://www.google.com/url?q=/search", "https://www.google.com/search"),
        ("https://onlinelibrary.wiley.com/doi/suppl/10.1002/a.1/file.pdf", "https://doi.org/10.1002/a.1"),
    ],
)
def test_pages_that_differ_stay_apart(one: str, other: str) -> None:
    assert canonicalize_url(one) != canonicalize_url(other)


@pytest.mark.requirement("W-07")
@pytest.mark.parametrize(
    ("url", "identity"),
    [
        ("https://doi.org/10.1000/XYZ", "doi:10.1000/xyz"),
        ("http://dx.doi.org/10.1000/xyz", "doi:10.1000/xyz"),
        ("doi:10.1000/xyz", "doi:10.1000/xyz"),
        ("DOI: 10.1000/xyz", "doi:10.1000/xyz"),
        ("10.1000/xyz", "doi:10.1000/xyz"),
        ("https://journals.example.com/doi/abs/10.1000/xyz?journalCode=a", "doi:10.1000/xyz"),
        ("https://journals.example.com/doi/full/10.1000/xyz", "doi:10.1000/xyz"),
        ("https://journals.example.com/doi/10.1000%2Fxyz", "doi:10.1000/xyz"),
        ("https://onlinelibrary.wiley.com/doi/10.1002/abc.123/abstract", "doi:10.1002/abc.123"),
        ("https://www.frontiersin.org/articles/10.3389/fpsyg.2020.01234/full", "doi:10.3389/fpsyg.2020.01234"),
        ("https://link.springer.com/content/pdf/10.1007/s00424-020-1.pdf", "doi:10.1007/s00424-020-1"),
        ("https://journals.plos.org/plosone/article?id=10.1371/journal.pone.01", "doi:10.1371/journal.pone.01"),
        ("https://www.biorxiv.org/content/10.1101/2020.01.01.123456v2.full.pdf", "doi:10.1101/2020.01.01.123456"),
        ("https://www.nature.com/articles/s41586-020-2649-2.pdf", "doi:10.1038/s41586-020-2649-2"),
        (
            "https://doi.org/10.1002/(SICI)1097-4571(199806)49:8%3C693::AID-ASI4%3E3.0.CO;2-O",
            "doi:10.1002/(sici)1097-4571(199806)49:8<693::aid-asi4>3.0.co;2-o",
        ),
        ("https://arxiv.org/abs/2401.01234v2", "arxiv:2401.01234"),
        ("https://arxiv.org/pdf/2401.01234v2.pdf", "arxiv:2401.01234"),
        ("https://www.arxiv.org/pdf/2401.01234", "arxiv:2401.01234"),
        ("http://export.arxiv.org/abs/2401.01234", "arxiv:2401.01234"),
        ("https://arxiv.org/html/2401.01234v1", "arxiv:2401.01234"),
        ("https://doi.org/10.48550/arXiv.2401.01234", "arxiv:2401.01234"),
        ("arXiv:2401.01234v3", "arxiv:2401.01234"),
        ("https://arxiv.org/abs/hep-th/9901001v1", "arxiv:hep-th/9901001"),
        ("https://arxiv.org/abs/math.GT/0309136", "arxiv:math/0309136"),
        ("https://pubmed.ncbi.nlm.nih.gov/12345678/", "pmid:12345678"),
        ("https://www.ncbi.nlm.nih.gov/pubmed/12345678", "pmid:12345678"),
        ("https://europepmc.org/article/MED/12345678", "pmid:12345678"),
        ("https://www.ncbi.nlm.nih.gov/pmc/articles/PMC123456/", "pmc:123456"),
        ("https://pmc.ncbi.nlm.nih.gov/articles/PMC123456/pdf/main.pdf", "pmc:123456"),
        ("https://en.m.wikipedia.org/wiki/Foo_%28bar%29", "https://en.wikipedia.org/wiki/Foo_(bar)"),
        ("https://youtu.be/abc?si=1", "https://youtube.com/watch?si=1&v=abc"),
        ("https://news.example.co.uk", "https://news.example.co.uk"),
        ("https://x.org/story.amp.html", "https://x.org/story.html"),
        ("https://x.org/#!/one", "https://x.org#!/one"),
        ("https://bücher.example/", "https://xn--bcher-kva.example"),
        ("ftp://x.org/a", "ftp://x.org/a"),
        ("file:///srv/papers/b.pdf", "file:///srv/papers/b.pdf"),
    ],
)
def test_identities(url: str, identity: str) -> None:
    assert canonicalize_url(url) == identity


PIECES = (
    "http:// https:// www. m. amp. example.org x.co.uk youtu.be en.m.wikipedia.org google.com/url?q= doi.org/ "
    "arxiv.org/abs/ pubmed.ncbi.nlm.nih.gov/ cdn.ampproject.org/c/s/ google.com/amp/s/ bing.com/ck/a?u=a1 /amp /amp/ "
    ".amp .html /index.html /doi/abs/ 10.1000/ doi: 10.48550/arXiv. 2401.01234 v2 .pdf /full ? & = # #! ; % %2F %25 "
    "%41 %ff + / . .. : @ 80 443 id=1 utm_source=x amp=1 sid= ;jsessionid=1 é ß \ud800 İ \u3000"
).split(" ")
ADDRESSES = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=14).map("".join)


@pytest.mark.requirement("W-07")
@given(ADDRESSES | ADDRESSES.map("https://example.org/".__add__) | st.text())
@example("https://x.org/amp/amp/index.html/amp")
@example("doi:10.1000/%2525")
@example("https://x.org:443:80/")
@example("http://x.org:443/")
@example("pmid:" + "9" * 5_000)
def test_an_identity_is_its_own_identity_and_junk_raises_nothing(url: str) -> None:
    once = canonicalize_url(url)
    assert canonicalize_url(once) == once


@given(st.permutations(["a=1", "b=2", "c=3", "utm_source=x", "d"]))
def test_parameters_may_come_in_any_order(pairs: list[str]) -> None:
    assert canonicalize_url(f"https://x.org/?{'&'.join(pairs)}") == "https://x.org?a=1&b=2&c=3&d"


def test_a_hostile_address_costs_little() -> None:
    nested = "https://example.org/"
    for _ in range(200):
        nested = "https://google.com/url?q=" + nested
    assert canonicalize_url(nested) == "https://example.org"
    huge = "https://google.com/url?q=" * 100_000
    assert canonicalize_url(huge) == huge


def test_only_a_redirect_is_unwrapped() -> None:
    assert (
        unwrap_url("https://www.google.com/url?q=http://www.x.org/a?utm_source=b") == "http://www.x.org/a?utm_source=b"
    )
    assert (
        unwrap_url("https://www.google.com/url?q=javascript:alert(1)")
        == "https://www.google.com/url?q=javascript:alert(1)"
    )
    assert unwrap_url("https://x.org/url?q=https://y.org/") == "https://x.org/url?q=https://y.org/"


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("news.bbc.co.uk", "bbc.co.uk"),
        ("www.Example.org.", "example.org"),
        ("somebody.github.io", "somebody.github.io"),
        ("a.b.example", "b.example"),
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]", "[::1]"),
        ("localhost", "localhost"),
        ("co.uk", ""),
        ("", ""),
    ],
)
def test_the_registered_name_of_a_host(host: str, name: str) -> None:
    assert registrable_domain(host) == name


def test_official_hosts() -> None:
    for host in (
        "www.sec.gov",
        "gov.uk",
        "mit.edu",
        "ox.ac.uk",
        "who.int",
        "ec.europa.eu",
        "anu.edu.au",
        "Sante.gouv.fr",
    ):
        assert is_official(host), host
    for host in ("example.org", "gov.example.org", "notgov", "fakegov.uk.com", "education.com", ""):
        assert not is_official(host), host


@pytest.mark.requirement("W-07")
def test_authority_falls_from_science_to_the_crowd() -> None:
    fall = ["www.nature.com", "en.wikipedia.org", "www.reuters.com", "example.org", "old.reddit.com"]
    found = [host_authority(host, "web") for host in fall]
    assert found == sorted(set(found), reverse=True)
    assert (
        host_authority("example.org", "academic")
        > host_authority("example.org", "news")
        > host_authority("example.org", "web")
    )
    assert (
        host_authority("nih.gov", "web")
        == host_authority("somewhere.nih.gov", "web")
        >= host_authority("nature.com", "web")
    )
    assert host_authority("notreddit.com", "web") == host_authority("", "document") == 0.5
