package parse

import (
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/google/go-cmp/cmp"
)

const manualPage = `git-thing(1)
============
Ann B <ann@example.org>

NAME
----
git-thing - Do 'things'

SYNOPSIS
--------
[verse]
'git thing' [--all]
	[<path>...]

OPTIONS[[OPTIONS]]
------------------
-a::
--all::
	Do all, see <<OPTIONS>> and linkgit:git-log[1]. The value is
	` + "`{litdd}x={asterisk}`" + ` or ` + "``quoted''" + `.
+
A second paragraph with *bold*, _emphasis_ and http://x.example[a link].
+
----
code <1> *kept*
----
+
* one
** two
* three

ifdef::git-diff[]
--extra::
	Under a condition.
endif::git-diff[]

include::diff-options.txt[]

:rel: 2.0
NOTE: Since {rel}, {unknown} stays. See xref:other.adoc#x[that page].

[NOTE]
====
Inside.
====

. first
. second
+
image::a.png[A fox,100]

.Numbers
[cols="1,2*",options="header"]
|===
|A |B |C

2+|wide |c
.2+|tall
|1 a|2
|3 |4
|===

// a comment
Text with footnote:[The note.] and kbd:[Ctrl+C], pass:[<b>*x*].
`

func TestAsciiDoc(t *testing.T) {
	doc := parseString(t, "git-thing.txt", manualPage)
	checkDocument(t, doc, manualPage)
	want := `heading1 "git-thing(1)"
paragraph "Ann B <ann@example.org>"
heading2 "NAME"
paragraph "git-thing - Do things"
heading2 "SYNOPSIS"
paragraph "git thing [--all]\n[<path>...]"
heading2 "OPTIONS"
list_item1 "-a\n--all\n  Do all, see OPTIONS and git-log(1). The value is\n--x=* or “quoted”."
paragraph "A second paragraph with bold, emphasis and a link."
code "code <1> *kept*"
list_item2 "  - one"
list_item3 "    - two"
list_item2 "  - three"
list_item1 "--extra\n  Under a condition."
paragraph "include: diff-options.txt"
paragraph "NOTE: Since 2.0, {unknown} stays. See that page."
paragraph "NOTE:"
paragraph "Inside."
list_item2 "  1. first"
list_item2 "  2. second"
figure "A fox"
caption "Numbers"
table_head "A | B | C"
table_row "wide | c"
table_row "tall | 1 | 2"
table_row "3 | 4"
paragraph "Text with and Ctrl+C, <b>*x*."
footnote "The note."
`
	if diff := cmp.Diff(want, outline(doc)); diff != "" {
		t.Errorf("blocks (-want +got)\n%s", diff)
	}
	if doc.Type != "asciidoc" || doc.Title != "git-thing(1)" || doc.Metadata[assay.MetaAuthor].Text() != "Ann B" {
		t.Errorf("%s %q %v", doc.Type, doc.Title, doc.Metadata)
	}
	whole := assay.Document{Text: doc.Text, Anchors: doc.Anchors}
	for word, want := range map[string]int{"Do all": 19, "--x=": 20, "A second": 22, "Inside": 44, "tall": 58} {
		if line, _ := whole.Position(strings.Index(doc.Text, word)); line != want {
			t.Errorf("%q is on line %d, want %d", word, line, want)
		}
	}
}

// TestAsciiDocBomb checks that attributes that double the text at each level stop at the limit.
func TestAsciiDocBomb(t *testing.T) {
	var text strings.Builder
	text.WriteString("= A\n:a: word word word\n")
	for c := 'b'; c <= 'z'; c++ {
		text.WriteString(":" + string(c) + ": {" + string(c-1) + "}{" + string(c-1) + "}\n")
	}
	text.WriteString("\n" + strings.Repeat("{g} {z}", 5_000) + "\n")
	if doc := parseString(t, "a.adoc", text.String()); len(doc.Text) > 4<<20 {
		t.Errorf("%d bytes", len(doc.Text))
	}
}

func FuzzAsciiDoc(f *testing.F) {
	fuzzFormat(f, "a.adoc", manualPage, "= A\n:b: {c}\n\n|===\n3*|x\n.99+|y !z\n|===\n\n====\n--\n[quote, x]\n____\na\n____\n--\n====\na:: b;; c\n", ",===\na,\"b\n,===\n[%header,cols=2*]\n!===\n!a!b\n!===\n<1> x\nifndef::a[]\nifeval::[1]\n")
}
