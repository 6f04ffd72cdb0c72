"""Documents for the training data, as headings, paragraphs, lists and definitions.

A Document is a list of Sections; a Section has a heading path and blocks:

    ("p", text)                     a paragraph
    ("ul", lead, [item, ...])       a list, with the sentence that leads into it ("" if none)
    ("dl", [(term, text), ...])     a definition list, such as options of a man page
    ("table", header, [row, ...])   a table

Loaders exist for JSONL corpora, Markdown, man pages, Go comments, Python docstrings, HTML books and the
passages of question answering and entailment sets. All are deterministic: files are read in sorted order
and sampled with the caller's random generator.
"""

import ast
import glob
import gzip
import html.parser
import json
import os
import re
import subprocess
from dataclasses import dataclass, field


@dataclass
class Section:
    heading: str
    blocks: list = field(default_factory=list)


@dataclass
class Document:
    source: str  # the collection: "git-2.39", "man", "squad1-train-part-a", ...
    title: str
    sections: list


# ---------------------------------------------------------------- sentences

ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|cf|vs|viz|al|Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|Inc|Ltd|Co|Corp|No|no|Fig|fig|Eq|Sec|sec|Vol|vol|pp|p|ca|c|approx|Jan|Feb|"
    r"Mar|Apr|Jun|Jul|Aug|Sept|Sep|Oct|Nov|Dec|U\.S|U\.K|D\.C|a\.m|p\.m|Gen|Col|Lt|Sgt|Capt|Rev|Hon|Gov|Sen|Rep|Mt|Ph\.D|ed|eds|op|incl|resp|dept|Dept|min|max)|\b[A-Z]|\b[A-Z]\.[A-Z])\.$"
)
BREAK = re.compile(r"(?<=[.!?])[\"'”’)\]]*\s+(?=[\"'“‘(\[]?[A-Z0-9`\-])")


def sentence_spans(text):
    """Return (start, end) of each sentence of a paragraph."""
    spans, start = [], 0
    for m in BREAK.finditer(text):
        head = text[start:m.start()]
        if ABBREVIATION.search(head[-12:]) and not head.endswith(("?", "!")):
            if not re.search(r"(?:etc|p\.m|a\.m)\.$", head):
                continue
        if start < m.start():
            spans.append((start, m.start() + len(m.group().rstrip())))
        start = m.end()
    if text[start:].strip():
        spans.append((start, len(text.rstrip())))
    return spans


def sentences(text):
    return [text[a:b] for a, b in sentence_spans(text)]


def cut_around(passage, start, end, rng, limit=170):
    """Return (text, offset): sentences around start:end of at most limit words, or None."""
    spans = sentence_spans(passage)
    inside = [i for i, (a, b) in enumerate(spans) if a < end and b > start]
    if not inside:
        return None
    lo, hi = inside[0], inside[-1]
    if len_words(passage[spans[lo][0]:spans[hi][1]]) > limit:
        return None
    want = rng.choice([1, 2, 3, 4, 5, 8, 8, 8])
    while hi - lo + 1 < want:
        grow = [(lo - 1, hi), (lo, hi + 1)]
        rng.shuffle(grow)
        grow = [(x, y) for x, y in grow if x >= 0 and y < len(spans) and len_words(passage[spans[x][0]:spans[y][1]]) <= limit]
        if not grow:
            break
        lo, hi = grow[0]
    return passage[spans[lo][0]:spans[hi][1]], spans[lo][0], spans


def len_words(text):
    return len(text.split())


LETTERS = re.compile(r"[A-Za-z]")
FUNCTION_WORDS = re.compile(r"\b(?:the|a|an|of|to|in|is|are|was|were|be|and|or|for|by|with|on|from|as|at|that|has|have|had|it|this|will|can|not|if|you|your|its|his|her|their)\b", re.I)
CODE = re.compile(r"[{}<>=|\\^~]|::|->|https?:|www\.|\(\)\.|%[a-z]|\$\w|\*\*|__|&&|\[\[|#include|@|●|•|→|\bsha1\b", re.I)
FINITE = re.compile(
    r"\b(?:is|are|was|were|be|been|has|have|had|does|do|did|can|could|may|might|must|should|shall|will|would|cannot|becomes?|became|"
    r"contains?|gives?|gave|makes?|made|took|takes?|uses?|shows?|says?|said|gets?|got|went|goes|came|comes|began|begins?|holds?|held|led|leads?|"
    r"won|wins?|wrote|writes?|means?|sets?|puts?|runs?|ran|lives?|lies|lay|stood|stands|knew|knows?|thinks?|found|finds?|told|tells?|left|met|sold|sent|"
    r"built|bought|brought|fell|felt|grew|kept|lost|paid|rose|spoke|spent|taught|thought|[a-z]{3,}ed|"
    r"returns?|reports?|creates?|calls?|reads?|allows?|provides?|requires?|adds?|removes?|causes?|specif(?:y|ies)|includes?|prints?|"
    r"displays?|deletes?|supports?|needs?|defines?|describes?|checks?|generates?|works?|helps?|affects?|occurs?|refers?|implements?|represents?|controls?)\b"
)


def is_prose(sentence, low=5, high=40):
    """Report whether a string looks like one whole English sentence of low to high words."""
    words = sentence.split()
    if not low <= len(words) <= high or len(sentence) > 300:
        return False
    if not re.match(r"[\"'“(]?[A-Z0-9`\-]", sentence) or not re.search(r"[.!][\"'”)]?$", sentence):
        return False
    if CODE.search(sentence) or sentence.endswith("...") or sentence.count('"') % 2:
        return False
    if sentence.count("(") != sentence.count(")") or "\n" in sentence:
        return False
    if len(LETTERS.findall(sentence)) < 0.7 * len(sentence.replace(" ", "")):
        return False
    if sum(w.isupper() and len(w) > 3 for w in words) > 3:
        return False
    return bool(FUNCTION_WORDS.search(sentence)) and bool(FINITE.search(sentence))


def squeeze(text):
    return " ".join(text.split())


# ---------------------------------------------------------------- plain text and Markdown

MARKUP = [
    (re.compile(r"<!--.*?-->", re.S), " "),
    (re.compile(r"!\[[^\]]*\]\([^)]*\)"), ""),
    (re.compile(r"\[([^\]]+)\]\([^)]*\)"), r"\1"),
    (re.compile(r"\[([^\]]+)\]\[[^\]]*\]"), r"\1"),
    (re.compile(r"\{\{[^}]*\}\}|\{#[^}]*\}"), ""),
    (re.compile(r"</?[a-zA-Z][^<>]*>"), ""),
    (re.compile(r"(\*\*|__)(.+?)\1"), r"\2"),
    (re.compile(r"(?<!\w)[*_]([^*_\n]+)[*_](?!\w)"), r"\1"),
    (re.compile(r"`+([^`\n]+)`+"), r"\1"),
    (re.compile(r"¶"), ""),
]
BULLET = re.compile(r"\s*(?:[-*+•o]|\d{1,2}[.)]|\(\d{1,2}\)|[a-z]\))\s+(?=\S)")


def unmark(text):
    for pattern, repl in MARKUP:
        text = pattern.sub(repl, text)
    return text.replace("&nbsp;", " ").replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">").replace("\u00a0", " ")


class Builder:
    """Builder collects headings and blocks into the sections of one document."""

    def __init__(self, source, title):
        self.doc = Document(source, squeeze(title), [Section("")])
        self.path = []

    def heading(self, text, level):
        text = squeeze(text).rstrip(":#. ")
        text = re.sub(r"^(?:\d+\.)*\d*\.?\s+", "", text)
        self.path = [(n, t) for n, t in self.path if n < level] + [(level, text)]
        self.doc.sections.append(Section(" > ".join(t for _, t in self.path)))

    @property
    def blocks(self):
        return self.doc.sections[-1].blocks

    def paragraph(self, text):
        text = squeeze(text)
        if text:
            self.blocks.append(("p", text))

    def items(self, items):
        items = [squeeze(i) for i in items if squeeze(i)]
        if not items:
            return
        lead = ""
        if self.blocks and self.blocks[-1][0] == "p" and self.blocks[-1][1].endswith(":"):
            text = self.blocks[-1][1]
            lead = sentences(text)[-1]
            rest = text[: len(text) - len(lead)].strip()
            self.blocks.pop()
            if rest:
                self.blocks.append(("p", rest))
        if self.blocks and self.blocks[-1][0] == "ul" and not lead:
            self.blocks[-1][2].extend(items)
        else:
            self.blocks.append(("ul", lead, items))

    def definition(self, term, text):
        term, text = squeeze(term), squeeze(text)
        if not term or not text:
            return
        if self.blocks and self.blocks[-1][0] == "dl":
            self.blocks[-1][1].append((term, text))
        else:
            self.blocks.append(("dl", [(term, text)]))

    def table(self, rows):
        rows = [[squeeze(c) for c in r] for r in rows]
        width = len(rows[0]) if rows else 0
        rows = [r for r in rows if len(r) == width]
        if width >= 2 and len(rows) >= 3:
            self.blocks.append(("table", rows[0], rows[1:]))


def split_items(lines):
    items = []
    for line in lines:
        if BULLET.match(line):
            items.append(BULLET.sub("", line, count=1))
        elif items:
            items[-1] += " " + line.strip()
    return items


def markdown(source, title, text):
    """Parse Markdown, or plain text with blank lines between its blocks."""
    b = Builder(source, title)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    front = re.match(r"---\n(.*?)\n---\n", text, re.S)
    if front:
        named = re.search(r"^title:\s*(.+)", front.group(1), re.M)
        b.doc.title = named.group(1).strip("\"' ") if named else b.doc.title
        text = text[front.end():]
    text = re.sub(r"^(```|~~~).*?^\1\s*$", "\n", text, flags=re.S | re.M)
    text = unmark(text)
    for raw in re.split(r"\n\s*\n", text):
        add_markdown_block(b, [line for line in raw.split("\n") if line.strip()])
    return b.doc


def add_markdown_block(b, lines):
    while lines and re.match(r"#{1,5}\s", lines[0]):
        marks, _, head = lines[0].partition(" ")
        b.heading(head, len(marks))
        lines = lines[1:]
    if len(lines) >= 2 and re.match(r"\s*(=+|-+)\s*$", lines[1]) and len(lines[1].strip()) > 2:
        b.heading(lines[0], 1 if "=" in lines[1] else 2)
        lines = lines[2:]
    if not lines:
        return
    if len(lines) > 2 and all("|" in line for line in lines):
        rows = [re.split(r"\s*\|\s*", line.strip().strip("|").strip()) for line in lines if not re.match(r"[\s|:\-+]+$", line)]
        b.table(rows)
        return
    if BULLET.match(lines[0]):
        b.items(split_items(lines))
        return
    at = next((i for i, line in enumerate(lines) if BULLET.match(line) and i and lines[i - 1].rstrip().endswith(":")), 0)
    if at:
        b.paragraph(" ".join(lines[:at]))
        b.items(split_items(lines[at:]))
        return
    if all(line.startswith(("    ", "\t", ">")) for line in lines) and not is_prose(squeeze(" ".join(lines))):
        return
    b.paragraph(" ".join(lines))


HEADINGISH = re.compile(r"(?:\d+(?:\.\d+)*\.?\s+)?[A-Z][^.:;!]{2,60}\??$")


def manual_text(source, title, text):
    """Parse text that was taken from HTML: blocks between blank lines, short lines as headings or terms."""
    b = Builder(source, title)
    text = text.replace("\r", "").replace("¶", "").replace("\u00a0", " ")
    raws = [r for r in re.split(r"\n\s*\n", text) if r.strip()]
    term = None
    for raw in raws:
        line = squeeze(raw)
        indented = raw.startswith(" ") or raw.startswith("\n ")
        if term and (indented or re.match(r"[A-Z]", line)) and len(line.split()) >= 4:
            b.definition(term, line)
            term = None
            continue
        term = None
        if re.match(r"-{1,2}[a-zA-Z][\w-]*", line) and len(line.split()) <= 3 and "\n" not in raw.strip():
            term = line
        elif HEADINGISH.match(line) and "\n" not in raw.strip() and len(line.split()) <= 8 and not indented:
            b.heading(line, 1)
        elif BULLET.match(raw):
            b.items(split_items(raw.split("\n")))
        elif indented and line[:1].isupper() and b.blocks and (b.blocks[-1][0] == "ul" or b.blocks[-1][1].endswith(":") if b.blocks[-1][0] in ("ul", "p") else False):
            b.items([line])
        else:
            b.paragraph(line)
    return b.doc


# ---------------------------------------------------------------- man pages

FONT = re.compile(r"\\f(?:\(..|\[[^\]]*\]|.)")
GROFF = {r"\-": "-", r"\(aq": "'", r"\(dq": '"', r"\(cq": "'", r"\(oq": "'", r"\(lq": '"', r"\(rq": '"', r"\(bu": "•", r"\(em": " - ", r"\(en": "-", r"\e": "\\",
         r"\&": "", r"\ ": " ", r"\~": " ", r"\|": "", r"\^": "", r"\/": "", r"\,": "", r"\:": "", r"\%": "", r"\(co": "(c)", r"\*(lq": '"', r"\*(rq": '"', r"\*(Aq": "'", r"\'": "'", r"\`": "`", r"\.": ".", r"\c": ""}


def ungroff(text):
    text = re.sub(r"\\\".*", "", text)
    text = re.sub(r"\\s[+-]?\d+", "", FONT.sub("", text))
    text = re.sub(r"\\m\[[^\]]*\]", "", text)
    for key, value in GROFF.items():
        text = text.replace(key, value)
    return text


def macro_arguments(line):
    return [a.replace('""', '"') for a in re.findall(r'"((?:[^"]|"")*)"|(\S+)', line) for a in a if a]


def man_page(source, name, text):
    """Parse a page written with the man macros; mdoc pages give None."""
    if re.search(r"^\.Dd ", text, re.M):
        return None
    b = Builder(source, name)
    para, term, want, skip = [], None, False, False

    def flush():
        nonlocal para, term
        body = squeeze(" ".join(para))
        para = []
        if term is not None and body:
            if re.match(r"[•o*-]$|\d+\.$", term) or not term:
                b.items([body])
            else:
                b.definition(term, body)
            term = None
        elif body:
            b.paragraph(body)

    for line in text.split("\n"):
        if re.match(r"[.']\s*(?:nf|EX)\b", line):
            flush()
            skip = True
            continue
        if re.match(r"[.']\s*(?:fi|EE)\b", line):
            skip = False
            continue
        m = re.match(r"\.\s*([A-Za-z]+)\s*(.*)", line)
        if skip and not (m and m.group(1) in ("SH", "SS")):
            continue
        if not m:
            if line.startswith(("'", ".", "\\\"")):
                continue
            if want:
                term, want = ungroff(line), False
            else:
                para.append(ungroff(line))
            continue
        macro, rest = m.group(1), ungroff(m.group(2))
        if macro in ("SH", "SS"):
            flush()
            skip, term = False, None
            head = squeeze(rest.replace('"', ""))
            b.heading(head.capitalize() if head.isupper() else head, 1 if macro == "SH" else 2)
        elif macro in ("PP", "LP", "P", "sp", "RS", "RE", "HP"):
            flush()
        elif macro == "TP" or macro == "TQ":
            flush()
            want = True
        elif macro == "IP":
            flush()
            args = macro_arguments(rest)
            term = args[0] if args else ""
        elif macro in ("B", "I", "SB", "SM", "BR", "RB", "IR", "RI", "BI", "IB"):
            joined = ("" if len(macro) == 2 and macro not in ("SB", "SM") else " ").join(macro_arguments(rest))
            if want:
                term, want = joined, False
            else:
                para.append(joined)
    flush()
    return b.doc


# ---------------------------------------------------------------- HTML, Go, Python

class PageParser(html.parser.HTMLParser):
    """PageParser reads the main part of an HTML page into a Builder."""

    SKIP = {"script", "style", "nav", "pre", "head", "footer", "button", "svg", "aside"}

    def __init__(self, builder):
        super().__init__()
        self.b, self.text, self.skip, self.list, self.term, self.row, self.rows = builder, "", 0, None, None, None, None

    def handle_starttag(self, tag, attrs):
        if tag in self.SKIP:
            self.skip += 1
        if tag in ("p", "h1", "h2", "h3", "h4", "ul", "ol", "dl", "table"):
            self.end_block()
        if tag in ("ul", "ol") and self.list is None:
            self.list = []
        if tag in ("li", "dt", "dd", "td", "th"):
            self.text = ""
        if tag == "table":
            self.rows = []
        if tag == "tr":
            self.row = []

    def end_block(self):
        if self.list is None and self.rows is None and self.term is None:
            self.b.paragraph(self.text)
            self.text = ""

    def handle_endtag(self, tag):
        if tag in self.SKIP and self.skip:
            self.skip -= 1
        if tag in ("h1", "h2", "h3", "h4"):
            self.b.heading(self.text, int(tag[1]))
            self.text = ""
        elif tag == "p":
            self.end_block()
        elif tag == "li" and self.list is not None:
            self.list.append(self.text)
            self.text = ""
        elif tag in ("ul", "ol") and self.list is not None:
            self.b.items(self.list)
            self.list, self.text = None, ""
        elif tag == "dt":
            self.term, self.text = self.text, ""
        elif tag == "dd":
            self.b.definition(self.term or "", self.text)
            self.term, self.text = None, ""
        elif tag in ("td", "th") and self.row is not None:
            self.row.append(self.text)
            self.text = ""
        elif tag == "tr" and self.rows is not None:
            self.rows.append(self.row or [])
        elif tag == "table" and self.rows is not None:
            self.b.table(self.rows)
            self.rows, self.text = None, ""

    def handle_data(self, data):
        if not self.skip:
            self.text += data


def html_page(source, title, text):
    m = re.search(r"<title>(.*?)</title>", text, re.S | re.I)
    b = Builder(source, html.unescape(m.group(1)) if m else title)
    main = re.search(r"<main>(.*?)</main>", text, re.S)
    PageParser(b).feed(main.group(1) if main else text)
    return b.doc


GO_COMMENT = re.compile(r"((?:^//.*\n)+)^(?:package|func|type|var|const)\s+(?:\([^)]*\)\s*)?(\w+)", re.M)


def go_file(root, path):
    text = open(path, encoding="utf-8", errors="ignore").read()
    package = os.path.dirname(os.path.relpath(path, root))
    b = Builder("go", package)
    for m in GO_COMMENT.finditer(text):
        comment = re.sub(r"^// ?", "", m.group(1), flags=re.M)
        if "Copyright" in comment or len(comment.split()) < 12:
            continue
        b.heading(m.group(2), 1)
        for raw in re.split(r"\n\s*\n", comment):
            lines = [line for line in raw.split("\n") if line.strip() and not line.startswith("#") and not line.startswith("go:")]
            if lines and BULLET.match(lines[0]) and lines[0].startswith((" ", "-", "*")):
                b.items(split_items(lines))
            elif lines and not all(line.startswith(("\t", "    ")) for line in lines):
                b.paragraph(" ".join(line for line in lines if not line.startswith("\t")).replace("[", "").replace("]", ""))
    return b.doc


def python_file(root, path):
    try:
        tree = ast.parse(open(path, encoding="utf-8", errors="ignore").read())
    except (SyntaxError, ValueError, RecursionError):
        return None
    b = Builder("python", os.path.relpath(path, root).replace("/", ".").removesuffix(".py"))
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)):
            doc = ast.get_docstring(node)
            if doc and len(doc.split()) > 15:
                b.heading(getattr(node, "name", b.doc.title), 1)
                doc = re.sub(r":\w+:`~?([^`]+)`|``?([^`]+)``?", lambda m: m.group(1) or m.group(2), doc)
                for raw in re.split(r"\n\s*\n", doc):
                    if not re.search(r">>>|::|:param|^\s*[-=]{3,}|Args:|Returns:|^\.\. ", raw, re.M):
                        add_markdown_block(b, [line for line in raw.split("\n") if line.strip()])
    return b.doc


# ---------------------------------------------------------------- collections

def read_rows(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as f:
        for line in f:
            yield json.loads(line)


def shared_corpora(folder):
    for path in sorted(glob.glob(os.path.join(folder, "*.jsonl"))):
        source = os.path.basename(path).removesuffix(".jsonl")
        for row in read_rows(path):
            if row["_id"].endswith(".md"):
                yield markdown(source, row["title"], row["text"])
            elif len(row["text"]) > 300:
                title = re.split(r" — | - ", row["title"])[0]
                yield manual_text(source, title, row["text"])


def man_pages(folder, rng, limit):
    paths = sorted(p for n in (1, 2, 3, 4, 5, 7, 8) for p in glob.glob(f"{folder}/man{n}/*.gz"))
    cloud = [p for p in paths if "/gcloud" in p or "/bq" in p]
    perl_c = [p for p in paths if "/gcloud" not in p]
    rng.shuffle(cloud)
    rng.shuffle(perl_c)
    for path in perl_c[:limit] + cloud[: limit // 10]:
        try:
            text = gzip.open(path, "rt", encoding="utf-8", errors="ignore").read()
        except (OSError, EOFError):
            continue
        doc = man_page("man", os.path.basename(path).split(".")[0], text[:200000]) if not text.startswith(".so") else None
        if doc:
            yield doc


def sampled_files(pattern, rng, limit, skip=("/testdata/", "/test/", "/tests/", "/vendor/", "_test.go", "/internal/trace/", "CHANGELOG")):
    paths = sorted(p for p in glob.glob(pattern, recursive=True) if not any(s in p for s in skip))
    rng.shuffle(paths)
    return paths[:limit]


def files(pattern, rng, limit, parse):
    for path in sampled_files(pattern, rng, limit):
        try:
            doc = parse(path)
        except OSError:
            continue
        if doc:
            yield doc


def text_of(path):
    return open(path, encoding="utf-8", errors="ignore").read()[:300000]


def machine_docs(rng, limit):
    """Documentation on this machine: Go, Markdown, HTML books, Python."""
    env = lambda name: subprocess.run(["go", "env", name], capture_output=True, text=True).stdout.strip()
    goroot, modules, home = env("GOROOT"), env("GOMODCACHE"), os.path.expanduser("~")
    base = lambda p: os.path.basename(os.path.dirname(p))
    yield from files(f"{goroot}/src/**/*.go", rng, limit, lambda p: go_file(goroot + "/src", p))
    for root in (modules, "/usr/lib/node_modules", home + "/.rustup", "/usr/share"):
        yield from files(f"{root}/**/*.md", rng, limit, lambda p: markdown("readme", base(p).split("@")[0], text_of(p)))
    yield from files(f"{modules}/**/*.go", rng, limit // 2, lambda p: go_file(modules, p))
    for book in ("book", "reference", "cargo", "nomicon", "rustc", "edition-guide", "rustdoc", "rust-by-example"):
        yield from files(f"{home}/.rustup/toolchains/stable*/share/doc/rust/html/{book}/**/*.html", rng, limit // 4, lambda p: html_page("rust", base(p), text_of(p)))
    yield from files("/usr/share/doc/**/*.html", rng, limit, lambda p: html_page("doc-html", base(p), text_of(p)))
    pythons = sorted(glob.glob(home + "/.pyenv/versions/3.1*/lib/python3.*")) or sorted(glob.glob("/usr/lib/python3*"))
    if pythons:
        yield from files(pythons[0] + "/**/*.py", rng, limit, lambda p: python_file(pythons[0], p))


def training_passages(folder):
    """Distinct passages of the reading and ranking sets, grouped into one Document for each source and title-like lead."""
    seen = set()
    for path in sorted(glob.glob(os.path.join(folder, "read", "*.gz")) + glob.glob(os.path.join(folder, "rank", "*.gz"))):
        source = os.path.basename(path).removesuffix(".jsonl.gz").removeprefix("rank-")
        for row in read_rows(path):
            for text in [row[k] for k in ("passage", "positive") if k in row] + row.get("negatives", []):
                key = text[:120]
                if key in seen or len(text) > 6000:
                    continue
                seen.add(key)
                yield Document(source, "", [Section("", [("p", squeeze(text))])])
