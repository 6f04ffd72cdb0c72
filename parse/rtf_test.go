package parse

import (
	"errors"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/google/go-cmp/cmp"
)

const rtfSample = `{\rtf1\ansi\ansicpg1252\deff0\uc1
{\fonttbl{\f0\froman\fcharset0 Times;}{\f1\fnil\fcharset204 Arial Cyr;}{\f2\fnil\fcharset128 MS Mincho;}}
{\colortbl;\red0\green0\blue0;}
{\stylesheet{\s0 Normal;}{\s1\outlinelevel0 heading 1;}{\s2{\*\x y} heading 2;}{\*\cs10 Default;}}
{\*\generator Writer;}{\info{\title The Title}{\author Ann B}{\creatim\yr2024\mo3\dy5\hr6\min7}{\keywords a, b}}
{\header header text\par}
\pard\s1 First \u8220?quoted\u8221? heading\par
\pard\plain Caf\'e9 {\f1\'cf\'f0\'e8} {\f2\'82\'a0} \{braces\} and \emdash  dash{\*\unknown gone}.{\v hidden}{\deleted gone} Pair \u-10179?\u-8704?.\par
\pard\s2 Second\par
\pard{\listtext\'b7\tab}\ls1 item one\par
\pard\ls1\ilvl1{\listtext 1.\tab}item two\par
\pard Noted{\super\chftn}{\footnote\pard {\super\chftn} A note\par of two.} here.\par
\trowd\trhdr\cellx100\cellx200\cellx300\pard\intbl A\cell B\cell C\cell\row
\trowd\cellx100\clmgf\cellx200\clmrg\cellx300\pard\intbl one\par two\cell wide\cell\cell\row
\pard {\pict{\*\picprop{\sp{\sn wzDescription}{\sv A red fox}}}\pngblip 89504e47}\par
{\field{\*\fldinst HYPERLINK "http://x.example"}{\fldrslt a link}} after\par
{\upr{plain}{\*\ud{uni\u233?}}} end\par}`

func TestRTF(t *testing.T) {
	doc := parseString(t, "a.rtf", rtfSample)
	checkDocument(t, doc, rtfSample)
	want := `heading1 "First “quoted” heading"
paragraph "Café При あ {braces} and — dash. Pair 😀."
heading2 "Second"
list_item1 "- item one"
list_item2 "  1. item two"
paragraph "Noted[1] here."
footnote "[1] A note of two."
table_head "A | B | C"
table_row "one two | wide"
figure "A red fox"
paragraph "a link after"
paragraph "unié end"
`
	if diff := cmp.Diff(want, outline(doc)); diff != "" {
		t.Errorf("blocks (-want +got)\n%s", diff)
	}
	if doc.Type != "rtf" || doc.Title != "The Title" || doc.Metadata[assay.MetaAuthor].Text() != "Ann B" {
		t.Errorf("%s %q %v", doc.Type, doc.Title, doc.Metadata)
	}
	if got := doc.Metadata[assay.MetaCreated].Text(); !strings.HasPrefix(got, "2024-03-05") {
		t.Errorf("created %q", got)
	}
	if c := doc.Tables[0].Cells; len(c) != 5 || c[4].ColSpan != 2 {
		t.Errorf("cells %+v", c)
	}
}

func TestRTFRefused(t *testing.T) {
	for text, want := range map[string]error{
		`{\rtf1 ` + strings.Repeat("{", 600):     ErrLimit,
		`{\rtf1 text`:                            ErrDamaged,
		`{\rtf1{\*\x text}}`:                     ErrEmpty,
		`{\rtf1\bin99999999999999999999 x`:       ErrDamaged,
		`{\rtf1 a}` + strings.Repeat("}", 1_000): nil,
	} {
		if _, err := Parse(t.Context(), Input{Name: "a.rtf", Data: []byte(text)}); !errors.Is(err, want) {
			t.Errorf("%.40s: %v, want %v", text, err, want)
		}
	}
}

func FuzzRTF(f *testing.F) {
	fuzzBytes(f, "a.rtf", []byte(rtfSample), []byte(`{\rtf1\mac{\fonttbl{\f1\fcharset2 S;}}\f1 a\u-3913 \'`))
}
