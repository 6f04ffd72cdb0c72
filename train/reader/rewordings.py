"""Rewordings that keep what a statement says: each changes the words or the order, never the meaning.

A rewording is a function (sentence, context, rng) -> list of sentences. REWORDINGS maps a kind to its function.
They apply only where the result is sure to follow from the sentence; some results say less, none says more.
"""

import re

from edits import AUX, COMMON_STARTS, PARTICIPLE_BEFORE, inflected_choice, lower_first, pick, put, sentence_case
from words import ABBREVIATIONS, CONTRACTIONS, MONTHS, NUMBER_WORDS, UNIT_SPELLINGS, VERB_SYNONYM_TABLE, WORD_SYNONYM_TABLE, inflect

TOKEN = re.compile(r"(?<![\w-])[A-Za-z][\w'-]*(?![\w-])")
PHRASES = sorted((k for k in WORD_SYNONYM_TABLE if " " in k or "." in k), key=len, reverse=True)


ADVERB_OR_ADJECTIVE = {"daily", "weekly", "monthly", "yearly"}


def synonym(s, ctx, rng):
    """Replace each word that has a sure synonym, up to three."""
    spots = []
    for m in TOKEN.finditer(s):
        w = m.group()
        if w == "immediately" and re.match(r" (?:after|before|upon|following|preceding|prior|adjacent|above|below)\b", s[m.end():]):
            continue
        if w in WORD_SYNONYM_TABLE and not (w == "principal" and not s[: m.start()].endswith("the ")):
            if w not in ADVERB_OR_ADJECTIVE or re.match(r"[.,;]| (?:in|on|at|by|from|to|for|with|and|if|when|the)\b", s[m.end():]):
                spots.append((m.start(), m.end(), WORD_SYNONYM_TABLE[w]))
        elif w in VERB_SYNONYM_TABLE and verb_like(s, m):
            choices = VERB_SYNONYM_TABLE[w]
            if len(set(choices)) == 2 and choices[0][:2] == choices[1][:2] and not PARTICIPLE_BEFORE.search(s[: m.start()]):
                continue
            spots.append((m.start(), m.end(), inflected_choice(s, m.start(), choices) or choices[0]))
    for p in PHRASES:
        i = s.find(p)
        if i > 0 and s[i - 1] == " " and not s[i + len(p):i + len(p) + 1].isalnum() and not any(a < i + len(p) and i < b for a, b, _ in spots):
            spots.append((i, i + len(p), WORD_SYNONYM_TABLE[p]))
    spots = [x for x in spots if x[2].lower() not in s.lower()]
    if not spots:
        return []
    rng.shuffle(spots)
    chosen, out = sorted(spots[: rng.randrange(1, 4)], reverse=True), s
    for a, b, new in chosen:
        out = put(out, a, b, new)
    return [out]


def verb_like(s, m):
    """Report whether the word is used as a verb: not after a determiner or adjective, nor before "of"."""
    head, tail = s[: m.start()], s[m.end():]
    if m.start() == 0 or re.search(r"\b(?:the|a|an|of|its|their|his|her|this|that|each|any|no|-|for|by|in|with|and|or|most|more|less|well|newly|as|from) $", head):
        return False
    return bool(re.match(r" (?:the|a|an|all|any|its|their|his|her|to|that|each|some|this|these|those|by|in|from|on|at|two|three|[a-z]+s)\b|[.,]", tail)) and not re.match(r" (?:to|that)\b", tail) or bool(re.match(r" (?:the|a|an|by|all|its)\b", tail))


def contraction(s, ctx, rng):
    out = s
    for a, b in CONTRACTIONS:
        for x, y in ((a, b), (b, a)):
            if x not in out.lower():
                continue
            m = re.search(r"(?<![\w'])" + re.escape(x) + r"(?![\w'])", out, re.I)
            if m and x != "can not" and not m.group().isupper():
                if x in ("it's", "that's a", "there's") or y == "can not":
                    continue
                out = out[: m.start()] + (sentence_case(y) if m.group()[0].isupper() else y) + out[m.end():]
                break
    return [out] if out != s else []


def number_spelling(s, ctx, rng):
    out = s
    for m in reversed(list(re.finditer(r"(?<![\w.,:/-])([2-9]|1[0-2])(?= [a-z]+(?:s|ren|ple)\b)(?! (?:ms|s|hours?:|bits?)\b)", s))):
        if not re.search(r"(?:section|chapter|figure|table|page|version|type|step|level|class|stage|grade|phase|group|argument|column|line|part|item|volume|day|week|chromosome|mode|and|to|in|or|by|than|of|[A-Z]\w*|,) $", s[: m.start()], re.I) or re.search(r"\b(?:in|than|of|by|to) $", s[: m.start()]):
            out = out[: m.start()] + NUMBER_WORDS[int(m.group())] + out[m.end():]
    if out == s:
        for m in reversed(list(re.finditer(r"(?<![\w-])(two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)(?= [a-z]+(?:s|ren|ple)\b)(?![\w-])", s))):
            if m.start() and not re.search(r"\b(?:first|last|the|these|those|or|and) $", s[: m.start()]):
                out = out[: m.start()] + str(NUMBER_WORDS.index(m.group())) + out[m.end():]
    return [out] if out != s else []


def spelling(s, ctx, rng):
    """Other spellings of dates, units, large numbers and well-known abbreviations."""
    out = []
    m = re.search(r"\b(" + "|".join(MONTHS) + r"|May) (\d{1,2}), (\d{4})\b", s)
    if m:
        out.append(s[: m.start()] + f"{m[2]} {m[1]} {m[3]}" + s[m.end():])
    m = re.search(r"\b(\d{1,2}) (" + "|".join(MONTHS) + r"|May) (\d{4})\b", s)
    if m:
        out.append(s[: m.start()] + f"{m[2]} {m[1]}, {m[3]}" + s[m.end():])
    for a, b in UNIT_SPELLINGS if re.search(r"\d", s) else ():
        m = re.search(r"(?<=\d) ?" + re.escape(a.strip()) + r"(?![\w/])", s)
        if m:
            out.append(s[: m.start()] + " " + b.strip() + s[m.end():])
        m = re.search(r"(?<=\d) " + re.escape(b.strip()) + r"\b", s)
        if m:
            out.append(s[: m.start()] + ("%" if a == "%" else " " + a) + s[m.end():])
    for a, b in ABBREVIATIONS:
        if a not in s:
            continue
        m = re.search(r"\b" + re.escape(a) + r"\b(?! [A-Z(])", s)
        if m and b not in s and a != "doctor":
            out.append(s[: m.start()] + b + s[m.end():])
    m = re.search(r"\b(\d{1,3}),000,000\b", s)
    if m:
        out.append(s[: m.start()] + m[1] + " million" + s[m.end():])
    m = re.search(r"(?<=\d),(?=\d{3}\b)", s)
    if m and s.count(",") == 1:
        out.append(s[: m.start()] + s[m.end():])
    m = re.search(r"\b(\d+) per ?cent\b", s)
    if m:
        out.append(s[: m.start()] + m[1] + "%" + s[m.end():])
    return out


SUBORDINATE = re.compile(r"^(If|When|Although|Because|Before|After|While|Once|Unless|Since|Whenever|As soon as|Until|Even if|Even though) ([^,;:]{8,}), ([^;:]+)\.$")
TRAILING = re.compile(r"^([A-Z][^;:]{12,}?),? (if|when|although|because|before|after|unless|once|until|even if|even though|whenever) ((?:the|a|an|it|they|he|she|you|its|this|there|all|any|no|[A-Z])[^;:,]{6,})\.$")


def clause_order(s, ctx, rng):
    if re.search(r"\b(?:otherwise|then|such)\b", s):
        return []
    m = SUBORDINATE.match(s)
    if m and not re.match(r"(?:then|and|but|please|so)\b", m[3]) and not re.search(r",| (?:and|or|but) ", m[3]) and not re.match(r"(?:it|this|they|he|she|these|that)\b", m[3]) or m and m[1] in ("If", "When", "Unless") and re.match(r"(?:you|the|a|an)\b", m[3]) and not re.search(r", (?:and|but|or|which)| but | and ", m[3]):
        return [f"{sentence_case(m[3])} {m[1].lower()} {m[2]}."] if m[1] != "Since" else []
    m = TRAILING.match(s)
    if m and "," not in m[1] and not re.search(r"\b(?:not|never|only|even|see|know|ask\w*|whether|check\w*|wonder\w*|determine\w*|test\w*|especially|except|particularly|and|or|but|shortly|just|immediately|right|long|that|which|who|say\w*|said|out|sure|as|than)\b", m[1]) and not re.search(r" (?:and|but|or) ", m[3]):
        if re.search(r"\b(?:day|year|hour|week|month|minute|second)s?$", m[1]) or re.match(r"(?:[Ii]t|[Tt]hey|[Hh]e|[Ss]he)\b", m[3]) and not re.match(r"(?:It|They|He|She)\b", m[1]):
            return []
        return [f"{sentence_case(m[2])} {m[3]}, {lower_first(m[1])}."]
    return []


PARTICIPLES = "called written created used defined specified stored returned controlled produced published directed founded established discovered designed built replaced owned operated managed provided supported described handled generated read created determined performed developed introduced implemented followed preceded caused acquired won inspired maintained run led formed covered surrounded dominated ignored executed removed added started stopped killed painted composed signed elected appointed approved rejected adopted funded sponsored organized protected released recorded sold".split()
PARTICIPLE_BASE = {}
for _v in """call write create use define specify store return control produce publish direct found establish discover design build replace own operate manage provide support describe handle generate read determine perform develop introduce implement follow precede cause
acquire win inspire maintain run lead form cover surround dominate ignore execute remove add start stop kill paint compose sign elect appoint approve reject adopt fund sponsor organize protect release record sell invent buy purchase destroy conquer teach hire""".split():
    PARTICIPLE_BASE[inflect(_v)[4]] = _v
PASSIVE = re.compile(r"^((?:The |A |An |This |Its |His |Her |Their )?[A-Za-z][\w' -]{1,45}?) (is|are|was|were) (" + "|".join(PARTICIPLE_BASE) + r") by ((?:the |a |an )?[\w' .-]{2,45})\.$")
ACTIVE_PAST = {inflect(v)[3]: inflect(v)[4] for v in PARTICIPLE_BASE.values()}
ACTIVE = re.compile(r"^((?:The )?[A-Z][\w'.-]+(?: [A-Z][\w'.-]+){0,3}) (" + "|".join(ACTIVE_PAST) + r") ((?:the |a |an )[a-z][\w' -]{2,40}|[A-Z][\w'-]+(?: [A-Z][\w'-]+){0,3})( in \d{4})?\.$")


def voice(s, ctx, rng):
    m = PASSIVE.match(s)
    bad = re.compile(r"\b(?:in|on|at|by|which|that|who|and|or|for|with|from|when|as|to|not|using|it|them|default|if|only|is|was|are|were|hand|means|less|during)\b")
    if m and not bad.search(m[4]) and not bad.search(m[1].lower()) and not re.match(r"\d|[A-Z]\w+ing\b", m[4]):
        base = PARTICIPLE_BASE[m[3]]
        plural = re.search(r"s$", m[4]) and not re.search(r"ss$|us$|is$", m[4])
        verb = inflect(base)[3] if m[2] in ("was", "were") else (base if plural else inflect(base)[1])
        if m[2] in ("is", "are") and re.search(r"\b[A-Z]", m[4]) and plural:
            return []
        obj = m[1] if re.match(r"[A-Z]\w* ?[A-Z]", m[1]) or m[1].split()[0] not in COMMON_STARTS else lower_first(m[1])
        return [f"{sentence_case(m[4])} {verb} {obj}."]
    m = ACTIVE.match(s)
    if m and not bad.search(m[3]) and not bad.search(m[1]):
        plural = re.search(r"s$", m[3]) and m[3][0].islower() and not m[3].startswith(("a ", "an "))
        subject = m[1] if not m[1].startswith("The ") else "the " + m[1][4:]
        return [f"{sentence_case(m[3])} {'were' if plural else 'was'} {ACTIVE_PAST[m[2]]} by {subject}{m[4] or ''}."]
    return []


LEADS = re.compile(r"^(?:However|Therefore|Moreover|Furthermore|In addition|Additionally|For example|For instance|Note that|Finally|Thus|Also|In fact|Indeed|Hence|Consequently|Nevertheless|On the other hand|As a result|Similarly|Likewise|In particular|In other words|Of course|Overall|Please note that|That is|Besides|Meanwhile|By contrast|In contrast|Again|Fortunately|Unfortunately|Interestingly|Historically|Instead|So|But|And),? (?=[a-z]|[A-Z])")


def drop_lead(s, ctx, rng):
    m = LEADS.match(s)
    if m and len(s) - m.end() > 20:
        return [sentence_case(s[m.end():])]
    return []


def drop_adverbial(s, ctx, rng):
    """Drop a date or place in front, an aside in brackets, or a non-restrictive clause."""
    out = []
    m = re.match(r"(?:In|On|During|By) (?:(?:early|late|mid-?) ?)?(?:(?:" + "|".join(MONTHS) + r"|May) ?(?:\d{1,2})?,? ?)?(?:1[0-9]|20)\d\d, (?=[a-zA-Z])", s)
    if m and re.search(r"\b(?:was|were|had|did|[a-z]+ed|became|won|led|made|began|took|sold|wrote|built)\b", s[m.end():]) and not re.search(r"\b(?:only|all|most|no|not|still|already|percent|%|first|than|population|total)\b", s):
        out.append(sentence_case(s[m.end():]))
    m = re.search(r" \([^()]{3,60}\)(?=[ ,.])", s)
    if m and not re.search(r"\b(?:except|not|if|unless|only|but|excluding|or)\b|\d", m.group()):
        out.append(s[: m.start()] + s[m.end():])
    m = re.search(r", (?:which|who) (?:is|are|was|were|has|had|can|may|also|[a-z]+s) [^,;:()]{5,70},(?= )", s)
    if m and re.search(r"[a-z]$", s[: m.start()]) and s[: m.start()].count(",") == 0:
        out.append(s[: m.start()] + s[m.end():])
    m = re.search(r", (?:which|who) (?:is|are|was|were|has|had|also|[a-z]+ed) [^;:()]{5,90}\.$", s)
    if m and s[: m.start()].count(",") == 0 and len(s[: m.start()].split()) > 5:
        out.append(s[: m.start()] + ".")
    return out


def half(s, ctx, rng):
    """Keep one of two coordinated clauses where each stands alone."""
    out = []
    if re.search(r"\b(?:not|no|never|neither|nor|only|both|either|if|when|unless|because|whether|while|although|until|than|between|may|should)\b|[;:?]|\brespectively\b", s):
        return out
    m = re.match(r"^([^,]{15,}), and ((?:it|they|he|she|the|this|these|its|his|her|their|there|a|an|[A-Z]\w+) [^,]{12,})\.$", s)
    if m and re.search(r"\b(?:is|are|was|were|has|have|had|can|will|[a-z]+ed)\b", m[1]) and re.search(r"^(?:\w+ ){1,4}(?:is|are|was|were|has|have|had|can|will|[a-z]+ed)\b", m[2]):
        out.append(m[1] + ".")
        if not re.match(r"(?:it|they|he|she|this|these|its|his|her|their|there)\b", m[2]):
            out.append(sentence_case(m[2]) + ".")
    m = re.match(r"^([A-Z][^,]{2,40}?) (is|was|are|were) ((?:\w+ed|located|known) [^,]{4,60}) and (?:is|was|are|were) ([^,]{4,80})\.$", s)
    if m and not re.search(r"\b(?:and|that|which)\b", m[1] + m[3]):
        out += [f"{m[1]} {m[2]} {m[3]}.", f"{m[1]} {m[2]} {m[4]}."]
    m = re.match(r"^([A-Z][^,]{2,45}?) ((?:[a-z]+(?:ed|es)|won|wrote|made|became|led|began|took|sold|built|uses|returns|sets|prints|removes|reads|writes|provides|supports|contains|creates|defines|gives|shows|runs|takes|makes) [^,]{4,70}?),? and ((?:also |then )?(?:[a-z]+ed|returns|sets|prints|won|wrote|made|became|led|began|took|sold|built|removes|reads|writes|provides|supports|contains|creates|defines|gives|shows|runs|takes|makes) [^,]{4,90})\.$", s)
    if m and not re.search(r"\b(?:and|that|which|who|to|it|them|" + AUX + r")\b", m[1] + " " + m[2]) and len(m[1].split()) <= 6:
        out.append(f"{m[1]} {m[2]}.")
        if not re.search(r"\bthen\b|\b(?:it|them)\b", m[3]):
            out.append(f"{m[1]} {re.sub(r'^also ', '', m[3])}.")
    return out


def coordination_order(s, ctx, rng):
    """Turn "A and B" round where the order says nothing."""
    out = []
    if re.search(r"\b(?:respectively|former|latter|first|then|before|after|between|followed|later)\b", s):
        return out
    for m in re.finditer(r"(?<=[a-z,] )((?:the |a |an |its |their )?[a-z][\w-]{2,}) (and|or) ((?:the |a |an |its |their )?[a-z][\w-]{2,})(?=[.,;]| (?:in|to|for|is|are|was|were|from|with|on|by|at)\b)", s):
        a, b = m[1], m[3]
        bad = r"\b(?:it|them|his|her|this|that|more|so|now|up|down|out|back|again|is|was|are|were|not|all|[a-z]+ed|[a-z]+ly|which|who|can|only|also|other|others|one|even|try|go|come)\b"
        if (a.split()[0] in ("the", "a", "an", "its", "their")) != (b.split()[0] in ("the", "a", "an", "its", "their")) or re.search(bad, a + " " + b) or a[-1:] != b[-1:] and not (a.split()[0] == b.split()[0] and " " in a):
            continue
        if re.search(r"(?:\b(?:and|or)|,) $", s[: m.start()]) or re.search(r"\b(?:the|a|an|its|their|of|for|in|by|with|from|on|to|between|or|as) $", s[: m.start()]) is None:
            continue
        if re.match(r" (?:of|in|to|for|from|with|on|by|at)\b", s[m.end():]) and not re.search(r"s$", a):
            continue
        out.append(s[: m.start()] + f"{b} {m[2]} {a}" + s[m.end():])
    m = re.match(r"^([A-Z]\w+(?: [A-Z]\w+)*) and ([A-Z]\w+(?: [A-Z]\w+)*) (are|were|have|had|can) ", s)
    if m:
        out.append(f"{m[2]} and {m[1]} " + s[m.start(3):])
    return out


def arms_order(s, ctx, rng):
    """Turn two arms round together with their values: "x for A and y for B" becomes "y for B and x for A"."""
    m = re.search(r"(?<= )((?:\$|about )?\d[\d.,]*%? (?:[a-z]+ )?(?:for|of|in|to|by) (?:the )?[\w ]{3,25}) and ((?:\$|about )?\d[\d.,]*%? (?:[a-z]+ )?(?:for|of|in|to|by) (?:the )?[\w ]{3,25})(?=[.,;])", s)
    return [s[: m.start()] + f"{m[2]} and {m[1]}" + s[m.end():]] if m else []


DEFINITION = re.compile(r"^(?:The |A |An )?((?:[\w-]+ ){0,3}[\w-]+) (is|are) ((?:the|a|an) (?:[\w-]+ ){1,4}(?:that|which|who|of|for|used|in) [^;:]{8,90})\.$")


def definition(s, ctx, rng):
    m = DEFINITION.match(s)
    if not m or m[2] == "are" or re.search(r"\b(?:it|this|that|there|he|she|which|one|not|here|purpose|goal|following|result|first|next|only|default|also|most|other|example|problem|reason|in|of|for|on|to)\b", m[1].lower()) or re.match(r"the (?:most|same|only|first|largest|following|number)\b", m[3]):
        return []
    term = s[: s.index(f" {m[2]} {m[3]}")]
    term = lower_first(term) if term.split()[0] in COMMON_STARTS else term
    return [pick(rng, [f"{sentence_case(m[3])} is called {re.sub(r'^(?:the|a|an) ', lambda a: a.group(), term)}."] if m[3].startswith(("a ", "an ")) else [f"{sentence_case(m[3])} is {term}."])]


def comparison_turned(s, ctx, rng):
    """"A is larger than B" becomes "B is smaller than A"."""
    from edits import NP
    table = {"more": "less", "less": "more", "faster": "slower", "slower": "faster", "larger": "smaller", "smaller": "larger", "higher": "lower", "lower": "higher", "better": "worse", "older": "younger", "younger": "older", "longer": "shorter", "shorter": "longer", "bigger": "smaller", "greater": "smaller", "cheaper": "more expensive", "stronger": "weaker", "weaker": "stronger", "taller": "shorter", "heavier": "lighter", "newer": "older"}
    m = re.match(r"^([A-Z][\w' -]{2,40}?) (is|are|was|were) ((?:much |slightly |far |significantly )?)(more \w+|less \w+|\w+er) than ([\w' -]{3,40})\.$", s)
    if not m or re.search(r"\b(?:ever|usual|it|they|this|that|expected|any|all|most|other|those|\d+|one|previous\w*|average|normal|in|at|of|others|before|for|not|what|its|their|there|zero|to)\b", (m[5] + " " + m[1]).lower()):
        return []
    word = m[4].split()[0]
    if word not in table:
        return []
    new = table[word] + m[4][len(word):]
    plural = re.search(r"[^su]s$", m[5])
    verb = {"is": "are", "was": "were", "are": "are", "were": "were"}[m[2]] if plural else {"are": "is", "were": "was", "is": "is", "was": "was"}[m[2]]
    if m[2] in ("are", "were") and not plural and not re.search(r"s$", m[5]):
        return []
    return [f"{sentence_case(m[5])} {verb} {m[3]}{new} than {lower_first(m[1])}."]


def nominal(s, ctx, rng):
    """Fixed frames around the whole statement or its verb."""
    out = []
    for pattern, new in ((r"^There (?:is|are) (no )?(.+)$", None), (r"\bit is possible to (\w+)", r"one can \1"), (r"\bit is not possible to (\w+)", r"one cannot \1"), (r"\bit is necessary to (\w+)", r"one must \1"), (r"^You can (\w+)", r"It is possible to \1"), (r"^You cannot (\w+)", r"It is not possible to \1"), (r"^You must (\w+)", r"It is necessary to \1"), (r"\bis able to (\w+)", r"can \1"), (r"\bmakes it possible to (\w+)", r"lets one \1"),
                         (r"\bis not (permitted|allowed|possible|available|supported|required|needed|valid|known|used)\b", r"is not \1"), (r"\bhas no effect\b", "does nothing"), (r"\bis used to (\w+)", r"serves to \1"), (r"\bare used to (\w+)", r"serve to \1"), (r"\bhas a population of\b", "is home to a population of"), (r"\btakes place\b", "happens"), (r"\btook place\b", "happened"), (r"\bwas the first to (\w+)", r"was the first that ever had the chance to \1" if False else None),
                         (r"\bwas born in\b", "came into the world in"), (r"\bmade a decision to\b", "decided to"), (r"\bmade use of\b", "used"), (r"\bmakes use of\b", "uses"), (r"\bis the author of\b", "wrote"), (r"\bis the capital of\b", "is the capital city of"), (r"\bdied in\b", "passed away in"), (r"\bis also known as\b", "is also called"), (r"\balso known as\b", "also called"), (r"\bmust not\b", "is not allowed to"), (r"\bis responsible for\b", "is in charge of"), (r"\bhas been deprecated\b", "is deprecated")):
        if not new:
            continue
        m = re.search(pattern, s)
        if m and not (new == "is not allowed to" and re.search(r"s $|\bthey $|\byou $|\bI $", s[: m.start()], re.I)):
            text = put(s, m.start(), m.end(), m.expand(new))
            out.append(text)
    return [t for t in out if t != s]


SUBJECT = re.compile(r"^((?:The |An? )?(?:[A-Z][\w.'-]*|[\w-]+)(?: (?:[A-Z][\w.'-]*|of|[a-z][\w-]+)){0,4}?) (?:is|are|was|were|has|have|had|can|will|may|must|should|returns?|provides?|specifies|creates|became|does)\b")


def resolve_pronoun(s, before):
    """Replace It at the start by the subject of the sentence before, where that is a plain singular noun phrase and the only candidate."""
    m = re.match(r"(It|He|She) (is|was|has|had|can|will|may|must|should|returns|provides|specifies|creates|became|does|also)\b", s)
    n = SUBJECT.match(before or "")
    if not m or not n or re.search(r"\b(?:It|There|This|That|These|They|He|She|We|You|What|If|When|In|For|As|Some|All|One|No|Most|Many|Each|Any|I|Its|His|Her)\b", n[1]) or re.search(r"[^s]s$", n[1]) and not n[1][0:3] == "The" or n[1].split()[-1] in ("of", "and", "that", "which", "who"):
        return None
    person = not n[1].startswith(("The ", "A ", "An ")) and len(n[1].split()) >= 2 and all(w[0].isupper() for w in n[1].split())
    if (m[1] == "It") == person or m[1] != "It" and not person:
        return None
    if n[1].split()[0] in ("A", "An"):
        return None
    if re.search(r"\b(?:on|in|at|for|with|that|not|do|to|by|when|and|or|using|from|if|as|is|are|was|were)\b", n[1]) or n[1].split()[0] in COMMON_STARTS - {"The"} or n[1].split()[0] == "The" and len(n[1].split()) > 4:
        return None
    return n[1] + s[len(m[1]):]


def same(s, ctx, rng):
    return [s]


REWORDINGS = {
    "synonym": synonym, "contraction": contraction, "number-spelling": number_spelling, "spelling": spelling, "clause-order": clause_order, "voice": voice, "drop-lead": drop_lead, "drop-adverbial": drop_adverbial,
    "half": half, "coordination-order": coordination_order, "arms-order": arms_order, "definition": definition, "comparison-turned": comparison_turned, "nominal": nominal,
}


def rewordings_of(s, ctx, rng, enough=3):
    """Return (kind, text) for up to enough rewordings that apply, in random order."""
    out, kinds = [], list(REWORDINGS)
    rng.shuffle(kinds)
    for kind in kinds:
        options = [t for t in REWORDINGS[kind](s, ctx, rng) if t and t != s and len(t.split()) >= 4 and "  " not in t]
        if options:
            out.append((kind, pick(rng, options)))
            if len(out) >= enough:
                break
    return out
