"""Computes with trec_eval (by pytrec_eval) what trec_eval.json holds the measures to.

    python trec_eval.py runs/*.tsv.gz > trec_eval.json

A run has a line for each query: its ID, the judged documents with their grades
("ID=GRADE ..."), and the ranked documents, best first; tabs stand between the three. The
figures are means over the queries, of a run that is told by its hash.
"""

import gzip
import hashlib
import json
import os
import sys

import pytrec_eval

MEASURES = {"ndcg_cut.10", "ndcg_cut.100", "map_cut.100", "recall.5,10,100", "P.5,10", "success.1,5,10", "recip_rank"}

report = {}
for path in sys.argv[1:]:
    with gzip.open(path, "rb") as f:
        data = f.read()
    qrel, run = {}, {}
    for line in data.decode("utf-8").splitlines():
        query, judged, ranked = line.split("\t")
        qrel[query] = {p.rpartition("=")[0]: int(p.rpartition("=")[2]) for p in judged.split()}
        ids = ranked.split()
        # Scores fall with the rank: trec_eval orders by score, and what is equal by ID.
        run[query] = {doc: float(len(ids) - i) for i, doc in enumerate(ids)}
    found = pytrec_eval.RelevanceEvaluator(qrel, MEASURES).evaluate(run)
    names = sorted(next(iter(found.values())))
    report[os.path.basename(path).removesuffix(".tsv.gz")] = {
        "sha256": hashlib.sha256(data).hexdigest(),
        "queries": len(found),
        "means": {n: round(sum(f[n] for f in found.values()) / len(found), 10) for n in names},
    }
json.dump(report, sys.stdout, indent=1, sort_keys=True)
print()
