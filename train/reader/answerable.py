"""Answerability groups: a question beside passages that answer it and passages that nearly do.

Rows of one group share their question or their passage; at least one of them has an answer and one has none.
A row is {"kind", "heading", "question", "passage", "answer": [start, end] or null, "group"}.
"""

import collections
import glob
import os
import random
import re

import corpora
from edits import NAME_SIMPLE, NOT_NAMES, lower_first, names_in, pick, sentence_case
from rewordings import synonym
from swaps import swaps_of
from questions import answer_type, clean_question
from words import inflect

MAX_WORDS = 170


class Rows:
    """Rows numbers groups and keeps those that have both an answer and a near miss."""

    def __init__(self, rng, size=0):
        self.rng, self.rows, self.group, self.kinds = rng, [], 0, collections.Counter()

    def add(self, rows):
        """Add rows of one group: (kind, heading, question, passage, answer or None)."""
        rows = [r for r in rows if r and len(r[3].split()) <= MAX_WORDS + 10 and len(r[3].split()) >= 4 and len(r[2].split()) >= 1]
        if not any(r[4] for r in rows) or not any(r[4] is None for r in rows):
            return 0
        for kind, heading, question, passage, answer in rows:
            if answer and not (0 <= answer[0] < answer[1] <= len(passage)):
                return 0
        self.group += 1
        for kind, heading, question, passage, answer in rows:
            self.kinds[kind] += 1
            self.rows.append({"kind": kind, "heading": heading, "question": question, "passage": passage, "answer": list(answer) if answer else None, "group": self.group})
        return 1


# ---------------------------------------------------------------- questions of the reading sets

def reading_groups(rows, folder):
    items = load_reading(folder)
    topics = collections.defaultdict(list)
    for i, it in enumerate(items):
        for n in it["names"]:
            topics[n].append(i)
    by_passage = collections.defaultdict(list)
    for i, it in enumerate(items):
        by_passage[it["full"]].append(i)
    for i, it in enumerate(items):
        near = [("read-whole", "", it["question"], it["passage"], it["answer"])]
        makers = [without_answer, lambda r, x: other_entity(r, x, items, topics), number_changed, opposite, lambda r, x: other_attribute(r, x, i, items, topics), noun_changed, elsewhere]
        for make in makers:
            row = make(rows.rng, it)
            if row:
                near.append(row)
        worded = everyday(rows.rng, it)
        if worded:
            near.append(worded)
        rows.add(near)


def load_reading(folder):
    rng, items = random.Random(7), []
    for path in sorted(glob.glob(os.path.join(folder, "read", "*.gz"))):
        for row in corpora.read_rows(path):
            if not row["answers"]:
                continue
            a = max(row["answers"], key=lambda x: len(x["text"])) if "policyqa" in row["source"] else row["answers"][0]
            start, text = a["start"], a["text"]
            if row["passage"][start:start + len(text)] != text or not text.strip() or len(text.split()) > 60:
                continue
            cut = corpora.cut_around(row["passage"], start, start + len(text), rng)
            if not cut or len(row["question"].split()) < 3:
                continue
            passage, offset, _ = cut
            names = sorted({n for s, _, n in names_in(passage) if s and len(n) > 3})[:12]
            items.append({"question": corpora.squeeze(row["question"]), "full": row["passage"], "passage": passage, "answer": [start - offset, start - offset + len(text)], "text": text, "names": names, "source": row["source"]})
    return items


def norm(text):
    return re.sub(r"[^\w ]", "", text.lower())


def content(text):
    return {w for w in re.findall(r"[a-z0-9]{4,}", text.lower())} - {"what", "when", "where", "which", "whom", "that", "with", "from", "does", "were", "have", "this", "they", "their", "many", "much", "there", "about", "been", "name"}


def occurs(answer, passage):
    """Report whether the answer, or its last long word, stands in the passage."""
    a = norm(answer)
    if a and a in norm(passage):
        return True
    long = [w for w in re.findall(r"\w{4,}", a)]
    return bool(long) and all(w in norm(passage) for w in long)


def without_answer(rng, it):
    """Take out every sentence that holds the answer, or whose words are most of the question's."""
    spans = corpora.sentence_spans(it["passage"])
    full = corpora.sentence_spans(it["full"])
    source = it["full"] if len(spans) < 3 else it["passage"]
    spans = full if len(spans) < 3 else spans
    kept = [source[a:b] for a, b in spans if not occurs(it["text"], source[a:b])]
    if len(kept) == len(spans) or not kept:
        return None
    while len(" ".join(kept).split()) > MAX_WORDS:
        kept.pop(0 if rng.random() < 0.5 else -1)
    text = " ".join(kept)
    if len(text.split()) < 12 or occurs(it["text"], text) or "policyqa" in it["source"]:
        return None
    if any(len(content(it["question"]) & content(s)) >= 0.8 * max(1, len(content(it["question"]))) for s in kept):
        return None
    return ("answer-removed", "", it["question"], text, None)


def elsewhere(rng, it):
    """A window of the same text that lacks the answer."""
    if "policyqa" in it["source"]:
        return None
    spans = corpora.sentence_spans(it["full"])
    free = [i for i, (a, b) in enumerate(spans) if not occurs(it["text"], it["full"][a:b]) and it["full"][a:b] not in it["passage"]]
    if len(free) < 2:
        return None
    at = free[rng.randrange(len(free) - 1)]
    run = [i for i in range(at, min(at + 5, len(spans))) if i in free]
    text = it["full"][spans[run[0]][0]:spans[run[-1]][1]] if run == list(range(run[0], run[-1] + 1)) else ""
    if not 12 <= len(text.split()) <= MAX_WORDS or occurs(it["text"], text):
        return None
    return ("other-window", "", it["question"], text, None)


def question_names(q):
    return [(a, b, n) for a, b, n in names_in(q) if a > 0]


def other_entity(rng, it, items, topics):
    """Put another name of the topic into the question; it must not stand in the passage."""
    q = it["question"]
    found = question_names(q)
    if not found:
        return None
    a, b, name = pick(rng, found)
    pool = []
    for n in it["names"][:6]:
        for j in topics[n][:40]:
            pool += [x for _, _, x in question_names(items[j]["question"])]
    pool += [x for j in (rng.randrange(len(items)) for _ in range(12)) for _, _, x in question_names(items[j]["question"])]
    pool = sorted({x for x in pool if x.count(" ") == name.count(" ") and x.isupper() == name.isupper() and not set(x.lower().split()) & set(norm(it["passage"] + " " + q).split())})
    if not pool or not set(name.lower().split()) & set(norm(it["passage"]).split()):
        return None
    return ("other-entity", "", q[:a] + pick(rng, pool) + q[b:], it["passage"], None)


def number_changed(rng, it):
    m = re.search(r"(?<![\w.])(\d{4}|\d{1,3})(?![\w.,]*\d)", it["question"])
    if not m or m.group() not in it["passage"]:
        return None
    old = int(m.group())
    new = str(old + pick(rng, [-7, -4, -3, -2, 2, 3, 4, 5, 9]) if old > 10 else old + pick(rng, [1, 2, 3, 4]))
    if new in it["passage"] or int(new) < 1 or re.match(r"(?:st|nd|rd|th|s)\b", it["question"][m.end():]) and old % 10 != int(new) % 10:
        return None
    if re.search(r"(?:World War|type|chapter) $", it["question"][: m.start()]):
        return None
    return ("number-in-question", "", it["question"][: m.start()] + new + it["question"][m.end():], it["passage"], None)


OPPOSITES = {}
for _a, _b in [p.split("/") for p in """first/last last/first largest/smallest smallest/largest biggest/smallest highest/lowest lowest/highest oldest/youngest before/after after/before most/least more/fewer best/worst longest/shortest earliest/latest
    increase/decrease increased/decreased won/lost win/lose lost/won born/buried begin/end began/ended started/ended start/end founded/dissolved opened/closed open/close major/minor northern/southern southern/northern eastern/western western/eastern north/south south/north
    east/west west/east maximum/minimum minimum/maximum enable/disable disable/enable allowed/forbidden supported/opposed opposed/supported accepted/rejected rejected/accepted male/female men/women women/men father/mother mother/father brother/sister sister/brother
    husband/wife wife/husband son/daughter daughter/son king/queen bought/sold sold/bought built/demolished created/destroyed destroyed/restored joined/left arrived/departed before/after raised/lowered common/rare advantages/disadvantages
    benefits/risks similar/different older/younger higher/lower lower/higher larger/smaller previous/next predecessor/successor successor/predecessor earliest/latest import/export exports/imports urban/rural public/private private/public winner/loser summer/winter
    married/divorced arrested/released elected/defeated appointed/dismissed attacked/defended include/exclude included/excluded add/remove install/uninstall collect/delete share/withhold""".split()]:
    OPPOSITES[_a] = _b


def opposite(rng, it):
    """Turn one word of the question into its opposite, or put "not" in; the passage still answers a yes/no question, with the other word."""
    q = it["question"]
    if re.match(r"(?:do|does|did|is|are|was|were|can|could|will|would|should|may|must|has|have)\b", q, re.I):
        return None
    for m in re.finditer(r"[A-Za-z]+", q):
        w = m.group().lower()
        if w in OPPOSITES and OPPOSITES[w] not in norm(it["passage"]).split() and not m.group()[0].isupper():
            if w in ("most", "more") and re.match(r" (?:of|than)", q[m.end():]):
                continue
            return ("opposite-in-question", "", q[: m.start()] + OPPOSITES[w] + q[m.end():], it["passage"], None)
    m = re.search(r"\b(did|does|do|can|could|should|will|is|are|was|were|must|may)\b((?: [A-Z]?[\w']+){1,4}?) ((?:not )?[a-z]+ed|use|have|make|become|win|take|allow|include|share|collect|play|live|write|support|contain|require)\b", q)
    if m and rng.random() < 0.35 and " not " not in q and not re.search(r"\bnot\b", it["passage"]) and answer_type(it["text"]) in ("name", "phrase"):
        return ("negation-in-question", "", q[: m.start(3)] + "not " + q[m.start(3):], it["passage"], None)
    return None


def other_attribute(rng, it, i, items, topics):
    """A question over another passage of the topic whose answer does not stand in this one."""
    pool = sorted({j for n in it["names"][:8] for j in topics[n][:30] if items[j]["full"] != it["full"]})
    rng.shuffle(pool)
    for j in pool[:12]:
        other = items[j]
        shared = [n for _, _, n in question_names(other["question"]) if n in it["passage"]]
        if shared and not occurs(other["text"], it["passage"]) and "policyqa" not in other["source"] and len(content(other["question"]) & content(it["passage"])) < max(3, 0.75 * len(content(other["question"]))):
            return ("other-attribute", "", other["question"], it["passage"], None)
    return None


QUESTION_NOUNS = [w.split(",") for w in re.sub(r"\s+", " ", """capital,population,area,currency,official language,flag;height,weight,age,length;mother,father,wife,brother,sister;birthplace,nationality,religion,occupation;album,song,tour,label;book,film,play,poem;director,producer,composer,editor;
    president,vice president,treasurer,secretary;color,shape,size,weight;cost,price,size,duration;name,nickname,age,salary;cause,treatment,symptom,diagnosis;symptoms,causes,treatments,risk factors;city,country,river,street;university,school,teacher,degree;
    author,publisher,illustrator,translator;king,queen,prince,pope;war,treaty,battle,siege;team,coach,stadium,league;company,founder,headquarters,revenue;language,religion,currency,population;goal,method,result,budget;purpose,origin,cost,duration;
    cookies,passwords,credit card numbers,fingerprints;email address,phone number,home address,date of birth;advertisers,employees,lawyers,insurers;award,medal,fine,scholarship;instrument,language,sport,subject;disease,vaccine,surgery,diet;mountain,lake,island,bridge""").split(";")]


def noun_changed(rng, it):
    q = it["question"]
    options = []
    for group in QUESTION_NOUNS:
        group = [w.strip() for w in group]
        for w in group:
            m = re.search(r"(?:\b(?:the|an?|his|her|its|their|what|which|of|new|official|popular|first|main|best|your|my)|'s) (" + re.escape(w) + r")\b", q, re.I)
            if m:
                options += [(m, x) for x in group if x != w and not re.search(r"\b" + re.escape(x.rstrip("s")), it["passage"], re.I) and x not in q]
    if not options:
        return None
    m, new = pick(rng, options)
    return ("noun-in-question", "", q[: m.start(1)] + new + q[m.end(1):], it["passage"], None)


STOP = set("what who when where which how why is are was were do does did the a an of in on to for by with at from that this it its has have had be been can could would will should may many much there and or as into about you your we our they their he she his her i my me".split())


def keywords(rng, q):
    """Keep the content words, with a tag for the kind of answer."""
    words = [w for w in re.findall(r"[\w'.%-]+", q) if w.lower() not in STOP]
    if not 2 <= len(words) <= 10:
        return None
    first = " ".join(q.lower().split()[:2])
    tags = {"when": ["date", "when", "year"], "where": ["where", "place", "location"], "who": ["who"], "why": ["reason", "why"], "how many": ["number of", "how many"], "how much": ["how much", "amount"]}
    tag = pick(rng, tags.get(first, tags.get(first.split()[0], [""])))
    text = " ".join(words).lower() if rng.random() < 0.7 else " ".join(words)
    return f"{text} {tag}".strip() if rng.random() < 0.5 and tag != "number of" else f"{tag} {text}".strip()


def indirect(rng, low):
    """Put a be-question into an indirect frame: "what is the capital" becomes "tell me what the capital is"."""
    m = re.match(r"(what|who|when|where|why) (is|are|was|were) (.+)$", low)
    if not m or len(m[3].split()) > 9 or re.search(r"\b[a-z]+(?:ed|ing)\b|\b(?:born|made|built|used|called|named|for|to|in|at|by)$", m[3]):
        return None
    clause = f"{m[1]} {m[3]} {m[2]}"
    return pick(rng, ["I'd like to know {}", "Can you tell me {}?", "Do you know {}?", "I want to find out {}", "Could you say {}?", "tell me {}", "I was wondering {}"]).format(clause)


def everyday(rng, it):
    """The question as someone would put it: key words, or an indirect frame."""
    q = clean_question(it["question"])
    low = q[0].lower() + q[1:] if not re.match(r"[A-Z]\w*[A-Z]", q) else q
    new = None
    way = rng.random()
    if way < 0.42:
        new = keywords(rng, q)
    elif way < 0.68:
        new = indirect(rng, low)
    elif way < 0.85:
        options = synonym(q + ".", None, rng)
        new = options[0][:-1] + pick(rng, ["?", ""]) if options else None
    if not new:
        new = pick(rng, ["{}", "{}?", "{} ?", "so {}?", "please, {}?", "quick question: {}?"]).format(low.lower() if rng.random() < 0.6 else low)
    return ("everyday", "", new, it["passage"], it["answer"])


def swapped_groups(rows, folder, nouns):
    """Questions with two phrases exchanged, or with a phrase of the passage in another's place: every word stands in the passage, the answer does not."""
    for it in load_reading(folder):
        if "policyqa" in it["source"]:
            continue  # its questions fit many places of a passage
        answering = next((it["passage"][a:b] for a, b in corpora.sentence_spans(it["passage"]) if a <= it["answer"][0] < b), "")
        near = [("read-swapped", "", it["question"], it["passage"], it["answer"])]
        for kind, edited in swaps_of(it["question"], it["passage"], nouns, rows.rng):
            fresh = set(norm(edited).split()) - set(norm(it["question"]).split())
            if kind.startswith("place") and fresh <= set(norm(answering).split()) or occurs(it["text"], edited):
                continue  # the sentence that answers may answer this too
            near.append((kind + "-in-question", "", sentence_case(edited), it["passage"], None))
        worded = everyday(rows.rng, it)
        rows.add(near + ([worded] if worded else []))


# ---------------------------------------------------------------- ranking sets

def ranking_groups(rows, folder, limit):
    """The sentence of a good passage that answers is unknown, so the span is the passage's first sentence with most of the question's words."""
    path = os.path.join(folder, "rank", "wikiqa.jsonl.gz")
    for r in corpora.read_rows(path):
        q = r["question"]
        good = corpora.squeeze(r["positive"])
        if len(good.split()) > MAX_WORDS:
            continue
        near = [("wikiqa", "", q, good, [0, len(good)])]
        near += [("wikiqa-other", "", q, corpora.squeeze(n), None) for n in r["negatives"][:2] if len(n.split()) <= MAX_WORDS]
        rows.add(near)
    medquad(rows, os.path.join(folder, "rank", "medquad.jsonl.gz"), limit)


def medquad(rows, path, limit):
    made = 0
    for r in corpora.read_rows(path):
        text = corpora.squeeze(r["positive"])
        spans = [(a, b) for a, b in corpora.sentence_spans(text) if corpora.is_prose(text[a:b], 6, 45)]
        q = re.sub(r" ?\?$", "?", r["question"].replace("is (are)", "is").replace("  ", " "))
        if not spans or made >= limit or not re.match(r"What (?:is|are|causes)\b|How many people\b|Is\b", q) or re.search(r"^(?:What are the symptoms|What are the treatments)", q):
            continue
        topic = re.sub(r"^(?:What (?:is|are|causes)|How many people are affected by|Is) ?|\?$| inherited$|^the genetic changes related to ", "", q).strip()
        a, b = spans[0]
        if not content(topic) or not content(topic) & content(text[a:b]) or q.endswith("inherited?") and "inherit" not in text[a:b]:
            continue
        end = b
        while len(text[a:end].split()) < 60 and any(x == end + 1 for x, _ in spans):
            end = next(y for x, y in spans if x == end + 1)
        passage = text[a:end]
        near = [("medquad", "", q, passage, [0, b - a])]
        for n in r["negatives"]:
            n = corpora.squeeze(n)
            cut = " ".join(n.split()[: rows.rng.randrange(30, 120)])
            if norm(passage[:60]) not in norm(cut) and not re.search(r"\b(?:is|are) (?:a|an|the)\b", cut[:120]) and len(cut.split()) > 10:
                near.append(("medquad-other", "", q, cut, None))
        made += rows.add(near[:3])


def question_rows(rows, folder, limit):
    """Add the groups made of the reading and ranking sets."""
    reading_groups(rows, folder)
    ranking_groups(rows, folder, limit)
