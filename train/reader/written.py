"""Makes retrieval sets of the written documents that are kept from training, for `go run ./train/fit answerability`.

    python written.py WRITTEN OUT

Each document is a folder of OUT in the BEIR layout: a passage for each section, and its questions. One that the document does
not answer has no line in qrels.tsv.
"""

import argparse
import glob
import json
import os
import re
import zlib


def written_aside(name):
    """Report whether a written document, or a pair of texts by its question, is kept from training, one in five: abstention,
    the verifier and conflicts are calibrated with these."""
    return zlib.crc32(name.encode()) % 5 == 0


def written_rows(folder, kind):
    """The rows of the written files of a kind: "sections" of documents, or "conflicts", pairs of texts."""
    for path in sorted(glob.glob(os.path.join(folder, kind + "-*.jsonl"))):
        with open(path, encoding="utf-8") as f:
            yield from map(json.loads, f)


def written_documents(folder):
    """The written documents, each a list of its sections."""
    documents = {}
    for r in written_rows(folder, "sections"):
        documents.setdefault(r["document"], []).append(r)
    return documents


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("written", metavar="WRITTEN")
    parser.add_argument("out", metavar="OUT")
    args = parser.parse_args()
    for document, sections in written_documents(args.written).items():
        if not written_aside(document):
            continue
        folder = os.path.join(args.out, "written-" + re.sub(r"[^a-z0-9]+", "-", document.lower()).strip("-")[:40].strip("-"))
        os.makedirs(folder, exist_ok=True)
        passages, queries, relevant = [], [], ["query-id\tcorpus-id\tscore"]
        for i, r in enumerate(sections):
            passages.append({"_id": f"s{i}", "title": f"{document} > {r['heading']}", "text": r["text"]})
            for k, a in enumerate(r["answerable"]):
                queries.append({"_id": f"s{i}q{k}", "text": a["q"]})
                relevant.append(f"s{i}q{k}\ts{i}\t1")
            queries += [{"_id": f"s{i}n{k}", "text": q} for k, q in enumerate(r["unanswerable"])]
        for name, rows in (("corpus.jsonl", passages), ("queries.jsonl", queries)):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        with open(os.path.join(folder, "qrels.tsv"), "w", encoding="utf-8") as f:
            f.write("\n".join(relevant) + "\n")
        print(folder, len(sections), "sections,", len(queries), "questions")


if __name__ == "__main__":
    main()
