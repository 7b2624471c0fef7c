"""Sentences that give orders to a model instead of telling a reader something.

Marking them is a courtesy, not the defence: of ordinary-looking requests ("How do solar panels work?") no rule can tell
that they are meant for a model. The defence is that the text of a page is never taken as an instruction.

A rule is worth 1 or 2 points, and 2 points mark a sentence: one sign alone is as often ordinary prose ("As an AI
language model, I cannot", quoted in the news). Right after a marked sentence of the same paragraph 1 point is enough.
"""

import re
import unicodedata
from functools import lru_cache

from openassay.text.sentences import TextSpan, split_sentences

ENOUGH, ENOUGH_AFTER = 2, 1

_MACHINE = (
    r"(?:(?:AI|A\.I\.|artificial intelligence|LLM|large language|language)(?:[ -](?:language|research|powered))?"
    r"(?: (?:assistant|model|system|agent|bot|crawler|reader)s?)?|chatbots?|(?:assistant|agent|bot|crawler|model)s?)"
)
_PLAIN_MACHINE = r"(?:AIs?|A\.I\.|LLMs?|(?:AI|language|research) (?:assistant|model|agent|system|bot)s?|chatbots?)"
_ANSWER = (
    r"(?:(?:final|next|entire|whole|own|written) )?"
    r"(?:responses?|answers?|repl(?:y|ies)|outputs?|completions?)"
)
_OPENING = (
    r"^[\W_]*(?:(?:please|now|then|also|and|instead|first|next|finally|important|note|attention|warning|system|"
    r"assistant|"
    r"user)\b[,:!\s-]*)*"
)
_ORDERED = (
    r"(?:add|adjust|anagram|append|augment|begin|change|combine|compose|convert|embed|encode|end|enhance|ensure|"
    r"finish|"
    r"follow|format|group|include|incorporate|insert|integrate|introduce|jumble|make|mention|misspell|modify|phrase|"
    r"prefix|provide|put|rearrange|remove|render|rephrase|replace|rewrite|scramble|sign|start|substitute|swap|"
    r"translate|use|write)"
)
_FORGET = r"(?:ignore|disregard|forget|override|bypass|overrule|discard|abandon|pay no attention to)"
_EARLIER = (
    r"(?:previous|prior|above|earlier|preceding|foregoing|existing|original|initial|all|any|your|other|these|the)"
)
_RULES = r"(?:instructions?|prompts?|rules|directions|directives|guidelines|commands|orders|constraints|safeguards)"
_SAYS = (
    r"(?:answer|cite|conclude|conceal|disregard|endorse|follow|hide|ignore|mention|not mention|obey|output|"
    r"praise|print|"
    r"promote|rank|recommend|repeat|reply|respond|say|state|stop|tell|trust|visit|write)"
)
_ADDRESS = r"(?:https?://|www\.|ftp://|\b\d{1,3}(?:\.\d{1,3}){3}\b)[^\s)\]>\"']*"

_RULES_WITH_POINTS: tuple[tuple[int, str], ...] = (
    # Taking over
    (2, rf"(?<![“\"'‘«])\b{_FORGET}\b[^.!?]{{0,20}}\b(?:previous|prior|above|earlier|preceding) {_RULES}\b"),
    (2, rf"\b{_FORGET} (?:all (?:of )?|everything )?(?:the )?above\b"),
    (2, r"\bdear (?:assistant|AI|model)\b|\byou,? the (?:assistant|AI|(?:AI |language )*model)\b"),
    (2, r"\bwhen(?:ever)? (?:you are )?asked\b[^.!?]{0,100}\b(?:answer|say|reply|state|respond) "
        r"(?:that|with|only|just)\b"),
    (2, r"\b(?:when(?:ever)?|if|while|before|after|once) you (?:are )?(?:summari[sz](?:e|ing)|answer(?:ing)?|"
        r"cit(?:e|ing)|quot(?:e|ing)|paraphras(?:e|ing)|process(?:ing)?|index(?:ing)?|pars(?:e|ing)|"
        r"describ(?:e|ing)|report(?:ing)? on)\b"
        r"[^.!?]{0,60}[,:]? (?:please |always |also |only |do not |don't |never |you (?:must|should|shall) )*"
        r"(?:say|state|write|mention|tell|report|claim|conclude|recommend|praise|add|include|repeat|insist) "
        r"(?:that|it|the|this|only|how|why|to)\b"),
    (2, r"\bcite only (?:this|these)\b|\b(?:output|print|answer|say) th(?:is|ese) \w+ only\b"),
    (1, rf"\b{_FORGET}\b[^.!?]{{0,40}}\b{_EARLIER}\b[^.!?]{{0,30}}\b{_RULES}\b"),
    (1, rf"{_OPENING}(?:(?:you|{_MACHINE}) (?:must|should|shall|will|can|may)(?: now)? )?{_FORGET}\b"),
    (1, rf"\b{_FORGET}\b (?:everything|anything|all|what)\b[^.!?]{{0,30}}\b(?:above|before|told|said|know|"
        rf"earlier)\b"),
    (1, r"\b(?:(?:you are|you're|you will be) (?:now|from now on)|from now on,? you|act as|pretend to be|"
        r"roleplay as)\b"),
    (1, rf"\b(?:you are|you're|act as|pretend to be|roleplay as)\b[^.!?]{{0,40}}\b(?:{_PLAIN_MACHINE}|assistant|DAN|"
        r"unrestricted|jailbroken|(?:developer|debug|admin|god|maintenance|unrestricted) mode)\b"),
    (1, r"\b(?:new|updated|additional|real|actual|special|secret|hidden) (?:system )?(?:instructions?|task|"
        r"objective|goal)s?"
        r" ?(?::|for (?:you|the (?:model|assistant|AI)))"),
    (1, r"\byour (?:new|real|only|true|actual) (?:task|goal|objective|instructions?|role|job)\b"),
    (1, r"\b(?:system|developer|hidden|initial|original|secret) (?:prompts?|instructions?|messages?)\b"),
    (1, r"\b(?:the|your|this) system prompt\b"),
    (1, r"\b(?:reveal|print|repeat|show|output|leak|disclose|display|dump|recite|reproduce|quote)\b[^.!?]{0,30}"
        r"\b(?:your|the|this|any|all)\b[^.!?]{0,30}\b(?:prompts?|instructions?|API[ -]?keys?|passwords?|credentials|"
        r"configuration|secrets?|tokens?|conversation)\b"),
    # Tokens and roles of a conversation
    (2, r"<\|[\w ]{1,24}\|>|\[/?INST\]|<</?SYS>>|</?(?:s|system|assistant|user|tool_call|function_calls?|source)>"),
    (2, r"<(?:script|img|iframe|svg|object|embed|style|form|meta|link)\b|\bon(?:error|load|click)\s*=|javascript:"),
    (2, r"^\W*#{2,} ?(?:system|instructions?|assistant|user|human|response|new task) ?(?::|$)"),
    (1, r"^\W*(?:system|assistant|user|human|developer|ai|gpt|claude|chatgpt|bot)(?: (?:message|note|override|"
        r"prompt))? ?:"),
    (1, rf"^\W*(?:system|assistant|ai|bot|model) ?: (?:please )?(?:do not |never )?{_SAYS}\b"),
    (1, r"\b(?:begin|end|start) (?:of )?(?:the )?(?:system|admin|developer|user|hidden|secret)\b[^.!?]{0,20}"
        r"\b(?:prompt|message|instructions?|override|block)\b"),
    # To whom it may compute
    (2, rf"\b(?:if|when|since|because|as) you(?: are|'re) (?:an? |the )?{_PLAIN_MACHINE}\b"),
    (2, rf"\b(?:attention|dear|hey|hello|note|notice|message|instructions?|warning|important|"
        rf"reminder)\b[^.!?]{{0,20}}"
        rf"(?:\b(?:to|for|all|any)\b|[,:])[^.!?]{{0,12}}\b{_PLAIN_MACHINE}\b"),
    (2, rf"^\W*(?:attention|dear|hey|hello),? (?:all )?{_PLAIN_MACHINE}\b"),
    (2, rf"\b{_PLAIN_MACHINE}(?: (?:reading|that reads?|who reads?|which reads?|processing|summari[sz]ing|crawling)"
        rf"[^.!?]{{0,40}})? (?:must|should|shall|have to|has to|(?:are|is) (?:required|instructed|told|asked) to)"
        rf" (?:always |never |not |now |only )*{_SAYS}\b"),
    (1, r"\bas an? (?:(?:large |helpful )*(?:AI |language )*(?:model|assistant)|AI)\b"),
    (1, r"\bas an? (?:(?:large |helpful )*(?:AI |language )*(?:model|assistant)|AI)\b,? (?:you|your)\b"),
    # The answer it is to give
    (2, rf"{_OPENING}(?:in|at the (?:end|beginning|start|top|bottom) of|throughout) your {_ANSWER}\b"),
    (2, rf"{_OPENING}{_ORDERED}\b[^!?]{{0,120}}\byour {_ANSWER}\b"),
    (2, rf"\b(?:ask|tell|urge|instruct|request|require|remind)\w* (?:all |every |any |each |the )*(?:{_PLAIN_MACHINE}|"
        rf"(?:assistant|bot|agent)s?)\b[^.!?]{{0,60}}\b(?:its|their|your|the|every|all) {_ANSWER}\b"),
    (2, rf"{_OPENING}(?:explain|describe|draft|compose|summari[sz]e|paraphrase|translate|proofread|break down)"
        r" (?:the|an?|this|these|that|how|what|why|in|following|[\"“'])\b"),
    (2, rf"{_OPENING}(?:write|provide|create|generate|develop|show|give|produce|list)(?: me| us)? (?:an? |"
        rf"the |some )?"
        r"(?:(?:short|brief|detailed|simple|compelling|\w+ish) )*(?:poem|story|essay|letter|speech|song|joke|"
        r"summary|example|"
        r"equivalent|translation|introduction|function|script|code|program|e-?mail|tweet|article|paragraph)\b"),
    (2, rf"\bto your {_ANSWER}\W*$"),
    (1, rf"\byour {_ANSWER}\b[^.!?]{{0,20}}\b(?:must|should|shall|has to|needs to|will)\b"),
    (1, rf"\byour {_ANSWER}\b[^.!?]{{0,60}}\b(?:exactly|only|nothing but|verbatim|the (?:word|phrase|words|"
        rf"token|string))\b"),
    (2, rf"{_OPENING}(?:respond|reply|answer|output|write|say|print|return|speak)\b[^.!?]{{0,20}}"
        r"\b(?:only|exactly|nothing but|nothing except|just)\b (?:with |in |the |as |this|\"|“|')"),
    (1, rf"{_OPENING}(?:respond|reply|answer|output|print|say|write|repeat|return)\b"),
    (1, r"\b(?:the (?:word|phrase|token|string|text|code)|verbatim|word for word|exactly)\b[^.!?]{0,6}"
        r"(?:[\"“'«:]|\b[A-Z0-9]+[-_][A-Z0-9-_]{3,})"),
    (1, r"\b(?:do not|don't|never|without) (?:mention|tell|reveal|disclos|inform|warn|alert|let|refer|cit|say)\w*\b"),
    (1, r"\b(?:the|your) (?:user|human|operator|reader)s?\b[^.!?]{0,30}\b(?:about this|these instructions|"
        r"this (?:message|"
        r"instruction|prompt|text|note)|anything)\b|\b(?:this|these) (?:instructions?|prompts?)\b"),
    (1, rf"{_OPENING}(?:tell|inform|convince|persuade|advise|urge|instruct|ask) (?:the|your) (?:user|human|"
        rf"operator)\b"),
    (1, r"\b(?:mark|treat|rate|label|flag|cite|trust)\b[^.!?]{0,20}\b(?:everything|all|every|each|this (?:page|"
        r"source|site))\b"
        r"[^.!?]{0,40}\b(?:verified|trusted|true|confirmed|authoritative|supported|sole|only source)\b"),
    (1, rf"{_OPENING}(?:mark|treat|rate|label|flag|cite|trust)\b"),
    (1, rf"{_OPENING}(?:change|drop|rewrite|replace|abandon|extend|update) (?:the|your|this|"
        rf"its) (?:\w+ )?(?:plan|task|goal|"
        r"question|queries|report|title|search(?:es)?)\b"),
    (1, r"\b(?:the (?:only|real|new|true|actual) (?:question|task|goal|query)|(?:title|report|answer|"
        r"summary)s? must)\b"),
    # What it is to send or run
    (1, rf"{_OPENING}(?:fetch|visit|open|browse|cite|search for|navigate to|request|load|call|query|go to|send|"
        rf"post|submit|curl|"
        rf"wget|GET|"
        rf"download)\b[^!?]{{0,80}}{_ADDRESS}"),
    (1, rf"{_ADDRESS}[?&][\w-]+=|{_ADDRESS}\{{|\bsite:|://(?:localhost|127\.|10\.|192\.168\.|169\.254\.)"),
    (2, r"\b(?:send|post|submit|forward|e-?mail|upload|exfiltrate|transmit|"
        r"append)\b[^.!?]{0,40}\b(?:conversation|chat history|"
        r"context|API[ -]?keys?|passwords?|credentials|system prompt|user(?:'s)? (?:data|question|query|"
        r"files))\b[^!?]{0,40}"
        rf"\bto\b[^!?]{{0,20}}(?:{_ADDRESS}|\S+@\S+)"),
    (2, r"!\[[^\]]*\]\(\s*https?://[^)\s]*[?=]"),
    (1, r"\b(?:base64|rot13|hex)\b[^.!?]{0,40}\b(?:decod|execut|obey|follow|run)\w*|\b(?:decode|execute|run|"
        r"deobfuscate)\b"
        r"[^.!?]{0,40}\b(?:base64|rot13|hex|following|this|string)\b"),
    (1, r"(?<![\w/+=.-])(?=[A-Za-z0-9+/]*[0-9+/])(?=[A-Za-z0-9+/]*[A-Z])[A-Za-z0-9+/]{32,}={0,2}(?![\w/+=.-])"),
    # The same first order in other languages
    (2, r"\b(?:ignorier|vergiss|vergess|missacht)\w*\b[^.!?]{0,40}\b(?:vorherig|bisherig|obig|vorangegangen|"
        r"früher|all)\w*"
        r"[^.!?]{0,20}\b(?:anweisung|instruktion|befehl|vorgabe|regel)\w*"),
    (2, r"\b(?:ignor|oubli|néglig)\w*\b[^.!?]{0,30}\b(?:instructions|consignes|règles|directives)\b[^.!?]{0,20}"
        r"\b(?:précédent|antérieur|ci-dessus|initial)\w*"),
    (2, r"\b(?:ignor|olvid|descart)\w*\b[^.!?]{0,30}\b(?:instrucciones|órdenes|reglas|indicaciones)\b[^.!?]{0,20}"
        r"\b(?:anterior|previ|inicial)\w*"),
    (2, r"\b(?:ignor|dimentic|trascur)\w*\b[^.!?]{0,30}\b(?:istruzioni|regole|indicazioni)\b[^.!?]{0,20}"
        r"\b(?:precedent|iniziali|sopra)\w*"),
    (2, r"\b(?:ignor|esque[çc]|desconsider)\w*\b[^.!?]{0,30}\b(?:instruções|regras|ordens)\b[^.!?]{0,20}"
        r"\b(?:anterior|prévi|acima)\w*"),
    (2, r"\b(?:negeer|vergeet)\b[^.!?]{0,40}\b(?:vorige|eerdere|bovenstaande|"
        r"alle)\b[^.!?]{0,20}\b(?:instructies|regels)\b"),
    (2, r"(?:игнорируй|забудь|не обращай)\w*[^.!?]{0,40}(?:предыдущ|прежн|все)\w*[^.!?]{0,20}(?:инструкц|"
        r"указани|правил)\w*"),
    (2, r"(?:忽略|无视|無視|忘记|忘掉)[^。！？]{0,12}(?:之前|以上|前面|上述|先前|所有)[^。！？]{0,8}(?:指令|"
        r"指示|提示|规则|命令)"),
    (2, r"(?:以前|これまで|上記|前|すべて)の[^。！？]{0,8}(?:指示|命令|プロンプト|"
        r"ルール)を[^。！？]{0,6}(?:無視|忘れ)"),
    (2, r"(?:이전|위의|모든)[^.!?]{0,10}(?:지시|명령|규칙)[^.!?]{0,6}(?:무시|잊)"),
)  # fmt: skip
# Six sentences of seven have none of these and are done with, which makes it three times as fast.
_HINTS = (
    *"ignor disregard forget overrid bypass overrul discard abandon attention you're pretend roleplay instruct".split(),
    *"task objective goal prompt message password secret token credential system assistant user human gpt".split(),
    *"claude bot a.i. llm model respon answer repl output completion print return verbatim exactly don't never".split(),
    *"verified trusted confirmed authoritative < [ ## = @ http www. site: base64 rot13 decod execut".split(),
    *"explain describe draft compose summari paraphras translat proofread poem story essay letter speech song".split(),
    *"joke example equivalent introduction function script code program mail tweet article paragraph".split(),
    *"vergiss vergess missacht oubli néglig olvid descart dimentic trascur esque desconsider negeer vergeet".split(),
    *"игнор забуд обращай 忽略 无视 無視 忘 무시 잊".split(),
    *("you are", "act as", "now on", "your new", " ai", " only", "do not", "break down", " must "),
)
_PATTERNS = tuple((worth, re.compile(pattern, re.I)) for worth, pattern in _RULES_WITH_POINTS)


_TO_ANYBODY = (
    "absorb|add|adjust|adopt|answer|append|apply|arrange|ask|assemble|assume|attach|avoid|be|become|begin|believe|blend|boil|"
    "book|bring|browse|build|buy|call|change|check|choose|click|combine|compare|complete|consider|contact|convert|copy|"
    "create|cut|decide|define|delete|deploy|discover|do|download|embed|employ|engage|enhance|enjoy|enlist|enrich|ensure|"
    "enter|execute|explore|fill|find|follow|forget|fuse|get|give|go|group|harmonize|have|help|imagine|implement|include|"
    "incorporate|infuse|inject|insert|install|integrate|interweave|introduce|join|jumble|keep|learn|leave|let|leverage|"
    "look|make|meld|merge|mix|move|note|open|pick|place|press|print|provide|put|read|recall|register|remember|remove|"
    "render|repeat|replace|reply|return|run|save|say|see|select|send|set|share|show|sign|start|stop|subscribe|"
    "substitute|take|tell|think|try|turn|type|use|utilize|visit|wait|watch|weave|write"
)
_OBJECT = (
    r"(?:the|an?|your|yourself|this|these|those|that|all|every|each|any|some|it|them|me|us|up|in mind|sure|out more|"
    r"more|letters|vowels|spaces|words|here|now)"
)
_ORDER = re.compile(
    rf"{_OPENING}(?:(?:seamlessly|carefully|simply|always|just|to proceed,) )?"
    rf"(?:(?:do not|don't) \w+\b|(?:never )?(?:{_TO_ANYBODY}) (?:{_OBJECT}\b|[\"“])|"
    rf"(?:{_TO_ANYBODY})\b[^.!?]*\byour\b)|"
    r"\byour (?:code|solution|implementation|codebase|algorithm)\b",
    re.I,
)
_ADVICE = re.compile(
    r"\bhow (?:to|do|can|could|should|would|might) (?:i|you|we|one|people|somebody|someone)\b|\bhow to\b|\bshould\b|"
    r"\b(?:steps?|instructions?|guid(?:e|ance|elines?)|tutorials?|recipes?|advice|tips?|practices?|recommend\w*|"
    r"ways? (?:to|of)|procedures?|methods?|rules?|precautions?|set ?up|install\w*|configur\w*|code)\b",
    re.I,
)


@lru_cache(maxsize=2048)  # passages are read for several sub-questions, by two reasoners
def find_instructions(text: str) -> tuple[TextSpan, ...]:
    """The sentences of a text that order a model about, with their offsets."""
    found: list[TextSpan] = []
    for piece in split_sentences(text):
        follows = bool(found) and not text[found[-1].end : piece.start].strip(" ")
        enough = ENOUGH_AFTER if follows else ENOUGH
        plain = _normalize_sentence(piece.text)
        hinted = f" {plain.lower()}"
        if (follows or any(hint in hinted for hint in _HINTS)) and (
            sum(worth for worth, pattern in _PATTERNS if pattern.search(plain)) >= enough
        ):
            found.append(piece)
    return tuple(found)


def _normalize_sentence(sentence: str) -> str:
    return unicodedata.normalize("NFKC", sentence).replace("’", "'")


def is_order(sentence: str) -> bool:
    """Whether a sentence tells anybody to do something, as "Read the full story." does: it states nothing."""
    return _ORDER.search(_normalize_sentence(sentence)) is not None


def asks_for_advice(question: str) -> bool:
    """To such a question an order may be the answer."""
    return _ADVICE.search(question) is not None
