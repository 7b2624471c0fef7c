"""Words of which one sentence may have one and not the other where they speak of the same."""

_PAIRS = (
    "young/old young/elderly new/old early/late earlier/later public/private domestic/foreign local/foreign "
    "national/international male/female man/woman men/women boy/girl boys/girls father/mother son/daughter "
    "sons/daughters brother/sister brothers/sisters husband/wife uncle/aunt king/queen actor/actress he/she "
    "his/her married/divorced married/unmarried success/failure success/flop successful/failed succeeded/failed "
    "managed/failed popular/obscure professional/amateur major/minor large/small big/small huge/tiny great/small "
    "long/short tall/short high/low deep/shallow wide/narrow thick/thin heavy/light open/closed opened/closed "
    "opening/closing begin/end begins/ends began/ended started/ended started/stopped beginning/end start/finish "
    "start/end supported/opposed support/oppose supporter/opponent supporters/opponents accepted/rejected "
    "accept/reject approved/rejected confirmed/denied admitted/denied positive/negative optimistic/pessimistic "
    "strong/weak good/bad good/poor best/worst better/worse easy/difficult easy/hard simple/complex "
    "possible/impossible legal/illegal hot/cold warm/cool wet/dry black/white dark/light left/right left/joined "
    "left/entered left/arrived born/died birth/death alive/dead arrived/departed arrival/departure entered/left "
    "entered/exited north/south northern/southern northeast/southwest northwest/southeast east/west "
    "eastern/western urban/rural fast/slow quick/slow quickly/slowly famous/unknown included/excluded "
    "including/excluding inside/outside internal/external inner/outer upper/lower top/bottom front/back "
    "front/rear over/under above/below before/after up/down with/without always/never often/rarely often/seldom "
    "usually/rarely all/none all/some every/some most/few many/few more/less more/fewer most/least "
    "majority/minority all/most all/many all/several every/most each/some always/often always/usually "
    "always/sometimes never/sometimes all/half entirely/partly fully/partly both/neither everyone/nobody "
    "everything/nothing increase/decrease increases/decreases increased/decreased increasing/decreasing rise/fall "
    "rises/falls rose/fell rising/falling grew/shrank growth/decline growing/shrinking gain/loss gains/losses "
    "gained/lost won/lost win/lose winner/loser victory/defeat beat/lost profit/loss profits/losses "
    "surplus/deficit expand/shrink expanded/shrank expanded/contracted higher/lower highest/lowest larger/smaller "
    "largest/smallest greater/smaller biggest/smallest longer/shorter longest/shortest older/younger "
    "oldest/youngest oldest/newest first/last former/current former/present former/latter ancient/modern "
    "past/future past/present permanent/temporary full/empty full/partial maximum/minimum buy/sell bought/sold "
    "buyer/seller buyers/sellers import/export imports/exports imported/exported allowed/banned "
    "allowed/prohibited permitted/prohibited guilty/innocent convicted/acquitted true/false right/wrong "
    "safe/dangerous rich/poor wealthy/poor cheap/expensive hired/fired appointed/dismissed attack/defend "
    "attacked/defended offense/defense offensive/defensive love/hate loved/hated friend/enemy ally/enemy "
    "allies/enemies peace/war liberal/conservative democratic/republican democrat/republican "
    "democrats/republicans civilian/military civil/military natural/artificial active/inactive day/night "
    "morning/evening summer/winter autumn/spring home/away indoor/outdoor indoors/outdoors teacher/student "
    "teachers/students parent/child parents/children employer/employee employers/employees doctor/patient "
    "doctors/patients lender/borrower debtor/creditor strengthened/weakened improved/worsened widened/narrowed "
    "accelerated/slowed raised/lowered raised/cut boosted/cut upward/downward agree/disagree agreed/disagreed "
    "agreed/refused same/different similar/different equal/unequal separate/joint together/apart near/far "
    "close/distant majority/fraction sufficient/insufficient built/demolished built/destroyed created/destroyed "
    "constructed/demolished founded/dissolved established/abolished established/dissolved launched/scrapped "
    "released/withdrawn published/withdrawn lent/borrowed remembered/forgot praised/criticized praised/criticised "
    "acclaim/criticism praise/criticism voluntary/mandatory optional/mandatory single/married single/multiple "
    "individual/collective reduced/increased reduce/increase reduced/raised cut/raise cuts/raises declined/rose "
    "declined/increased dropped/rose proves/suggests proved/suggested minimum/maximum since/until"
)


def _table() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for pair in _PAIRS.split():
        left, right = pair.split("/")
        found.setdefault(left, set()).add(right)
        found.setdefault(right, set()).add(left)
    return {word: frozenset(others) for word, others in found.items()}


OPPOSITES = _table()
