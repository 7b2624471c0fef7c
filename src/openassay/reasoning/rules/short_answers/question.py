"""What a pointed question wants: the kind of answer, and words that tell what kind of thing a phrase names.

Lists, not learned: each is closed or nearly so, and what is missing from one only makes an answer less sure.
"""

import re
from functools import lru_cache
from typing import Literal, NamedTuple

from openassay.text.nationalities import NATIONALITIES
from openassay.text.pairs import parse_pair
from openassay.text.words import content_words, fold, stem, stems


def _parse_words(text: str) -> tuple[str, ...]:
    return tuple(
        sorted({word.strip() for word in text.split(",") if word.strip()}, key=lambda word: (-len(word), word))
    )


SPORTS = _parse_words(
    "american football, australian rules football, association football, gaelic football, canadian football, arena "
    "football, football, footballer, soccer, rugby league, rugby union, rugby, ice hockey, field hockey, roller "
    "hockey, hockey, basketball, netball, volleyball, beach volleyball, handball, baseball, softball, cricket, "
    "cricketer, tennis, table tennis, badminton, squash, golf, golfer, snooker, darts, bowling, ten-pin bowling, "
    "billiards, chess, boxing, boxer, kickboxing, professional wrestling, wrestling, wrestler, mixed martial arts, "
    "martial arts, judo, karate, taekwondo, fencing, fencer, archery, shooting, artistic gymnastics, rhythmic "
    "gymnastics, gymnastics, gymnast, athletics, track and field, middle distance, long-distance, distance running, "
    "running, runner, sprinter, sprint, marathon, triathlon, decathlon, pole vault, high jump, long jump, javelin, "
    "shot put, discus, swimming, swimmer, diving, water polo, rowing, rower, canoeing, canoe, kayaking, sailing, "
    "surfing, cycling, cyclist, bmx, mountain biking, motorcycle racing, motocross, speedway, motor racing, auto "
    "racing, stock car, racing driver, racing, nascar, formula one, rallying, rally, equestrian, horse racing, show "
    "jumping, polo, lacrosse, hurling, camogie, curling, bobsleigh, luge, skeleton, biathlon, alpine skiing, "
    "cross-country skiing, ski jumping, nordic combined, skiing, skier, snowboarding, short track, speed skating, "
    "speed skater, figure skating, figure skater, skating, skateboarding, weightlifting, powerlifting, bodybuilding, "
    "bodybuilder, sumo, kabaddi, poker, bridge, esports, climbing, mountaineering, orienteering"
)
MEDIA = _parse_words(
    "short film, documentary film, television film, film, movie, television series, tv series, television show, "
    "miniseries, sitcom, telenovela, web series, soap opera, short story, graphic novel, novella, novel, comic book, "
    "comic, comics, manga, anime, poetry, poem, play, musical, opera, ballet, book, magazine, newspaper, journal, "
    "studio album, live album, compilation album, album, song, single, ep, soundtrack, video game, board game, card "
    "game, role-playing game, game, radio drama, radio, painting, sculpture, photography, print, podcast, essay"
)
PARTIES = _parse_words(
    "democratic party, democratic-republican, democratic, democrat, republican party, republican, whig, federalist, "
    "labour party, labor party, labour, labor, conservative party, conservative, progressive conservative, "
    "liberal-progressives, liberal-progressive, liberal party, liberal democrats, liberal democrat, liberal, tory, "
    "green party, greens, independent, libertarian, socialist, communist, social democrat, new democratic party, "
    "national party, nationalist, country party, unionist, populist, progressive"
)
POSITIONS = _parse_words(
    "goalkeeper, centre-back, full-back, centre half, wing half, midfielder, striker, winger, defender, forward, "
    "goaltender, defenceman, defenseman, quarterback, running back, wide receiver, tight end, linebacker, cornerback, "
    "defensive back, defensive end, defensive tackle, offensive tackle, offensive lineman, fullback, halfback, "
    "safety, kicker, punter, guard, centre, center, tackle, pitcher, catcher, shortstop, first baseman, second "
    "baseman, third baseman, outfielder, infielder, batsman, bowler, wicket-keeper, all-rounder, prop, hooker, lock, "
    "flanker, fly-half"
)
STATES = _parse_words(
    "alabama, alaska, arizona, arkansas, california, colorado, connecticut, delaware, florida, georgia, hawaii, "
    "idaho, illinois, indiana, iowa, kansas, kentucky, louisiana, maine, maryland, massachusetts, michigan, "
    "minnesota, mississippi, missouri, montana, nebraska, nevada, new hampshire, new jersey, new mexico, new york, "
    "north carolina, north dakota, ohio, oklahoma, oregon, pennsylvania, rhode island, south carolina, south dakota, "
    "tennessee, texas, utah, vermont, virginia, washington, west virginia, wisconsin, wyoming, new south wales, "
    "queensland, victoria, south australia, western australia, tasmania, bavaria, saxony, hesse, kerala, tamil nadu, "
    "karnataka, maharashtra, gujarat, punjab, bihar, west bengal, ontario, quebec, british columbia, alberta, "
    "manitoba"
)
COUNTRIES = _parse_words(
    "afghanistan, albania, algeria, angola, argentina, armenia, australia, austria, azerbaijan, bahrain, bangladesh, "
    "belarus, belgium, belize, benin, bhutan, bolivia, bosnia and herzegovina, botswana, brazil, brunei, bulgaria, "
    "burkina faso, burundi, cambodia, cameroon, canada, chad, chile, china, colombia, congo, costa rica, croatia, "
    "cuba, cyprus, czech republic, denmark, dominican republic, ecuador, egypt, el salvador, england, eritrea, "
    "estonia, ethiopia, fiji, finland, france, gabon, gambia, georgia, germany, ghana, greece, guatemala, guinea, "
    "guyana, haiti, honduras, hong kong, hungary, iceland, india, indonesia, iran, iraq, ireland, israel, italy, "
    "ivory coast, jamaica, japan, jordan, kazakhstan, kenya, kosovo, kuwait, kyrgyzstan, laos, latvia, lebanon, "
    "lesotho, liberia, libya, lithuania, luxembourg, madagascar, malawi, malaysia, maldives, mali, malta, mauritania, "
    "mauritius, mexico, moldova, mongolia, montenegro, morocco, mozambique, myanmar, namibia, nepal, netherlands, new "
    "zealand, nicaragua, niger, nigeria, north korea, north macedonia, northern ireland, norway, oman, pakistan, "
    "palestine, panama, papua new guinea, paraguay, peru, philippines, poland, portugal, qatar, romania, russia, "
    "rwanda, samoa, saudi arabia, scotland, senegal, serbia, sierra leone, singapore, slovakia, slovenia, somalia, "
    "south africa, south korea, south sudan, spain, sri lanka, sudan, suriname, sweden, switzerland, syria, taiwan, "
    "tajikistan, tanzania, thailand, togo, tonga, trinidad and tobago, tunisia, turkey, turkmenistan, uganda, "
    "ukraine, united arab emirates, united kingdom, united states, uruguay, uzbekistan, venezuela, vietnam, wales, "
    "yemen, zambia, zimbabwe"
)
LANGUAGES = _parse_words(
    "arabic, assamese, bengali, bhojpuri, bulgarian, burmese, cantonese, catalan, chinese, croatian, czech, danish, "
    "dutch, english, estonian, filipino, finnish, french, gaelic, german, greek, gujarati, hebrew, hindi, hungarian, "
    "icelandic, indonesian, irish, italian, japanese, kannada, korean, latin, latvian, lithuanian, malay, malayalam, "
    "mandarin, marathi, nepali, norwegian, odia, persian, polish, portuguese, punjabi, romanian, russian, sanskrit, "
    "serbian, sinhala, slovak, slovenian, spanish, swahili, swedish, tagalog, tamil, telugu, thai, tulu, turkish, "
    "ukrainian, urdu, vietnamese, welsh, yiddish, zulu"
)
GENDERS = _parse_words(
    "all-boys, all-girls, boys, girls, male, female, coeducational, co-educational, mixed, men, women"
)

GENRES = _parse_words(
    "drama, comedy, romantic comedy, thriller, erotic thriller, horror, film noir, documentary, western, action, "
    "adventure, fantasy, science fiction, mystery, crime, romance, biography, biographical, musical, animation, war, "
    "satire, tragedy, farce, historical, rock, pop, jazz, blues, folk, country, hip hop, hip-hop, rap, r&b, soul, "
    "funk, disco, dance, electronic, house, techno, metal, death metal, heavy metal, punk, reggae, gospel, classical, "
    "opera, indie, alternative, ambient, non-fiction, memoir, autobiography, novel, poetry, essay, reality, sitcom, "
    "soap opera"
)
OCCUPATIONS = _parse_words(
    "actor, actress, administrator, agent, analyst, anthropologist, archaeologist, architect, artist, astronaut, "
    "astronomer, athlete, attorney, author, aviator, banker, barrister, biologist, botanist, bishop, broadcaster, "
    "businessman, businesswoman, chemist, choreographer, chef, civil servant, cleric, coach, comedian, composer, "
    "clergyman, columnist, conductor, consultant, cricketer, critic, curator, dancer, dentist, designer, diplomat, "
    "director, doctor, drummer, economist, editor, educator, engineer, entrepreneur, executive, explorer, farmer, "
    "filmmaker, footballer, game designer, general, geologist, golfer, guitarist, historian, host, illustrator, "
    "instructor, inventor, investor, journalist, judge, jurist, lawyer, lecturer, librarian, linguist, manager, "
    "mathematician, merchant, mezzo-soprano, minister, missionary, model, musician, naturalist, novelist, nurse, "
    "official, officer, painter, philosopher, photographer, physician, physicist, pianist, pilot, player, playwright, "
    "poet, politician, presenter, priest, producer, professor, programmer, psychologist, publisher, rapper, reporter, "
    "researcher, scholar, scientist, screenwriter, sculptor, singer, singer-songwriter, soldier, songwriter, soprano, "
    "sportsman, statesman, surgeon, teacher, tenor, theologian, trader, trainer, triathlete, vocalist, violinist, "
    "wrestler, writer, zoologist"
)

# What a question may ask for by name, and the words its answer is made of.
WORDS_BY_KIND: dict[str, tuple[str, ...]] = {
    "sport": SPORTS, "medium": MEDIA, "media": MEDIA, "party": PARTIES, "position": POSITIONS, "state": STATES,
    "country": COUNTRIES, "language": LANGUAGES, "gender": GENDERS, "nationality": NATIONALITIES,
}  # fmt: skip
# Here the list only shows that a phrase is of the kind; the answer is the whole phrase.
EXAMPLES_BY_KIND: dict[str, tuple[str, ...]] = {
    "genre": GENRES, "music": GENRES, "profession": OCCUPATIONS + SPORTS, "occupation": OCCUPATIONS + SPORTS,
    "job": OCCUPATIONS + SPORTS,
}  # fmt: skip

_EXPRESSIONS: dict[tuple[str, ...], re.Pattern[str]] = {}


def word_pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    """Any of these words, the longest first, as whole words in any case."""
    if words not in _EXPRESSIONS:
        _EXPRESSIONS[words] = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, words))})s?(?!\w)", re.I)
    return _EXPRESSIONS[words]


# What a text says a thing is: "The Grey Ferry is a 1979 Danish film". Things of one name differ in it.

LONGEST_DEFINITION = 140  # characters of what defines; after that a text tells other things
_IS = re.compile(r"(?: ?\([^()]{0,120}\))?,? (?:is|was|are|were) (?:an?|the|one of)\b")
_STOP = re.compile(r"(?<=[a-z\d)]{2}) ?\.(?: |$)")
_YEAR = re.compile(r"\b(?:1\d{3}|20\d\d)\b")
_PLACES = tuple(dict.fromkeys((*NATIONALITIES, *STATES, *COUNTRIES)))
_KINDS = tuple(dict.fromkeys((*MEDIA, *OCCUPATIONS, *SPORTS)))


class Definition(NamedTuple):
    years: frozenset[str]
    places: frozenset[str]
    kinds: frozenset[str]


@lru_cache(maxsize=512)
def find_definition(subject: str, text: str, answer: str) -> Definition | None:
    """Of the subject, less the answer, which may be part of it; None where a text does not define it."""
    own = stems(subject)
    for found in _IS.finditer(text) if own else ():
        if own[-1] in stems(text[max(0, found.start() - 60) : found.start()])[-1:]:
            stop = _STOP.search(text, found.end())
            end = min(stop.start() if stop else len(text), found.end() + LONGEST_DEFINITION)
            phrase = text[found.end() : end].replace(answer, " ")
            return Definition(
                frozenset(_YEAR.findall(phrase)), _find_hit_stems(_PLACES, phrase), _find_hit_stems(_KINDS, phrase)
            )
    return None


def _find_hit_stems(known: tuple[str, ...], phrase: str) -> frozenset[str]:
    return frozenset(stem for hit in word_pattern(known).findall(phrase) for stem in stems(fold(hit)))


def definitions_differ(left: Definition | None, right: Definition | None) -> bool:
    """Whether both tell a year, a place or a kind and have none in common."""
    return bool(left and right) and any(a and b and not a & b for a, b in zip(left or (), right or (), strict=True))


# What a pointed question wants: the kind of thing, of what, and the words that lead to it.

PLAIN_WORDS = 8
MOST_WORDS = 30  # of a question; a longer one is no pointed question

Kind = Literal["date", "number", "name", "place", "class", "other"]  # other: what the reader alone can tell
Cues = tuple[tuple[str, frozenset[str]], ...]


class AnswerSpec(NamedTuple):
    kind: Kind
    noun: str  # what is asked for, as in "which sport"
    subject: str  # as the question spells it; empty where nothing is named
    cues: Cues  # stems of the question that stand near an answer, and what says the same
    question: str
    loose: frozenset[str] = frozenset()  # stems that will do where nothing better stands
    against: frozenset[str] = frozenset()  # stems that tell of something else where they stand nearer than a cue
    needs: frozenset[str] = frozenset()  # stems of which the sentence of an answer has one
    asked: str = ""  # the question as it was spelled

    @property
    def is_plain(self) -> bool:
        """Whether rules are asked before the reader. They tell documents that disagree more carefully: of the questions
        of so few words in RAMDocs .31 are answered by what is right and nothing else, and .21 by the reader alone."""
        return self.kind != "other" and len(self.question.split()) <= PLAIN_WORDS

    @property
    def question_stems(self) -> frozenset[str]:
        """Stems of the question's own words of asking."""
        return frozenset(stems(self.question))

    @property
    def cue_stems(self) -> frozenset[str]:
        return frozenset().union(*({own} | alike for own, alike in self.cues))

    @property
    def words(self) -> tuple[str, ...]:
        """Those that an answer has where they are known: every sport is one of a list."""
        return WORDS_BY_KIND.get(self.noun, ())


_DATE = re.compile(r"\bwhen\b|\b(?:what|which) (?:year|date|day|month|decade|century)\b|\bdate\b|\byear of\b")
_ASKED = re.compile(r"\b(?:who(?:m|se)?|which|what|when|where|how (?:many|much|long|old|far|often|tall|high|fast))\b")
_NUMBER = re.compile(
    r"\bhow (?:many|much|old|tall|high|long|large|big|far|deep|wide|heavy|fast)\b|\bpopulation\b|"
    r"\b(?:number|size|height|length|area|age|income|cost|price|budget|distance|weight|capacity|speed|value|amount|"
    r"elevation|depth|revenue|salary|percentage|share) (?:of|in|for|at)\b|"
    r"\b(?:dividend|turnover|dose|dosage|net (?:profit|income|loss|debt)|revenue)\b"
)
_COUNT = re.compile(r"^how (?:many|much)\b")
_PERSON = re.compile(r"\bwho(?:m|se)?\b")
_PLACE = re.compile(
    r"^where\b|\b(?:which|what) (?:city|town|village|state|country|county|region|province|district|continent|place|"
    r"island)\b|\b(?:birthplace|location|headquarters|capital) of\b|\bthe (?:region|country|state|city|county) of\b"
)
_NAMED = re.compile(
    r"\b(?:name (?:of|for)|stand for|operated by|(?:which|what) (?:private |main |type of )?"
    r"(?:line|airline|operator|company|conflict|war|aircraft|league|team|club|channel|label|network|river|school|"
    r"university|band|group|book|album|song|film|award|publisher|manufacturer|studio))\b"
)
_CLASS = re.compile(
    r"\b(?:(?:what|which) (?:is|was|are|were|kind|type|sort|sport|genre|profession|party|political|"
    r"position|language|medium|gender|format|rank|nationality|religion|instrument|style)|which type)\b|"
    r"\bwhat do(?:es)? .*\b(?:stand for|refers? to|mean)\W*$"
)
_WAYS: tuple[tuple[re.Pattern[str], Kind], ...] = (
    (_DATE, "date"), (_NUMBER, "number"), (_PERSON, "name"), (_PLACE, "place"), (_NAMED, "name"), (_CLASS, "class"),
)  # fmt: skip
# The thing asked for is known by one of these; "what is the mood in Ostrey" wants no phrase that could be told.
_MORE_KINDS = (
    "institution function activity rank format unit transportation style religion instrument purpose refers refer mean "
    "stand type kind"
)
_KNOWN = frozenset((*WORDS_BY_KIND, *EXAMPLES_BY_KIND, *_MORE_KINDS.split()))
_COMPARED = re.compile(
    r"\bexceed(?:s|ed)?\b|\b(?:more|less|fewer|better|worse|(?:bigg|larg|small|high|low|long|short|old|young|new|tall|deep|fast|slow|cheap|"
    r"strong|rich|safe|great|heavi|wealthi|near|clos)e?r)\b|\b(?:who|which|what)\b.*,? (?:\S+ )?or \S+"
)
_UNSAID = re.compile(r"\bknown for\b|\b(?:what|which) (?:did|do|does|has|have|had|can|could|will|would|should)\b")

_OPEN = re.compile(
    r"\b(?:why|how (?:do|does|did|is|are|was|were|can|could|should|will|would|has|have)|compare|explain|describe|"
    r"overview|differ(?:s|ent|ence|ences)?|summari[sz]e|advantages|effects?|impacts?|causes?|reasons?|implications|"
    r"arguments|evidence|state of the art|trends?|known about|figures are given)\b|\b(?:what|when|who|where|which)\b"
    r".*\band (?:what|when|who|where|which|how|why)\b"
)
_NOUN = re.compile(
    r"\b(?:what|which) (?:is the |was the |are the )?(?:primary |main |political |broadcast |total |estimated |"
    r"modern-day |common |historical |current )*(?:type of |kind of |sort of )?([a-z-]+)"
)
_QUOTED = re.compile(r"[\"“”]([^\"“”]+)[\"“”]")
_NAME = re.compile(
    r"(?:(?<=\s)|^)(?:[A-Z0-9][\w’'.&-]*)"
    r"(?:,? (?:of|the|de|van|von|and|for|in|a|an|to|with|upon)(?= (?:(?:the|a) )?[A-Z0-9])|,? [A-Z0-9][\w’'.&-]*)*"
)
_IN_YEAR = re.compile(r",? (?:in|for|during|of|by) (?:19|20)\d\d$")
_OFFICE = re.compile(r"C[EFOT]O")
_ASKING = frozenset(
    "what when who whom whose where which how in on at is was are were did does do the a an of for to by with from "
    "according".split()
)

# What an answer may say where a question asks so: "when was it established" is answered by "it was founded in".
_ALIKE = {
    "establish found form create organize organise incorporate launch raise institute start": "established founded "
    "founding formed created launched inaugurated incorporated organized organised instituted constituted chartered "
    "opened started began raised activated",
    "build construct erect": "built constructed erected completed construction building dating dates",
    "release publish issue": "released issued published release",
    "open": "opened opening inaugurated",
    "born birth": "born birth birthdate b",
    "die death": "died death dies d",
    "take place hold": "took place held fought occurred",
    "begin start": "began begun started commenced",
    "collapse fall": "collapse collapsed fell fall",
    "ceo": "chief executive",
    "revenue turnover": "revenue revenues sales turnover",
    "profit": "profit profits earnings income",
    "chief executive": "ceo chief executive",
    "become": "became succeeded inherited appointed created",
    "serve": "served serving tenure office",
    "broadcast air": "aired premiered debuted broadcast",
    "introduce": "introduced introduction replaced adopted",
    "expand": "expanded widened expansion dualled",
    "population": "population inhabitants people residents populace",
    "direct director": "director directed directs directing",
    "artist singer": "artist performed recorded singer band album song single ep musician",
    "compose composer": "composer composed wrote written music symphony work piece quintet quartet",
    "author write writer": "author wrote written writer novel book essay",
    "creator create": "creator created written directed developed album novel",
    "father mother parent": "father mother son daughter",
    "party": "party member elected candidate politician",
    "sport": "sport player played plays club team",
    "conflict war": "war conflict campaign",
    "profession occupation": "profession occupation",
    "husband wife spouse": "husband wife married spouse consort queen",
    "architect design": "architect designed design architects",
    "locate location": "located situated lies",
    "publish": "published newspaper based serving",
    "engine": "engine cc displacement",
    "operate operator": "operated operates operator",
}
_EMPTY = frozenset(
    stems("date year day known associated associate refer term type kind estimated according primary main")
)
_BEGINNINGS = frozenset(
    map(stem, "founded established built opened completed organized formed created began dedicated erected".split())
)
_BEGIN = (
    "establish found form create organize organise incorporate launch raise institute start build construct erect open "
    "begin dedicate complete introduce become"
)
_BEGINNING = _BEGINNINGS | frozenset(map(stem, _BEGIN.split()))
_OF_LIVES = frozenset(map(stem, "born birth die death".split()))
_MEASURES = frozenset(
    map(stem, "revenue profit loss debt dividend turnover income earnings budget salary dose target".split())
)
_SAID = {stem(asked): frozenset(map(stem, said.split())) for group, said in _ALIKE.items() for asked in group.split()}


def parse_question(question: str) -> AnswerSpec | None:
    """None for a question that no short phrase answers."""
    plain = fold(question).strip()
    if parse_pair(question):  # each side is asked for itself
        return None
    runs = []
    for match in _NAME.finditer(question.rstrip("?. ")):
        words = match.group().split()
        while words and fold(words[0]) in _ASKING:
            words.pop(0)
        if len(words) > 2 and _OFFICE.fullmatch(words[0]):  # "CEO of Alba Motors" is no name
            words = words[2:]
        runs.append(" ".join(words).removesuffix("'s").removesuffix("’s").strip(" ,"))
    subject = max((_IN_YEAR.sub("", run) for run in runs), key=len, default="")
    if quoted := _QUOTED.search(question):
        subject = quoted[1].strip(" .,")
    bare = _QUOTED.sub(" ", plain).replace(fold(subject), " ") if subject else plain
    if _OPEN.search(bare) or _COMPARED.search(bare) or len(plain.split()) > MOST_WORDS:
        return None
    own = set(stems(subject)) | _EMPTY
    asked = dict.fromkeys(stem(word) for word in content_words(plain))
    cues = tuple((word, _SAID.get(word, frozenset()) - {word}) for word in asked if word not in own)
    unquoted = _QUOTED.sub(" ", plain)
    # "how many were killed when it fell" asks for no date
    ways = _WAYS if not _COUNT.search(unquoted) else ((_COUNT, "number"),)
    kind = next((kind for pattern, kind in ways if pattern.search(unquoted)), None)
    # "Who was in command when it took off" asks for a person, and "what share voted when" for no date.
    first = _ASKED.search(unquoted)
    if first and kind == "date" and first[0] != "when" and not _DATE.search(unquoted.replace("when", "")):
        kind = next((kind for pattern, kind in ways[1:] if pattern.search(unquoted)), None)
    # What something is may be asked for where that is all, or where what is asked for is known.
    known = any(word.strip("?.,'’") in _KNOWN for word in bare.split())
    if kind is None or (kind == "class" and not known and (cues or _UNSAID.search(bare))):
        if not first:
            return None
        kind = "other"
    # What will do beside the question's own words, what is another matter, and what must be said: when a bridge
    # collapsed is not when it was built, and a dividend is no revenue.
    loose, against, needs = frozenset[str](), frozenset[str](), frozenset[str]()
    said = frozenset().union(*({word} | alike for word, alike in cues))
    if kind == "number":
        needs = needs.union(*({word} | alike for word, alike in cues if word in _MEASURES))
        against = _MEASURES - said if needs else against
    elif kind == "date" and (not cues or said & _BEGINNING):
        loose = _BEGINNINGS
    elif kind == "date" and not said & _OF_LIVES:
        against = _BEGINNING - said
    found = _NOUN.search(plain)
    noun = found[1] if found else ""
    if noun not in WORDS_BY_KIND:
        listed = (word for word in plain.split() if word in WORDS_BY_KIND and stem(word) not in stems(subject))
        noun = next(listed, noun)
    return AnswerSpec(kind, noun, subject, cues, plain, loose, against, needs, question)
