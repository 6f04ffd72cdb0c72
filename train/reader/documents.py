"""Groups made of the structure of documents: headings, lists with a lead-in, options and tables.

structure_groups makes entailment groups; document_groups makes answerability groups.
"""

import re

import corpora
from edits import lower_first, pick, sentence_case
from words import inflect

MAX_WORDS = 165
KNOWN_VERBS = """abort accept activate add adjust allow allocate analyze append apply archive assign attach block build bypass calculate call change check choose clean clear close collect combine commit compare compile compress compute configure confirm connect control convert copy count create
decode decompress define delete describe detach determine disable discard display download drop dump edit emit enable encode encrypt enforce ensure exclude execute exit expand export extract fail fetch filter find flush follow force format generate get give group handle hide hold ignore implement import
include increase inhibit initialize insert inspect install invert invoke keep kill limit link list load lock log look make manage mark match merge modify monitor mount move name normalize omit open order output override overwrite parse pass perform preserve prevent print process produce prompt protect provide prune
push put quote raise read rebuild receive record reduce refresh register reject release reload remove rename render repeat replace report request require reset resolve restart restore restrict retrieve return reverse rewrite run save scan search select send set show shut sign skip sort specify split start stop store strip
stream substitute suppress switch sync terminate test toggle trace track transfer translate treat truncate turn unlock unmount unset update upload use validate verify wait warn watch wrap write""".split()
THIRD = {inflect(v)[1]: v for v in KNOWN_VERBS}
BASE = set(KNOWN_VERBS)
GERUNDS = {inflect(v)[2]: v for v in KNOWN_VERBS + "install manage work get start debug develop handle understand deal".split()}


def words(text):
    return len(text.split())


# ---------------------------------------------------------------- options and definitions

OPTION_TERM = re.compile(r"^(-{1,2}[\w?][\w-]*)(?:[ =,\[<|].*)?$")


def option_name(term):
    """Return the longest option of a term such as "-f, --force=MODE"."""
    if not re.match(r"-", term):
        return term if re.fullmatch(r"[\w.$()/-]{2,40}", term) and words(term) <= 2 else None
    names = [n for n in re.findall(r"(?<![\w-])--?[a-zA-Z?][\w-]*", term)]
    return max(names, key=len) if names else None


def first_sentence(text):
    parts = corpora.sentences(text)
    return parts[0] if parts else ""


def predicate(text):
    """Return the description's first sentence as a third-person verb phrase, or None."""
    s = first_sentence(text).rstrip(".")
    m = re.match(r"([A-Z][a-z]+)\b(?! ?[:(])", s)
    if not m or not 3 <= words(s) <= 28 or corpora.CODE.search(s) or ":" in s:
        return None
    w = m.group(1).lower()
    if w in BASE and not re.match(r"(?:Use|Look|Name|List|Process|Group|Output|Order|Format|Log|Link|Test|Limit|Record|Report|Request|Release) (?:of|to|for|is|that|name|file|directory|by|with|in|as)\b", s):
        return inflect(w)[1] + s[m.end():], w + s[m.end():]
    if w in THIRD:
        return w + s[m.end():], THIRD[w] + s[m.end():]
    return None


def second_verb(text):
    """Report whether a coordinated second verb would need to be inflected too."""
    return bool(re.search(r"\b(?:and|then|or) (?:" + "|".join(KNOWN_VERBS) + r")\b", text))


def alike(a, b):
    """Report whether two descriptions share so many words that one may follow from the other."""
    x, y = set(re.findall(r"\w+", a.lower())), set(re.findall(r"\w+", b.lower()))
    return len(x & y) > 0.55 * min(len(x), len(y))


def options_of(entries):
    out = []
    for term, text in entries:
        name, p = option_name(term), predicate(text)
        if name and p and not second_verb(p[0]):
            out.append((name, term, text, p))
    names = [o[0] for o in out]
    return [o for o in out if names.count(o[0]) == 1]


def render_entries(entries, rng):
    style = rng.randrange(4)
    form = ["{}\n    {}", "{}: {}", "{} - {}", "{}  {}"][style]
    return [form.format(t, d) for t, d in entries]


def clip(text, limit):
    """Keep whole sentences up to a limit of words."""
    out = []
    for s in corpora.sentences(text):
        if out and words(" ".join(out)) + words(s) > limit:
            break
        out.append(s)
    return " ".join(out)


def neighbours(items, at, rng, budget):
    """Return the range of items around at that fits a budget of words."""
    lo = hi = at
    want = rng.randrange(2, 7)
    total = words(items[at])
    while hi - lo + 1 < want:
        options = [i for i in (lo - 1, hi + 1) if 0 <= i < len(items)]
        if not options:
            break
        i = pick(rng, options)
        if total + words(items[i]) > budget:
            break
        total += words(items[i])
        lo, hi = min(lo, i), max(hi, i)
    return lo, hi


def option_groups(groups, doc, heading, entries, limit=40):
    rng, made = groups.rng, 0
    entries = [(t, clip(d, 45)) for t, d in entries]
    good = options_of(entries)
    if len(good) < 2:
        return 0
    rng.shuffle(good)
    by_term = {t: i for i, (t, _) in enumerate(entries)}
    lines = render_entries(entries, rng)
    for name, term, text, (third, base) in good[:limit]:
        lo, hi = neighbours(lines, by_term[term], rng, MAX_WORDS)
        near = [g for g in good if g[0] != name and lo <= by_term[g[1]] <= hi and not alike(g[3][1], base)]
        if not near:
            continue
        other = pick(rng, near)
        passage = "\n".join(lines[lo:hi + 1])
        start = passage.index(lines[by_term[term]])
        span = (start, start + len(lines[by_term[term]]))
        frame = pick(rng, ["{n} {t}.", "The {n} option {t}.", "The option {n} {t}.", "To {b}, use {n}.", "Use {n} to {b}."]) if name.startswith("-") else pick(rng, ["{n} {t}.", "To {b}, use {n}."])
        say = lambda n, p: sentence_case(frame.format(n=n, t=p[0], b=p[1])) if frame[0] != "{" else frame.format(n=n, t=p[0], b=p[1])
        true = say(name, (third, base))
        false = [say(other[0], (third, base))] if rng.random() < 0.5 else [say(name, other[3])]
        if rng.random() < 0.2:
            true_pair = f"{name} {third}, and {other[0]} {other[3][0]}."
            false = [f"Both {name} and {other[0]} {base}.", f"{name} {other[3][0]}, and {other[0]} {third}."][rng.randrange(2):][:1]
            true = true_pair
        made += groups.add("option", f"{doc.title} > {heading}" if rng.random() < 0.6 else "", passage, [true], [{"claim": f, "label": "neutral" if rng.random() < 0.6 else "contradicted"} for f in false], span, "option", doc.source)
    return made


# ---------------------------------------------------------------- lists

NOUN_AFTER_FOLLOWING = re.compile(r"\b(?:the|these|those) following ((?:[a-z-]+ ){0,2}[a-z-]+s)\b|\b(?:any|one|some|all|each) of the following(?: ([a-z-]+s))?\b|\bthe following\b", re.I)


def join_item(lead, item):
    """Return a statement of a lead-in and one item, or None where they do not join safely."""
    item = first_sentence(item).rstrip(".;,")
    item = re.sub(r",? (?:and|or)$", "", item)
    lead = lead.rstrip(": ").strip()
    if not 1 <= words(item) <= 22 or words(lead) > 22 or corpora.CODE.search(item) or ":" in item or not re.match(r"[A-Za-z`\"-]", item):
        return None
    noun_item = not re.search(r"\b(?:is|are|was|were|has|have|can|will|must|should|may|you|we|it)\b", item)
    m = re.search(r"\b(?:include|includes|are|is|by|to|for|with|such as|from|of|can|must|should|may|will|that|either|on|in|not)$", lead)
    if m and not re.search(r"\b(?:following|as follows|example|below|this)\b", lead, re.I):
        if m.group() in ("to", "can", "must", "should", "may", "will"):
            ok = item.split()[0].lower() in BASE
        elif m.group() == "by":
            ok = item.split()[0].lower().endswith("ing") or noun_item
        else:
            ok = noun_item and not item.split()[0].lower() in BASE
        return f"{lead} {lower_first(item)}." if ok else None
    m = re.match(r"(?:The following|These) ((?:[a-z-]+ ){0,2}[a-z-]+s) (are|were|have been|will be|can be|must be|should be|may be) ([^:]{3,60})$", lead)
    if m and noun_item and words(item) <= 12:
        return f"{sentence_case(item)} is one of the {m[1]} that {m[2]} {m[3]}."
    m = re.match(r"(.{6,80}?) the following ((?:[a-z-]+ ){0,2}[a-z-]+s)$", lead)
    if m and noun_item and words(item) <= 12 and not re.search(r"\b(?:not|if|of|any|all|each|one)$", m[1]):
        return f"One of the {m[2]} that {lower_first(m[1])} is {lower_first(item)}." if re.match(r"(?:[A-Z]\w+|The \w+|You|We)(?: \w+)? (?:supports?|provides?|accepts?|has|have|contains?|includes?|uses?|collects?|offers?|defines?|recogni[sz]es|returns?|understands?)$", m[1]) else None
    m = re.match(r"There are (?:\w+ )?((?:[a-z-]+ ){0,2}[a-z-]+s)(?: (?:of|for|to|in|that) [^:]{3,50})?$", lead)
    if m and noun_item and words(item) <= 12:
        return f"{sentence_case(item)} is one of the {lead[len('There are '):].split(' ', 1)[1] if re.match(r'There are (?:two|three|four|five|six|several|many|some|a|seven|eight)', lead) else lead[len('There are '):]}."
    return None


def render_list(lead, items, rng):
    mark = pick(rng, ["- ", "* ", "• ", "number"])
    lines = [f"{i + 1}. {x}" if mark == "number" else mark + x for i, x in enumerate(items)]
    return "\n".join([lead] + lines)


def lists_of(doc):
    out = []
    for section in doc.sections:
        before = None
        for block in section.blocks:
            if block[0] == "ul":
                items = [clip(i, 35) for i in block[2]]
                lead = block[1] or (before if before and before.endswith(":") else "")
                if 2 <= len(items) <= 12 and lead and 3 <= words(lead) <= 30:
                    out.append((section.heading, lead, items))
            before = corpora.sentences(block[1])[-1] if block[0] == "p" and corpora.sentences(block[1]) else None
    return out


def list_groups(groups, doc):
    rng, made = groups.rng, 0
    lists = [l for l in lists_of(doc) if any(join_item(l[1], i) for i in l[2])]
    for n, (heading, lead, items) in enumerate(lists):
        items = items[:7]
        others = [l for j, l in enumerate(lists) if j != n and l[1] != lead]
        first = render_list(lead, items, rng)
        if words(first) > MAX_WORDS:
            continue
        for at, item in enumerate(items[:4]):
            true = join_item(lead, item)
            if not true:
                continue
            passage, false = first, None
            if others:
                _, lead2, items2 = pick(rng, others)
                second = render_list(lead2, items2[:5], rng)
                strangers = [join_item(lead, x) for x in items2 if x.lower() not in first.lower()]
                strangers = [x for x in strangers if x]
                if strangers:
                    false = pick(rng, strangers)
                    if words(first) + words(second) <= MAX_WORDS:
                        passage = first + "\n\n" + second if rng.random() < 0.5 else second + "\n\n" + first
            if false:
                start = passage.index(first)
                made += groups.add("list-item", f"{doc.title} > {heading}" if rng.random() < 0.5 else "", passage, [true], [{"claim": false, "label": "neutral"}], (start, start + len(first)), "list-item", doc.source)
    return made


# ---------------------------------------------------------------- tables

def tables_of(doc):
    for section in doc.sections:
        for block in section.blocks:
            if block[0] != "table":
                continue
            header, rows = block[1], [r for r in block[2] if r[0] and words(r[0]) <= 5]
            rows = [[c.rstrip(".") for c in r] for r in rows]
            if any(":" in h for h in header) or any(r[0].endswith(":") for r in rows) or sum(h[:1].islower() for h in header) > len(header) / 2:
                continue
            if 2 <= len(header) <= 7 and all(1 <= words(h) <= 4 for h in header) and len(rows) >= 3 and len({r[0] for r in rows}) == len(rows) and len(set(header)) == len(header):
                yield section.heading, header, rows


def render_table(header, rows, rng):
    if rng.random() < 0.6:
        return [" | ".join(header)] + [" | ".join(r) for r in rows]
    return ["; ".join(f"{h}: {c}" for h, c in zip(header, r)) for r in rows]


def table_cells(header, rows, rng, count):
    """Yield (row, column, value, other value of the column in another row)."""
    spots = [(i, j) for i in range(len(rows)) for j in range(1, len(header)) if rows[i][j] and words(rows[i][j]) <= 8]
    rng.shuffle(spots)
    for i, j in spots[:count]:
        others = [r[j] for r in rows if r[j] and r[j].lower() != rows[i][j].lower() and words(r[j]) <= 8]
        if others:
            yield i, j, rows[i][j], pick(rng, others)


def table_groups(groups, doc):
    rng, made = groups.rng, 0
    for heading, header, rows in tables_of(doc):
        at = rng.randrange(max(1, len(rows) - 7))
        rows = rows[at:at + rng.randrange(3, 8)]
        lines = render_table(header, rows, rng)
        passage = "\n".join(lines)
        if words(passage) > MAX_WORDS or len(rows) < 2:
            continue
        for i, j, value, other in table_cells(header, rows, rng, 3):
            head, name = header[j], rows[i][0]
            low = lower_first(head) if not head.isupper() else head
            frame = pick(rng, ["The {h} of {r} is {v}.", "For {r}, the {h} is {v}.", "{r} has {v} as its {h}.", "{r}: {h} {v}."])
            true, false = frame.format(h=low, r=name, v=value), frame.format(h=low, r=name, v=other)
            line = lines[-len(rows) + i]
            start = passage.index(line)
            made += groups.add("table", f"{doc.title} > {heading}" if rng.random() < 0.5 else "", passage, [true], [{"claim": false, "label": "contradicted"}], (start, start + len(line)), "table", doc.source)
    return made


# ---------------------------------------------------------------- headings

THIS = re.compile(r"^(?:This|The) (command|function|method|package|program|utility|module|tool|library|project|crate) (?=(?:is|are|returns?|can|will|does|has|creates?|allows?|provides?|reads?|writes?|takes?|sets?|prints?|may|must|should|displays?|implements?|[a-z]+s) )")


def named_thing(doc, section, noun):
    """Return the name that "this command", "this package" or "this function" stands for in a section, or None."""
    title = re.sub(r"\(\d\w*\)$| Manual Page$", "", doc.title).strip()
    last = section.heading.split(" > ")[-1]
    if doc.source in ("git-2.39", "man") and noun in ("command", "program", "utility", "tool"):
        return title
    if doc.source in ("go", "python") and noun in ("function", "method") and not last[:1].isupper() or doc.source == "go" and noun in ("function", "method"):
        return last
    if doc.source in ("go", "python") and noun in ("package", "module"):
        return title
    if doc.source == "readme" and noun in ("package", "library", "project", "crate", "tool", "module") and title not in ("api", "doc", "docs", "src"):
        return title
    return None


def heading_groups(groups, doc, titles):
    """Put the thing that the heading names in the place of "this command", and another of its kind for the false side."""
    rng, made = groups.rng, 0
    for section in doc.sections:
        if made >= 4:
            break
        for block in section.blocks[:6]:
            if block[0] != "p":
                continue
            for s in corpora.sentences(block[1])[:4]:
                m = THIS.match(s)
                if not m or not corpora.is_prose(s, 6, 34) or words(block[1]) > MAX_WORDS:
                    continue
                name = named_thing(doc, section, m[1])
                if not name or not re.fullmatch(r"[\w.:/-]{2,40}", name):
                    continue
                pool = [h.heading.split(" > ")[-1] for h in doc.sections] if m[1] in ("function", "method") else titles
                pool = [re.sub(r"\(\d\w*\)$", "", t).strip() for t in pool]
                pool = [t for t in pool if t != name and re.fullmatch(r"[\w.:/-]{2,40}", t) and t not in block[1] and t not in name and name not in t]
                if not pool:
                    continue
                other = pick(rng, pool)
                start = block[1].index(s)
                made += groups.add("heading", f"{doc.title} > {section.heading}", block[1], [name + " " + s[m.end():]], [{"claim": other + " " + s[m.end():], "label": "neutral"}], (start, start + len(s)), "heading", doc.source)
    return made


def structure_groups(groups, docs):
    titles = {}
    for d in docs:
        titles.setdefault(d.source, []).append(d.title)
    for doc in docs:
        for section in doc.sections:
            for block in section.blocks:
                if block[0] == "dl":
                    option_groups(groups, doc, section.heading, block[1])
        list_groups(groups, doc)
        table_groups(groups, doc)
        if doc.title:
            heading_groups(groups, doc, [groups.rng.choice(titles[doc.source]) for _ in range(12)])


# ---------------------------------------------------------------- answerability

PLAIN_HEADING = re.compile(r"^[A-Za-z][\w' /-]{3,60}$")
DULL = re.compile(r"^(?:Name|Synopsis|Description|Options|See also|Author|Authors|Bugs|Examples?|Copyright|Notes?|Overview|Introduction|Files|Usage|Environment|Return value|Errors|History|Contents|Index|License|Conforming to|Versions|Attributes|Background|Summary|Conclusion|Reporting bugs|Diagnostics|Resources|References|Table of contents|Standards|Misc|General|Other|Discussion|Details|Caveats|Navigation)$", re.I)


def section_text(section, limit=MAX_WORDS):
    out = []
    for block in section.blocks:
        if block[0] == "p":
            out.append(block[1])
        elif block[0] == "ul":
            out.append("\n".join(([block[1]] if block[1] else []) + ["- " + i for i in block[2]]))
        else:
            break
        if words("\n".join(out)) > limit:
            out.pop()
            break
    return "\n".join(out) if out else clip(section.blocks[0][1], limit) if section.blocks and section.blocks[0][0] == "p" else ""


def content(text):
    return {w.rstrip("s") for w in re.findall(r"[a-z0-9]{4,}", text.lower())} - {"what", "this", "that", "with", "from", "when", "your", "using", "into", "about"}


def heading_questions(title, text, rng):
    """Return questions that a section of this title answers."""
    camel = re.search(r"[a-z][A-Z]|[A-Z]{2}|[_(]", title.split()[0])
    low = title if camel else title.lower() if rng.random() < 0.5 else title[0].lower() + title[1:]
    first = title.split()[0].lower()
    if title.endswith("?") or re.match(r"(?:How|What|Why|When|Where|Which|Can|Does|Is|Are|Who)\b", title):
        return [title.rstrip("?") + "?", title.lower().rstrip("?")]
    if first in GERUNDS and words(title) >= 2:
        phrase = GERUNDS[first] + low[len(first):]
        return [f"How do I {phrase}?", f"how to {phrase}", f"How can one {phrase}?", f"is it possible to {phrase}?", f"What is the way to {phrase}?"]
    if first in BASE and re.match(r"[A-Z]?[a-z]+ (?:a|an|the|your|to|all|with|from|\w+ \w+)\b", title) and not re.match(r"\w+ (?:of|and|in|is|\w+ing)\b", title):
        return [f"How do I {low}?", f"how to {low}", f"How can I {low}?"]
    plural = re.search(r"[^su]s$", title)
    be = "are" if plural else "is"
    general = [low, f"What does the documentation say about {low}?", f"tell me about {low}", f"{low}?", f"information on {low}"]
    if not re.match(r"(?:the |an? )?" + re.escape(title.lower()) + r"(?: \([^)]*\))? (?:is|are|was|were|refers?|means?|provides?|allows?|lets|[a-z]+s) ", text.lower()):
        return general
    return general + [f"What {be} {low}?", f"Can you explain {low}?", f"what {be} {low}"] * 2


def answer_sentence(title, text):
    """Return the span of the first sentence, with the list that it leads into, if it shares words with the title; else None."""
    end = text.find("\n") if "\n" in text else len(text)
    spans = corpora.sentence_spans(text[:end])
    if not spans:
        return None
    a, b = spans[0]
    want = content(title)
    if not 4 <= words(text[a:b]) <= 45 or len(want & content(text[a:b])) < max(1, (len(want) + 1) // 2):
        return None
    if text[a:b].endswith(":"):
        rest = re.match(r"(?:\n- [^\n]+)+", text[b:])
        if not rest or words(text[a:b + rest.end()]) > 110:
            return None
        return a, b + rest.end()
    return (a, b) if text[a:b][-1] in ".!?" else None


def heading_rows(rows, doc):
    rng = rows.rng
    sections = [(s, section_text(s)) for s in doc.sections if s.heading]
    sections = [(s, t) for s, t in sections if 15 <= words(t) <= MAX_WORDS]
    if len(sections) < 3:
        return 0
    made = 0
    for s, text in rng.sample(sections, min(8, len(sections))):
        title = s.heading.split(" > ")[-1]
        if DULL.match(title) or not PLAIN_HEADING.match(title.rstrip("?")) or words(title) > 9:
            continue
        span = answer_sentence(title, text)
        if not span:
            continue
        about = title if words(title) > 1 or title[0].islower() else title
        question = pick(rng, heading_questions(about, text[span[0]:span[1]], rng))
        group = [("heading", s.heading if rng.random() < 0.5 else "", question, text, span)]
        far = [(o, t) for o, t in sections if o is not s and not content(title) & content(t + " " + o.heading)]
        near = [(o, t) for o, t in sections if o is not s and (o, t) not in far and len(content(title) & content(t)) < len(content(title)) and not content(title) & content(o.heading)]
        for o, t in rng.sample(far, min(1, len(far))) + rng.sample(near, min(1, len(near))):
            group.append(("heading-other", o.heading if rng.random() < 0.5 else "", question, t, None))
        made += rows.add(group)
    return made


def option_rows(rows, doc):
    rng, made = rows.rng, 0
    for section in doc.sections:
        for block in section.blocks:
            if block[0] != "dl":
                continue
            entries = [(t, clip(d, 40)) for t, d in block[1]]
            good = options_of(entries)
            if len(good) < 2:
                continue
            lines = render_entries(entries, rng)
            at = {t: i for i, (t, _) in enumerate(entries)}
            rng.shuffle(good)
            for name, term, text, (third, base) in good[:8]:
                made += option_row(rows, section, lines, at, good, name, term, text, third, base)
    return made


def option_row(rows, section, lines, at, good, name, term, text, third, base):
    rng, i = rows.rng, at[term]
    lo, hi = neighbours(lines, i, rng, MAX_WORDS)
    passage = "\n".join(lines[lo:hi + 1])
    start = passage.index(lines[i])
    span = (start, start + len(lines[i]))
    kind = "option" if name.startswith("-") else pick(rng, ["entry", "name"])
    short = re.split(r" \(|, (?:which|and|but|so)| if | when ", base)[0]
    forward = [f"What does {name} do?", f"what is {name} for", f"What is the meaning of {name}?", f"explain {name}", f"What happens with {name}?"]
    backward = [f"Which {kind} {third}?", f"How do I {short}?", f"how to {short}", f"How can I {short}?", f"Is there a way to {short}?", f"Can I {short}?", f"I want to {short}"]
    question = pick(rng, forward if rng.random() < 0.45 else backward)
    group = [("option", section.heading if rng.random() < 0.5 else "", question, passage, span)]
    rest = [k for k in range(len(lines)) if k != i]
    rest = [k for k in rest if name not in lines[k]]
    if rest:
        k = rest[rng.randrange(len(rest))]
        lo2, hi2 = neighbours([lines[x] for x in rest], rest.index(k), rng, MAX_WORDS)
        other = "\n".join(lines[x] for x in rest[lo2:hi2 + 1])
        if name not in other and short.lower() not in other.lower():
            group.append(("option-other", section.heading if rng.random() < 0.5 else "", question, other, None))
    absent = [g for g in good if g[0] != name and g[0] not in passage and g[3][1] not in passage]
    if absent:
        g = pick(rng, absent)
        short2 = re.split(r" \(|, (?:which|and|but|so)| if | when ", g[3][1])[0]
        group.append(("option-absent", "", pick(rng, [f"What does {g[0]} do?", f"How do I {short2}?", f"Which {kind} {g[3][0]}?"]), passage, None))
    return rows.add(group)


def lead_question(lead, rng):
    """Return a question that a list with this lead-in answers, or None."""
    lead = lead.rstrip(": ").strip()
    m = re.match(r"(?:The following|These|There are (?:\w+ )?)(?: )?((?:[a-z-]+ ){0,2}[a-z-]+s) (are|were|have been|will be|can be|must be|should be|may be) ([^:]{3,60})$", lead)
    if m:
        return pick(rng, [f"Which {m[1]} {m[2]} {m[3]}?", f"What {m[1]} {m[2]} {m[3]}?", f"{m[1]} {m[3]}"])
    m = re.match(r"There are (?:\w+ )?((?:[a-z-]+ ){0,2}[a-z-]+s)( (?:of|for|to|in|that) [^:]{3,50})?$", lead)
    if m:
        return pick(rng, [f"What are the {m[1]}{m[2] or ''}?", f"Which {m[1]} are there{m[2] or ''}?", f"list of {m[1]}{m[2] or ''}"])
    m = re.match(r"((?:The |A |An )?[A-Z]?[\w ./-]{2,40}?) (supports|provides|accepts|has|contains|includes|uses|collects|offers|defines|recognizes|requires|returns) (?:the )?following ((?:[a-z-]+ ){0,2}[a-z-]+s)$", lead)
    if m:
        verb = inflect_base(m[2])
        return pick(rng, [f"Which {m[3]} does {lower_first(m[1])} {verb}?", f"What {m[3]} does {lower_first(m[1])} {verb}?", f"{m[3]} of {lower_first(m[1])}"])
    m = re.match(r"((?:The |Some |Common |Other |Typical |Examples of )[\w ./-]{3,60}?) (include|includes|are|is)$", lead)
    if m and not re.search(r"\b(?:this|these|it|they|that|which|there|following|example)\b", m[1], re.I):
        be = "are" if m[2] in ("include", "are") else "is"
        return pick(rng, [f"What {be} {lower_first(m[1])}?", f"{lower_first(m[1])}", f"Which are {lower_first(m[1])}?" if be == "are" else f"what is {lower_first(m[1])}"])
    m = re.match(r"To ([a-z][\w ,'/-]{5,60}?)(?:, (?:do the following|follow these steps|you (?:can|need to|must|should).*))$", lead)
    if m:
        return pick(rng, [f"How do I {m[1]}?", f"how to {m[1]}", f"What are the steps to {m[1]}?"])
    m = re.match(r"You can (?:use [\w -]+ to )?([a-z][\w '/-]{5,60}?)(?: in (?:the following|\w+) ways| as follows| by| with| using)$", lead)
    if m:
        return pick(rng, [f"How can I {m[1]}?", f"how to {m[1]}"])
    return None


def inflect_base(third):
    from edits import PRESENT
    return PRESENT.get(third) or THIRD.get(third) or {"has": "have", "collects": "collect", "recognizes": "recognize"}.get(third, third.rstrip("s"))


def list_rows(rows, doc):
    rng, made = rows.rng, 0
    lists = lists_of(doc)
    for heading, lead, items in lists:
        question = lead_question(lead, rng)
        if not question:
            continue
        body = render_list(lead, items[:8], rng)
        if words(body) > 140:
            continue
        before, after = around(doc, lead, 165 - words(body))
        passage = "\n".join(x for x in (before, body, after) if x)
        start = passage.index(body)
        group = [("list", heading if rng.random() < 0.5 else "", question, passage, (start, start + len(body)))]
        others = [render_list(l[1], l[2][:8], rng) for l in lists if l[1] != lead and words(render_list(l[1], l[2][:8], rng)) < MAX_WORDS]
        others = [o for o in others if len(content(question) & content(o)) < max(1, len(content(question)))]
        if others:
            group.append(("list-other", heading if rng.random() < 0.5 else "", question, pick(rng, others), None))
        if before and len(before.split()) > 12:
            group.append(("list-removed", "", question, before if len(before.split()) > 12 else after, None))
        made += rows.add(group)
    return made


def around(doc, lead, budget):
    """Return a neighbouring paragraph before and after the list with this lead-in, within a budget of words."""
    for section in doc.sections:
        for i, block in enumerate(section.blocks):
            if block[0] == "ul" and block[1] == lead:
                before = section.blocks[i - 1][1] if i and section.blocks[i - 1][0] == "p" else ""
                after = section.blocks[i + 1][1] if i + 1 < len(section.blocks) and section.blocks[i + 1][0] == "p" else ""
                before = clip(before, budget) if words(clip(before, budget)) <= budget else ""
                left = budget - words(before)
                after = clip(after, left) if words(clip(after, left)) <= left else ""
                return before, after
    return "", ""


def table_rows(rows, doc):
    rng, made = rows.rng, 0
    for heading, header, body in tables_of(doc):
        at = rng.randrange(max(1, len(body) - 6))
        part = body[at:at + rng.randrange(3, 8)]
        lines = render_table(header, part, rng)
        passage = "\n".join(lines)
        if words(passage) > MAX_WORDS or len(part) < 2:
            continue
        for i, j, value, _ in table_cells(header, part, rng, 2):
            head, name = lower_first(header[j]), part[i][0]
            frame = pick(rng, ["What is the {h} of {r}?", "{r} {h}", "What is the {h} for {r}?", "{h} of {r}"])
            line = lines[-len(part) + i]
            start = passage.index(line)
            inside = line.find(value)
            group = [("table", heading if rng.random() < 0.5 else "", frame.format(h=head, r=name), passage, (start + max(inside, 0), start + max(inside, 0) + len(value)) if inside >= 0 and line.count(value) == 1 else (start, start + len(line)))]
            gone = "\n".join(l for l in lines if l != line)
            if name not in gone:
                group.append(("table-removed", "", group[0][2], gone, None))
            absent = [r[0] for r in body if r[0] not in passage]
            if absent:
                group.append(("table-absent", "", frame.format(h=head, r=pick(rng, absent)), passage, None))
            made += rows.add(group)
    return made


YES_NO = re.compile(r"^((?:The |A |An |This |Its |Your )?(?:[A-Z]?[\w.'()-]+)(?: (?:[\w.'()-]+)){0,6}?) (is|are|was|were|can|must|should|may|will|has to|cannot) (?!(?:be )?(?:also|therefore|thus|then)\b)([a-z][^.;:]{6,120})\.$")


def yes_no_rows(rows, doc):
    """Turn declarative sentences into yes/no questions; the sentence is the answer."""
    rng, made, count = rows.rng, 0, 0
    for section in doc.sections:
        for block in section.blocks:
            if block[0] != "p" or count >= 3 or words(block[1]) > 400:
                continue
            spans = corpora.sentence_spans(block[1])
            for n, (a, b) in enumerate(spans):
                s = block[1][a:b]
                m = YES_NO.match(s)
                if not m or not corpora.is_prose(s, 6, 24) or re.search(r"\b(?:It|This|That|They|These|Those|He|She|There|Which|What|If|When|In|For|As|To|we|I|Note|and|that|which|who|of|Though|Although|Assuming|Given|One|Our|We|You|Because|Since|While|Unless|After|Before|Once|So|But|And|Or|Not|Here|By|On|At|With|From|common|same|only|no|No|Each|Most|Some|Many|All|Both|Another|Thus|Then|Also|Key|Every|Even|Only|is|are|was|returns|when|if|you)\b|(?:^| )- ", m[1]) or re.match(r"(?:that|not to|to|up to|as|about|because|when|where|how|what|in)\b", m[3]) or rng.random() < 0.5 or "," in m[1]:
                    continue
                row = yes_no_question(rng, m, block[1])
                if not row:
                    continue
                lo, hi = max(0, n - rng.randrange(4)), min(len(spans), n + 1 + rng.randrange(4))
                passage = block[1][spans[lo][0]:spans[hi - 1][1]]
                group = [("yes-no", "", row, passage, (a - spans[lo][0], b - spans[lo][0]))]
                rest = " ".join(block[1][x:y] for k, (x, y) in enumerate(spans) if k != n and lo - 3 <= k < hi + 3)
                if words(rest) >= 12 and len(content(row) & content(rest)) < 0.7 * len(content(row)):
                    group.append(("yes-no-removed", "", row, rest, None))
                made += rows.add(group)
                count += 1
                break
    return made


def yes_no_question(rng, m, text):
    subject, aux, rest = m[1], m[2], m[3]
    first = subject.split()[0]
    if first in ("The", "A", "An", "This", "Its", "Your") or re.search(r"\b" + re.escape(first.lower()) + r"\b", text) or re.fullmatch(r"[A-Z][a-z]+(?:s|ing|ed|al|ive|ic)", first) and first not in ("SQLite", "Windows", "Paris"):
        subject = subject[0].lower() + subject[1:]
    rest = re.sub(r"^(?:not|always|usually|often|typically|generally|never|only) ", "", rest)
    rest = re.split(r",| \(| and (?:is|are|was|were|has|have|must|can|will|may|should|relapses)\b| because | so | but | although | since ", rest)[0]
    if words(rest) < 2:
        return None
    if aux in ("cannot", "can", "may") and re.match(r"be [a-z]+ed\b|be used\b", rest) and rng.random() < 0.5:
        return f"Is it possible for {subject} to {rest}?"
    if aux == "has to":
        return f"Does {subject} have to {rest}?"
    head = {"cannot": "Can", "may": "Can" if rng.random() < 0.5 else "May"}.get(aux, aux.capitalize())
    return f"{head} {subject} {rest}?"


def document_groups(rows, docs):
    for doc in docs:
        if doc.title:
            heading_rows(rows, doc)
        option_rows(rows, doc)
        list_rows(rows, doc)
        table_rows(rows, doc)
    for doc in docs:
        yes_no_rows(rows, doc)
