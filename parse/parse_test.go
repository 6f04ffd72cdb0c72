package parse

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/visible"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/unicode/norm"
)

func parseString(t testing.TB, name, text string) Document {
	t.Helper()
	doc, err := Parse(context.Background(), Input{Name: name, Data: []byte(text)})
	if err != nil {
		t.Fatalf("Parse(%s): %v", name, err)
	}
	checkDocument(t, doc, text)
	return doc
}

// checkDocument checks the contracts of Document, Block and assay.Anchor for doc, parsed from
// source.
func checkDocument(t testing.TB, doc Document, source string) {
	t.Helper()
	if doc.Type == "" || doc.Text == "" || len(doc.Blocks) == 0 {
		t.Fatalf("type %q, %d bytes, %d blocks, %d anchors", doc.Type, len(doc.Text), len(doc.Blocks), len(doc.Anchors))
	}
	if !utf8.ValidString(doc.Text) {
		t.Fatal("text is not UTF-8")
	}
	if !norm.NFC.IsNormalString(doc.Text) {
		t.Fatal("text is not NFC")
	}
	for i, r := range doc.Text {
		if !visible.Rune(r) {
			t.Fatalf("text holds %U at %d", r, i)
		}
	}
	end := 0
	for i, b := range doc.Blocks {
		if b.Start < end || b.End <= b.Start || b.End > len(doc.Text) {
			t.Fatalf("block %d is [%d, %d) after %d of %d bytes", i, b.Start, b.End, end, len(doc.Text))
		}
		if !isBlank(doc.Text[end:b.Start]) {
			t.Fatalf("text before block %d is in none: %q", i, doc.Text[end:b.Start])
		}
		text := doc.Text[b.Start:b.End]
		if isBlank(text) || text != strings.TrimRight(text, " \t\n") || text[0] == '\n' {
			t.Fatalf("block %d has blanks around it: %q", i, text)
		}
		if b.Level < 0 || (b.Kind == Heading || b.Kind == ListItem) != (b.Level > 0) && b.Kind != ListItem || (b.Kind == Heading) != (b.Label != "") {
			t.Fatalf("block %d is a %s of level %d with label %q", i, b.Kind, b.Level, b.Label)
		}
		end = b.End
	}
	if !isBlank(doc.Text[end:]) {
		t.Fatalf("text after the last block is in none: %q", doc.Text[end:])
	}
	unlined := len(doc.Anchors) == 0 || doc.Anchors[0].Line == 0
	lines := 1 + strings.Count(source, "\n") + strings.Count(source, "\r")
	for i, a := range doc.Anchors {
		if i == 0 && a.Start != 0 || i > 0 && a.Start <= doc.Anchors[i-1].Start || a.Start >= len(doc.Text) {
			t.Fatalf("anchor %d is at %d", i, a.Start)
		}
		if a.Line < 1 && !unlined || a.Line > lines {
			t.Fatalf("anchor %d is on line %d of %d", i, a.Line, lines)
		}
	}
	checkTables(t, doc)
	full := assay.Document{Text: doc.Text, Anchors: doc.Anchors}
	for _, b := range doc.Blocks[:min(len(doc.Blocks), 500)] {
		if line, _ := full.Position(b.End - 1); line < 1 && !unlined || line > lines {
			t.Fatalf("block at %d ends on line %d of %d", b.Start, line, lines)
		}
	}
}

func TestFormats(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"a.html", "<html><body><p>hello", "html"},
		{"a.txt", "<!DOCTYPE html><p>hello", "html"},
		{"a.md", "<!doctype html>\n<html><p>hello", "html"},
		{"page", "<h1>One</h1><p>two</p><p>three</p><ul><li>a</li></ul>", "html"},
		{"a.html", "no markup at all", "text"},
		{"a.md", "hello", "markdown"},
		{"README", "# One\n\nsee [x](y)\n\n## Two\n", "markdown"},
		{"a.go", "package a\n", "go"},
		{"a.txt", "// hello\n\npackage a\n\nfunc F() {}\n", "go"},
		{"a.go", "package a\n\nfunc {{.Name}}() {}\n", "source"},
		{"a.go", "hello there", "source"},
		{"a.json", `{"a": 1}`, "json"},
		{"a.txt", `{"a": 1}`, "json"},
		{"a.json", "{\"a\": 1}\n{\"a\": 2}\n", "jsonl"},
		{"a.jsonl", "{\"a\": 1}\n{\"a\": 2}\n", "jsonl"},
		{"a.json", `{"a": `, "text"},
		{"a.csv", "a,b\n1,2\n", "csv"},
		{"a.csv", "hello there, this is prose.\n\nIt goes on.", "text"},
		{"a.txt", "a\tb\tc\n1\t2\t3\n4\t5\t6\n", "csv"},
		{"a.rst", "hello", "rst"},
		{"a.txt", "Title\n=====\n\n.. note:: this\n", "rst"},
		{"a.py", "def f(): pass", "source"},
		{"run", "#!/bin/sh\necho", "source"},
		{"Makefile", "all:\n\techo", "source"},
		{"a.txt", "Plain, as it is.", "text"},
		{"", "Plain, as it is.", "text"},
		{"", "# One\n\nsee [x](y)\n\n## Two\n", "markdown"},
		{"test.txt", "=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\n--- PASS: TestB (0.00s)\nPASS\n", "text"},
		{"a.txt", "Terms of use.\n\n=== begin of license ===\n\nYou may copy.\n\n=== end of license ===\n", "text"},
		{"a.txt", "Intro.\n\n== One\n\ntext\n\n=== Two\n\ntext\n", "asciidoc"},
		{"grammar.txt", "# Grammar\n# see [1](x) and **kwargs **here\n# more\n\nfile: a\n# other\n# rest\n", "text"},
		{"keys", "a = 1;\nb = 2;\nc = 3;\nd = 4;\n", "text"},
		{"1417.M1P2.host:2,S", "Received: by x\nFrom: a@b.c\nTo: d@e.f\nSubject: s\nDate: Mon, 2 Jan 2023 10:00:00 +0000\n\nhello\n", "eml"},
		{"mail.raw", "From: a@b.c\nTo: d@e.f\nSubject: s\nMessage-ID: <1@b.c>\n\nhello\n", "eml"},
		{"a.yaml", "From: a\nTo: b\nSubject: c\nDate: d\n", "source"},
		{"a.pom", "<?xml version=\"1.0\"?>\n<project><name>Core</name><version>1.0</version></project>", "xml"},
		{"a.xsl", "<?xml version=\"1.0\"?>\n<xsl:stylesheet><xsl:template/></xsl:stylesheet>", "source"},
	}
	for _, tt := range tests {
		if got := parseString(t, tt.name, tt.text).Type; got != tt.want {
			t.Errorf("Parse(%s, %q) is %s, want %s", tt.name, tt.text, got, tt.want)
		}
	}
}

func TestErrors(t *testing.T) {
	tests := []struct {
		name, data string
		kind       error
		says       string
	}{
		{"a.pdf", "%PDF-1.7\n…", ErrDamaged, "not a readable PDF"},
		{"a.txt", "PK\x03\x04 word/document.xml", ErrBinary, "DOCX"},
		{"a.bin", "PK\x03\x04 xx", ErrDamaged, "ZIP"},
		{"a.png", "\x89PNG\r\n\x1a\n", ErrNeedsProgram, "install tesseract"},
		{"a.txt", "text\x00text", ErrBinary, "zero bytes"},
		{"a.txt", "\x01\x02\x03\x04\x05\x06\x07\x01\x02\x03\x04 text", ErrBinary, "control characters"},
		{"a.txt", "hello \xff world", ErrEncoding, "byte 6, line 1"},
		{"a.txt", "one\ntwo \xc3\x28", ErrEncoding, "line 2"},
		{"a.txt", "caf\xc3\xa9 and caf\xe9", ErrEncoding, "not UTF-8"},
		{"a.html", "<meta charset=shift_jis>\x83", ErrEncoding, "shift_jis"},
		{"a.txt", "\xff\xfea", ErrEncoding, "odd number"},
		{"a.txt", "\xff\xfe\x00\xd8a\x00", ErrEncoding, "UTF-16"},
		{"a.txt", "\x1b$BF|K\\8l\x1b(B and more", ErrEncoding, "ISO-2022"},
		{"a.html", "<?xml version='1.0' encoding='windows-9999'?><html><p>caf\xe9</p></html>", ErrEncoding, "windows-9999"},
		{"a.txt", "\xff\xfe\x00\x00a\x00\x00\x00", ErrEncoding, "UTF-32"},
		{"a.txt", "", ErrEmpty, "empty"},
		{"a.txt", " \n\t\n\u200b", ErrEmpty, "blank"},
		{"a.html", "<html><script>x()</script></html>", ErrEmpty, "no words"},
	}
	for _, tt := range tests {
		_, err := Parse(context.Background(), Input{Name: tt.name, Data: []byte(tt.data)})
		if !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), tt.name) {
			t.Errorf("Parse(%q) is %v, want kind %v saying %q", tt.data, err, tt.kind, tt.says)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Parse(ctx, Input{Data: []byte("a")}); !errors.Is(err, context.Canceled) {
		t.Errorf("Parse with a cancelled context is %v", err)
	}
}

func TestNormalisation(t *testing.T) {
	tests := []struct{ what, data, want string }{
		{"byte order mark", "\ufeffhello", "hello"},
		{"line ends", "a\r\nb\rc", "a\nb\nc"},
		{"NFC", "cafe\u0301", "café"},
		{"bidirectional controls", "a\u202eb\u2066c", "abc"},
		{"zero width", "a\u200bb\u200dc\u00add", "abcd"},
		{"tags", "a\U000e0041b", "ab"},
		{"variation selectors", "a\ufe01b", "ab"},
		{"spaces", "a\u00a0b\u2003c", "a b c"},
		{"form feed", "a\fb", "a b"},
		{"UTF-16 little endian", "\xff\xfeh\x00i\x00", "hi"},
		{"UTF-16 big endian", "\xfe\xff\x00h\x00i", "hi"},
		{"UTF-16 with a pair", "\xff\xfe\x3d\xd8\x00\xde", "😀"},
		{"Windows-1252", "Le caf\xe9 est \x93bon\x94 \x96 tr\xe8s bon, et le th\xe9 aussi.", "Le café est “bon” – très bon, et le thé aussi."},
	}
	for _, tt := range tests {
		if got := parseString(t, "a.txt", tt.data).Text; got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.what, got, tt.want)
		}
	}
}

// A block is the form of a Block that the format tests compare.
type block struct {
	Kind BlockKind
	Line int
	Text string
}

func blocksOf(doc Document) []block {
	full := assay.Document{Text: doc.Text, Anchors: doc.Anchors}
	var list []block
	for _, b := range doc.Blocks {
		line, _ := full.Position(b.Start)
		list = append(list, block{b.Kind, line, doc.Text[b.Start:b.End]})
	}
	return list
}

func TestBlocks(t *testing.T) {
	january := assay.TimeValue(time.Date(2024, 1, 28, 0, 0, 0, 0, time.UTC))
	may := assay.TimeValue(time.Date(2024, 5, 6, 0, 0, 0, 0, time.UTC))
	tests := []struct {
		name, text string
		title      string
		metadata   assay.Metadata
		want       []block
	}{
		{
			name:  "go.go",
			title: "package a (go.go)",
			text: "// Licence.\n\n// Package a is [A]. See [b.C].\n//\n// # Use\n//\n//\tcode(x)\n//\n//   - one\n//   - two\npackage a\n\nimport \"b\"\n\n" +
				"// T is a type.\ntype T struct {\n\t// F is a field.\n\tF int\n\tg int // kept\n}\n\n// alone\n\nfunc (t *T) M() {}\n",
			want: []block{
				{Heading, 11, "package a"},
				{Paragraph, 3, "Package a is A. See b.C."},
				{Heading, 5, "Use"},
				{Code, 7, "code(x)"},
				{ListItem, 9, "- one"},
				{ListItem, 10, "- two"},
				{Code, 11, "package a\n\nimport \"b\""},
				{Code, 1, "// Licence."},
				{Heading, 16, "type T"},
				{Paragraph, 15, "T is a type."},
				{Code, 16, "type T struct {"},
				{Paragraph, 17, "F is a field."},
				{Code, 18, "\tF int\n\tg int // kept\n}"},
				{Heading, 22, "package a"},
				{Paragraph, 22, "alone"},
				{Heading, 24, "func (*T) M"},
				{Code, 24, "func (t *T) M() {}"},
			},
		},
		{
			name:     "md.md",
			title:    "Front",
			metadata: assay.Metadata{"created": january, "date": january, "tags": assay.ListValue("a", "b"), "draft": assay.BooleanValue(false), "author": assay.StringValue("Ann"), "n": assay.NumberValue(3), "x.y": assay.StringValue("z")},
			text: "---\ntitle: Front\ndate: 2024-01-28\ntags: [a, b]\ndraft: false\nauthor: Ann\nn: 3\nx: {y: z}\n---\n# Head *one*\n\nSome **bold** `code\\` and [link](http://x) &amp; \\*\nnext line.\n\n" +
				"- a\n- b\n  1. c\n\n```go\nx := 1\n```\n\n| A | B |\n|---|---|\n| 1 | 2 |\n\n> quote\n\n<p>html\n<b>bold</b></p>\n\nTwo\n---\n",
			want: []block{
				{Heading, 10, "Head one"},
				{Paragraph, 12, "Some bold code\\ and link & *\nnext line."},
				{ListItem, 15, "- a"},
				{ListItem, 16, "- b"},
				{ListItem, 17, "  1. c"},
				{Code, 20, "x := 1"},
				{TableHead, 23, "A | B"},
				{TableRow, 25, "1 | 2"},
				{Paragraph, 27, "quote"},
				{Paragraph, 29, "html bold"},
				{Heading, 32, "Two"},
			},
		},
		{
			name:     "html.html",
			title:    "Head",
			metadata: assay.Metadata{"language": assay.StringValue("en"), "author": assay.StringValue("Ann"), "created": may, "article:published_time": may},
			text: "<html lang=en-GB><head><title>Head - Site</title><meta name=author content=Ann><meta property=article:published_time content=2024-05-06></head>\n<body>\n<nav><a href=/>Home</a></nav>\n" +
				"<h1>Head<a class=headerlink>¶</a></h1>\n<p>One <b>two</b>\nthree&nbsp;four 2<sup>10</sup>.\n<ul><li>a<li><p>b</p><ol><li>c</ol></ul>\n<pre>\n  x &lt; 1\n\n  y</pre>\n<dl><dt>T<dd>D</dl>\n" +
				"<table><tr><th>A<th>B<tr><td>1<td>2</table><script>x()</script><p style='display: none'>hidden</p><footer>foot</footer>\n",
			want: []block{
				{Heading, 4, "Head"},
				{Paragraph, 5, "One two three four 2^10."},
				{ListItem, 7, "- a"},
				{ListItem, 7, "- b"},
				{ListItem, 7, "  1. c"},
				{Code, 9, "  x < 1\n\n  y"},
				{ListItem, 12, "T\n  D"},
				{TableHead, 13, "A | B"},
				{TableRow, 13, "1 | 2"},
			},
		},
		{
			name: "text.txt",
			text: "The title\n=========\n\nA paragraph\n  over lines.\n\nSub\n---\n\n- a\n  more\n- b\n\n1.2 Numbered heading\n\nRun:\n\n    $ ls -l\n\n    $ pwd\n\nSYNOPSIS\n  all in capitals\n",
			want: []block{
				{Heading, 1, "The title"},
				{Paragraph, 4, "A paragraph\n  over lines."},
				{Heading, 7, "Sub"},
				{ListItem, 10, "- a\n  more"},
				{ListItem, 12, "- b"},
				{Heading, 14, "1.2 Numbered heading"},
				{Paragraph, 16, "Run:"},
				{Code, 18, "    $ ls -l\n\n    $ pwd"},
				{Heading, 22, "SYNOPSIS"},
				{Paragraph, 23, "all in capitals"},
			},
		},
		{
			name:     "doc.rst",
			title:    "Title",
			metadata: assay.Metadata{"author": assay.StringValue("Ann")},
			text: "=====\nTitle\n=====\n\n:Author: Ann\n\nSome ``code`` and :func:`os.open` with `link <x>`_::\n\n    literal\n\n.. note:: Take care.\n\n   It is *hot*.\n\n.. code-block:: go\n   :linenos:\n\n   x := 1\n\n.. a comment\n\n" +
				"Sub\n---\n\n* one\n* two\n\n=== ===\nA   B\n=== ===\n1   2\n=== ===\n\n+---+---+\n| a | b |\n+===+===+\n| c | d |\n|   | e |\n+---+---+\n\nterm\n  definition\n",
			want: []block{
				{Heading, 2, "Title"},
				{Paragraph, 7, "Some code and os.open with link:"},
				{Code, 9, "    literal"},
				{Paragraph, 11, "Take care."},
				{Paragraph, 13, "It is hot."},
				{Code, 18, "   x := 1"},
				{Heading, 22, "Sub"},
				{ListItem, 25, "* one"},
				{ListItem, 26, "* two"},
				{TableHead, 29, "A | B"},
				{TableRow, 31, "1 | 2"},
				{TableHead, 35, "a | b"},
				{TableRow, 37, "c | d e"},
				{ListItem, 41, "term\n  definition"},
			},
		},
		{
			name: "py.py",
			text: "#!/usr/bin/env python\n\"\"\"Module docs with more than enough words.\"\"\"\nimport os\n\n# About the class, in more than six words.\n@dec\nclass A(B):\n    \"\"\"The class, documented in a few words.\"\"\"\n    x = 1\n\n    def f(self):\n        # inner\n        return 1\n",
			want: []block{
				{Code, 1, "#!/usr/bin/env python"},
				{Paragraph, 2, "Module docs with more than enough words."},
				{Code, 3, "import os"},
				{Heading, 7, "class A"},
				{Paragraph, 5, "About the class, in more than six words."},
				{Code, 6, "@dec\nclass A(B):"},
				{Paragraph, 8, "The class, documented in a few words."},
				{Code, 9, "    x = 1"},
				{Heading, 11, "def f"},
				{Code, 11, "    def f(self):\n        # inner\n        return 1"},
			},
		},
		{
			name: "c.c",
			text: "/*\n * Copyright\n */\n#include <a.h>\n\n/**\n * Opens the file and returns it to the caller.\n */\nint open_it(const char *name)\n{\n\treturn 1;\n}\n",
			want: []block{
				{Code, 1, "/*\n * Copyright\n */\n#include <a.h>"},
				{Heading, 9, "int open_it"},
				{Paragraph, 7, "Opens the file and returns it to the caller."},
				{Code, 9, "int open_it(const char *name)\n{\n\treturn 1;\n}"},
			},
		},
		{
			name: "rows.csv",
			text: "name;note\nAnn;\"one\ntwo\"\nBob;\n",
			want: []block{
				{TableHead, 1, "name | note"},
				{TableRow, 2, "name: Ann; note: one two"},
				{TableRow, 4, "name: Bob"},
			},
		},
		{
			name: "docs.jsonl",
			text: `{"_id": "1", "title": "One", "text": "First words.\n\nMore words."}` + "\n" + `{"_id": "2", "title": "Two", "text": "Other words."}` + "\n" + `{"a": {"b": [1, 2]}, "c": true}` + "\n",
			want: []block{
				{Heading, 1, "One"},
				{TableRow, 1, "_id: 1"},
				{Paragraph, 1, "First words."},
				{Paragraph, 1, "More words."},
				{Heading, 2, "Two"},
				{TableRow, 2, "_id: 2"},
				{Paragraph, 2, "Other words."},
				{TableRow, 3, "a.b: 1, 2\nc: true"},
			},
		},
		{
			name: "md.jsonl",
			text: `{"title": "One", "text": "---\na: b\n---\n# Deep *er*\n\nSee [x](y).\nMore.\n\n# Again\n\n<p>z</p>"}` + "\n" + `{"id": 2, "text": "<p>a</p> <p>b</p> <p>c</p>\n<ul><li>d</ul>"}`,
			want: []block{
				{Heading, 1, "One"},
				{Code, 1, "a: b"},
				{Heading, 1, "Deep er"},
				{Paragraph, 1, "See x.\nMore."},
				{Heading, 1, "Again"},
				{Paragraph, 1, "z"},
				{Heading, 2, "2"},
				{Paragraph, 2, "a"},
				{Paragraph, 2, "b"},
				{Paragraph, 2, "c"},
				{ListItem, 2, "- d"},
			},
		},
		{
			name:  "conf.json",
			title: "thing",
			text:  "{\n  \"name\": \"thing\",\n  \"size\": {\n    \"x\": 1.50,\n    \"y\": null\n  }\n}\n",
			want:  []block{{TableRow, 2, "name: thing\nsize.x: 1.50\nsize.y: null"}},
		},
		{
			name:  "a.adoc",
			title: "Title",
			text:  "= Title\n:toc:\n\n== One\n\nText.\n\n----\ncode\n----\n\n|===\n|A |B\n|1 |2\n|===\n",
			want: []block{
				{Heading, 1, "Title"},
				{Heading, 4, "One"},
				{Paragraph, 6, "Text."},
				{Code, 9, "code"},
				{TableRow, 13, "A | B"},
				{TableRow, 14, "1 | 2"},
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			doc := parseString(t, tt.name, tt.text)
			if doc.Title != tt.title {
				t.Errorf("title is %q, want %q", doc.Title, tt.title)
			}
			if diff := cmp.Diff(tt.metadata, doc.Metadata); diff != "" {
				t.Errorf("metadata (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(tt.want, blocksOf(doc)); diff != "" {
				t.Errorf("blocks (-want +got)\n%s", diff)
			}
		})
	}
}

func TestLongHeadings(t *testing.T) {
	long := strings.Repeat("ü very long ", 100)
	doc := parseString(t, "a.html", "<title>"+long+"</title><h1>"+long+"</h1><p>text</p>")
	if doc.Blocks[0].Kind != Paragraph || len(doc.Title) > 310 || !strings.HasSuffix(doc.Title, "…") {
		t.Errorf("got a %s, and the title %q", doc.Blocks[0].Kind, doc.Title)
	}
}

func TestMinified(t *testing.T) {
	code := "var index=" + strings.Repeat(`{"a":"words of a page","b":[1,2,3]},`, 1000) + ";\n"
	_, err := Parse(context.Background(), Input{Name: "searchindex.js", Data: []byte(code)})
	if !errors.Is(err, ErrMinified) {
		t.Errorf("Parse of code on one line: %v, want ErrMinified", err)
	}
	long := "// A comment.\n" + strings.Repeat("x = 1\n", 3000) + "y = \"" + strings.Repeat("a", 20000) + "\"\n"
	if _, err := Parse(context.Background(), Input{Name: "a.py", Data: []byte(long)}); err != nil {
		t.Errorf("Parse of code with one long line: %v", err)
	}
}
