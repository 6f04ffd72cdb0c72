"""Reads the training sets and turns them into groups of tokenized examples.

A group is a list of examples that are compared with one another by the pairwise loss: a question
with a passage that answers it and others that don't, or a true claim and its falsified twin.
"""

import copy
import glob
import gzip
import json
import os
import random
import re
import zlib
from dataclasses import dataclass

import numpy as np
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from .written import written_aside, written_documents, written_rows

MAX_HEADING = 48
NOT_SUPPORTED = 3  # of entailment: only "not supported" is known
NOT_CONTRADICTED = 4


@dataclass
class Example:
    ids: np.ndarray
    second: int  # first token of type 1
    text: tuple  # token range of the text
    start: int = -1  # answer or deciding words, as tokens; 0: no answer; -1: unknown
    end: int = -1
    answerable: int = -1
    relevance: int = -1
    entailment: int = -1


class Encoder:
    """Tokenizes pairs as ``[CLS] a [SEP] heading : text [SEP]``."""

    def __init__(self, folder, max_tokens):
        with open(os.path.join(folder, "vocab.txt"), encoding="utf-8") as f:
            vocabulary = {line.rstrip("\n"): i for i, line in enumerate(f)}
        self.tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
        self.tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
        self.tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        self.cls, self.sep, self.colon = (vocabulary[t] for t in ("[CLS]", "[SEP]", ":"))
        self.max_tokens = max_tokens

    def tokens(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False)

    def pair(self, a, heading, text, span=None, **labels):
        """An Example, or None if it is too long or the span is lost. span is in characters of text."""
        first = self.tokens(a).ids
        head = self.tokens(heading).ids[-MAX_HEADING:] + [self.colon] if heading else []
        body = self.tokens(text)
        ids = [self.cls, *first, self.sep, *head, *body.ids, self.sep]
        if len(ids) > self.max_tokens or not body.ids or not first:
            return None
        at = len(first) + 2 + len(head)
        example = Example(np.array(ids, np.uint16), len(first) + 2, (at, at + len(body.ids)), **labels)
        if span:
            inside = [i for i, (s, e) in enumerate(body.offsets) if s < span[1] and e > span[0]]
            if not inside:
                return None
            example.start, example.end = at + inside[0], at + inside[-1]
        return example


def rows(path):
    with gzip.open(path, "rt") as f:
        for line in f:
            yield json.loads(line)


TREEBANK = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "``": '"', "''": '"', "&apos;": "'", " -- ": "–"}


def clean(text):
    for old, new in TREEBANK.items():
        text = text.replace(old, new)
    return text


def sentences(text):
    """Character spans of the sentences of a text, by a simple rule."""
    spans, start = [], 0
    for m in re.finditer(r"[.!?][\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9])|\n+", text):
        spans.append((start, m.end()))
        start = m.end()
    if start < len(text):
        spans.append((start, len(text)))
    return spans


def window(text, span, rng, words):
    """A run of whole sentences of about so many words that holds span; with the span moved."""
    parts = sentences(text)
    if span:
        inside = [i for i, (s, e) in enumerate(parts) if s < span[1] and e > span[0]]
        lo, hi = inside[0], inside[-1]
    else:
        lo = hi = rng.randrange(len(parts))
    size = lambda a, b: len(text[parts[a][0] : parts[b][1]].split())
    while True:
        grow = [d for d in (-1, 1) if (lo > 0 if d < 0 else hi + 1 < len(parts))]
        grow = [d for d in grow if (size(lo - 1, hi) if d < 0 else size(lo, hi + 1)) <= words]
        if not grow:
            break
        if rng.choice(grow) < 0:
            lo -= 1
        else:
            hi += 1
    start = parts[lo][0]
    cut = text[start : parts[hi][1]].rstrip()
    return cut, (span[0] - start, span[1] - start) if span else None


def length(rng):
    """How many words of a passage are kept: mostly short windows, for speed."""
    return rng.choice((25, 45, 60, 80, 80, 100, 140))


def without(text, answer):
    """text less the sentences that hold the answer, or None if nothing useful is left."""
    low = answer.lower()
    kept = [text[s:e] for s, e in sentences(text) if low not in text[s:e].lower()]
    rest = "".join(kept).strip()
    return rest if len(rest.split()) >= 12 and low not in rest.lower() else None


def read_groups(folder, encoder, rng):
    """Questions with their passage, the same passage without its answer, and hard negatives."""
    negatives = {}
    for path in glob.glob(os.path.join(folder, "rank", "rank-*.jsonl.gz")):
        for r in rows(path):
            negatives.setdefault(r["question"], r["negatives"])
    for path in sorted(glob.glob(os.path.join(folder, "read", "*.jsonl.gz"))):
        name = "read/" + os.path.basename(path).split(".")[0]
        for r in rows(path):
            group = reading(r, negatives.get(r["question"], []), encoder, rng)
            if group:
                yield name, group


def alone(q, heading, text, span, encoder):
    """A question with only the sentence that answers it, and with only the next one, as quotations are read."""
    if "\n" in text.strip():
        return []  # an item or a row says little without its list
    spans = sentences(text)
    i = next((i for i, (s, e) in enumerate(spans) if s <= span[0] and span[1] <= e), None)
    if i is None or len(spans) < 2:
        return []
    s, e = spans[i]
    group = [encoder.pair(q, heading, text[s:e], span=(span[0] - s, span[1] - s), answerable=1)]
    s, e = spans[i + 1] if i + 1 < len(spans) else spans[i - 1]
    if text[span[0] : span[1]].lower() not in text[s:e].lower():
        group.append(encoder.pair(q, heading, text[s:e], answerable=0, start=0, end=0))
    return group


ALONE = 0.4  # of the questions, which are also read beside single sentences


def reading(r, negatives, encoder, rng):
    q, passage = r["question"].strip(), r["passage"]
    if not r["answers"]:
        text, _ = window(passage, None, rng, length(rng))
        return [encoder.pair(q, "", text, answerable=0, start=0, end=0)]
    answer = min(r["answers"], key=lambda a: a["start"])
    span = (answer["start"], answer["start"] + len(answer["text"]))
    if passage[span[0] : span[1]] != answer["text"]:
        return None
    text, moved = window(passage, span, rng, length(rng))
    group = [encoder.pair(q, "", text, span=moved, answerable=1, relevance=1)]
    if group[0] is None:
        return None
    rest = without(passage, answer["text"])
    if rest:
        text, _ = window(rest, None, rng, length(rng))
        group.append(encoder.pair(q, "", text, answerable=0, start=0, end=0))
    if rng.random() < ALONE:
        group += alone(q, "", passage, span, encoder)
    for negative in rng.sample(negatives, min(len(negatives), rng.choice((0, 1, 1, 2)))):
        if answer["text"].lower() not in negative.lower():
            text, _ = window(negative, None, rng, length(rng))
            group.append(encoder.pair(q, "", text, answerable=0, start=0, end=0, relevance=0))
    return [e for e in group if e]


def rank_groups(folder, encoder, rng):
    """Questions with a passage that helps and others, where no answer span is known."""
    for name, most in (("medquad", 2), ("wikiqa", 4)):
        for r in rows(os.path.join(folder, "rank", name + ".jsonl.gz")):
            q = r["question"].strip()
            words = length(rng)
            text = " ".join(r["positive"].split()[: max(words, 30)])
            group = [encoder.pair(q, "", text, answerable=1, relevance=1)]
            for n in rng.sample(r["negatives"], min(len(r["negatives"]), most)):
                n = " ".join(n.split()[: max(words, 30)])
                group.append(encoder.pair(q, "", n, answerable=0, start=0, end=0, relevance=0))
            yield "rank/" + name, [e for e in group if e]


def set_aside(text):
    """Report whether claims about a text are kept from training, one in 32; the verifier is calibrated with them."""
    return zlib.crc32(text.encode()) % 32 == 0


LABELS = {"supported": 0, "contradicted": 1, "neutral": 2, "unsupported": NOT_SUPPORTED}
CAPS = {"parasci-acl": 8000, "multirc-qa": 8000, "lingnli": 40000}


def nli_groups(folder, encoder, rng):
    """Premise and claim with a label; claims of one premise are one group."""
    for path in sorted(glob.glob(os.path.join(folder, "nli", "*.jsonl.gz"))):
        name = os.path.basename(path).split(".")[0]
        by_premise = {}
        kept = list(rows(path))
        if len(kept) > CAPS.get(name, len(kept)):
            kept = rng.sample(kept, CAPS[name])
        for r in kept:
            if not set_aside(r["premise"]):
                by_premise.setdefault(r["premise"], []).append(r)
        for premise, claims in by_premise.items():
            group = []
            for r in claims[:6]:
                label = NOT_SUPPORTED if r.get("binary") and r["label"] != "supported" else LABELS[r["label"]]
                group.append(encoder.pair(clean(r["claim"]), "", clean(premise), entailment=label))
            group = [e for e in group if e]
            if group:
                yield "nli/" + name, group


def source_of(r):
    """What a twin was made of: a sentence, or the premise of a pair."""
    return r["passage"] if r["kind"].startswith("paraphrase") else r["passage"][slice(*r["decisive"])]


def made_entailment(path, encoder, rng):
    """Twins: true claims beside falsified ones."""
    for r in rows(path):
        if set_aside(source_of(r)):
            continue
        claims = [(c, 0) for c in r["true"]] + [(c["claim"], LABELS[c["label"]]) for c in r["false"]]
        span = tuple(r["decisive"]) if r.get("decisive") else None
        group = [encoder.pair(c, r.get("heading", ""), r["passage"], span=span, entailment=l) for c, l in claims]
        group = [e for e in group if e]
        if len(group) > 1:
            yield "made/" + r["kind"], group


def made_reading(path, encoder, rng):
    """Near misses: questions with and without an answer side by side."""
    groups = {}
    for r in rows(path):
        groups.setdefault(r["group"], []).append(r)
    for members in groups.values():
        group = []
        for r in members:
            heading, q = r.get("heading", ""), r["question"]
            if r["answer"]:
                text, span = window(r["passage"], tuple(r["answer"]), rng, max(60, length(rng)))
                group.append(encoder.pair(q, heading, text, span=span, answerable=1, relevance=1))
            else:
                text, _ = window(r["passage"], None, rng, max(60, length(rng)))
                group.append(encoder.pair(q, heading, text, answerable=0, start=0, end=0))
        group = [e for e in group if e]
        if group:
            yield "near/" + members[0]["kind"], group


WRITTEN_TOKENS = 288  # sections are read whole, as answers and claims are checked


def written_groups(folder, encoder, rng):
    """Written sections: questions with and without an answer, and statements that follow or do not."""
    for name, sections in written_documents(folder).items():
        if written_aside(name):
            continue
        for i, r in enumerate(sections):
            others = sections[:i] + sections[i + 1 :]
            twins = r.get("twins", False)  # false[i] is true[i] but for one thing; so are the questions
            misses = list(r["unanswerable"])
            claims = [(c, 0) for c in r["true"]] + [(f["s"], LABELS[f["verdict"]]) for f in r["false"]]
            if twins:
                claims = [claims[k + half] for k in range(len(r["true"])) for half in (0, len(r["true"]))]
            else:
                rng.shuffle(misses)
                rng.shuffle(claims)
            for k, a in enumerate(r["answerable"]):
                yield "written/read", written_reading(r, a, misses[k : k + 1], others, encoder, rng)
            for k in range(0, len(claims), 4):
                group = [encoder.pair(c, r["heading"], r["text"], entailment=l) for c, l in claims[k : k + 4]]
                yield "written/twins" if twins else "written/entail", group


RELATIONS = {"conflict": 1, "other": 2, "agree": NOT_CONTRADICTED}


def written_conflicts(folder, encoder):
    """Pairs of texts: either sentence about the matter as a claim, beside the other one and beside its text."""
    for r in written_rows(folder, "conflicts"):
        if written_aside(r["question"]):
            continue
        label = RELATIONS[r["relation"]]
        group = []
        for claim, other, says in ((r["a_says"], r["b"], r["b_says"]), (r["b_says"], r["a"], r["a_says"])):
            group.append(encoder.pair(claim, other["title"], says, entailment=label))
            group.append(encoder.pair(claim, other["title"], other["text"], entailment=label))
        yield "written/conflict", group


def written_reading(r, a, misses, others, encoder, rng):
    """A question with its section, without the sentences that answer it, and beside another section; and a near miss."""
    text, at = r["text"], r["text"].index(a["a"])
    group = [encoder.pair(a["q"], r["heading"], text, span=(at, at + len(a["a"])), answerable=1, relevance=1)]
    rest = without(text, a["a"])
    if rest:
        group.append(encoder.pair(a["q"], r["heading"], rest, answerable=0, start=0, end=0))
    group += alone(a["q"], r["heading"], text, (at, at + len(a["a"])), encoder)
    for miss in misses:
        group.append(encoder.pair(miss, r["heading"], text, answerable=0, start=0, end=0))
    if others:
        other = rng.choice(others)
        group.append(encoder.pair(a["q"], other["heading"], other["text"], answerable=0, start=0, end=0, relevance=0))
    return group


def load(folder, made, written, encoder, seed):
    """All groups by the name of their source."""
    rng = random.Random(seed)
    streams = [read_groups(folder, encoder, rng), rank_groups(folder, encoder, rng), nli_groups(folder, encoder, rng)]
    for path in sorted(glob.glob(os.path.join(made, "*.jsonl.gz"))) if made else []:
        make = made_reading if os.path.basename(path).startswith(("read", "first-read")) else made_entailment
        streams.append(make(path, encoder, rng))
    if written:
        longer = copy.copy(encoder)
        longer.max_tokens = WRITTEN_TOKENS
        streams.append(written_groups(written, longer, rng))
        streams.append(written_conflicts(written, longer))
    sources = {}
    for stream in streams:
        for name, group in stream:
            group = [e for e in group if e]  # too long for the model
            if group:
                sources.setdefault(name, []).append(group)
    return sources
