"""Adjectives of nations and languages, which stand ahead of what a person or a work is."""

_ADJECTIVES = (
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
# Longer ones first, as a pattern of alternatives needs them.
NATIONALITIES = tuple(sorted(_ADJECTIVES.split(", "), key=lambda word: (-len(word), word)))
