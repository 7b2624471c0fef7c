"""Words that tell what kind of thing a phrase names: sports, works, countries and the like.

Lists, not learned: each is closed or nearly so, and what is missing from one only makes an answer less sure.
"""

import re


def _spelled(text: str) -> tuple[str, ...]:
    return tuple(
        sorted({word.strip() for word in text.split(",") if word.strip()}, key=lambda word: (-len(word), word))
    )


SPORTS = _spelled(
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
MEDIA = _spelled(
    "short film, documentary film, television film, film, movie, television series, tv series, television show, "
    "miniseries, sitcom, telenovela, web series, soap opera, short story, graphic novel, novella, novel, comic book, "
    "comic, comics, manga, anime, poetry, poem, play, musical, opera, ballet, book, magazine, newspaper, journal, "
    "studio album, live album, compilation album, album, song, single, ep, soundtrack, video game, board game, card "
    "game, role-playing game, game, radio drama, radio, painting, sculpture, photography, print, podcast, essay"
)
PARTIES = _spelled(
    "democratic party, democratic-republican, democratic, democrat, republican party, republican, whig, federalist, "
    "labour party, labor party, labour, labor, conservative party, conservative, progressive conservative, "
    "liberal-progressives, liberal-progressive, liberal party, liberal democrats, liberal democrat, liberal, tory, "
    "green party, greens, independent, libertarian, socialist, communist, social democrat, new democratic party, "
    "national party, nationalist, country party, unionist, populist, progressive"
)
POSITIONS = _spelled(
    "goalkeeper, centre-back, full-back, centre half, wing half, midfielder, striker, winger, defender, forward, "
    "goaltender, defenceman, defenseman, quarterback, running back, wide receiver, tight end, linebacker, cornerback, "
    "defensive back, defensive end, defensive tackle, offensive tackle, offensive lineman, fullback, halfback, "
    "safety, kicker, punter, guard, centre, center, tackle, pitcher, catcher, shortstop, first baseman, second "
    "baseman, third baseman, outfielder, infielder, batsman, bowler, wicket-keeper, all-rounder, prop, hooker, lock, "
    "flanker, fly-half"
)
STATES = _spelled(
    "alabama, alaska, arizona, arkansas, california, colorado, connecticut, delaware, florida, georgia, hawaii, "
    "idaho, illinois, indiana, iowa, kansas, kentucky, louisiana, maine, maryland, massachusetts, michigan, "
    "minnesota, mississippi, missouri, montana, nebraska, nevada, new hampshire, new jersey, new mexico, new york, "
    "north carolina, north dakota, ohio, oklahoma, oregon, pennsylvania, rhode island, south carolina, south dakota, "
    "tennessee, texas, utah, vermont, virginia, washington, west virginia, wisconsin, wyoming, new south wales, "
    "queensland, victoria, south australia, western australia, tasmania, bavaria, saxony, hesse, kerala, tamil nadu, "
    "karnataka, maharashtra, gujarat, punjab, bihar, west bengal, ontario, quebec, british columbia, alberta, "
    "manitoba"
)
COUNTRIES = _spelled(
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
TONGUES = _spelled(  # adjectives of nations and languages, which stand ahead of what a person or work is
    "afghan, african, african-american, albanian, american, arab, arabic, argentine, argentinian, armenian, assamese, "
    "australian, austrian, belgian, bengali, bosnian, brazilian, british, bulgarian, burmese, canadian, cantonese, "
    "catalan, chilean, chinese, colombian, croatian, cuban, czech, danish, dutch, egyptian, english, estonian, "
    "ethiopian, european, filipino, finnish, flemish, french, georgian, german, ghanaian, greek, gujarati, hebrew, "
    "hindi, hungarian, icelandic, indian, indonesian, iranian, iraqi, irish, israeli, italian, jamaican, japanese, "
    "jewish, kannada, kenyan, korean, latin, latvian, lebanese, lithuanian, malay, malayalam, malaysian, mandarin, "
    "marathi, mexican, moroccan, nepali, new zealand, nigerian, north american, norwegian, pakistani, persian, "
    "peruvian, polish, portuguese, punjabi, romanian, russian, scottish, serbian, slovak, slovenian, south african, "
    "south korean, spanish, sri lankan, swedish, swiss, syrian, taiwanese, tamil, telugu, thai, turkish, ukrainian, "
    "urdu, vietnamese, welsh"
)
LANGUAGES = _spelled(
    "arabic, assamese, bengali, bhojpuri, bulgarian, burmese, cantonese, catalan, chinese, croatian, czech, danish, "
    "dutch, english, estonian, filipino, finnish, french, gaelic, german, greek, gujarati, hebrew, hindi, hungarian, "
    "icelandic, indonesian, irish, italian, japanese, kannada, korean, latin, latvian, lithuanian, malay, malayalam, "
    "mandarin, marathi, nepali, norwegian, odia, persian, polish, portuguese, punjabi, romanian, russian, sanskrit, "
    "serbian, sinhala, slovak, slovenian, spanish, swahili, swedish, tagalog, tamil, telugu, thai, tulu, turkish, "
    "ukrainian, urdu, vietnamese, welsh, yiddish, zulu"
)
GENDERS = _spelled("all-boys, all-girls, boys, girls, male, female, coeducational, co-educational, mixed, men, women")

GENRES = _spelled(
    "drama, comedy, romantic comedy, thriller, erotic thriller, horror, film noir, documentary, western, action, "
    "adventure, fantasy, science fiction, mystery, crime, romance, biography, biographical, musical, animation, war, "
    "satire, tragedy, farce, historical, rock, pop, jazz, blues, folk, country, hip hop, hip-hop, rap, r&b, soul, "
    "funk, disco, dance, electronic, house, techno, metal, death metal, heavy metal, punk, reggae, gospel, classical, "
    "opera, indie, alternative, ambient, non-fiction, memoir, autobiography, novel, poetry, essay, reality, sitcom, "
    "soap opera"
)
OCCUPATIONS = _spelled(
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
OF_KIND: dict[str, tuple[str, ...]] = {
    "sport": SPORTS, "medium": MEDIA, "media": MEDIA, "party": PARTIES, "position": POSITIONS, "state": STATES,
    "country": COUNTRIES, "language": LANGUAGES, "gender": GENDERS, "nationality": TONGUES,
}  # fmt: skip
# Here the list only shows that a phrase is of the kind; the answer is the whole phrase.
SHOWN_BY: dict[str, tuple[str, ...]] = {
    "genre": GENRES, "music": GENRES, "profession": OCCUPATIONS + SPORTS, "occupation": OCCUPATIONS + SPORTS,
    "job": OCCUPATIONS + SPORTS,
}  # fmt: skip

_EXPRESSIONS: dict[tuple[str, ...], re.Pattern[str]] = {}


def said(words: tuple[str, ...]) -> re.Pattern[str]:
    """Any of these words, the longest first, as whole words in any case."""
    if words not in _EXPRESSIONS:
        _EXPRESSIONS[words] = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, words))})s?(?!\w)", re.I)
    return _EXPRESSIONS[words]
