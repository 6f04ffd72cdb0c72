"""Makes a labelled set of a tree of Python modules, as main.go does of Go packages.

    python3 eval/codeset/python.py OUT TREE

The passages are functions without docstrings and comments, the queries the first
sentences of their docstrings.
"""
import ast
import hashlib
import json
import pathlib
import re
import sys

PASSAGES, QUERIES = 1500, 400
MIN_BYTES, MAX_BYTES, MIN_WORDS = 80, 4000, 5


def key(text):
    return hashlib.sha256(text.encode()).hexdigest()


def declarations(path, tree):
    for node in ast.walk(tree):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        doc = ast.get_docstring(node)
        if not doc:
            continue
        sentence = re.split(r"(?<=[.!?])\s", " ".join(doc.split("\n\n")[0].split()))[0]
        words = [w for w in sentence.split() if w.strip(".,:;()[]'\"`").lower() != node.name.lower()]
        node.body = node.body[1:] or [ast.Pass()]
        text = ast.unparse(node)
        if len(words) >= MIN_WORDS and MIN_BYTES <= len(text.encode()) <= MAX_BYTES:
            yield f"{path}:{node.name}", text, " ".join(words)


def main(out, root):
    root, seen, found = pathlib.Path(root), set(), []
    for file in sorted(root.rglob("*.py")):
        path = file.relative_to(root).as_posix()
        if re.search(r"(^|/)(test|tests|idle_test|site-packages|lib2to3)(/|$)|(^|/)test_", path):
            continue
        try:
            tree = ast.parse(file.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            continue
        for name, text, query in declarations(path, tree):
            keys = {("id", name), ("text", text), ("query", query.lower())}
            if not keys & seen:
                found.append((name, text, query))
            seen |= keys
    found = sorted(found, key=lambda d: key(d[0]))[:PASSAGES]
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    with (out / "corpus.jsonl").open("w") as corpus, (out / "queries.jsonl").open("w") as queries, (out / "qrels.tsv").open("w") as qrels:
        for i, (name, text, query) in enumerate(found):
            print(json.dumps({"_id": name, "text": text}), file=corpus)
            if i < QUERIES:
                print(json.dumps({"_id": name, "text": query}), file=queries)
                print(name, name, 1, sep="\t", file=qrels)


if __name__ == "__main__":
    main(*sys.argv[1:])
