"""What stands on one line of a terminal: text of others, counts, money."""

from assay.model.spend import Quote


def one_line(text: str) -> str:
    """File names and messages may hold line breaks and escape codes: they are shown, not obeyed."""
    return "".join(character if character.isprintable() else _shown(character) for character in text)


def _shown(character: str) -> str:
    return " " if character.isspace() and character not in "\n\r\v\f\x1c\x1d\x1e\x1f" else repr(character)[1:-1]


def counted(number: int, noun: str, plural: str = "") -> str:
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def quoted(quote: Quote) -> str:
    """A quote as one line a person can decide by."""
    searching = f"up to {quote.searches} paid searches a round, {dollars(quote.search_usd)}" if quote.searches else ""
    if not quote.calls:
        return f"{quote.model}: " + (f"thinking costs nothing; {searching}" if searching else "costs nothing")
    price = f"about {dollars(quote.usd)}, never more than {dollars(quote.most_usd)}" if quote.usd else "costs nothing"
    if quote.usd > quote.most_usd:
        price = f"about {dollars(quote.usd)}, more than the cap of {dollars(quote.most_usd)}: it may end early"
    calls = f"about {quote.calls} calls, {quote.tokens:,} tokens, {_duration(quote.seconds)}"
    return "; ".join(part for part in (f"{quote.model}: {price}", calls, searching) if part)


def dollars(usd: float) -> str:
    """To the cent, or to the micro-dollar where a cent would hide it."""
    return f"${usd:.2f}" if usd == 0 or usd >= 0.1 else f"${usd:.4f}" if usd >= 0.0001 else f"${usd:.6f}"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 90 else f"{seconds / 60:.0f} minutes"
