"""Messages that ask for no research: courtesies, second thoughts, shrugs, and what nobody can read."""

import re

from openassay.text.words import fold


def _any_of(*forms: str) -> str:
    return f"(?:{'|'.join(forms)})"


_SEARCH = "(?:search|research|request|question|run|report|task|job|plan|whole thing)"
_IT = _any_of("it", "that", "this", f"(?:the|my|this|that) {_SEARCH}", "everything")
_BEFORE = _any_of(
    "ok", "okay", "oh", "no", "nope", "nah", "yeah", "actually", "well", "please", "hey", "hm+", "um+", "uh", "sorry",
    "wait", "alright", "you know what", "then", "just", "and", "can you", "could you",
)  # fmt: skip
_AFTER = _any_of(
    "please", "thanks?", "thank you", "any ?more", "then", "now", "sorry", "for now", "instead", "after all", "again",
    "today", "here", "altogether",
)  # fmt: skip
_CALLED_OFF = _any_of(
    rf"never\s?mind(?: (?:that|it|this|about {_IT}))?", rf"(?:cancel|abort|stop)(?: {_IT}| (?:re)?searching)?",
    rf"forget (?:{_IT}|about {_IT}|i asked)", rf"(?:drop|skip|scrap|scratch|leave|ditch) {_IT}",
    rf"let'?s (?:just )?(?:drop|forget(?: about)?|skip|cancel|leave|stop)(?: {_IT})?", "let it (?:go|be)",
    rf"call (?:{_IT} )?off", "quit", "exit", "no,? (?:thanks?|thank you)", "i(?:'ve| have)? changed my mind",
    "(?:it |that )?(?:doesn'?t|does not) matter", "don'?t bother", "not (?:interested|needed|necessary)",
    rf"i (?:don'?t|do not|no longer) (?:need|want|care)(?: (?:{_IT}|to know|about {_IT}|an answer))?",
    "i(?:'m| am) (?:done|good)", "nothing", "none of (?:them|these|those|the above)",
)  # fmt: skip
_CANCEL = re.compile(rf"(?:{_BEFORE}[,.!]*\s+)*{_CALLED_OFF}(?:[,.!]*\s+{_AFTER})*[\s.!?]*")

LONGEST = 120  # characters of small talk: "thx for thx for ..." can be read in ways that double with each word
_COURTESY = _any_of(
    "(?:hi|hiya|hello|hey|howdy|greetings|welcome)(?: (?:there|openassay|all|everyone|again|friend))?",
    "good (?:morning|afternoon|evening|day|night)(?: (?:openassay|all|everyone))?",
    "(?:many )?(?:thanks?|thank you|thx|cheers)(?: (?:very|so) much| a lot| a million| again)?(?: for [\\w' ]{2,40})?",
    "(?:good)?bye", "see you(?: later| soon)?", "ok(?:ay)?", "alright", "cool", "great(?: (?:job|work))?",
    "nice(?: (?:work|one|to meet you))?", "perfect", "awesome", "excellent", "wow", "got it", "i see", "sounds good",
    "makes sense", "well done", "(?:very )?good(?: (?:job|work))?", "interesting", "lol", "haha+",
    "how are you(?: (?:doing|today))*", "how'?s it going", "what'?s up", "pleased to meet you",
    "who (?:are you|made you|built you)", "what are you", "what(?:'s| is) your name", "what is (?:this|openassay)",
    "what (?:can|do) you do(?: for me)?", "how (?:do|can) (?:you work|you help(?: me)?|i use you)",
    "are you (?:a |an )?(?:bot|robot|human|ai|real|person|machine|there)", "(?:can you )?help(?: me)?",
    "i need (?:your )?help", "you(?:'re| are) (?:welcome|great|awesome|the best)",
    "that(?:'s| is) (?:great|all|it|nice|helpful|interesting)", "yes", "yeah", "yep", "sure", "no", "nope", "nah",
    "not really", "no problem", "fine", "right", "(?:yes|no) please", "all right", "understood",
)  # fmt: skip
_SMALL_TALK = re.compile(rf"{_COURTESY}(?:[\s,.!?]+(?:and |so )?{_COURTESY})*[\s.!?,]*")

_SHRUG = _any_of(
    "i (?:really |honestly )?(?:don'?t|do not|dont) (?:really )?(?:know|mind|care)(?: which(?: one)?)?", "idk", "dunno",
    "i dunno", "(?:i have |i've )?(?:absolutely )?no (?:clue|idea|preference|opinion)", "not sure", "unsure",
    "i(?:'m| am) not sure", "i can'?t (?:say|tell|decide)", "whatever(?: you (?:like|want|think(?: is best)?))?",
    "whichever(?: you (?:like|want))?", "any(?: one)?(?: of (?:them|these|those))?", "anything", "any of the above",
    "either(?: one)?(?: (?:is fine|will do|works))?", "(?:you )?(?:choose|decide|pick)(?: (?:one|for me))?",
    "your (?:choice|call)", "(?:it'?s |it is )?up to you", "as you (?:like|wish)", "surprise me",
    "all the same(?: to me)?", "(?:it |that )?(?:doesn'?t|does not) matter(?: to me| which(?: one)?)?", "don'?t care",
    "who knows", "no matter",
)  # fmt: skip
_INDIFFERENT = re.compile(rf"(?:{_BEFORE}[,.!]*\s+)*{_SHRUG}(?:[,.!]*\s+(?:please|sorry|really|then|thanks?))*[\s.!?]*")

# What a courtesy is answered with; the first that fits.
_WHAT_I_DO = (
    "I research questions on the web and write a report in which every sentence opens the passage behind it. Ask in "
    "your own words, for example: “How did Apple's revenue change over the last year?”"
)
_REPLIES: tuple[tuple[str, str], ...] = (
    (
        r"(?<!the )(?<!your )(?<!for )help|what (?:can|do) you do|who (?:are|made|built) you|what are you|your name|"
        r"what is (?:this|openassay)|are you (?!there)|how (?:do|can) (?:you (?:work|help)|i use)",
        _WHAT_I_DO,
    ),
    (r"how are you|how'?s it going|what'?s up", "All well, thank you. What would you like to know?"),
    (r"(?:good)?bye|see you|good night", "Goodbye! Come back whenever you like: what we found stays in this thread."),
    (r"thank|thx|cheers", "You're welcome. If you want to know more, ask."),
    (
        r"you(?:'re| are)|that(?:'s| is)|well done|great|nice|perfect|awesome|excellent|wow|cool|interesting|lol|haha|"
        r"good(?! (?:morning|afternoon|evening|day))",
        "Glad to hear it. What would you like to know next?",
    ),
    (
        r"hi|hiya|hello|hey|howdy|greetings|welcome|good (?:morning|afternoon|evening|day)|meet you|are you there",
        "Hello! Ask a question and every sentence of the answer will open the passage behind it.",
    ),
)
_ALL_RIGHT = "All right. Ask whenever there is something you would like to know."

_KEYS = re.compile(r"asdf|sdfg|dfgh|fghj|hjkl|qwer|wert(?!h)|rtyu|tyui|uiop|zxcv|xcvb|cvbn|(.)\1{3,}")
_FILLER = re.compile(r"(?:bla+h?|foo|bar|baz|lorem|ipsum|yada|yadda|la|na|da|test(?:ing)?|hm+|um+|uh|er+)")
_LATIN = re.compile(r"[a-z]+")


def is_cancellation(text: str) -> bool:
    return bool(_CANCEL.fullmatch(_normalize(text)))


def is_small_talk(text: str) -> bool:
    plain = _normalize(text)
    return len(plain) <= LONGEST and bool(_SMALL_TALK.fullmatch(plain))


def is_indifferent(text: str) -> bool:
    """Whether somebody has nothing to say to it: "I do not know", "whatever", "you choose"."""
    return bool(_INDIFFERENT.fullmatch(_normalize(text)))


def choose_reply(message: str) -> str:
    """What small talk is answered with."""
    plain = _normalize(message)
    fitting = (answer for said, answer in _REPLIES if re.search(rf"\b(?:{said})", plain))
    return next(fitting, _ALL_RIGHT)


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
    # Long words without a vowel are none, unless written as initials are.
    return all(
        _FILLER.fullmatch(word)
        or _KEYS.search(word)
        or (len(word) > 3 and not re.search("[aeiouy]", word) and word.upper() not in text)
        for word in said
    )


def _normalize(text: str) -> str:
    return " ".join(fold(text).replace("’", "'").split())
