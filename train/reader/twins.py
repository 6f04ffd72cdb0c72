"""Makes training data for the reader's entailment and answerability heads.

    python twins.py --testdata FOLDER --out FOLDER [--part entail|read|all] [--size 300000] [--seed 15]

Entailment groups hold a passage, a claim that follows from it and a twin that does not; the two differ in one thing.
Answerability groups hold one question with passages that answer it and passages that nearly do. The output is
gzip JSONL; the same seed and the same documents give the same data.
"""

import argparse
import collections
import glob
import gzip
import json
import os
import random
import re
import sys

import corpora
from answerable import Rows, question_rows, swapped_groups
from documents import document_groups, structure_groups
from edits import EDITS, NEUTRAL, NUMBER, TERM, Context, edits_of, lower_first, names_in, pick, tail_phrase
from questions import answer_type, neutral_form, other_answers, statement
from rewordings import resolve_pronoun, rewordings_of
from scenes import scene_groups, scene_rows
from swaps import Nouns, swaps_of
from words import NUMBER_WORDS

MAX_WORDS = 170
UNSUPPORTED = "unsupported"  # contradicted or neutral, it is not known which
PRONOUN_START = re.compile(r"(?:It|This|That|They|These|Those|He|She|Its|Their|His|Her|Such|Both|Here|There|Another|Other|Others|We|I|Then|Doing|Yes|No)\b")
KEEP_PRONOUN = 0.2


def word_count(text):
    return len(text.split())


def window(spans, text, at, rng):
    """Return (passage, start, end): a window of sentences around spans[at], which lies at start:end in the passage."""
    if rng.random() < 0.34:
        lo = hi = at
    else:
        n = rng.randrange(2, 9)
        lo = max(0, at - rng.randrange(0, n))
        hi = min(len(spans) - 1, lo + n - 1)
        lo, hi = min(lo, at), max(hi, at)
    while word_count(text[spans[lo][0]:spans[hi][1]]) > MAX_WORDS:
        if hi > at and (lo == at or rng.random() < 0.5):
            hi -= 1
        elif lo < at:
            lo += 1
        else:
            break
    start = spans[lo][0]
    return text[start:spans[hi][1]], spans[at][0] - start, spans[at][1] - start


def document_context(doc):
    """Return the names, terms, numbers and closing phrases of a document."""
    names, terms, numbers, tails = collections.Counter(), collections.Counter(), set(), []
    for s in all_sentences(doc, limit=400):
        for start, _, name in names_in(s):
            if start > 0 and len(name) > 2:
                names[name] += 1
        terms.update(TERM.findall(s))
        numbers.update(m.group(1) for m in NUMBER.finditer(s))
        t = tail_phrase(s)
        if t:
            tails.append(t)
    return sorted(names), sorted(terms), sorted(numbers), sorted(set(tails))


def all_sentences(doc, limit):
    out = []
    for section in doc.sections:
        for block in section.blocks:
            if block[0] == "p":
                out += corpora.sentences(block[1])
        if len(out) > limit:
            break
    return out[:limit]


class Groups:
    """Groups collects entailment groups, at most so many of a kind, source and document."""

    def __init__(self, rng, size):
        self.size, self.rng, self.rows, self.kinds, self.true_kinds, self.seen = size, rng, [], collections.Counter(), collections.Counter(), set()
        self.cap = int(size * 0.115)

    def full(self, kind):
        return self.kinds[kind] >= self.cap

    def crowded(self, prefix):
        """Return the edits to leave out this time: full ones, and mostly those far above the average."""
        counts = {k: self.kinds[prefix + k] for k in EDITS}
        mean = sum(counts.values()) / len(counts) + 30
        if prefix:  # claims of real pairs are the scarcest: every edit is tried, up to a fixed number of each kind
            return {k for k, n in counts.items() if n >= self.size * (0.016 if k == "detail" else 0.03)}
        return {k for k, n in counts.items() if self.full(prefix + k) or n > 1.3 * mean and self.rng.random() < 0.85 and k not in ("detail",) or k == "detail" and (n > self.size * 0.025 or self.rng.random() < 0.7)}

    def add(self, kind, heading, passage, true, false, decisive, true_kind="same", source=""):
        true = [t for t in dict.fromkeys(true) if t]
        false = [f for f in false if f["claim"] not in true]
        key = (passage[:80], true[0] if true else "", false[0]["claim"] if false else "")
        if not true or not false or key in self.seen or word_count(passage) > MAX_WORDS + 10:
            return False
        self.seen.add(key)
        self.kinds[kind] += 1
        self.true_kinds[true_kind] += 1
        self.rows.append({"kind": kind, "true_kind": true_kind, "source": source, "heading": heading, "passage": passage, "true": true, "false": false, "decisive": list(decisive)})
        return True


def reword(s, ctx, rng, groups):
    """Return (kind, claim): the sentence as it stands, or reworded once or twice, rarer kinds first."""
    options = rewordings_of(s, ctx, rng)
    if not options or rng.random() < 0.22:
        return "same", s
    options.sort(key=lambda o: groups.true_kinds[o[0]] * (0.5 + rng.random()))
    kind, text = options[0]
    if rng.random() < 0.35:
        more = [o for o in rewordings_of(text, ctx, rng) if o[0] != kind and o[0] in ("synonym", "contraction", "number-spelling", "spelling", "drop-lead", "clause-order", "nominal")]
        if more:
            second = more[rng.randrange(len(more))]
            return kind + "+" + second[0], second[1]
    return kind, text


def choose_edits(claim, ctx, rng, groups, count):
    """Apply the edits to a claim and keep the rarest kinds so far."""
    found = edits_of(claim, ctx, rng, skip=groups.crowded(""))
    weight = lambda e: groups.kinds[e[0]] * (0.6 + 0.8 * rng.random())
    return sorted(found, key=weight)[:count]


def prose_groups(groups, docs, per_doc, per_source):
    rng, sources, heads, seen = groups.rng, collections.Counter(), collections.Counter(), set()
    for doc in docs:
        if sources[doc.source] >= per_source:
            continue
        made, facts = 0, None
        for section in doc.sections:
            for block in section.blocks:
                if block[0] != "p" or made >= per_doc:
                    continue
                spans = corpora.sentence_spans(block[1])
                for at, (a, b) in enumerate(spans):
                    s = block[1][a:b]
                    head = " ".join(s.split()[:5])
                    if s in seen or heads[head] >= 12 or not corpora.is_prose(s, 5, 34):
                        continue
                    seen.add(s)
                    heads[head] += 1
                    facts = facts or document_context(doc)
                    made += sentence_groups(groups, doc, section.heading, block[1], spans, at, facts)
        sources[doc.source] += made


def sentence_groups(groups, doc, heading, text, spans, at, facts):
    """Make up to three groups whose decisive sentence is spans[at]; return how many."""
    rng = groups.rng
    a, b = spans[at]
    s = text[a:b]
    passage, start, end = window(spans, text, at, rng)
    ctx = Context(passage, *facts)
    claim, true_kind = s, None
    if PRONOUN_START.match(s):
        before = text[spans[at - 1][0]:spans[at - 1][1]] if at else ""
        resolved = resolve_pronoun(s, before) if before in passage else None
        if resolved:
            claim, true_kind = resolved, "pronoun"
        elif rng.random() > KEEP_PRONOUN:
            return 0
    after = text[spans[at + 1][0]:spans[at + 1][1]] if at + 1 < len(spans) and spans[at + 1][1] - a <= len(passage) - start else ""
    if not true_kind and after and after in passage and rng.random() < 0.12 and word_count(s) <= 15 and word_count(after) <= 15 and corpora.is_prose(after, 4, 15) and not re.match(r"(?:However|But|So|And|Then|Thus|For example|Or)\b", after) and s.endswith("."):
        claim, true_kind = f"{s[:-1]}, and {lower_first(after)}", "joined"
    made = 0
    head = f"{doc.title} > {heading}" if doc.title and heading else doc.title or heading
    for _ in range(3):
        kind, reworded = (true_kind, claim) if true_kind and rng.random() < 0.6 else reword(claim, ctx, rng, groups)
        if kind == "same" and rng.random() < 0.65:
            continue
        near = verbatim_edits(s, ctx, groups) if kind != "same" and rng.random() < 0.5 else []
        for k, f, label in choose_edits(reworded, ctx, rng, groups, 1 if made else 2):
            false = [{"claim": f, "label": label}] + near[made:made + 1]
            made += groups.add(k, head if rng.random() < 0.6 else "", passage, [reworded], false, (start, end), kind, doc.source)
    return made


# ---------------------------------------------------------------- real paraphrases

PARAPHRASE_SETS = {  # set: share of its pairs to use
    "mrpc": 1, "parasci-acl": 0.8, "snli-dev": 0.6, "mnli-dev": 1, "lingnli": 0.8, "fever-val-test": 1, "fever-10k": 1, "fool-me-twice": 1, "contractnli": 1, "climate-fever": 0.6, "healthver": 0.6, "citation-integrity": 0.7,
    "rte-train": 1, "rte123": 1, "scitail-test": 1, "counterfactual-nli": 0.3, "multirc-qa": 0.3,
}


def paraphrase_groups(groups, folder, limit):
    """Edit the claims of entailed pairs; sets in turn, so that a limit takes the same share of each."""
    rng, queues = groups.rng, []
    for name, share in PARAPHRASE_SETS.items():
        rows = [r for r in corpora.read_rows(os.path.join(folder, "nli", name + ".jsonl.gz")) if r["label"] == "supported"]
        rng.shuffle(rows)
        pool = [n for r in rows[:1500] for start, _, n in names_in(r["premise"]) if start]
        tails = [t for t in (tail_phrase(x) for r in rows[:1500] for x in corpora.sentences(r["premise"])) if t]
        pool = (pool, tails or ["in the end"])
        queues += [(i / max(1, len(rows) * share), name, r, pool) for i, r in enumerate(rows[: int(len(rows) * share)])]
    queues.sort(key=lambda q: q[0])
    made = 0
    for _, name, r, pool in queues:
        premise, claim = corpora.squeeze(detokenise(r["premise"])), corpora.squeeze(detokenise(r["claim"]))
        if not 4 <= word_count(claim) <= 40 or not 4 <= word_count(premise) <= 400 or made >= limit:
            continue
        claim = claim if claim[-1] in ".!?" else claim + "."
        made += pair_groups(groups, name, premise, claim, pool)


HUMAN_SETS = {"snli-dev", "mnli-dev", "lingnli", "rte-train", "rte123", "scitail-test", "contractnli", "counterfactual-nli"}


def well_supported(name, premise, claim):
    """Report whether an entailed pair of a noisy set can be trusted: its numbers, names and most words stand in the premise."""
    spelled = re.sub(r"[a-z]+", lambda m: str(NUMBER_WORDS.index(m.group())) if m.group() in NUMBER_WORDS else m.group(), premise.lower())
    if any(n not in premise and n not in spelled for n in re.findall(r"\d[\d,.]*\d|\d", claim)):
        return False
    if name in HUMAN_SETS:
        return True
    known = premise.lower()
    if any(w.lower() not in known for w in re.findall(r"(?<=[a-z,] )[A-Z][a-z]{2,}", claim)):
        return False
    want = {w[:5] for w in re.findall(r"[a-z]{4,}", claim.lower())}
    have = {w[:5] for w in re.findall(r"[a-z]{4,}", known)}
    need = {"parasci-acl": 0.75, "mrpc": 0.7, "fever-val-test": 0.6, "fever-10k": 0.6, "fool-me-twice": 0.5, "multirc-qa": 0.6}.get(name, 0.6)
    return len(want & have) >= need * max(1, len(want))


def pair_groups(groups, name, premise, claim, pool):
    rng = groups.rng
    if not well_supported(name, premise, claim):
        return 0
    spans = corpora.sentence_spans(premise)
    if word_count(premise) > MAX_WORDS or not spans:
        return 0
    at = max(range(len(spans)), key=lambda i: overlap(premise[spans[i][0]:spans[i][1]], claim))
    names = [n for _, _, n in names_in(premise)]
    near = [n for _, _, n in names_in(claim)]
    known = sorted(set(names + near + [pick(rng, pool[0]) for _ in range(6)] if pool[0] else names))
    numbers = sorted({m.group(1) for m in NUMBER.finditer(premise)})
    ctx = Context(premise, known, sorted(set(TERM.findall(premise))), numbers, [pick(rng, pool[1]) for _ in range(4)])
    near = verbatim_edits(premise[spans[at][0]:spans[at][1]], ctx, groups)
    made = 0
    for k, f, label in choose_paraphrase_edits(claim, ctx, groups):
        false = [{"claim": f, "label": label}] + near[made:made + 1]
        made += groups.add("paraphrase-" + k, "", premise, [claim], false, spans[at], "paraphrase", name)
    return made


def verbatim_edits(sentence, ctx, groups):
    """Falsify the source's own sentence: beside a paraphrase the false claim then shares more words with the source than the true one."""
    if not corpora.is_prose(sentence, 5, 34) or PRONOUN_START.match(sentence):
        return []
    found = edits_of(sentence, ctx, groups.rng, skip=groups.crowded("paraphrase-"))
    groups.rng.shuffle(found)
    return [{"claim": f, "label": label} for _, f, label in found[:3]]


def choose_paraphrase_edits(claim, ctx, groups):
    rng = groups.rng
    found = edits_of(claim, ctx, rng, skip=groups.crowded("paraphrase-"))
    return sorted(found, key=lambda e: groups.kinds["paraphrase-" + e[0]] * (0.6 + 0.8 * rng.random()))[:3]


def overlap(a, b):
    x, y = set(re.findall(r"\w{3,}", a.lower())), set(re.findall(r"\w{3,}", b.lower()))
    return len(x & y)


def detokenise(text):
    text = text.replace("-LRB-", "(").replace("-RRB-", ")").replace("``", '"').replace("''", '"')
    text = re.sub(r" ([.,;:!?%)\]])", r"\1", text)
    text = re.sub(r"([(\[]) ", r"\1", text)
    text = re.sub(r" (n't|'s|'re|'ve|'ll|'d|'m)\b", r"\1", text)
    return text


# ---------------------------------------------------------------- exchanges within a passage

def swap_groups(groups, docs, folder, per_doc, limit):
    """Exchange phrases of sentences and of the claims of entailed pairs."""
    rng, seen = groups.rng, set()
    nouns = Nouns(s for doc in docs for s in all_sentences(doc, limit=60))
    for doc in docs:
        made = 0
        for section in doc.sections:
            for block in section.blocks:
                if block[0] != "p" or made >= per_doc or len(groups.rows) >= limit:
                    continue
                spans = corpora.sentence_spans(block[1])
                for at, (a, b) in enumerate(spans):
                    s = block[1][a:b]
                    if s in seen or not corpora.is_prose(s, 6, 34) or PRONOUN_START.match(s):
                        continue
                    seen.add(s)
                    passage, start, end = window(spans, block[1], at, rng)
                    kind, claim = reword(s, Context(passage), rng, groups)
                    made += add_swaps(groups, passage, claim, s, (start, end), nouns, kind, doc.source)
    for name in PARAPHRASE_SETS:
        for r in corpora.read_rows(os.path.join(folder, "nli", name + ".jsonl.gz")):
            premise, claim = corpora.squeeze(detokenise(r["premise"])), corpora.squeeze(detokenise(r["claim"]))
            spans = corpora.sentence_spans(premise)
            if r["label"] != "supported" or not 5 <= word_count(claim) <= 40 or not spans or word_count(premise) > MAX_WORDS or not well_supported(name, premise, claim):
                continue
            at = max(spans, key=lambda span: overlap(premise[slice(*span)], claim))
            add_swaps(groups, premise, claim, premise[slice(*at)], at, nouns, "paraphrase", name)


def add_swaps(groups, passage, claim, sentence, decisive, nouns, true_kind, source):
    """Add a group for each of at most two exchanges in the claim, with one in the source's own sentence beside it."""
    rng = groups.rng
    found, near, made = swaps_of(claim, passage, nouns, rng), [], 0
    if claim != sentence and corpora.is_prose(sentence, 5, 34):
        near = swaps_of(sentence, passage, nouns, rng)
    rng.shuffle(found)
    rng.shuffle(near)
    for kind, text in found[:2]:
        false = [{"claim": t, "label": UNSUPPORTED} for t in [text] + [t for _, t in near[made:made + 1]]]
        kind = "paraphrase-" + kind if true_kind == "paraphrase" else kind
        made += groups.add(kind, "", passage, [claim], false, decisive, true_kind, source)
    return made


# ---------------------------------------------------------------- questions put as statements

def reading_rows(folder):
    for path in sorted(glob.glob(os.path.join(folder, "read", "*.gz"))):
        yield from corpora.read_rows(path)


def statement_groups(groups, folder):
    rng = groups.rng
    for row in reading_rows(folder):
        if not row["answers"] or row["source"].startswith("policyqa"):
            continue
        answer = min(row["answers"], key=lambda a: len(a["text"]))
        text, start = answer["text"], answer["start"]
        if row["passage"][start:start + len(text)] != text or len(text.split()) > 12:
            continue
        cut = corpora.cut_around(row["passage"], start, start + len(text), rng)
        if not cut:
            continue
        passage, offset, spans = cut
        decisive = next(((a - offset, b - offset) for a, b in spans if a <= start < b), None)
        claim = statement(row["question"], text, passage)
        kind = "answer"
        if not claim:
            if rng.random() > 0.3:
                continue
            claim, kind = neutral_form(row["question"], text), "answer-quoted"
        others = [o for o in other_answers(text, passage, row["question"]) if o not in claim]
        rng.shuffle(others)
        for o in others[:2]:
            false = statement(row["question"], o, passage) if kind == "answer" else neutral_form(row["question"], o)
            if false:
                label = NEUTRAL if answer_type(text) in ("name", "phrase") and rng.random() < 0.7 else "contradicted"
                groups.add(kind, "", passage, [claim], [{"claim": false, "label": label}], decisive, "question", row["source"])
        if kind == "answer":
            ctx = Context(passage, sorted({n for _, _, n in names_in(passage)}), [], sorted({m.group(1) for m in NUMBER.finditer(passage)}))
            for k, f, label in choose_edits(claim, ctx, rng, groups, 1):
                groups.add("answer-" + k, "", passage, [claim], [{"claim": f, "label": label}], decisive, "question", row["source"])


# ---------------------------------------------------------------- main

def all_documents(args, rng, limit):
    docs = list(corpora.shared_corpora(os.path.join(args.testdata, "data", "corpora")))
    docs += corpora.man_pages("/usr/share/man", rng, limit * 3)
    docs += corpora.machine_docs(rng, limit)
    passages = list(corpora.training_passages(os.path.join(args.testdata, "training")))
    rng.shuffle(passages)
    docs += passages[: 30 * limit]
    rng.shuffle(docs)
    return docs


def write(path, rows):
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=6) as f:
        for r in rows:
            f.write(json.dumps(r, ensure_ascii=False) + "\n")
    print(path, len(rows), flush=True)


def report(rows):
    print(dict(collections.Counter(r["kind"] for r in rows).most_common()))
    print(dict(collections.Counter(r.get("true_kind", "") for r in rows).most_common(30)))
    print(dict(collections.Counter(r.get("source", "") for r in rows).most_common(40)))
    labels = collections.Counter(f["label"] for r in rows for f in r.get("false", []))
    print(dict(labels), flush=True)


ENTAILMENT_PARTS = {
    "scenes": lambda groups, args: scene_groups(groups, args.size * 27 // 1000),
    "answers": lambda groups, args: statement_groups(groups, training(args)),
    "paraphrases": lambda groups, args: paraphrase_groups(groups, training(args), args.size * 3 // 10),
    "structure": lambda groups, args: structure_groups(groups, all_documents(args, groups.rng, 3 * args.files)),
    "swaps": lambda groups, args: swap_groups(groups, all_documents(args, groups.rng, args.files), training(args), per_doc=12, limit=args.size // 5),
    "prose": lambda groups, args: prose_groups(groups, all_documents(args, groups.rng, args.files), per_doc=60, per_source=args.size // 14),
}
READING_PARTS = {
    "questions": lambda rows, args: question_rows(rows, training(args), args.size // 100),
    "documents": lambda rows, args: document_groups(rows, all_documents(args, rows.rng, 2 * args.files)),
    "swaps": lambda rows, args: swapped_groups(rows, training(args), Nouns(r["passage"] for r in reading_rows(training(args)))),
    "scenes": lambda rows, args: scene_rows(rows, args.size // 40),
}


def training(args):
    return os.path.join(args.testdata, "training")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--testdata", required=True, help="folder with data/ and training/")
    parser.add_argument("--out", required=True)
    parser.add_argument("--part", default="", help="comma-separated: " + ", ".join([f"entail-{p}" for p in ENTAILMENT_PARTS] + [f"read-{p}" for p in READING_PARTS]) + "; default all")
    parser.add_argument("--size", type=int, default=320000, help="about how many entailment groups")
    parser.add_argument("--files", type=int, default=350, help="files sampled from each kind of documentation")
    parser.add_argument("--seed", type=int, default=15)
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    parts = {f"entail-{p}": (Groups, f) for p, f in ENTAILMENT_PARTS.items()} | {f"read-{p}": (Rows, f) for p, f in READING_PARTS.items()}
    for name in args.part.split(",") if args.part else parts:
        made, fill = parts[name]
        rng = random.Random(f"{args.seed} {name}")  # each part has its own generator, so that parts can be made anew alone
        made = made(rng, args.size)
        fill(made, args)
        if name.startswith("entail"):
            rng.shuffle(made.rows)
        report(made.rows)
        write(os.path.join(args.out, name + ".jsonl.gz"), made.rows)


if __name__ == "__main__":
    sys.exit(main())
