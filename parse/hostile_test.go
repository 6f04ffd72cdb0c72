package parse

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// hostileUnits are repeated to form inputs that can cause deep recursion or quadratic time in
// careless parsers.
var hostileUnits = map[string][]string{
	".html":  {"<div>", "<p>", "<b>", "<a href=x>", "<table><tr><td>", "<ul><li>", "</p>", "<dl><dt>", "<", "&", "<!--", "<pre>", "<h1>", "x<br>", "<sup>1", "<td>", "</td>", "<nav class=x>a", "<form>a", "<svg><title>", "<math>", "<header><h1>a</h1>", "<li class='nav'>a</li>", "&#13;", "\n"},
	".md":    {"[", "![", "](", "*", "**a ", "_", "`", "``a", "> ", "- ", "1. ", "<", "<a>", "<div>\n", "&", "\\", "#", "a\n-\n", "|a", "|-", "[a]: b\n", "[^a]", "~~", "\t", "* a\n\n", "a  \n", "<!--", "<?", "```\n", "    a\n", "+ a\n ", "\n", "[a](<b", "**a*", "http://a ", "- a\n\n  ", "[\n", "![a](\n", "*a\n", "_a ", "_a\n", "`a\n", "<a\n", "**\n", "a*b_c*\n", ">\n", "> a\n- b\n", "# a\n", "|a|\n", "<!-- a\n"},
	".txt":   {"a\n- b\n", "=\n", "a\n=\n\n", "  a\n", "   a   b\n", "- a\n", "1. a\n\n", "A B C\n\n", "a:\n\n    b\n\n", "== a\n", "----\n", "....\n", "|===\n", "a ", "\n"},
	".rst":   {".. a::\n", ".. a::\n\n   ", "::\n\n  a\n", "`", "``", ":a:`", "*", "**", "a_ ", "== ==\n", "+--+\n", "|a|\n", "- a\n", "a\n b\n", "a\n===\n\n", ".. \n", "..\n a\n", ">>> a\n", ":a: b\n", "| a\n", "=== ===\na b\n\n"},
	".go":    {"// a\n", "/* a */", "/*", "func f() {", "var a = (", "type T struct {", "// [[[[", "//\ta\n//\n", "[]", "-", "const a = 1\n", "func f() {}\n", "func f() {};", "func f() {} /**/ ;", "type T struct { /* a */ F int; /* b */ G int }; ", "/* a */ const A = 1; "},
	".py":    {"\"\"\"\n", "\"\"\" a\n", "# a b c d e f g\n", "def f():\n", "@a\n", "class A:\n    ", "'''a''' b\n", "def f(\n"},
	".c":     {"/*\n", "/* a\n*/ b\n", "// a\n", "int f(", "a * ", "struct a {\n", "a::"},
	".csv":   {"\"", "\"\"", ",", "a,b\n", "\"a\n", "a,\"", ";", "a;b,c\n", "|", "\n"},
	".json":  {"[", "{\"a\":", "[1,", "{\"a\":1}\n", "\"", "[]", "{\"a\":[", "{\"title\":\"a\",\"text\":\"b c\\n\\n\"}\n", "1 "},
	".jsonl": {"{\"a\":1}\n", "{\n", "[\n", "{\"a\":{}}\n", "x\n{\"a\":1}\n"},
	".adoc":  {"a::\n", "* a\n", "** a\n", "+\n", "====\n", "--\n", "|===\n", "|a", "2+|", ".9+|a\n", "[a]\n", "`", "``", "<<", "<<a>>", "{a}", "*a", "_", "link:", "a:[", "((", "ifdef::a[]\n", "ifndef::b[]\n", ":a: b\n", ".a\n", "//\n", "////\n", "a\n-\n", "footnote:[", "+++", "$$", "'a", " a\n", "a\n"},
	".tex":   {"\\", "{", "}", "\\a", "\\a{", "\\footnote{", "\\emph{", "$", "$$", "\\(", "\\[", "\\\\[", "\\begin{a}", "\\begin{itemize}\\item ", "\\begin{tabular}{l}", "\\end{a}", "\\verb|", "\\verb", "%\n", "\\iffalse", "\\newcommand{\\a}{", "\\def\\a#1{", "\\section{", "\\cite[", "\\'", "\\item[", "&", "\n\n", "\\multicolumn{2}{", "-", "`"},
	".xml":   {"<a>", "<a/>", "<a b='c'>", "<p>", "<list><item>", "<table><row>", "</a>", "<!--", "<![CDATA[", "&a;", "&amp;", "<?a", "<!ENTITY a 'b'>", "<title>", "x"},
	".ipynb": {"[", "{\"cells\":", "{\"nbformat\":4,\"cells\":[", "\""},
	".srt":   {"1\n00:00:01,000 --> 00:00:02,000\n", "1\n00:00:01,000 --> 00:00:02,000\na\n\n", "<v ", "<", "&", "{\\", "a\n"},
	".rtf":   {"{", "}", "\\a", "{\\*\\a", "{\\footnote ", "\\trowd\\cell", "\\row", "\\cellx1", "\\cell ", "\\u1 ", "\\'e9", "\\par ", "{\\fonttbl{\\f1", "{\\stylesheet{\\s1 a;}", "{\\listtext a}", "\\bin1 ", "{\\sv ", "\\clvmrg\\cellx1\\cell\\row "},
	".yaml":  {"- ", "a: ", "# a\n", "{", "[", "&a *a "},
}

// TestHostile parses long repetitions of one unit, which open constructs without closing them; with
// ASSAY_LONG=1 the input has megabytes. It passes if parsing ends.
func TestHostile(t *testing.T) {
	size := 1 << 16
	if os.Getenv("ASSAY_LONG") != "" {
		size = 1 << 20
	}
	for ext, units := range hostileUnits {
		for _, u := range units {
			for _, prefix := range []string{"", prefixes[ext]} {
				text := prefix + strings.Repeat(u, size/len(u)+1)
				doc, err := Parse(context.Background(), Input{Name: "a" + ext, Data: []byte(text)})
				switch {
				case errors.Is(err, ErrEmpty), errors.Is(err, ErrDamaged), errors.Is(err, ErrLimit):
				case err != nil:
					t.Errorf("%s %q: %v", ext, u, err)
				default:
					checkDocument(t, doc, text)
				}
			}
		}
	}
}

// prefixes ensure that a repeated unit is parsed as the format of the extension.
var prefixes = map[string]string{
	".html": "<html><body><main>", ".md": "---\na: &a b\n---\n# a\n\n", ".rst": "a\n=\n\n", ".go": "package a\n", ".py": "#!/usr/bin/python\n",
	".c": "/* a */\n", ".csv": "a,b\n1,2\n3,4\n", ".json": "[", ".jsonl": "{\"a\":1}\n{\"a\":1}\n",
}

func fuzzFormat(f *testing.F, name string, seeds ...string) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		doc, err := Parse(context.Background(), Input{Name: name, Data: []byte(text)})
		if err != nil {
			if !errors.Is(err, ErrBinary) && !errors.Is(err, ErrEncoding) && !errors.Is(err, ErrEmpty) && !errors.Is(err, ErrLimit) {
				t.Fatalf("error of no kind: %v", err)
			}
			return
		}
		checkDocument(t, doc, text)
		again, err := Parse(context.Background(), Input{Name: name, Data: []byte(text)})
		if err != nil || fmt.Sprint(again) != fmt.Sprint(doc) {
			t.Fatalf("the same input gives another document: %v", err)
		}
	})
}

func FuzzHTML(f *testing.F) {
	fuzzFormat(f, "a.html", "<html lang=en><title>T</title><body><h1>A</h1><p>b <b>c</b><ul><li>d<ol><li>e</ul><pre>f\n g</pre><table><tr><th>h<td>i</table><dl><dt>j<dd>k</dl>",
		"<!--{\"Title\": \"x\"}--><h2>a<sup>2</sup></h2>&#x202e;e&#x301;<br>\n<p hidden>x</p><q>y</q><img alt='z z'>")
}

func FuzzMarkdown(f *testing.F) {
	fuzzFormat(f, "a.md", "---\ntitle: x\nd: 2024-01-02\nl: [a, b]\n---\n# A *b*\n\n- c\n  1. d\n\n> e\n\n```\nf\n```\n\n| g | h |\n|---|---|\n| i | j |\n\n<p>k</p>\n\nl\n---\n[m](n) `o` <p> &amp; \\*",
		"+++\na = 1\n+++\ne\u0301&#x301; <http://a.b> ![c](d)\n\n    code\n")
}

func FuzzText(f *testing.F) {
	fuzzFormat(f, "a.txt", "Title\n=====\n\n1.2 Abc\n\n- a\n  b\n\nc:\n\n    d = 1;\n\nNAME\n  e   f   g\n", "== A\n\n== B\n\n----\nx\n----\n\n|===\n|a |b\n|===\n. c\n+\nimage::a[b]\n", "a\u0301\r\nb\u202e\u2028c\f")
}

func FuzzRST(f *testing.F) {
	fuzzFormat(f, "a.rst", "=\nA\n=\n:Author: b\n\nc ``d`` :e:`f <g>` `h <i>`_::\n\n  j\n\n.. note:: k\n   :l: m\n\n   n\n\n== ==\no  p\n== ==\nq  r\n== ==\n\n+-+-+\n|s|t|\n+=+=+\n|u|v|\n+-+-+\n\nw\n  x\n", ".. csv-table::\n\n  a,b\n.. [1] c\n.. _d:\n.. e\n")
}

func FuzzGo(f *testing.F) {
	fuzzFormat(f, "a.go", "// L\n\n// Package a is [B].\n//\n// # C\n//\n//\td\n//   - e\npackage a\n\nimport \"b\"\n\n// T t.\ntype T struct {\n\t// F f.\n\tF int // g\n}\n\n/* h\n * i */\nfunc (t *T[K]) M() {\n\treturn\n}\n\nconst (\n\t// A a.\n\tA = 1\n)\n//go:embed x\nvar x string\n", "package a;func f(){};func g(){}//x")
}

func FuzzSource(f *testing.F) {
	fuzzFormat(f, "a.py", "#!/bin/x\n\"\"\"a b c d e f g\"\"\"\n# h i j k l m n\n@o\nclass P(Q):\n    \"\"\"r s t u v w x\"\"\"\n    def y(self,\n          z):\n        '''doc of more words than six here'''\n        return 1\n")
}

func FuzzCSV(f *testing.F) {
	fuzzFormat(f, "a.csv", "a,b\n1,\"2\n3\"\n", "a;b;c\n;;\n1;2;3;4\n", "\"a\n,b\n")
}

func FuzzJSON(f *testing.F) {
	fuzzFormat(f, "a.json", `{"title": "a", "b": [1, {"c": null}], "d": "e\u0301\n\nf"}`, "{\"_id\":1,\"text\":\"a b\"}\n{\"a\":{\"b\":true}}\n", "[[1,2],[3,[]],{}]", `{"":{"":""}}`)
}
