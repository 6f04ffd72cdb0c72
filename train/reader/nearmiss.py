"""Adds near-miss questions to a retrieval set, for `go run ./train/fit answerability`.

    python nearmiss.py SET OUT

SET and OUT are folders in the BEIR layout. A near miss is a question of the set with one phrase exchanged or replaced, so that
its passage no longer answers it. It has no line in qrels.tsv.
"""

import argparse
import json
import os
import random
import shutil

import corpora
from answerable import noun_changed, number_changed, opposite, question_names
from edits import names_in, pick
from swaps import Nouns, swaps_of


def foreign_entity(rng, question, names):
    """Put a name of another question into a question; None if it has no name."""
    found = question_names(question)
    if not found:
        return None
    a, b, name = pick(rng, found)
    pool = sorted(n for n in names if n.count(" ") == name.count(" ") and n not in question)
    return question[:a] + pick(rng, pool) + question[b:] if pool else None


def near_misses(rng, question, passage, nouns, names):
    it = {"question": question, "passage": passage, "text": passage}
    made = [t for _, t in swaps_of(question, passage, nouns, rng)]
    made += [row[2] for make in (number_changed, opposite, noun_changed) if (row := make(rng, it))]
    made += [q] if (q := foreign_entity(rng, question, names)) else []
    return sorted({m for m in made if m and m != question})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", metavar="SET")
    parser.add_argument("out", metavar="OUT")
    args = parser.parse_args()
    source, out = args.source, args.out
    rows = lambda name: [json.loads(line) for line in open(os.path.join(source, name), encoding="utf-8")]
    corpus = {r["_id"]: r["text"] for r in rows("corpus.jsonl")}
    queries = rows("queries.jsonl")
    relevant = {}
    with open(os.path.join(source, "qrels.tsv"), encoding="utf-8") as f:
        for line in list(f)[1:]:
            query, passage, _ = line.rstrip("\n").split("\t")
            relevant.setdefault(query, passage)
    rng = random.Random(15)
    nouns = Nouns([s for text in corpus.values() for s in corpora.sentences(text)])
    names = {n for q in queries for _, _, n in names_in(q["text"])}
    os.makedirs(out, exist_ok=True)
    for name in ("corpus.jsonl", "queries.jsonl", "qrels.tsv"):
        shutil.copy(os.path.join(source, name), os.path.join(out, name))
    made = 0
    with open(os.path.join(out, "queries.jsonl"), "a", encoding="utf-8") as more:
        for q in queries:
            found = near_misses(rng, q["text"], corpus.get(relevant.get(q["_id"]), ""), nouns, names)
            if found:
                made += 1
                more.write(json.dumps({"_id": "near-" + q["_id"], "text": pick(rng, found)}) + "\n")
    print(f"{made} near misses beside {len(queries)} questions")


if __name__ == "__main__":
    main()
