"""Messages that ask for no research: courtesies, second thoughts, and what nobody can read."""

import re

from assay.text.words import fold


def _either(*forms: str) -> str:
    return f"(?:{'|'.join(forms)})"


_SEARCH = "(?:search|research|request|question|run|report|task|job|plan|whole thing)"
_IT = _either("it", "that", "this", f"(?:the|my|this|that) {_SEARCH}", "everything")
_BEFORE = _either(
    "ok", "okay", "oh", "no", "nope", "nah", "yeah", "actually", "well", "please", "hey", "hm+", "um+", "uh", "sorry",
    "wait", "alright", "you know what", "then", "just", "and", "can you", "could you",
)  # fmt: skip
_AFTER = _either(
    "please", "thanks?", "thank you", "any ?more", "then", "now", "sorry", "for now", "instead", "after all", "again",
    "today", "here", "altogether",
)  # fmt: skip
_CALLED_OFF = _either(
    rf"never\s?mind(?: (?:that|it|this|about {_IT}))?", rf"(?:cancel|abort|stop)(?: {_IT}| (?:re)?searching)?",
    rf"forget (?:{_IT}|about {_IT}|i asked)", rf"(?:drop|skip|scrap|scratch|leave|ditch) {_IT}",
    rf"let'?s (?:just )?(?:drop|forget(?: about)?|skip|cancel|leave|stop)(?: {_IT})?", "let it (?:go|be)",
    rf"call (?:{_IT} )?off", "quit", "exit", "no,? (?:thanks?|thank you)", "i(?:'ve| have)? changed my mind",
    "(?:it |that )?(?:doesn'?t|does not) matter", "don'?t bother", "not (?:interested|needed|necessary)",
    rf"i (?:don'?t|do not|no longer) (?:need|want|care)(?: (?:{_IT}|to know|about {_IT}|an answer))?",
    "i(?:'m| am) (?:done|good)", "nothing", "none of (?:them|these|those|the above)",
)  # fmt: skip
_CANCEL = re.compile(rf"(?:{_BEFORE}[,.!]*\s+)*{_CALLED_OFF}(?:[,.!]*\s+{_AFTER})*[\s.!?]*")

_COURTESY = _either(
    "(?:hi|hiya|hello|hey|howdy|greetings|welcome)(?: (?:there|assay|all|everyone|again|friend))?",
    "good (?:morning|afternoon|evening|day|night)(?: (?:assay|all|everyone))?",
    "(?:many )?(?:thanks?|thank you|thx|cheers)(?: (?:very|so) much| a lot| a million| again)?(?: for [\\w' ]{2,40})?",
    "(?:good)?bye", "see you(?: later| soon)?", "ok(?:ay)?", "alright", "cool", "great(?: (?:job|work))?",
    "nice(?: (?:work|one|to meet you))?", "perfect", "awesome", "excellent", "wow", "got it", "i see", "sounds good",
    "makes sense", "well done", "(?:very )?good(?: (?:job|work))?", "interesting", "lol", "haha+",
    "how are you(?: (?:doing|today))*", "how'?s it going", "what'?s up", "pleased to meet you",
    "who (?:are you|made you|built you)", "what are you", "what(?:'s| is) your name", "what is (?:this|assay)",
    "what (?:can|do) you do(?: for me)?", "how (?:do|can) (?:you work|you help(?: me)?|i use you)",
    "are you (?:a |an )?(?:bot|robot|human|ai|real|person|machine|there)", "(?:can you )?help(?: me)?",
    "i need (?:your )?help", "you(?:'re| are) (?:welcome|great|awesome|the best)",
    "that(?:'s| is) (?:great|all|it|nice|helpful|interesting)", "yes", "yeah", "yep", "sure", "no", "nope",
)  # fmt: skip
_SMALL_TALK = re.compile(rf"{_COURTESY}(?:[\s,.!?]+(?:and |so )?{_COURTESY})*[\s.!?,]*")

_KEYS = re.compile(r"asdf|sdfg|dfgh|fghj|hjkl|qwer|wert(?!h)|rtyu|tyui|uiop|zxcv|xcvb|cvbn|(.)\1{3,}")
_FILLER = re.compile(r"(?:bla+h?|foo|bar|baz|lorem|ipsum|yada|yadda|la|na|da|test(?:ing)?|hm+|um+|uh|er+)")
_LATIN = re.compile(r"[a-z]+")


def is_cancelled(text: str) -> bool:
    return bool(_CANCEL.fullmatch(_plain(text)))


def is_small_talk(text: str) -> bool:
    return bool(_SMALL_TALK.fullmatch(_plain(text)))


def is_gibberish(text: str) -> bool:
    """No letters at all, or nothing but keys hit in a row and syllables; other scripts are never judged."""
    if not any(character.isalpha() for character in text):
        return True
    plain = fold(text)
    said = [word for word in re.findall(r"[^\W\d_]+", plain) if len(word) > 1]
    if not said or any(not _LATIN.fullmatch(word) for word in said):
        return False
    if all(_FILLER.fullmatch(word) for word in said):
        return len(said) > 1 or said[0].startswith("bla")
    return all(_FILLER.fullmatch(word) or _unspeakable(word, text) for word in said)


def _unspeakable(word: str, text: str) -> bool:
    """Long words without a vowel are none, unless written as initials are."""
    return bool(_KEYS.search(word)) or (len(word) > 3 and not re.search("[aeiouy]", word) and word.upper() not in text)


def _plain(text: str) -> str:
    return " ".join(fold(text).replace("’", "'").split())
