"""Twins whose false side has only words of the passage: two phrases of a sentence exchanged, or one put in another's place.

Exchanges like these (Zhang et al., "PAWS: Paraphrase Adversaries from Word Scrambling", 2019) leave a reader no clue but the
order of words. What counts as a noun is learned from the documents: a word that often stands between a determiner and a
function word.
"""

import collections
import re

from edits import NUMBER, names_in, pick, put
from words import SYMMETRIC

DETERMINERS = "the a an its their his her our your my each every any no this that these those".split()
FUNCTION = set(DETERMINERS) | set(
    """of in on at by for from to with without within into onto over under above below between among through during before after until since
    against about than as like and or but nor so if unless when while where because although though whether that which who whom whose is are was
    were be been being am has have had do does did will would can could shall should may might must not never also only both either neither it he
    she they we you i him them us me there here then now what how why more most less least very too such same other another all some many few
    several one two three up out off down via per upon toward towards along across behind beyond except despite once yet still just even""".split())
TOKEN = re.compile(r"[A-Za-z][\w'-]*|\d[\d.,]*|[^\w\s]")


class Nouns:
    """Words that documents use as nouns, or before one."""

    def __init__(self, texts):
        last, inside, total = collections.Counter(), collections.Counter(), collections.Counter()
        for text in texts:
            tokens = TOKEN.findall(text)
            total.update(tokens)
            for i, t in enumerate(tokens[:-1]):
                if t.lower() not in DETERMINERS:
                    continue
                run = []
                for w in tokens[i + 1:i + 4]:
                    if not w[0].islower() or w in FUNCTION:
                        break
                    run.append(w)
                after = tokens[i + 1 + len(run)] if i + 1 + len(run) < len(tokens) else "."
                if run and (after in FUNCTION or not after[0].isalnum()):
                    last[run[-1]] += 1
                    inside.update(run[:-1])
        self.last = {w for w, n in last.items() if n >= 3 and n >= 0.12 * total[w]}
        self.inside = {w for w, n in inside.items() if n >= 3 and n >= 0.08 * total[w]} | self.last

    def phrases(self, s):
        """Return (start, end) of runs of up to three words between function words that end in a noun."""
        found, run = [], []
        tokens = [m for m in TOKEN.finditer(s)] + [None]
        for m in tokens:
            if m is not None and m.group()[0].islower() and m.group() not in FUNCTION:
                run.append(m)
                continue
            word = [r.group() for r in run]
            if 1 <= len(run) <= 3 and word[-1] in self.last and all(w in self.inside for w in word) and len(word[-1]) > 2:
                found.append((run[0].start(), run[-1].end()))
            run = []
        return found


def plural(phrase):
    return phrase.endswith("s") and not phrase.endswith(("ss", "us", "is"))


def exchange(s, a, b):
    """Exchange two spans of s, a before b."""
    first, second = s[a[0]:a[1]], s[b[0]:b[1]]
    return put(put(s, *b, first), *a, second)


COORDINATED = re.compile(r"^(?:[ ,]|\b(?:and|or|nor|the|a|an|its|their|between)\b)*$|^(?:,| and | or ).*(?:, | and | or )(?:(?:and|or|the|an?|their) )*$")


def swaps_of(s, passage, nouns, rng):
    """Return (kind, edited) for exchanges within s and substitutions from the rest of the passage."""
    out = []
    spans = {"nouns": nouns.phrases(s), "names": [(x, y) for x, y, _ in names_in(s)], "numbers": [m.span(1) for m in NUMBER.finditer(s)]}
    rest = passage.replace(s, " ")
    others = {"nouns": [rest[x:y] for x, y in nouns.phrases(rest)], "names": [n for _, _, n in names_in(rest)], "numbers": [m.group(1) for m in NUMBER.finditer(rest)]}
    for kind, found in spans.items():
        alike = lambda x, y: x.lower() != y.lower() and x not in y and y not in x and (kind != "nouns" or plural(x) == plural(y)) and (
            kind != "numbers" or ("." in x) == ("." in y) and (len(x) == 4) == (len(y) == 4))
        pairs = [(a, b) for i, a in enumerate(found) for b in found[i + 1:]
                 if a[1] < b[0] and alike(s[a[0]:a[1]], s[b[0]:b[1]]) and not COORDINATED.match(s[a[1]:b[0]]) and not SYMMETRIC.search(s[a[1]:b[0]])]
        if pairs:
            out.append((f"swap-{kind}", exchange(s, *pick(rng, pairs))))
        places = [(a, o) for a in found for o in others[kind] if alike(s[a[0]:a[1]], o) and o not in s]
        if places:
            (x, y), o = pick(rng, places)
            out.append((f"place-{kind}", put(s, x, y, o)))
    return [(k, t) for k, t in out if t != s and t.rstrip(".") not in passage]
