"""Questions: statements made of a question and its answer, and questions made of statements, headings and lists."""

import re

from edits import NAME_SIMPLE, NOT_NAMES, NUMBER, lower_first, pick, sentence_case
from words import inflect, MONTHS

BE = r"(?:is|are|was|were)"
AUXILIARY = r"(?:can|could|will|would|should|must|may|might|has|have|had)"


def answer_type(text):
    """Return year, number, date, name or phrase for an answer."""
    if re.fullmatch(r"(?:in )?(?:1\d|20)\d\d", text):
        return "year"
    if re.search(r"\b(?:" + "|".join(MONTHS) + r"|May)\b", text) and re.search(r"\d", text):
        return "date"
    if re.match(r"[$€£]?\d[\d,.]*%?(?: [a-z%]+){0,2}$", text) or re.match(r"(?:about |over |around )?(?:two|three|four|five|six|seven|eight|nine|ten|twelve)(?: [a-z]+)?$", text):
        return "number"
    if re.match(r"(?:the |The )?[A-Z]", text) and len(text.split()) <= 6 and NAME_SIMPLE.search(text):
        return "name"
    return "phrase"


def base_of(verb, question_verbs):
    return question_verbs.get(verb)


def past_of(base):
    return inflect(base)[3]


def third_of(base):
    return inflect(base)[1]


def clean_question(q):
    q = re.sub(r"\s+", " ", q).strip().rstrip("?").strip()
    return q


KNOWN_BASES = set("""win become make take give sell buy lose hold lead find leave write build begin get keep bring spend send meet pay grow fall teach speak run draw know see come go die live work join start serve move play use help create receive release
attend perform marry appear want call name graduate publish found establish record study learn happen occur open close end earn produce develop introduce propose sign declare defeat attack support oppose invade discover invent design cover include contain cause
allow require provide return offer need add remove change reach cost charge weigh measure last travel visit arrive belong refer mean represent describe show believe claim argue say think suggest rule control own operate manage replace follow score compete rank collect share store process
gain adopt pass ban approve reject elect appoint form merge split separate divide rise increase decrease decline drop lose train hire employ kill destroy damage rebuild construct convert translate sponsor fund donate""".split())


def statement(question, answer, passage=""):
    """Return a statement of the question and its answer, or None where no sure template applies."""
    q, a = clean_question(question), answer.strip().rstrip(".,;")
    if not q or not a or len(a.split()) > 14 or len(q.split()) < 4 or re.search(r"[\"“”]$|[?;]", a):
        return None
    q = q[0].upper() + q[1:]
    if re.search(r",|\b(?:by|with|to|for|between|in|of|from|at|on|about|is|was|are|were|do|did)$|\b(?:besides|other than|what else|whom|whose)\b", q, re.I):
        return None
    kind = answer_type(a)
    for f in (who, when_where, how_many, what_be, which):
        s = f(q, a, kind)
        if s:
            s = re.sub(r"\s+", " ", s).strip()
            return sentence_case(s) + "." if 4 <= len(s.split()) <= 40 else None
    return None


def who(q, a, kind):
    m = re.match(r"Who (was|is|were|are) (.+)$", q)
    if m and kind == "name" and not re.match(r"(?:not|the person|named|called)\b", m[2]):
        if re.match(r"(?:the|a|an)\b", m[2]):
            return f"{a} {m[1]} {m[2]}"
        if re.match(r"[a-z]+ed\b", m[2]):
            return f"{a} {m[1]} {m[2]}"
        return None
    m = re.match(r"Who (?:had |has )?(?:first |originally |also |later )?([a-z]+) (.+)$", q)
    if m and kind == "name" and (m[1].endswith("ed") or m[1] in ("won", "wrote", "made", "led", "built", "became", "took", "said", "gave", "sang", "ran", "held", "founded", "plays", "owns", "owned", "killed", "found", "bought", "sold")):
        return f"{a} {q[4:]}"
    return None


def did_clause(rest):
    """Turn "X base ..." after did or does into subject and verb phrase: (subject, base, tail)."""
    words = rest.split(" ")
    for i, w in enumerate(words):
        if 0 < i <= 7 and w in KNOWN_BASES and words[i - 1].lower() not in ("to", "the", "a", "of", "in", "and", "or", "for", "an", "his", "her", "its", "their", "by", "with", "not", "no", "at", "from", "on", "that"):
            return " ".join(words[:i]), w, " ".join(words[i + 1:])
    return None


def when_where(q, a, kind):
    m = re.match(r"(?:When|In what year|In which year|What year|What date|On what date|On what day|In what month) (was|were|did|is|are|does|do) (.+)$", q)
    if m:
        if kind not in ("year", "date"):
            return None
        prep = "" if re.match(r"(?:in|on|by|at|from|since|around|during|between|early|late|the)\b", a, re.I) else ("on " if re.search(r"\b\d{1,2}\b(?!\d)", a.replace(",", " ")) and kind == "date" else "in ")
        if m[1] in ("was", "were"):
            n = re.match(r"(.+?) ((?:first |originally |officially |finally )?(?:born|[a-z]+ed|built|made|held|sold|written|begun|won|taken|found|set|shown|given|cut|broken|sent|sung|run|chosen|taught|bought|paid))\b(.*)$", m[2])
            if n and not re.search(r"\b(?:that|which|who|the year)\b", n[1]):
                return f"{n[1]} {m[1]} {n[2]}{n[3]} {prep}{a}"
            return None
        if m[1] == "did":
            n = did_clause(m[2])
            if n:
                return f"{n[0]} {past_of(n[1])} {n[2]} {prep}{a}"
        return None
    m = re.match(r"(?:Where|In what (?:city|country|state|town|place)|In which (?:city|country|state)) (was|were|is|are|did|does) (.+)$", q)
    if m:
        prep = "" if re.match(r"(?:in|on|at|near|to|from|between|inside|outside|along|under|around|throughout|within|through)\b", a, re.I) else ("in " if kind == "name" and not a.startswith(("The ", "the ")) else "")
        if not prep and not re.match(r"(?:in|on|at|near|between|inside|outside|along|under|around|throughout|within)\b", a):
            return None
        if m[1] in ("was", "were", "is", "are"):
            n = re.match(r"(.+?) ((?:born|located|situated|buried|based|headquartered|[a-z]+ed|built|made|held|sold|found|kept|set))\b(.*)$", m[2])
            if n:
                return f"{n[1]} {m[1]} {n[2]}{n[3]} {prep}{a}"
            return f"{m[2]} {m[1]} {prep}{a}" if not re.search(r"\b[a-z]+(?:ed|en)\b", m[2]) and len(m[2].split()) <= 6 else None
        n = did_clause(m[2])
        if n and not n[2]:
            return f"{n[0]} {past_of(n[1]) if m[1] == 'did' else third_of(n[1])} {prep}{a}"
    return None


def how_many(q, a, kind):
    m = re.match(r"(?:About |Approximately )?[Hh]ow many ([a-z][\w -]*?) (are|were|is|was) (?:there )?(.+)$", q)
    if m and kind == "number":
        number = a if len(a.split()) == 1 else (a if a.endswith(m[1].split()[-1]) else None)
        if not number:
            return None
        noun = "" if len(a.split()) > 1 else " " + m[1]
        if " there " in q.lower():
            return f"there {m[2]} {a}{noun} {m[3]}"
        return f"{a}{noun} {m[2]} {m[3]}" if re.match(r"[a-z]+(?:ed|t|n)\b|in\b|on\b|at\b|of\b", m[3]) else None
    m = re.match(r"How many ([a-z][\w -]*?) (?:did|does|do) (.+)$", q)
    if m and kind == "number" and len(a.split()) == 1:
        n = did_clause(m[2])
        if n:
            verb = past_of(n[1]) if " did " in q else (third_of(n[1]) if " does " in q else n[1])
            return f"{n[0]} {verb} {a} {m[1]} {n[2]}"
        n = re.match(r"(.+) have$", m[2])
        if n:
            return f"{n[1]} {'had' if ' did ' in q else 'has' if ' does ' in q else 'have'} {a} {m[1]}"
    m = re.match(r"How (old|tall|long|high|deep|wide|far|large|big|heavy) (is|was|are|were) ((?!there).+)$", q)
    if m and re.match(r"[\d$]", a):
        return f"{m[3]} {m[2]} {a} {m[1] if m[1] not in a and m[1] in ('tall', 'long', 'high', 'deep', 'wide') and len(a.split()) > 1 else ''}"
    return None


def what_be(q, a, kind):
    m = re.match(r"What (is|was|are|were) (?:the )?name of (.+)$", q)
    if m:
        return f"the name of {m[2]} {m[1]} {a}"
    m = re.match(r"What (is|was|are|were) (the [\w' -]+(?: of| for| in)? .+|[\w' ]+'s [\w -]+)$", q)
    if m and not re.search(r"\b(?:called|named|known|used|considered|made|done|doing|about|like|that|which|who)\b", m[2]) and len(a.split()) <= 8 and not re.search(r"\b[a-z]+ed$|\b(?:in|on|at|to|for|by|from|with)$", m[2]):
        if re.match(r"(?:it|they|he|she|to|by|because)\b", a):
            return None
        return f"{m[2]} {m[1]} {a}"
    m = re.match(r"What (is|was|are|were) (.+?) (called|named|known as)$", q)
    if m:
        return f"{m[2]} {m[1]} {m[3]} {a}"
    m = re.match(r"What (?:did|does) (.+)$", q)
    if m:
        n = did_clause(m[1])
        if n and not n[2] and kind in ("name", "phrase") and len(a.split()) <= 8 and re.match(r"(?:a|an|the|his|her|its|their|[A-Z])\b", a):
            return f"{n[0]} {past_of(n[1]) if ' did ' in q else third_of(n[1])} {a}"
    return None


def which(q, a, kind):
    m = re.match(r"(?:What|Which) ([a-z]+(?: [a-z]+)?) ((?:is|was|has|had|can|[a-z]+ed|won|made|wrote|became|led|held|took|runs|lies|contains|borders|covers|provides|includes|produces|plays|owns) .+)$", q)
    if m and kind == "name" and not re.match(r"(?:kind|type|sort|year|time|date|percent\w*|day|did|does|do|month|century|else|are|is|was|were|decade|age|amount|number|part|way)\b", m[1]):
        if re.search(r"\b(?:did|does|do)\b", m[2]) or re.match(r"(?:is|was) [a-z]+ (?:by|of)?$", m[2]) or re.search(r"\b(?:" + "is|was|did|does|are|were" + r") [A-Z]", m[2]) or re.match(r"(?:is|was|has|had) [A-Z]", m[2]):
            return None
        return f"{a} {m[2]}"
    return None


def neutral_form(question, answer):
    return f'The answer to "{clean_question(question)}?" is {answer.strip().rstrip(".")}.'


PHRASE = re.compile(r"\b(?:the|a|an|his|her|its|their) (?:[a-z-]+ ){0,2}[a-z-]{3,}\b(?=[.,;)]| (?:of|in|to|for|by|and|or|on|at|from|is|was|were|are|that|which|with)\b)")
NOT_PHRASE = re.compile(r"\b(?:and|or|with|which|to|said|that|in|of|by|from|for|is|was|were|are|be|had|has|have|not|on|at|as|than|then|nearly|also|it|they|who|when|while|\w+ly|will|would|could|can|made|during|after|before|very|most|more|first|following|same|other|latter|former)\b")


def listed_together(a, b, passage):
    """Report whether two texts stand in one enumeration of the passage, so that both may answer."""
    for x, y in ((a, b), (b, a)):
        for m in re.finditer(re.escape(x), passage):
            rest = passage[m.end():m.end() + 120]
            at = rest.find(y)
            if at >= 0 and not re.search(r"[.;:]|\b(?!and\b|or\b|the\b|of\b|as\b|well\b|both\b)[a-z]+\b", rest[:at]) and re.search(r",|\band\b|\bor\b|&|/|\(", rest[:at]):
                return True
    return False


def other_answers(answer, passage, question):
    """Return texts of the passage of the answer's type that do not answer the question."""
    kind = answer_type(answer)
    if kind == "year":
        found = re.findall(r"\b(?:1\d|20)\d\d\b", passage)
    elif kind == "date":
        found = re.findall(r"\b(?:(?:" + "|".join(MONTHS) + r"|May) \d{1,2}(?:, \d{4})?|\d{1,2} (?:" + "|".join(MONTHS) + r"|May)(?: \d{4})?|(?:" + "|".join(MONTHS) + r") \d{4})\b", passage)
    elif kind == "number":
        tail = " ".join(answer.split()[1:])
        found = [m.group(1) + (" " + tail if tail else "") for m in NUMBER.finditer(passage) if not re.fullmatch(r"(?:1\d|20)\d\d", m.group(1))]
        if "%" in answer:
            found = re.findall(r"\d[\d.]*%", passage)
        if answer[0] in "$€£":
            found = re.findall(r"[$€£]\d[\d.,]*\d(?: [mb]illion)?", passage)
    elif kind == "name":
        n = len(answer.split())
        found = [x for x in (m.group() for m in NAME_SIMPLE.finditer(passage)) if x.split()[0] not in NOT_NAMES and ". " not in x and not re.match(r"\w+ing\b", x) and len(x) > 2 and abs(len(x.split()) - n) <= (1 if n > 1 else 0)]
        found = [re.sub(r"['’]s$", "", x).rstrip(".") for x in found]
    else:
        n = len(answer.split())
        if n > 5 or not re.match(r"(?:the|a|an|his|her|its|their)\b", answer):
            return []
        found = [x for x in PHRASE.findall(passage) if not NOT_PHRASE.search(x) and abs(len(x.split()) - n) <= 1]
    low, ql = answer.lower(), question.lower()
    norm = lambda t: set(re.findall(r"\w+", t.lower())) - {"the", "a", "an", "of", "in"}
    return sorted({x for x in found if not listed_together(answer, x, passage) and x.lower() not in low and low not in x.lower() and not norm(x) & norm(answer) and x.lower() not in ql and not (kind == "name" and norm(x) <= norm(question))})
