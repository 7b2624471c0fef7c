"""Crawl4AI (an optional extra) as the reader of pages that need JavaScript, in a browser that is already running."""

from assay.errors import FetchError
from assay.harvest.fetching.rendered import Rendered
from assay.settings import Harvesting


async def read(port: int, url: str, options: Harvesting) -> Rendered:
    """The page, by the browser's debugging port: the browser is ours, so its way out is guarded."""
    from crawl4ai import AsyncWebCrawler, BrowserConfig, CacheMode, CrawlerRunConfig

    browser = BrowserConfig(cdp_url=f"http://127.0.0.1:{port}", browser_mode="cdp", verbose=False)
    run = CrawlerRunConfig(
        cache_mode=CacheMode.BYPASS, wait_until="domcontentloaded", page_timeout=int(1000 * options.page_seconds),
        delay_before_return_html=0.5, verbose=False,
    )  # fmt: skip
    async with AsyncWebCrawler(config=browser) as crawler:
        result = await crawler.arun(url, config=run)
    if not result.html:  # `success` is also False where the page is small, which it takes for a wall
        raise FetchError("could not be read by Crawl4AI", help="Try again, or set harvest.browser to auto.", url=url)
    content = str(result.html)[: int(options.page_mb * 1_000_000)]
    return Rendered(str(result.redirected_url or result.url), content.encode("utf-8", "replace"))
