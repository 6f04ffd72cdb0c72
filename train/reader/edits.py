"""Edits that make a statement unsupported: each changes one thing and says whether the result contradicts or is neutral.

An edit is a function (sentence, context, rng) -> list of (edited sentence, label). EDITS maps a kind to its function.
Edits apply only where the change of meaning is sure; when in doubt they return nothing.
"""

import re

re._MAXCACHE = 4096  # the default of 512 patterns is less than the edits use; recompiling costs most of the time

from words import (ANTONYMS, ASYMMETRIC_VERBS, COHYPONYM_OF, DAYS, MONTHS, NUMBER_WORDS, ORDINALS, ROLE_PAIRS, SYMMETRIC, TENS, UNIT_GROUPS, UNIT_OF, inflect)

CONTRADICTED, NEUTRAL = "contradicted", "neutral"


class Context:
    """Context is what an edit may draw from: the passage, and names, terms and numbers of the same document."""

    def __init__(self, passage, names=(), terms=(), numbers=(), tails=()):
        self.passage, self.names, self.terms, self.numbers, self.tails = passage, names, terms, numbers, tails


def put(s, start, end, new):
    """Replace s[start:end], keeping a capital at the start of the sentence and adjusting a/an."""
    old = s[start:end]
    if old[:1].isupper() and start == 0 and new[:1].islower():
        new = new[0].upper() + new[1:]
    head = s[:start]
    article = re.search(r"(?:^([Aa])|(?<=\s)(a))(n?) $", head)
    if article and new:
        vowel = bool(re.match(r"[aeioAEIO8]|un(?!i)|hour|honest|u(?!ni|s|til)", new))
        head = head[: article.start()] + (article.group(1) or "a") + ("n " if vowel else " ")
    return head + new + s[end:]


def pick(rng, items):
    return items[rng.randrange(len(items))]


def words_of(s):
    return re.findall(r"[\w'-]+", s)


# ---------------------------------------------------------------- numbers, dates, units

NUMBER = re.compile(r"(?<![\w.,/:#-])(?<![A-Z]-)(\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)(?=(?:[%)]|st\b|nd\b|rd\b|th\b|s\b|-[a-z]+\b|[a-z]{1,3}\b)?(?:[\s.,;:)\"']|$))")
AT_LEAST = re.compile(r"(?:at least|no (?:less|fewer|earlier|later) than|more than|over|above|greater than|larger than|exceed\w*|minimum of|since|after|\bmin(?:imum)?\b|>)\s*(?:the\s)?[$€£]?$", re.I)
AT_MOST = re.compile(r"(?:at most|no (?:more|later) than|less than|fewer than|under|below|up to|within|not exceed\w*|maximum of|until|before|by|smaller than|\bmax(?:imum)?\b|<)\s*(?:the\s)?[$€£]?$", re.I)


def shape(value, text):
    """Format value as text is formatted: thousands separators and decimals."""
    decimals = len(text.split(".")[1]) if "." in text else 0
    return f"{value:,.{decimals}f}" if "," in text else f"{value:.{decimals}f}"


def other_value(text, rng, low=False, high=False):
    """Return another number of the same shape, above (high) or below (low) the old one where a bound demands it."""
    v = float(text.replace(",", ""))
    decimals = len(text.split(".")[1]) if "." in text else 0
    step = 10 ** -decimals
    if re.fullmatch(r"1[0-9]{3}|20\d\d", text):
        delta = pick(rng, [1, 2, 3, 4, 5, 6, 8, 10, 12, 20, 30])
    elif v <= 12 and not decimals:
        delta = pick(rng, [1, 2, 3, 4])
    else:
        delta = max(step, round(v * pick(rng, [0.1, 0.2, 0.25, 0.5, 1.0]), decimals))
    new = v + delta if high or (not low and rng.random() < 0.5) else v - delta
    if new < 0 or (new == 0 and not decimals):
        if low:
            return None
        new = v + delta
    return shape(new, text)


def change_number(s, ctx, rng):
    out = []
    for m in NUMBER.finditer(s):
        text, tail, head = m.group(1), s[m.end():m.end() + 2], s[: m.start()]
        if re.match(r"st|nd|rd|th", tail):
            new = other_value(text, rng)
            if not new or "." in text or "," in text:
                continue
            suffix = "th" if 10 <= int(new) % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(int(new) % 10, "th")
            out.append((put(s, m.start(), m.end() + 2, new + suffix), CONTRADICTED))
            continue
        if re.search(r"(?:section|chapter|figure|fig\.|table|page|item|note|step|example|version|appendix|RFC|ISO|no\.|bug|issue)\s*$", head, re.I):
            continue
        high, low = bool(AT_LEAST.search(head)), bool(AT_MOST.search(head))
        if high and low or re.search(r"\bnot\b", head):
            continue
        near = [n for n in ctx.numbers if n != text and len(n) == len(text) and n not in s] if not (high or low) else []
        new = pick(rng, near) if near and rng.random() < 0.5 else other_value(text, rng, low, high)
        if new and new != text:
            out.append((put(s, m.start(), m.end(), new), NEUTRAL if high or low else CONTRADICTED))
    out += change_number_word(s, rng)
    return out


def change_number_word(s, rng):
    out = []
    for m in re.finditer(r"\b(two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|" + "|".join(TENS) + r")\b(?!-| (?:of|or|and) )", s, re.I):
        if re.search(r"(?:the|these|those|other|at least|at most|more than|less than|fewer than|up to|or|and|last|first|next|between|not|over|under|within|no|-|every) ?$", s[: m.start()], re.I):
            continue
        low = m.group().lower()
        if low in TENS:
            choices = [w for w in TENS if w != low]
        else:
            i = NUMBER_WORDS.index(low)
            choices = [NUMBER_WORDS[j] for j in (i - 2, i - 1, i + 1, i + 2, i + 3) if 2 <= j <= 20]
        new = pick(rng, choices)
        out.append((put(s, m.start(), m.end(), new.capitalize() if m.group()[0].isupper() else new), CONTRADICTED))
    for m in re.finditer(r"\b(?:the|its|his|her|their) (second|third|fourth|fifth|sixth|seventh|first)\b(?! (?:and|or|to|time\b))", s):
        i = ORDINALS.index(m.group(1))
        new = pick(rng, [o for j, o in enumerate(ORDINALS[:7]) if j != i and abs(j - i) <= 3])
        out.append((put(s, m.start(1), m.end(1), new), CONTRADICTED))
    return out


def change_date(s, ctx, rng):
    out = []
    for m in re.finditer(r"\b(" + "|".join(MONTHS) + r"|May)\b", s):
        if m.group() == "May" and not re.match(r" \d", s[m.end():]) and not re.search(r"(?:\d|in|of|on) $", s[: m.start()]):
            continue
        if re.search(r"(?:since|after|from|until|before|by|between|to|and) $", s[: m.start()]):
            continue
        out.append((put(s, m.start(), m.end(), pick(rng, [x for x in MONTHS if x != m.group()])), CONTRADICTED))
    for m in re.finditer(r"\b(?:on|every|each|next|last) (" + "|".join(DAYS) + r")s?\b", s):
        out.append((put(s, m.start(1), m.end(1), pick(rng, [x for x in DAYS if x != m.group(1)])), CONTRADICTED))
    for m in re.finditer(r"\b(?:in|In) ((?:1[0-9]|20)\d\d)\b(?!s)", s):
        near = [n for n in ctx.numbers if re.fullmatch(r"(?:1[0-9]|20)\d\d", n) and n not in s]
        new = pick(rng, near) if near and rng.random() < 0.6 else other_value(m.group(1), rng)
        out.append((put(s, m.start(1), m.end(1), new), CONTRADICTED))
    return out


def near_units(unit):
    """Return the units at most two steps away in a list of units by size."""
    group = next(g for g in UNIT_GROUPS if unit in g)
    i = group.index(unit)
    return [u for j, u in enumerate(group) if 0 < abs(i - j) <= 2]


def change_unit(s, ctx, rng):
    out = []
    number = r"(?:\d[\d,.]*|two|three|four|five|six|seven|eight|nine|ten|twelve|thirty|a|an|one|several|few|many)"
    for m in re.finditer(r"\b" + number + r"([ -])([A-Za-z]+)\b", s):
        unit = m.group(2)
        if unit not in UNIT_OF or re.search(r"(?:at least|at most|more than|less than|fewer|within|up to|over|under|not|no) $", s[: m.start()], re.I):
            continue
        if re.match(r"(?:a|an|one|several|few|many)\b", m.group()) and unit in ("second", "times", "points", "hour", "minute", "day", "week", "month", "year"):
            continue
        out.append((put(s, m.start(2), m.end(2), pick(rng, near_units(unit))), CONTRADICTED))
    return out


def change_bound(s, ctx, rng):
    out = []
    if not re.search(r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|twelve|thirty|half|a|an|one)\b", s):
        return out
    swaps = [(r"at least", "at most"), (r"at most", "at least"), (r"no more than", "no fewer than"), (r"no (?:fewer|less) than", "no more than"), (r"more than", "less than"), (r"(?:fewer|less) than", "more than"),
             (r"up to", "at least"), (r"up to", "more than"), (r"over", "under"), (r"under", "over"), (r"below", "above"), (r"above", "below"), (r"exceeding", "not exceeding"), (r"not exceeding", "exceeding"),
             (r"a minimum of", "a maximum of"), (r"a maximum of", "a minimum of"), (r"no later than", "no earlier than"), (r"not later than", "not earlier than"), (r"until", "only after"), (r"within", "after"), (r"within", "only after"),
             (r"about|approximately|around|roughly", "exactly"), (r"nearly|almost", "more than"), (r"exactly", "more than"), (r"at least", "exactly"), (r"at least", "up to"), (r"more than|over", "exactly"), (r"up to", "exactly"), (r"no more than|at most", "exactly"), (r"less than|fewer than|under", "exactly")]
    quantity = r"(?= (?:[$€£]?\d|a |an |one |two |three |four |five |six |seven |eight |nine |ten |twelve |thirty |half ))"
    time = r"(?= (?:\d+|two|three|four|five|six|seven|ten|thirty|the first|a|an|one) (?:working |business |calendar )?(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?)\b)"
    for old, new in swaps:
        for m in re.finditer(r"\b(?:" + old + r")" + (time if old == "within" else quantity), s, re.I):
            if re.search(r"\b(?:not|never|no)\s*$", s[: m.start()]) or re.match(r" (?:a|an) (?!dozen|hundred|thousand|million|quarter|third|half|week|month|year|day|hour|minute|second)", s[m.end():]):
                continue
            if old in ("over", "under", "above", "below", "more than|over", "less than|fewer than|under") and not re.match(r" [$€£]?(?:\d|(?:two|three|four|five|ten|twelve|thirty|half)\b)", s[m.end():]):
                continue
            if new == "exactly" and re.match(r" (?:1\d|20)\d\d\b(?! [a-z]+s\b)", s[m.end():]):
                continue
            label = NEUTRAL if new == "exactly" else CONTRADICTED
            out.append((put(s, m.start(), m.end(), new), label))
    number = r"(?<![\w.,-])(?:\d{1,3}(?:,\d{3})+|\d{1,4})(?= (?:percent|people|members|days|weeks|months|years|hours|minutes|seconds|miles|kilometres|kilometers|bytes|characters|students|patients|points|times|games|species|employees|mg|metres|meters|feet|votes|dollars|million|billion|men|soldiers|copies|countries|cases|languages|samples|sentences|words|lines|files|bits)\b)"
    for m in re.finditer(number, s):
        if s[m.start() - 1 : m.start()] not in ("", " ", "(") or re.search(r"\b(?:least|most|than|to|within|over|under|about|around|approximately|roughly|nearly|almost|exactly|only|and|or|by|from|between|first|last|every|the|of|below|above|another|some|minimum|maximum|just|for|after|before|every|next|past|least|past|some|his|her|their|its|these|those|until|in) $", s[: m.start()], re.I):
            continue
        out.append((sentence_case(put(s, m.start(), m.start(), pick(rng, ["more than ", "fewer than ", "over ", "less than "]))), CONTRADICTED))
    return out


# ---------------------------------------------------------------- negation, antonyms, modality, quantifiers

AUX = r"(?:is|are|was|were|can|could|will|would|should|must|may|might|has|have|had|does|do|did|shall)"


def main_head(s):
    """Return the offset up to which the first clause runs before a subordinate word, or None if the sentence starts with one."""
    if re.match(r"(?:If|When|Unless|Although|While|Because|Since|Before|After|As|Once|Whether|Even|Though|Until|Where|Whenever|That|What|Who|How|Why|Not|No|Nothing|Nobody|None|Neither|Some|Few|Many|Most|Several|Any)\b", s):
        return None
    m = re.search(r"\b(?:which|that|who|whose|where|whether|if|because|when|although|unless|while|than|as)\b|[,;:(]", s)
    return m.start() if m else len(s)


def negate(s, ctx, rng):
    out = []
    end = main_head(s)
    if end is None or re.search(r"\b(?:not|never|no|nor|only|neither|hardly|n't|cannot|rarely|seldom|some|either|sometimes|unless)\b|n't", s):
        return remove_negation(s)
    m = re.search(r"\b(is|are|was|were|can|could|will|would|should|must|has|have|had)\b(?! (?:no|to|had|been)\b)", s[:end])
    if m and not re.search(r"\b(?:to|all|every|each|or)\s*$", s[: m.start()]):
        w = m.group(1)
        after = s[m.end():].lstrip().split(" ")[0].strip(".,;")
        participle = re.match(r"(?:\w+ed|been|\w+en|become|made|had|won|held|led|built|found|set|taken|shown|given|gone|come|sold|lost|kept|left|met|paid|read|run|sent|said|told|begun)$", after)
        if w not in ("has", "have", "had") or participle:
            new = "cannot" if w == "can" else w + " not"
            out.append((put(s, m.start(), m.end(), new), CONTRADICTED))
            if w in ("is", "are", "was", "were", "can", "will"):
                out.append((put(s, m.start(), m.end(), w + " never" if w != "can" else "can never"), CONTRADICTED))
    return out + negate_simple_verb(s, end)


PRESENT = {inflect(v)[1]: v for v in """return report create call read allow provide require add remove cause specify include print display delete support need define describe check generate work help affect occur refer implement represent control
contain give make take use show set run live mean hold lead write produce store accept ignore match apply start stop open close change increase reduce compute convert begin end own play belong consist depend handle load match keep
send receive copy merge perform prevent protect process produce publish follow form serve sell offer operate cover collect share""".split()}


def negate_simple_verb(s, end):
    m = re.search(r"(?<=[a-z)] )(" + "|".join(sorted(PRESENT)) + r")\b(?= (?:the|a|an|all|its|their|any|this|each|every|in|on|to|from|no|two|whether)\b)", s[:end])
    if not m or re.search(r"\b(?:to|and|of|the|a|an|or|its|their|for|by|in|with|" + AUX + r")\s+$", s[: m.start()]) or re.search(AUX + r"\b", s[: m.start()]):
        return []
    if len(s[: m.start()].split()) > 5:
        return []
    return [(s[: m.start()] + "does not " + PRESENT[m.group()] + s[m.end():], CONTRADICTED)]


def remove_negation(s):
    out = []
    if len(re.findall(r"\b(?:not|never|no|nor|neither|cannot|without|unless)\b|n't", s)) != 1 or re.search(r"\b(?:any|yet|either|anymore|anything|anyone|until|but|only|nor|necessarily|just|because|whether or|or not)\b", s):
        return out
    for pattern, new in ((r"\b(is|are|was|were|should|must|will|would|could|has|have|had|may) not\b(?! to\b)", r"\1"), (r"\bcannot\b|\bcan not\b|\bcan't\b", "can"), (r"\b(is|are|was|were|should|would|could|has|have|had)n't\b", r"\1"), (r"\bnever\b", "always")):
        m = re.search(pattern, s)
        if m and not (new == "always" and re.search(r"\b(?:was|were|had|has|have|did|-?ed)\b", s)):
            out.append((put(s, m.start(), m.end(), m.expand(new)), CONTRADICTED))
    m = re.search(r"\bdoes not (\w+)\b", s)
    if m and re.fullmatch(r"[a-z]{3,}", m.group(1)) and m.group(1) not in ("have", "need", "even", "always", "yet", "have", "itself", "also", "otherwise") and not m.group(1).endswith("ly"):
        out.append((put(s, m.start(), m.end(), inflect(m.group(1))[1]), CONTRADICTED))
    m = re.search(r"\bdo not (?=[a-z]{3,})(?!need|have|always)", s)
    if m and not s.startswith("Do not"):
        out.append((put(s, m.start(), m.end(), ""), CONTRADICTED))
    return out


TOKEN = re.compile(r"(?<![\w-])[A-Za-z][\w'-]*(?![\w-])")
PARTICIPLE_BEFORE = re.compile(r"\b(?:is|are|was|were|be|been|being|has|have|had|get|gets|got)(?: \w+ly| not| also| then| now| always)? $")


def inflected_choice(s, start, choices):
    """Of two forms that differ as past and participle, take the one that fits the auxiliary before it."""
    if len(choices) == 2 and choices[0] != choices[1] and choices[0][:2] == choices[1][:2]:
        return choices[1] if PARTICIPLE_BEFORE.search(s[:start]) else choices[0]
    return None


def antonym(s, ctx, rng):
    out = []
    for m in TOKEN.finditer(s):
        old = m.group()
        if old not in ANTONYMS:
            continue
        new = inflected_choice(s, m.start(), ANTONYMS[old]) or pick(rng, ANTONYMS[old])
        if new in s or old in ("before", "after") and not re.match(r" (?:the|a|\w+ing|\d)", s[m.end():]):
            continue
        if re.search(r"\b(?:" + AUX + r"|to|not) $", s[: m.start()]) and old in ("open", "like", "close"):
            continue
        if old.istitle() or re.match(r" (?:or|and|to) " + re.escape(new), s[m.end():]) or re.search(r"\b(?:not|n't|no|never|or|than|whether|any|if|or not)\s+(?:\w+ )?$", s[: m.start()]):
            continue
        if old[-3:] == "est" and not re.search(r"\b(?:the|its|their|his|her|second|third|world's|-) ?$", s[: m.start()]):
            continue
        out.append((put(s, m.start(), m.end(), new), CONTRADICTED))
    return out


DETERMINED = re.compile(r"\b(?:the|a|an|its|his|her|their|each|every|one|of|this|that|in|for|by|from|with|first|new|same|any|two|three|\w+ed|current|remote|local|another|your|no|as)(?: [a-z]+(?:al|ic|ive|ous|ed|ary|er|ble))? $", re.I)


def cohyponym(s, ctx, rng):
    out = []
    for m in re.finditer(r"(?<![\w'-])[A-Za-z]+(?: [a-z]+)?(?![\w'-])", s):
        for text in {m.group(), m.group().split(" ")[0]}:
            groups = COHYPONYM_OF.get(text)
            if not groups or (text[0].isupper() and text in ("March", "Lead", "May")):
                continue
            choices = [w for w in pick(rng, groups) if w.lower() not in s.lower()]
            if text[0].islower() and not DETERMINED.search(s[: m.start()]):
                continue
            if not choices or re.match(r" (?:or|and|,) ", s[m.start() + len(text):]) or re.search(r"(?:\bor|\band|,) (?:a |an |the )?$", s[: m.start()]):
                continue
            inside = [w for w in choices if re.search(r"\b" + re.escape(w) + r"\b", ctx.passage)]
            out.append((put(s, m.start(), m.start() + len(text), pick(rng, inside or choices)), NEUTRAL))
    return out


def modality(s, ctx, rng):
    out = []
    if re.search(r"\b(?:not|never|no|cannot|only|nor|neither|unless|whether)\b|n't|\?", s):
        return out
    swaps = [(r"may|might", ["must", "will always", "cannot"], NEUTRAL), (r"can", ["must", "cannot"], NEUTRAL), (r"could", ["could not"], CONTRADICTED), (r"must|shall", ["need not", "may", "must not"], CONTRADICTED), (r"should", ["should not", "must not", "need not"], CONTRADICTED),
             (r"(?:is|are) required to", ["are free not to", "may choose to"], CONTRADICTED), (r"(?:is|are) (?:allowed|permitted|free|able) to", ["are required to", "are not allowed to"], NEUTRAL), (r"(?:has|have) to", ["need not", "may choose to"], CONTRADICTED)]
    for pattern, news, label in swaps:
        m = re.search(r"\b(?:" + pattern + r")\b(?= (?:be|have|\w+)\b)(?! (?:as well|or)\b)", s)
        if not m or m.start() == 0 or re.search(r"\b(?:will|would|may|might|do|does|did|could|can|should) $", s[: m.start()]):
            continue
        new = pick(rng, news)
        if new.startswith("are ") and m.group().startswith("is "):
            new = "is " + new[4:]
        if new in ("must not", "cannot", "should not", "could not", "are not allowed to", "is not allowed to"):
            label = CONTRADICTED
        out.append((put(s, m.start(), m.end(), new), label))
    return out


def quantifier(s, ctx, rng):
    out = []
    if re.search(r"\b(?:not|never|no|cannot|nor|neither|unless|whether|if|any)\b|n't", s):
        return out
    swaps = [(r"(?<!for )(?<!of )(?<!at )(?<!first of )all(?= (?:the |of |other |its |their |these |those )*[a-z]+s\b)(?! of)", ["only some", "not all", "only a few", "none of"], CONTRADICTED), (r"Every(?= [a-z]+\b)", ["Not every", "Hardly any"], CONTRADICTED), (r"\bmost(?= (?:of |[a-z]+s\b))", ["all", "few", "hardly any"], NEUTRAL),
             (r"\b(?:some|many|several)(?= (?:of the |of these |of its |of his )?[a-z]+s\b)", ["all", "most", "none"], NEUTRAL), (r"\bsometimes|\boften|\busually|\bgenerally|\btypically|\bnormally|\bfrequently|\boccasionally|\bmostly", ["always", "never", "rarely"], NEUTRAL), (r"\balways", ["sometimes", "rarely", "never", "usually"], CONTRADICTED),
             (r"\bonly(?= (?:the|a|an|one|two|if|when|in|for|by|to|on|at)\b)", ["not only", "mainly"], NEUTRAL), (r"\bpartly|\bpartially|\bmainly|\blargely|\bprimarily|\bpredominantly", ["entirely", "exclusively"], NEUTRAL), (r"\bone of the(?= \w+ [a-z]+s\b)", ["not one of the"], CONTRADICTED), (r"\bboth(?= [a-z]+ and)", ["neither"], CONTRADICTED)]
    for pattern, news, label in swaps:
        m = re.search(pattern, s, re.I if pattern.startswith(r"\b") else 0)
        if not m or m.group() == "one of the":
            continue
        new = pick(rng, news)
        rest = s[m.end():]
        if m.group().lower() in ("some", "many", "several") and new == "none":
            new = "none" if rest.startswith(" of ") else "no"
        if new == "none of" and not re.match(r" (?:the|its|their|these|those|of)", rest) or m.group().lower() == "most" and re.search(r"\b(?:the|at|a|his|her|its|their)\s$", s[: m.start()]) or new == "neither":
            continue
        if new == "few" and rest.startswith(" of"):
            new = "few"
        if new == "hardly any" and not rest.startswith(" of "):
            new = "few"
        if new == "sometimes" and label == CONTRADICTED:
            new = "only sometimes"
        if new == "usually":
            new = "usually but not always"
        if m.group().lower() in ("many", "some", "several") and re.search(r"\b(?:so|as|too|how|the|these|those|very|that|has|have|had)\s$", s[: m.start()]):
            continue
        if m.group()[0].isupper():
            new = new[0].upper() + new[1:]
        if new.lower().startswith("none of") and rest.startswith(" of"):
            new = new[:4]
        out.append((put(s, m.start(), m.end(), new), NEUTRAL if label == NEUTRAL and new.lower() not in ("never", "none", "no", "rarely", "few", "hardly any") else CONTRADICTED))
    m = re.match(r"(The|Both) ", s)
    m = re.search(r"\b(is|are|was|were|can|may|must|should) (?=(?:[a-z]+ed|be [a-z]+ed) (?:by|for|in|to|with|from|on|as) )", s)
    if m and not re.search(r"\b(?:all|every|always|most|some|only|each)\b", s, re.I) and rng.random() < 0.3:
        out.append((put(s, m.end(), m.end(), "only "), NEUTRAL)) if m.group(1) in ("is", "are", "was", "were") and re.search(r"\b(?:" + m.group(1) + r") [a-z]+ed (?:for|in|to|with|from|on) ", s) else None
    return out


# ---------------------------------------------------------------- conditions, order, cause, status

CONDITION = re.compile(r"(?P<main>^[A-Z][^;:]*?[\w)\"]),? (?P<word>if|unless|provided that|only if|only when|as long as|except when|except if|in case|so long as) (?P<cond>[^;:]+)\.$")
FRONTED = re.compile(r"^(?P<word>If|Unless|Provided that) (?P<cond>[^,;:]{8,}), (?:then )?(?P<main>(?:[a-z]|I )[^;:]+)\.$")


def sentence_case(text):
    return text[0].upper() + text[1:]


def lower_first(text):
    """Lower the first letter unless the first word looks like a name."""
    word = text.split(" ")[0]
    return text if re.search(r"[A-Z_\d(]", word[1:]) or word in ("I", "Go", "Git", "SQLite") or word.istitle() and word not in COMMON_STARTS else text[0].lower() + text[1:]


COMMON_STARTS = set("The A An This That These Those It He She They We You In On At For By If When All Any Each Some Most Many Several There Its His Her Their Our Your No Both Such One Two Three Other Another After Before As To With From During Use Users Only Every Files Set".split())


def condition(s, ctx, rng):
    out = []
    m = CONDITION.match(s)
    if m and 3 <= len(m["main"].split()) and not re.search(r"\b(?:ask\w*|see|know|out|sure|clear|decid\w*|care[sd]?|matter[s]?|question\w*|consider\w*|whether|even|wonder\w*|check\w*|determine\w*|test\w*|as|what|only|unless|except|especially|particularly|but|and|or|not|that|than|then)$|\b(?:if|unless|would|could)\b", m["main"]) and not re.match(r"(?:not|necessary|so|possible|needed|any|desired|you (?:want|wish|like|need)|applicable|required|appropriate)\b", m["cond"]) and "," not in m["cond"]:
        main, word, cond = m["main"], m["word"], m["cond"]
        negative = re.search(r"\b(?:not|no|never|cannot|without)\b|n't", main + cond)
        if word in ("if", "provided that", "as long as", "so long as"):
            out += [(f"{main}, whether or not {cond}.", NEUTRAL), (f"{main} unless {cond}.", CONTRADICTED), (f"{main} in every case.", NEUTRAL)]
        elif word in ("only if", "only when"):
            out += [(f"{main} even {'unless' if False else 'if it is not the case that'} {cond}.", CONTRADICTED), (f"{main}.", NEUTRAL), (f"{main} except when {cond}.", CONTRADICTED)]
        elif word == "unless":
            out += [(f"{main} if {cond}.", CONTRADICTED), (f"{main} even if {cond}.", CONTRADICTED), (f"{main} in every case.", CONTRADICTED)]
        elif word in ("except when", "except if"):
            out += [(f"{main} even {word.split()[1]} {cond}.", CONTRADICTED), (f"{main} only {word.split()[1]} {cond}.", CONTRADICTED), (f"{main} in every case.", CONTRADICTED)]
        if word in ("if", "provided that", "as long as") and not negative and not re.search(r"\b(?:may|might|can|could)\b", main):
            out.append((f"{main}.", NEUTRAL))
    m = FRONTED.match(s)
    if m and len(m["main"].split()) >= 4 and not re.match(r"(?:you (?:want|wish|like|need)|necessary|so|not|any|possible|there)\b", m["cond"]):
        main, cond, word = m["main"], m["cond"], m["word"]
        if not re.match(r"(?:it|they|this|he|she|these|those|then|and|but|please|see)\b", main, re.I) and not re.search(r" (?:and|or) ", cond):
            if word == "Unless":
                out += [(f"If {cond}, {main}.", CONTRADICTED), (f"Even if {cond}, {main}.", CONTRADICTED)]
            else:
                out += [(f"Unless {cond}, {main}.", CONTRADICTED), (f"Whether or not {cond}, {main}.", NEUTRAL)]
                if not re.search(r"\b(?:may|might|can|could)\b", main):
                    out.append((sentence_case(main) + ".", NEUTRAL))
    m = re.search(r",? except(?: for)? (?:the |those |in |when |that )?[^,.;:]+(?=\.$)", s)
    if m and not s.startswith("Except"):
        out.append((s[: m.start()] + s[m.end():], CONTRADICTED))
        out.append((put(s, m.start(), m.end(), re.sub(r"except(?: for)?", "including", m.group(), count=1)), CONTRADICTED)) if "when" not in m.group() and "that" not in m.group() and " in " not in m.group() else None
    m = re.search(r"\b(?:only )(when|if|after|for|with) ", s)
    if m and not re.search(r"\b(?:not|if) $", s[: m.start()]) and m.start() > 10:
        out.append((put(s, m.start(), m.end(), {"when": "even when not ", "if": "even if not ", "after": "also before ", "for": "not for ", "with": "only without "}[m.group(1)]), CONTRADICTED)) if m.group(1) in ("after", "for", "with") else None
    return out


VERBS = "add apply boil build call change check choose clean click close commit compile configure connect copy create define delete disable disconnect download edit empty enable enter export fetch fill find finish give import install invoke load lock log make merge mix mount move open perform press print process publish push put read reboot rebuild register release remove rename replace reset restart run save select send set sign start stop store submit switch test turn unlock unmount update upgrade upload use verify visit wait wash write".split()
GERUND = {inflect(v)[2]: v for v in VERBS}


def order(s, ctx, rng):
    out = []
    ger, base = "|".join(GERUND), "|".join(VERBS)
    m = re.match(r"(Before|After) (" + ger + r") ([^,;:]+), (?:you (?:must|should|need to|have to|can) |please |always |first )?(" + base + r") ([^,;:]+)\.$", s)
    if m:
        word, v1, rest1, v2, rest2 = m.groups()
        out.append((f"{word} {inflect(v2)[2]} {rest2}, {GERUND[v1]} {rest1}.", CONTRADICTED))
        out.append((f"{'After' if word == 'Before' else 'Before'} {s[len(word) + 1:]}", CONTRADICTED))
    m = re.match(r"(Before|After) ([^,;:]{6,}), ([^;:]+)\.$", s)
    if m and not re.match(r"(?:all|this|that|which)\b", m[2]):
        out.append((f"{'After' if m[1] == 'Before' else 'Before'} {m[2]}, {m[3]}.", CONTRADICTED))
    m = re.search(r"(?<=[a-z)]) (before|after|until) (?=(?:the|a|an|[a-z]+ing|it|they|he|she|its|his|their|each|calling)\b)", s)
    if m and m.start() > 12 and not re.search(r"\b(?:not|never|no|cannot)\b|n't", s[: m.start()]) and not re.search(r"\b(?:not|never|no|day|days|year|years|week|weeks|month|months|hour|hours|minutes?|seconds?|looks?|looked|named|and|or|immediately|as|be|one|shortly|just|even|long|only|come|comes|came|each|right|run|again|called)$", s[: m.start()]) and not re.match(r"(?:the fact|all|the (?:last|first))\b", s[m.end():]):
        out.append((put(s, m.start(1), m.end(1), {"before": "after", "after": "before", "until": "only after"}[m[1]]), CONTRADICTED))
    m = re.search(r"\b(precedes|follows|preceded by|followed by)\b(?! (?:suit|from|up))", s)
    if m:
        out.append((put(s, m.start(), m.end(), {"precedes": "follows", "follows": "precedes", "preceded by": "followed by", "followed by": "preceded by"}[m[1]]), CONTRADICTED))
    m = re.match(r"(First|Firstly), ([^,;:]+)(?:,|;)? (?:and )?then ([^,;:]+)\.$", s)
    if m:
        out.append((f"First, {m[3]}, then {m[2]}.", CONTRADICTED))
    m = re.search(r"\b(\w+ed [^,;:.]{3,50}),? and then (\w+ed [^,;:.]{3,60})\.$", s)
    if m and not re.search(r"\b(?:it|them|him|her|this|that|who|which)\b", m[1] + " " + m[2]):
        out.append((s[: m.start()] + f"{m[2]} and then {m[1]}.", CONTRADICTED))
    return out


def cause(s, ctx, rng):
    out = []
    m = re.match(r"([A-Z][^,;:]{3,60}?) ((?:is|are|was|were|can be|may be) (?:often |usually |mainly |partly |typically )?)caused by ([^,;:]{3,60})\.$", s)
    if m:
        out.append((f"{sentence_case(m[3])} {m[2]}caused by {lower_first(m[1])}.", CONTRADICTED))
    m = re.match(r"([A-Z][^,;:]{3,50}?) (causes|caused|leads to|led to|results in|resulted in|produces|triggers|prevents) ([^,;:]{3,50})\.$", s)
    if m and not SYMMETRIC.search(m[1] + m[3]) and not re.search(r"\b(?:that|which|who|it|this|is|are|was|were|to|has|have|not|can|may)\b", m[1] + " " + m[3]):
        out.append((f"{sentence_case(m[3])} {m[2]} {lower_first(m[1])}.", CONTRADICTED))
    for pattern, new in ((r"\bbecause of\b", "in spite of"), (r"\bdue to\b", "despite"), (r"\bdespite\b", "because of"), (r"\bin spite of\b", "because of"), (r"(?<=[a-z]),? because (?!of)", " although "), (r"\bcaused\b", "prevented"), (r"\bcauses\b", "prevents"), (r"\bprevents\b", "causes"), (r"\bprevented\b", "caused"), (r"\bdoes not affect\b", "affects"), (r"\bas a result of\b", "in spite of")):
        m = re.search(pattern, s)
        if m and "cause" in m.group() and (re.search(r"\b(?:the|possible|main|common|of|and|other|these|known|some|many|its|any|natural|root|two|three|all) $", s[: m.start()]) or re.search(r"^[^.]{0,60} to [a-z]+\b", s[m.end():])):
            continue
        if m and not re.search(r"\bnot\b|n't", s[: m.start()]):
            out.append((put(s, m.start(), m.end(), new), CONTRADICTED if "use" in new else NEUTRAL))
    return out


def status(s, ctx, rng):
    out = []
    swaps = [(r"\b(?:plans|planned|intends|intended|hopes|hoped|wants|wanted|attempts|attempted|tries|tried|agreed|promised|threatened|offered|proposed|refuses|refused|failed|expected|expects|decided) to (" + "|".join(sorted(set(VERBS) | {"build", "sell", "buy", "leave", "join", "kill", "attack", "pay", "take", "reduce", "increase", "expand", "win", "become", "marry"})) + r")\b", 1, NEUTRAL)]
    for pattern, _, label in swaps:
        m = re.search(pattern, s)
        if m and not re.search(r"\b(?:not|never|no|to|who|that|which)\b|n't", s[: m.start()]) and len(s[: m.start()].split()) <= 8:
            out.append((put(s, m.start(), m.end(), inflect(m.group(1))[3]), NEUTRAL if not re.match(r"refuse|fail", m.group()) else CONTRADICTED))
    for pattern, news, label in ((r"\bis planned\b", ["was completed"], CONTRADICTED), (r"\bwill be (?=[a-z]+ed\b)", ["has already been "], NEUTRAL), (r"\bhas been (?=(?:completed|removed|added|built|released|published|opened|closed|approved|introduced|implemented|fixed|replaced|tested)\b)", ["will be ", "has yet to be ", "has not yet been "], CONTRADICTED),
                                 (r"\b(?:was|were) (?=(?:completed|removed|added|built|released|published|opened|closed|approved|introduced|implemented|fixed|replaced|tested|founded|elected|awarded)\b)", ["was never ", "was nearly ", "was not "], CONTRADICTED), (r"\bused to be\b", ["is still"], CONTRADICTED), (r"\bno longer\b", ["still"], CONTRADICTED), (r"\bis still\b", ["is no longer"], CONTRADICTED),
                                 (r"\bis expected to be\b|\bare expected to be\b", ["has already been", "will certainly be"], NEUTRAL), (r"\breportedly |\ballegedly |\bprobably |\bperhaps |\bpossibly |\bpresumably ", ["certainly "], NEUTRAL), (r"\bmay have been\b|\bmight have been\b|\bcould have been\b", ["was certainly", "was not"], NEUTRAL), (r"\bproposed\b(?= (?:that|a|the))", ["enacted", "rejected"], NEUTRAL)):
        m = re.search(pattern, s)
        if m and not re.search(r"\b(?:not|never|no)\b|n't", s[: m.start()]):
            new = pick(rng, news)
            if new.startswith("has ") and re.search(r"[^sui]s (?:\w+ly )?$", s[: m.start()]):
                new = "have" + new[3:]
            if m.group().startswith("were") and new.startswith("was"):
                new = "were" + new[3:]
            out.append((put(s, m.start(), m.end(), new), label))
    return out


# ---------------------------------------------------------------- roles, comparisons, subjects

WORD = r"[A-Z][\w'’.&-]*"
NAME = re.compile(r"(?:" + WORD + r")(?: (?:" + WORD + r"|of|de|van|von|the)(?= " + WORD + r"| )(?: (?=" + WORD + r"))?)*")
NAME_SIMPLE = re.compile(r"\b[A-Z][a-zA-Zà-ÿ'’-]+(?: (?:of |the |de |van |von )?[A-Z][a-zA-Zà-ÿ'’.-]+)*\b|\b[A-Z]{2,}\b")
NOT_NAMES = set("The A An This That These Those It He She They We You I In On At For By If When While All Any Each Some Most Many Several There Its His Her Their Our Your My No Not Both Such One Two Three Four Five Other Another After Before As To With From During Since Although However But And Or So Because Then Thus Also Note See Use Only Every Under Over Within Without Through Until Upon Where What Who Why How Which Once Even Despite According Like Unlike Among Between Today Here Later Instead Following Given Due Additionally Furthermore Moreover Therefore Finally First Second Third Did Does Do Is Are Was Were Can May Must Should Will Would".split()) | set(MONTHS) | set(DAYS)


def names_in(s, known=None):
    """Return (start, end, name) for capitalised names; a lone first word counts only if known has it."""
    out = []
    for m in NAME_SIMPLE.finditer(s):
        start, text = m.start(), m.group()
        head = text.split(" ")[0]
        while head in NOT_NAMES and " " in text:
            start += len(head) + 1
            text = text[len(head) + 1:]
            head = text.split(" ")[0]
        if re.match(r"(?:I|It|That|You|We|They|He|She|There|What|Let|Don|Can|Isn|Doesn|Here|Who|Won|Didn|Aren|Wasn)['’]", text):
            continue
        if head in NOT_NAMES or head in ("of", "the", "de", "van", "von") or len(text) < 2 or text.rstrip(".") in NOT_NAMES:
            continue
        if start == 0 and " " not in text and not text.isupper() and not s[len(text):].startswith(("'s", "’s")):
            if not known or text not in known:
                continue
        out.append((start, start + len(text), text))
    return out


def swap_spans(s, a, b):
    (a0, a1), (b0, b1) = a, b
    first, second = s[a0:a1], s[b0:b1]
    if a0 == 0 and second[:1].islower():
        second = sentence_case(second)
    if a0 == 0:
        first = lower_first(first)
    return s[:a0] + second + s[a1:b0] + first + s[b1:]


def exchange_names(s, ctx, rng):
    out = []
    found = names_in(s, ctx.names)
    verb = re.compile(r"^ (?:\w+ly |also |later |has |had |have |then |was |is )?(?:" + ASYMMETRIC_VERBS + r")(?: (?:the|a|an|by|his|her))? ?(?:[a-z]+ ){0,3}$")
    for (a0, a1, a), (b0, b1, b) in zip(found, found[1:]):
        between = s[a1:b0]
        if verb.match(between) and not SYMMETRIC.search(between) and a not in b and b not in a and not re.match(r" (?:and|or)\b|, [A-Z]|'s|’s| \(?[A-Z]", s[b1:]):
            out.append((swap_spans(s, (a0, a1), (b0, b1)), CONTRADICTED))
        elif re.fullmatch(r"(?:'s|’s)? [a-z ]{2,40} (?:to|from|by|for|of|over|against|after|than|before|in) (?:the )?", between) and not SYMMETRIC.search(between) and not re.search(r"\b(?:and|but|who|which|that)\b", between) and not SYMMETRIC.search(s[:a0]) and not re.search(r"(?:and|or|,) $", s[:a0]) and not re.match(r" (?:and|or)\b|, [A-Z]| \(?[A-Z]", s[b1:]) and a.count(" ") == b.count(" ") and a not in b and b not in a:
            if re.search(r"\bin (?:the )?$", between):
                continue
            out.append((swap_spans(s, (a0, a1), (b0, b1)), CONTRADICTED))
    return out


NP = r"(?:(?:the|a|an|its|their|each|one|every|your) )?(?:[a-z][\w-]* ){0,2}[a-z][\w.()-]*[a-z)]"
END = r"(?=[.,;:)]|$| (?:and|or|in|on|at|for|with|by|if|when|because|as|during|after|before|unless|while|that|which|but|using|without|within|under|instead|so)\b)"
PIVOTS = [r" instead of ", r" rather than ", r" is a subset of ", r" is a superset of ", r" depends on ", r" takes precedence over ", r" takes priority over ", r" overrides ", r" is faster than ", r" is slower than ", r" is larger than ", r" is smaller than ", r" is greater than ", r" is less than ",
          r" (?:is|are|was|were) (?:more|less) \w+ than ", r" (?:is|are|was|were) \w+er than ", r" outperforms ", r" is derived from ", r" is part of ", r" (?:precedes|follows|contains|replaces|inherits from|extends|implements|belongs to|refers to|points to) "]
NOUNISH = re.compile(r"^(?:(?:the|a|an|its|their|each|one|every|your) )")


def exchange_arguments(s, ctx, rng):
    out = []
    for pivot in PIVOTS:
        m = re.search(r"(?:^|(?<=[a-z,] ))(" + NP.replace("[a-z]", "[A-Za-z]", 1) + r")" + pivot + r"(" + NP + r")" + END, s) if " instead" not in pivot and " rather" not in pivot else re.search(r"(?<=[a-z] )((?:the|a|an) (?:[a-z][\w-]* )?[a-z][\w-]*)" + pivot + r"((?:the|a|an) (?:[a-z][\w-]* )?[a-z][\w-]*)" + END, s)
        if m and "contains" in pivot and s[m.end(2):m.end(2) + 1] == ",":
            continue
        if not m or SYMMETRIC.search(m[1]) or SYMMETRIC.search(m[2]) or re.search(r"\b(?:it|they|this|that|which|he|she|them|following|is|are|was|were|be|not|to|and|of|in|who|there|any|all|also|can|does|these|those|what|section|one|no|never|by|for|on|still|further|only|\w+ly|its|their|each|every|now|then)\b", (m[1] + " " + m[2]).lower()):
            continue
        if m.start(1) and (" instead" not in pivot and " rather" not in pivot):
            continue
        out.append((swap_spans(s, m.span(1), m.span(2)), CONTRADICTED))
    m = re.search(r"\b(?:convert\w*|copy|copie[sd]|copying|mov\w+|transfer\w*|transform\w*|translat\w+|chang\w+|send\w*|sent|switch\w*|upgrad\w+|map\w*|migrat\w+|renam\w+|go|goes|went|pass\w*|conver\w+|flow\w*|download\w*|travel\w*|export\w*|import\w*|spread)\b[^,.;]{0,40}\b(?:from|From) ((?:the |a |an )?(?:[\w-]+ )?[\w-]+) (to|into) ((?:the |a |an )?(?:[\w-]+ )?[\w-]+)" + END, s)
    if m and len(m[1]) > 2 and len(m[3]) > 2 and m[1].lower() != m[3].lower() and not re.search(r"\b(?:time|place|start|end|beginning|one|another|top|bottom|day|year|it|them|this|these|those|which|that|where|left|each|other|his|her|and|or)\b|ing\b", m[1] + " " + m[3]):
        out.append((s[: m.start(1)] + m[3] + f" {m[2]} " + m[1] + s[m.end(3):], CONTRADICTED))
    m = re.match(r"(" + NP.replace("[a-z]", "[A-Za-z]", 1) + r"|" + NAME_SIMPLE.pattern + r") ((?:is|are|was|were) (?:\w+er|more \w+|less \w+) than) ([^,;:.]{3,40})\.$", s)
    if m and not re.search(r"\b(?:ever|usual|before|it|they|this|that|expected|any|all|most|other|those|\d+|one|previous\w*|average|normal|in|at|of)\b", m.groups()[-1]) and not re.match(r"(?:It|They|This|That|There|He|She|These|Those|Which)\b", m[1]):
        out.append((f"{sentence_case(m.groups()[-1])} {m.groups()[-2]} {lower_first(m[1])}.", CONTRADICTED))
    return out


RELATING = re.compile(r"\b(?:to|from|of|by|for|with|than|into|on|in|over|is|are|was|were|be|has|have|had|must|may|will|can|should|shall|do|does|did|[a-z]{3,}(?:ed|es|ing)|sends?|gives?|pays?|reads?|takes?|gets?|tells?|asks?)\b")


def exchange_roles(s, ctx, rng):
    out = []
    if SYMMETRIC.search(s):
        return out
    low = s.lower()
    for a, b in ROLE_PAIRS:
        if a.lower() not in low or b.lower() not in low:
            continue
        if a in ("first", "left", "old", "local", "upper", "north", "east", "inner", "base", "key", "row", "rows", "input", "upstream", "primary"):
            if a not in ("input", "primary", "first", "old", "north", "left"):
                continue
        pa = re.compile(r"(?<![\w-])" + a + r"(?![\w-])", re.I)
        pb = re.compile(r"(?<![\w-])" + b + r"(?![\w-])", re.I)
        fa, fb = list(pa.finditer(s)), list(pb.finditer(s))
        if len(fa) != 1 or len(fb) != 1:
            continue
        x, y = sorted([fa[0], fb[0]], key=lambda m: m.start())
        between = s[x.end():y.start()]
        if not RELATING.search(between):
            continue
        if y.start() < x.end() or re.fullmatch(r"(?:,| and| or|/)? ?(?:the |a |an |to )?", between) or len(between.split()) < 2 or re.fullmatch(r"[ ,]*(?:and|or)? ?(?:the|a|an|your|his|her|their|its)? ?(?:and|or)? ?", between):
            continue
        new_first, new_second = y.group(), x.group()
        if x.start() == 0:
            new_first, new_second = sentence_case(new_first), new_second.lower()
        out.append((s[: x.start()] + new_first + between + new_second + s[y.end():], CONTRADICTED))
    return out


def exchange_values(s, ctx, rng):
    """Exchange two different numbers of one shape that belong to different things."""
    out = []
    found = [m for m in NUMBER.finditer(s) if not re.search(r"(?:section|chapter|figure|table|page|version)\s*$", s[: m.start()], re.I)]
    for a, b in zip(found, found[1:]):
        x, y = a.group(1), b.group(1)
        if re.match(r"s\b", s[a.end():]) or re.match(r"s\b", s[b.end():]):
            continue
        label = re.search(r"(\w+) \(?$", s[: a.start()])
        if label and re.search(r"\b" + label.group(1) + r" \(?$", s[: b.start()]) or s[a.start() - 1: a.start()] == "(" and s[a.end():a.end() + 1] == ")":
            continue
        if x == y or abs(len(x) - len(y)) > 1 or ("." in x) != ("." in y):
            continue
        year = re.compile(r"(?:1\d|20)\d\d$")
        if bool(year.match(x)) != bool(year.match(y)):
            continue
        ta, tb = s[a.end():a.end() + 1], s[b.end():b.end() + 1]
        if (ta == "%") != (tb == "%") or ta == "-" or tb == "-" or "st" in s[a.end():a.end() + 2] or re.match(r"(?:st|nd|rd|th)\b", s[a.end():]) or re.match(r"(?:st|nd|rd|th)\b", s[b.end():]):
            continue
        between = s[a.end():b.start()]
        if len(re.findall(r"[A-Za-z]{3,}", between)) < 2 or re.search(r"\b(?:between|from|to|or|of)\s*[$€£]?$", between) or re.search(r"\b(?:between|from)\s*[$€£]?$", s[: a.start()]) or re.search(r"\brespectively\b", s):
            continue
        if re.search(r"\b(?:least|most|than|over|under|up to|about|within|until|since|nearly|almost)\b", s[max(0, a.start() - 16): a.start()] + between):
            continue
        out.append((s[: a.start(1)] + y + s[a.end(1): b.start(1)] + x + s[b.end(1):], CONTRADICTED))
    m = re.search(r"(?P<a>[\w.%$-]+)(?:,? and |, )(?P<b>[\w.%$-]+)(?P<rest>[^.;]*?)\b(?P<c>[A-Z0-9][\w.%-]*) and (?P<d>[A-Z0-9][\w.%-]*),? respectively", s)
    if m and m["c"] != m["d"]:
        out.append((s[: m.start("c")] + m["d"] + s[m.end("c"): m.start("d")] + m["c"] + s[m.end("d"):], CONTRADICTED))
    return out


def compare(s, ctx, rng):
    """Reverse a comparison by its adjective or adverb."""
    out = []
    table = {"more": "less", "less": "more", "fewer": "more", "greater": "smaller", "faster": "slower", "slower": "faster", "larger": "smaller", "smaller": "larger", "higher": "lower", "lower": "higher", "better": "worse", "worse": "better",
             "older": "younger", "younger": "older", "longer": "shorter", "shorter": "longer", "bigger": "smaller", "earlier": "later", "later": "earlier", "newer": "older", "stronger": "weaker", "weaker": "stronger", "cheaper": "more expensive", "taller": "shorter", "heavier": "lighter", "lighter": "heavier", "wider": "narrower", "deeper": "shallower", "easier": "harder", "harder": "easier", "simpler": "more complicated", "safer": "riskier", "warmer": "colder", "colder": "warmer", "closer": "farther", "richer": "poorer", "denser": "sparser", "rarer": "more common"}
    for m in re.finditer(r"\b(" + "|".join(table) + r")\b(?=(?: [\w-]+){0,4} than\b)", s):
        if re.search(r"\b(?:not?|never|much|nothing|any|rather|no|or) $", s[: m.start()]) and not s[: m.start()].endswith("much ") or re.match(r" than (?:one|or|zero|a single)\b", s[m.end():]) or "equal" in s or "or more" in s:
            continue
        out.append((put(s, m.start(), m.end(), table[m.group()]), CONTRADICTED))
    m = re.search(r"\bas (?:\w+) as\b", s)
    if m and not re.search(r"\b(?:not|never|nearly|almost|twice|half|well|soon|long|far|much|many|such)\b|n't", s) and re.search(r"\b(?:is|are|was|were) $", s[: m.start()]):
        out.append((put(s, m.start(), m.start(), "not "), CONTRADICTED))
    return out


TERM = re.compile(r"(?<![\w/-])(?:--[a-z][a-z-]+|[a-z]+(?:_[a-z0-9]+)+(?:\(\))?|[a-zA-Z]\w+\(\d?\)|[A-Z]\w+\.[A-Z]\w+|[a-z]+\.[A-Z]\w+|git-[a-z-]+|[A-Z][a-z]+[A-Z]\w+|[A-Z]{2,}(?:_[A-Z]+)+)(?![\w-])")


def term_type(t):
    return (t.startswith("--"), t.endswith(")"), "_" in t, t.isupper(), t.startswith("git-"), "." in t)


def subject(s, ctx, rng):
    """Replace a name or a technical term by another of its kind from the same document."""
    out = []
    for start, end, name in names_in(s, ctx.names):
        if re.search(r"(?:,|\band|\bor) (?:the )?$", s[:start]) or re.match(r"(?:,| and| or) [A-Z]| [A-Z0-9]|-", s[end:]):
            continue
        parts = name.split(" ")
        if name not in ctx.names:
            continue
        near = [n for n in ctx.names if n.count(" ") == name.count(" ") and n not in s and name not in n and not set(parts) & set(n.split(" ")) and n.isupper() == name.isupper()]
        if near:
            inside = [n for n in near if n in ctx.passage]
            out.append((put(s, start, end, pick(rng, inside or near)), NEUTRAL))
    for m in TERM.finditer(s):
        near = [t for t in ctx.terms if t != m.group() and term_type(t) == term_type(m.group()) and t not in s]
        if near and not re.search(r"(?:,|\band|\bor) (?:the )?$", s[: m.start()]) and not re.match(r"(?:,| and| or) ", s[m.end():]):
            inside = [t for t in near if t in ctx.passage]
            out.append((put(s, m.start(), m.end(), pick(rng, inside or near)), NEUTRAL))
    return out


TAIL = re.compile(r" ((?:in|for|by|with|during|after|at|on|from|before|through|without|under|inside|since|throughout) (?:the |a |an |its |more |at least |about )?[\w' -]{3,45})\.$")


def tail_phrase(s):
    """Return the prepositional phrase that ends a sentence, or None."""
    m = TAIL.search(s)
    if not m or re.search(r"\b(?:which|that|who|is|are|was|were|it|them|him|her|this|these|below|above|following|be|has|have|had|can|will|as|to)\b", m[1]) or len(m[1].split()) > 7:
        return None
    inner = list(re.finditer(r"(?:^|(?<= ))(?:in|for|by|with|during|after|at|on|from|before|through|without|under)\b", m[1]))
    return m[1][inner[-1].start():] if inner else m[1]


def detail(s, ctx, rng):
    """Add a detail that another sentence of the document gives of something else, or a made one."""
    if not s.endswith(".") or len(s.split()) > 25 or re.search(r"\b(?:if|unless|which|who|not|never|because)\b|[)\"]\.$", s):
        return []
    past = re.search(r"\b(?:was|were|had|did|[a-z]+ed)\b", s)
    names = [n for n in ctx.names if n not in s and " " in n]
    d = None
    if past and not re.search(r"\b\d{4}\b", s) and rng.random() < 0.25:
        d = f"in {rng.randrange(1950, 2024)}"
    elif names and past and rng.random() < 0.2:
        d = pick(rng, ["together with {}", "on behalf of {}", "at the request of {}", "with the help of {}"]).format(pick(rng, names))
    elif ctx.tails:
        d = pick(rng, ctx.tails)
        if d.lower() in s.lower() or d.split()[0] in s.split()[-4:] or d.split()[-1] in s or s in ctx.passage and s[:-1] + " " + d in ctx.passage:
            return []
    return [(f"{s[:-1]} {d}.", NEUTRAL)] if d else []


# ---------------------------------------------------------------- coordination

MERGE = re.compile(r"^(?P<a>[A-Z][^,;:]{1,45}?) (?P<verb>is|are|was|were|has|have|had|uses?|used|returns?|takes?|took|receives?|received|gets?|got|contains?|means?|shows?|requires?|supports?|gives?|gave|won|wrote|lives? in|lived in|consists? of|costs?|cost|becomes?|became|plays?|played|accepts?|indicates?|produces?|produced|specifies|sets|reads|writes|prints|creates|removes|represents?|stands for) (?P<x>[^,;:]{2,80}?)(?:,? (?:and|while|whereas|but)|;) (?P<b>(?:the |a |an |in |for )?[^,;:]{1,45}?) (?P=verb) (?P<y>[^;:]{2,80})\.$")


def merge_parts(s, ctx, rng):
    """Give both subjects of "A is x and B is y" the same predicate, or exchange the predicates."""
    m = MERGE.match(s)
    if not m or m["x"] == m["y"] or re.search(r"\b(?:that|which|who|if|when|because|it|they|he|she|there|this|these|not|also|both|to|whose|its|some|others|their|each|one|other|any)\b", f"{m['a']} {m['b']}".lower()):
        return []
    a, b, verb, x, y = m["a"], m["b"], m["verb"], m["x"], m["y"]
    if not re.match(r"(?:the|a|an) |[A-Z]", b) or re.search(r"\b(?:cannot|can|only|no|I|think|well|in|on|at|with|by|from|be|do|does|will|for|nothing)\b", a + " " + b, re.I):
        return []
    if re.match(r"(?:It|He|She|They|There|This)\b", a) or re.search(r"\b(?:also|too|the same)\b", y) or len(b.split()) > 5 or len(a.split()) > 6 or re.search(r"\b(?:is|are|was|were|has|have|had)\b", b):
        return []
    plural = {"is": "are", "was": "were", "has": "have"}.get(verb, verb[:-1] if verb.endswith("s") and " " not in verb and verb not in ("is", "was", "has") else verb)
    head = lower_first(a) if a.split()[0] in COMMON_STARTS else a
    return [(f"Both {head} and {b} {plural} {x}.", CONTRADICTED), (f"{a} and {b} {plural} {y}.", CONTRADICTED), (f"{a} {verb} {y}, and {b} {verb} {x}.", CONTRADICTED)]


EDITS = {
    "number": change_number, "date": change_date, "unit": change_unit, "bound": change_bound, "negation": negate, "antonym": antonym, "cohyponym": cohyponym, "modality": modality, "quantifier": quantifier, "condition": condition,
    "order": order, "cause": cause, "status": status, "names-exchanged": exchange_names, "arguments-exchanged": exchange_arguments, "roles-exchanged": exchange_roles, "values-exchanged": exchange_values, "comparison": compare,
    "subject": subject, "detail": detail, "merged-parts": merge_parts,
}


DIGIT_OR_NUMBER = set(NUMBER_WORDS[2:]) | set(TENS) | set(ORDINALS)
TRIGGERS = {  # an edit is tried only if the sentence has one of these words, or a digit where "0" is listed
    "number": DIGIT_OR_NUMBER | {"0"}, "date": {m.lower() for m in MONTHS + DAYS + ["May"]} | {"0"}, "unit": {u.lower() for u in UNIT_OF}, "bound": DIGIT_OR_NUMBER | {"0", "half", "within"},
    "antonym": {w.lower() for w in ANTONYMS}, "cohyponym": {w.lower().split(" ")[0] for w in COHYPONYM_OF}, "modality": set("may might can could must shall should required allowed permitted free able has have".split()),
    "quantifier": set("all every most some many several sometimes often usually generally typically normally frequently occasionally mostly always only partly partially mainly largely primarily predominantly is are was were".split()),
    "condition": set("if unless provided long except only case".split()), "order": set("before after until precedes follows preceded followed then".split()),
    "cause": set("caused causes because due despite spite leads led results resulted produces triggers prevents prevented affect result".split()),
    "status": set("plans planned intends intended hopes hoped wants wanted attempts attempted tries tried agreed promised threatened offered proposed refuses refused failed expected expects decided will has was were used longer still reportedly allegedly probably perhaps possibly presumably may might could".split()),
    "comparison": {"than", "as"}, "values-exchanged": {"0", "respectively"}, "merged-parts": {"and", "while", "whereas", "but"},
}


def edits_of(s, ctx, rng, kinds=None, skip=()):
    """Return (kind, edited, label) for every edit that applies to s and yields something the passage does not say verbatim."""
    out = []
    tokens = set(re.findall(r"[a-z]+", s.lower()))
    if re.search(r"\d", s):
        tokens.add("0")
    for kind in kinds or EDITS:
        if kind in skip or kind in TRIGGERS and not TRIGGERS[kind] & tokens:
            continue
        options = [(t, label) for t, label in EDITS[kind](s, ctx, rng) if t and t != s and t.rstrip(".") not in ctx.passage and "  " not in t]
        if options:
            text, label = pick(rng, options)
            out.append((kind, text, label))
    return out
