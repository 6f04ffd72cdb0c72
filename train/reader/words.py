"""Word lists for edits and rewordings, as data, and the inflection of the verbs in them."""

import re

IRREGULAR = {  # base: (past, participle)
    "begin": ("began", "begun"), "get": ("got", "got"), "build": ("built", "built"), "buy": ("bought", "bought"), "sell": ("sold", "sold"),
    "lose": ("lost", "lost"), "win": ("won", "won"), "keep": ("kept", "kept"), "send": ("sent", "sent"), "give": ("gave", "given"), "take": ("took", "taken"),
    "write": ("wrote", "written"), "read": ("read", "read"), "find": ("found", "found"), "show": ("showed", "shown"), "hide": ("hid", "hidden"),
    "set": ("set", "set"), "leave": ("left", "left"), "make": ("made", "made"), "choose": ("chose", "chosen"), "teach": ("taught", "taught"),
    "lead": ("led", "led"), "beat": ("beat", "beaten"), "pay": ("paid", "paid"), "lend": ("lent", "lent"), "dim": ("dimmed", "dimmed"), "put on": ("put on", "put on"), "beat": ("beat", "beaten"), "run": ("ran", "run"), "rise": ("rose", "risen"), "fall": ("fell", "fallen"),
    "grow": ("grew", "grown"), "hold": ("held", "held"), "bring": ("brought", "brought"), "spend": ("spent", "spent"), "tell": ("told", "told"),
    "say": ("said", "said"), "speak": ("spoke", "spoken"), "overwrite": ("overwrote", "overwritten"), "override": ("overrode", "overridden"),
    "become": ("became", "become"), "come": ("came", "come"), "go": ("went", "gone"), "know": ("knew", "known"), "put": ("put", "put"), "split": ("split", "split"),
    "draw": ("drew", "drawn"), "see": ("saw", "seen"), "shrink": ("shrank", "shrunk"), "let": ("let", "let"), "cut": ("cut", "cut"), "forget": ("forgot", "forgotten"),
    "forbid": ("forbade", "forbidden"), "mean": ("meant", "meant"), "meet": ("met", "met"), "hit": ("hit", "hit"), "hurt": ("hurt", "hurt"), "shut": ("shut", "shut"), "feed": ("fed", "fed"),
    "drive": ("drove", "driven"), "eat": ("ate", "eaten"), "drink": ("drank", "drunk"), "throw": ("threw", "thrown"), "sing": ("sang", "sung"), "withdraw": ("withdrew", "withdrawn"),
}
DOUBLING = {"stop", "ship", "map", "drop", "skip", "wrap", "plan", "permit", "omit", "submit", "get", "set", "begin", "run", "win", "put", "split", "let", "cut", "forget", "refer", "occur",
            "forbid", "prefer", "transfer", "control", "commit", "admit", "hit", "shut", "unset", "dim", "zip", "trim", "scan", "ban", "log", "tag", "debug", "grab", "plug"}


def inflect(verb):
    """Return base, third person, gerund, past and participle; a particle ("turn on") stays behind."""
    head, _, tail = verb.partition(" ")
    tail = " " + tail if tail else ""
    double = head[-1] if head in DOUBLING else ""
    if head in IRREGULAR:
        past, part = IRREGULAR[head]
    elif head.endswith("e"):
        past = part = head + "d"
    elif re.search(r"[^aeiou]y$", head):
        past = part = head[:-1] + "ied"
    else:
        past = part = head + double + "ed"
    third = head[:-1] + "ies" if re.search(r"[^aeiou]y$", head) else head + ("es" if re.search(r"(?:s|x|z|ch|sh|o)$", head) else "s")
    gerund = head[:-1] + "ing" if head.endswith("e") and not head.endswith(("ee", "oe", "ye")) else head + double + "ing"
    return tuple(w + tail for w in (head, third, gerund, past, part))


def inflected_pairs(pairs):
    table = {}
    for a, b in pairs:
        for x, y in zip(inflect(a), inflect(b)):
            table.setdefault(x, []).append(y)
    return table


def pairs_of(text):
    return [tuple(p.split("/")) for p in re.split(r",\s*", squeeze(text)) if p]


def squeeze(text):
    return re.sub(r"\s+", " ", text).strip()


# Verbs that may be replaced by their partner, in every inflected form but those of AMBIGUOUS_FORMS.
VERB_SYNONYMS = pairs_of(
    """
    begin/start, obtain/get, permit/allow, display/show, delete/remove, require/need, assist/help, purchase/buy, modify/change, alter/change, utilize/use, utilise/use,
    terminate/end, commence/begin, commence/start, demonstrate/show, construct/build, attempt/try, retrieve/fetch, receive/get, select/choose, ensure/guarantee,
    locate/find, inform/tell, notify/inform, verify/check, generate/produce, convert/transform, eliminate/remove, indicate/show, acquire/obtain, reside/live,
    depart/leave, assert/claim, occur/happen, halt/stop, cease/stop, reveal/show, prohibit/forbid, forbid/prohibit, erase/delete, omit/leave out, launch/start,
    assault/attack, collect/gather, combine/merge, finish/complete, decline/refuse, establish/found, murder/kill, injure/hurt, consume/use up, possess/own, mend/repair,
    fix/repair
    """
)
AMBIGUOUS_FORMS = set(
    """
    assault assaults attempt attempts combine decline declined declines display displays establish finish finished finishes fix fixed halt indicated launch launched mend
    murder murders omitted purchase purchases terminated
    """.split()
)
# Words and phrases that may be replaced by their partner.
WORD_SYNONYMS = pairs_of(
    """
    approximately/about, frequently/often, often/frequently, usually/normally, normally/usually, rapidly/quickly, quickly/rapidly, immediately/at once, currently/at
    present, subsequently/later, previously/earlier, primarily/mainly, mainly/chiefly, sufficient/enough, numerous/many, several/a number of, physician/doctor,
    physicians/doctors, automobile/car, film/movie, films/movies, entire/whole, prior to/before, in order to/to, due to/because of, because of/due to, owing to/because
    of, in the event of/in case of, for example/for instance, for instance/for example, e.g./for example, i.e./that is, annually/every year, monthly/every month,
    daily/every day, weekly/every week, yearly/every year, mandatory/required, compulsory/mandatory, impossible/not possible, obsolete/out of date, unable to/not able to,
    begins with/starts with, ends with/finishes with, located in/situated in, at the same time/simultaneously, simultaneously/at the same time, citizens/nationals,
    residents/inhabitants, inhabitants/residents, attorney/lawyer, lawyer/attorney, remuneration/pay, twice/two times, a dozen/12, fortnight/two weeks, per year/a year,
    per day/a day, per week/a week, per month/a month, each year/every year, each day/every day, roughly/approximately, principal/main, as soon as/once, provided that/if,
    in total/altogether, the majority of/most, lots of/many, amongst/among, whilst/while, is able to/can, are able to/can, has the ability to/can, is required to/must,
    are required to/must, is permitted to/may, are permitted to/may, consists of/is made up of, consist of/are made up of, comprises/consists of, throughout/all through,
    beneath/under, underneath/under, directory/folder, directories/folders, nearly/almost, almost/nearly, although/though, movie/film
    """
)
VERB_SYNONYM_TABLE = {k: v for k, v in inflected_pairs(VERB_SYNONYMS).items() if k not in AMBIGUOUS_FORMS}
WORD_SYNONYM_TABLE = dict(WORD_SYNONYMS)

# Verbs with their opposites; every inflected form is used.
VERB_ANTONYMS = pairs_of(
    """enable/disable, increase/decrease, include/exclude, accept/reject, allow/forbid, permit/prohibit, add/remove, open/close, start/stop, begin/end, raise/lower, 
    install/uninstall, encrypt/decrypt, compress/decompress, lock/unlock, expand/shrink, succeed/fail, pass/fail, import/export, upload/download, load/unload, attach/detach, 
    connect/disconnect, mount/unmount, hide/show, create/delete, insert/delete, append/prepend, push/pull, read/write, send/receive, lend/borrow, buy/sell, win/lose, arrive/depart, 
    improve/worsen, rise/fall, gain/lose, support/oppose, agree/disagree, strengthen/weaken, encourage/discourage, approve/reject, appear/disappear, love/hate, like/dislike, 
    preserve/discard, keep/discard, remember/forget, confirm/deny, merge/split, activate/deactivate, allocate/free, acquire/release, grow/shrink, widen/narrow, 
    accelerate/slow, simplify/complicate, inherit/override, register/unregister, subscribe/unsubscribe, follow/precede, encode/decode, serialize/deserialize, escape/unescape, 
    admit/deny, attack/defend, teach/learn, praise/criticize, promote/demote, hire/dismiss, enter/leave, invest/divest, ban/allow, protect/endanger, prevent/cause, heat/cool, melt/freeze, 
    marshal/unmarshal, quote/unquote, sign/unsign, block/unblock, mute/unmute, zip/unzip, pack/unpack, wrap/unwrap, ignore/honour"""
)
WORD_ANTONYMS = pairs_of(
    """minimum/maximum, largest/smallest, highest/lowest, longest/shortest, oldest/youngest, oldest/newest, earliest/latest, best/worst, biggest/smallest, fastest/slowest, strongest/weakest, 
    larger/smaller, higher/lower, longer/shorter, older/younger, older/newer, earlier/later, better/worse, bigger/smaller, faster/slower, stronger/weaker, richer/poorer, greater/smaller, deeper/shallower, 
    more/less, more/fewer, most/least, deprecated/recommended, required/optional, mandatory/optional, possible/impossible, legal/illegal, valid/invalid, visible/hidden, public/private, 
    internal/external, local/remote, empty/full, safe/unsafe, successful/unsuccessful, success/failure, common/rare, present/absent, expensive/cheap, heavy/light, hot/cold, 
    rich/poor, strong/weak, wide/narrow, deep/shallow, early/late, positive/negative, active/inactive, complete/incomplete, correct/incorrect, dependent/independent, direct/indirect, 
    equal/unequal, explicit/implicit, explicitly/implicitly, directly/indirectly, static/dynamic, temporary/permanent, synchronous/asynchronous, signed/unsigned, upper/lower, uppercase/lowercase, 
    left/right, inside/outside, above/below, top/bottom, first/last, next/previous, ascending/descending, horizontal/vertical, input/output, incoming/outgoing, 
    northern/southern, eastern/western, north/south, east/west, northwest/southeast, northeast/southwest, male/female, men/women, man/woman, boys/girls, boy/girl, husband/wife, father/mother, son/daughter, sons/daughters, brother/sister, king/queen, 
    win/loss, victory/defeat, profit/loss, increase/decrease, rise/fall, gain/loss, advantage/disadvantage, advantages/disadvantages, supporters/opponents, 
    always/never, often/rarely, frequently/rarely, usually/seldom, before/after, with/without, everything/nothing, everyone/nobody, many/few, inclusive/exclusive, recursive/non-recursive, 
    case-sensitive/case-insensitive, mutable/immutable, strict/lax, true/false, on/off, urban/rural, ancient/modern, domestic/foreign, majority/minority, beginning/end, arrival/departure, 
    birth/death, born/dead, war/peace, acidic/alkaline, solid/liquid, wet/dry, thick/thin, hard/soft, popular/unpopular, famous/unknown, day/night, summer/winter, spring/autumn, 
    asset/liability, import/export, supply/demand, debtor/creditor, voluntary/compulsory, lawful/unlawful, confidential/public, guilty/innocent, liable/not liable, entitled/not entitled, 
    able/unable, likely/unlikely, known/unknown, necessary/unnecessary, available/unavailable, compatible/incompatible, stable/unstable, ordered/unordered, reliable/unreliable, sufficient/insufficient, 
    similar/different, effective/ineffective, appropriate/inappropriate, related/unrelated, changed/unchanged, supported/unsupported, used/unused, defined/undefined, expected/unexpected, 
    slowly/quickly, partially/completely, partly/entirely, automatically/manually, temporarily/permanently, correctly/incorrectly, successfully/unsuccessfully, online/offline, 
    upstream/downstream, forward/backward, forwards/backwards, odd/even, senior/junior, major/minor, formal/informal, regular/irregular, amateur/professional, civilian/military, artificial/natural"""
)
# Members of a pair that have too many other meanings to be replaced themselves.
NO_ANTONYM = set(
    """
    active add added adds admit appear approved arrive attached attack attacks ban beginning block blocked blocks boy boys cause caused causes close closed closing cold
    cool day dead deep defined demand direct dry early effective end ends entered enters equal escape even excluding expected export exports fall famous few first follow
    followed following follows foreign forget forgot free freed frees full gain girl girls hard hate heat heavy hot import imports including junior keep keeping keeps
    kept king last late later learn learned learning learns least leave leaves leaving left less light like liked likes liquid load loaded loading loads lock locks lose
    loses loss lost love lower major man many military minor modern more most narrow natural next night odd off on open opening ordered pack packs pass passed passes
    passing peace poor present professional pull push queen quote quoted quotes raise read reading reads received register registers regular related release released
    releases rich right safe senior sent sign signed signing signs slow slowed slows soft solid son sons split spring static stop strict summer supply support supporting
    taught teach teaches teaching thick thin top unknown upper used war wet win winning winter with without woman wrap wrapped wraps write writes writing written wrote
    """.split()
)


def antonym_table():
    table = {}
    verbs = inflected_pairs(VERB_ANTONYMS + [(b, a) for a, b in VERB_ANTONYMS])
    for key, values in verbs.items():
        if key not in NO_ANTONYM:
            table.setdefault(key, []).extend(values)
    for a, b in WORD_ANTONYMS:
        for x, y in ((a, b), (b, a)):
            if x not in NO_ANTONYM:
                table.setdefault(x, []).append(y)
    return {k: sorted(set(v) - {k}) for k, v in table.items()}


ANTONYMS = antonym_table()

# Words of one class: one may be replaced by another to make a statement about another attribute.
COHYPONYMS = [
    w.split(",") for w in squeeze(
        """director,producer,screenwriter,editor,composer;author,editor,translator,illustrator,publisher;president,secretary,treasurer,chairman;mayor,governor,senator;
        novel,play,poem,short story;album,single,song;actor,singer,dancer,comedian;guitarist,drummer,bassist,pianist;painter,sculptor,architect,photographer;
        physicist,chemist,biologist,mathematician;doctor,nurse,dentist,surgeon;teacher,lawyer,engineer,journalist;American,British,French,German,Italian,Spanish,Canadian,Australian,Swedish,Russian,Japanese,Chinese;
        English,French,German,Spanish,Latin,Greek,Dutch;football,basketball,baseball,tennis,hockey,cricket,rugby;red,blue,green,yellow,black,white,purple;
        dog,cat,horse,cow,sheep;bus,train,car,plane,bicycle;river,lake,mountain,island;city,village,county,district;church,castle,museum,hospital,library;university,school,museum;
        gold,silver,bronze,copper;oxygen,nitrogen,hydrogen,carbon;iron,copper,zinc,lead;liver,kidney,heart,lung,brain,stomach;fever,cough,headache,rash,nausea;bacteria,viruses,fungi,parasites;
        height,width,depth,length;weight,height,age;temperature,pressure,humidity;population,area,elevation;price,size,weight;speed,accuracy,cost;name,size,type,owner;
        file,directory,symbolic link,socket;files,directories,links;bytes,characters,lines,words;row,column;rows,columns;key,value;keys,values;table,index,view,trigger;client,server,proxy;
        commit,branch,tag,tree;function,method,type,constant;integer,string,boolean,float;string,slice,map,channel,array;reader,writer;stdin,stdout,stderr;standard input,standard output,standard error;
        user,group,host;username,password,email address;header,footer,body;request,response;source,destination,target;package,module,repository;warning,error,notice;
        kernel,shell,compiler,linker,debugger;thread,process,goroutine;mutex,semaphore,channel;socket,pipe,file;vowel,consonant;prefix,suffix;parent,child,sibling;
        email address,phone number,postal address;name,address,telephone number;cookies,web beacons,log files;advertisers,affiliates,service providers;employees,contractors,agents,directors;
        landlord,tenant,guarantor;buyer,seller;lender,borrower,guarantor;employer,employee;seller,buyer,agent;plaintiff,defendant;licensor,licensee;
        spring,summer,autumn,winter;Monday,Tuesday,Wednesday,Thursday,Friday,Saturday,Sunday;January,February,March,April,June,July,August,September,October,November,December;
        Christianity,Islam,Buddhism,Hinduism,Judaism;breakfast,lunch,dinner;morning,afternoon,evening;eye,ear,nose;arm,leg;hand,foot;
        Africa,Asia,Europe,North America,South America,Australia;France,Germany,Italy,Spain,Poland,Sweden,Austria;London,Paris,Berlin,Rome,Madrid,Vienna;India,China,Japan,Korea,Vietnam;
        Texas,California,Florida,Ohio,Virginia,Georgia;New York,Chicago,Boston,Los Angeles;son,daughter,nephew;uncle,aunt,cousin;drama,comedy,thriller,documentary;king,prince,duke,emperor;army,navy,air force;
        software,hardware,firmware;memory,disk,network;precision,recall,accuracy;training set,test set,development set;verbs,nouns,adjectives;sentence,paragraph,document;accuracy,speed,robustness;encoder,decoder"""
    ).split(";")
]
COHYPONYM_OF = {}
for _group in COHYPONYMS:
    _group = [w.strip() for w in _group]
    for _w in _group:
        COHYPONYM_OF.setdefault(_w, []).append([x for x in _group if x != _w])

# Two parties of a relation: exchanging them reverses who does what.
ROLE_PAIRS = pairs_of(
    """landlord/tenant, buyer/seller, purchaser/vendor, lender/borrower, employer/employee, client/server, sender/recipient, sender/receiver, caller/callee, teacher/student, doctor/patient, parent/child, 
    source/destination, source/target, input/output, reader/writer, producer/consumer, master/slave, host/guest, licensor/licensee, customer/supplier, company/user, kernel/user, 
    plaintiff/defendant, creditor/debtor, insurer/insured, author/editor, husband/wife, father/son, mother/daughter, king/queen, team/opponent, attacker/victim, child process/parent process, children/parents, 
    server/clients, parents/children, students/teachers, employees/employers, patients/doctors, users/administrators, compiler/linker, local/remote, superclass/subclass, base/derived, primary/secondary, 
    first/second, former/latter, old/new, left/right, upper/lower, north/south, east/west, men/women, boys/girls, adults/children, key/value, row/column, rows/columns, bytes/bits, inner/outer, 
    disclosing party/receiving party, Disclosing Party/Receiving Party, contractor/client, contractor/owner, trustee/beneficiary, principal/agent, shipper/carrier, franchisor/franchisee, 
    predators/prey, wheel/axle, government/opposition, interviewer/applicant, coach/players, bank/customer, pupils/teachers, proton/electron, protons/electrons, viruses/bacteria, host/device, upstream/downstream, branch/trunk, child/parent"""
)
SYMMETRIC = re.compile(
    r"\b(?:between|both|either|neither|each other|one another|equal|same|similar|identical|respectively|differ\w*|met|meets?|married|marry|marries|versus|vs|and/or|together|or|like|resembl\w+|correspond\w*|compar\w+|together|alongside|intersect\w*|border\w*|collaborat\w*|exchang\w*|share[sd]?|twin\w*|combin\w+|separat\w+|distinguish\w*)\b",
    re.I,
)
ASYMMETRIC_VERBS = (
    "acquired|bought|purchased|defeated|beat|replaced|succeeded|founded|established|created|wrote|directed|produced|invented|discovered|killed|murdered|attacked|invaded|conquered|employed|hired|taught|trained|influenced|"
    "inspired|criticized|praised|sued|accused|arrested|appointed|nominated|elected|followed|preceded|supported|opposed|joined|left|led|visited|invited|helped|saved|paid|owns?|owned|contains?|includes?|implements?|extends?|"
    "calls?|invokes?|replaces?|overrides?|precedes?|follows?|depends on|relies on|requires?|imports?|wraps?|generates?|produces?|controls?|manages?|funded|sponsored|hosted|rejected|accepted|signed|played|married into|"
    "succeeds|reads|writes to|sends|blames?|blamed|thanked|told|asked|informed|warned|outperforms?|outperformed|surpass(?:ed|es)|exceeds?|exceeded|overtook|inherits from|derives from|consists of|is part of|is a subset of|is based on|was based on|was built on|"
    "is derived from|was derived from|reports? to|belongs to|evolved from|is owned by|was owned by|was founded by|was written by|was directed by|was produced by|was replaced by|was succeeded by|was defeated by|is caused by|was acquired by|is followed by|was followed by|was influenced by|is called by|is implemented by|is controlled by|is named after|was named after"
)
UNIT_GROUPS = [g.split() for g in (
    "seconds minutes hours days weeks months years decades centuries", "second minute hour day week month year", "milliseconds microseconds nanoseconds seconds", "milligrams grams kilograms", "mg g kg", "bytes kilobytes megabytes gigabytes",
    "KB MB GB TB", "KiB MiB GiB", "bits bytes", "metres kilometres", "meters kilometers", "miles kilometres feet", "miles kilometers feet", "feet inches yards", "km miles", "cm mm m", "ms us ns s", "thousand million billion trillion", "hundred thousand million", 
    "dollars euros pounds", "acres hectares", "litres gallons", "liters gallons", "tons pounds kilograms", "MHz GHz kHz", "characters lines words")]
UNIT_OF = {}
for _group in UNIT_GROUPS:
    for _w in _group:
        UNIT_OF.setdefault(_w, []).extend(x for x in _group if x != _w)

NUMBER_WORDS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty".split()
TENS = {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}
ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()
MONTHS = "January February March April May June July August September October November December".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
CONTRACTIONS = pairs_of(
    """does not/doesn't, do not/don't, did not/didn't, is not/isn't, are not/aren't, was not/wasn't, were not/weren't, cannot/can't, can not/can't, could not/couldn't, should not/shouldn't, would not/wouldn't, will not/won't, 
    has not/hasn't, have not/haven't, had not/hadn't, it is/it's, they are/they're, you are/you're, we are/we're, that is a/that's a, there is/there's, must not/mustn't, you will/you'll, it will/it'll, they have/they've, we have/we've"""
)
UNIT_SPELLINGS = pairs_of("km/kilometres, kg/kilograms, cm/centimetres, mm/millimetres, MB/megabytes, KB/kilobytes, GB/gigabytes, ms/milliseconds, mg/milligrams, %/ percent, Hz/hertz, lb/pounds, lbs/pounds, ft/feet, mph/miles per hour, sq mi/square miles")
ABBREVIATIONS = pairs_of(
    """United States/US, United Kingdom/UK, World War II/the Second World War, World War I/the First World War, European Union/EU, United Nations/UN, operating system/OS, central processing unit/CPU, 
    National Aeronautics and Space Administration/NASA, Federal Bureau of Investigation/FBI, World Health Organization/WHO, garbage collector/GC, regular expression/regex, regular expressions/regexes, 
    application programming interface/API, version control system/VCS, natural language processing/NLP, machine translation/MT, New York City/NYC, Los Angeles/L.A., doctor/Dr."""
)
