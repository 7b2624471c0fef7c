"""Text of others on one line of a terminal."""


def one_line(text: str) -> str:
    """File names and messages may hold line breaks and escape codes: they are shown, not obeyed."""
    return "".join(character if character.isprintable() else _shown(character) for character in text)


def _shown(character: str) -> str:
    return " " if character.isspace() and character not in "\n\r\v\f\x1c\x1d\x1e\x1f" else repr(character)[1:-1]


def counted(number: int, noun: str, plural: str = "") -> str:
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
