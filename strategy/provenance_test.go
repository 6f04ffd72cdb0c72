package strategy

import (
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
)

// TestCitationPlace checks that a citation has the boxes and the provenance of the words cited.
func TestCitationPlace(t *testing.T) {
	d := assay.Document{Text: "First words here.\n\nSecond words there.\n\nThird.", Structure: assay.Structure{
		Blocks: []assay.Block{{End: 17}, {Start: 19, End: 38}, {Start: 40, End: 46}},
		Boxes:  []assay.Box{{Block: 0, Page: 1, X1: 1, Y1: 1}, {Block: 1, Page: 1, X1: 2, Y1: 2}, {Block: 1, Page: 2, X1: 3, Y1: 3}, {Block: 2, Page: 2, X1: 4, Y1: 4}},
		Provenance: []assay.Provenance{
			{Start: 0, End: 17, Kind: assay.ProvenanceRecognized, Confidence: 0.9}, {Start: 19, End: 38, Kind: assay.ProvenanceRecognized, Confidence: 0.62},
		},
	}}
	const start, end = 6, 46 // of the passage
	p := passage{Text: d.Text[start:end], Structure: d.Structure.In(start, end)}
	ev := assay.Evidence{Number: 1, Hit: assay.Hit{Chunk: assay.Chunk{Start: start, End: end}}}
	tests := []struct {
		words      string
		boxes      []assay.Rectangle
		kind       assay.ProvenanceKind
		confidence float32
	}{
		{"words here", []assay.Rectangle{{Page: 1, X1: 1, Y1: 1}}, assay.ProvenanceRecognized, 0.9},
		{"there", []assay.Rectangle{{Page: 1, X1: 2, Y1: 2}, {Page: 2, X1: 3, Y1: 3}}, assay.ProvenanceRecognized, 0.62},
		{"Third.", []assay.Rectangle{{Page: 2, X1: 4, Y1: 4}}, "", 0},
		{"here.\n\nSecond", []assay.Rectangle{{Page: 1, X1: 1, Y1: 1}, {Page: 1, X1: 2, Y1: 2}, {Page: 2, X1: 3, Y1: 3}}, assay.ProvenanceRecognized, 0.62},
	}
	for _, tt := range tests {
		at := strings.Index(p.Text, tt.words)
		c := citation(ev, p, at, at+len(tt.words))
		if !slices.Equal(c.Boxes, tt.boxes) || c.Provenance != tt.kind || c.Confidence != tt.confidence {
			t.Errorf("%q: boxes %v, %q with confidence %v; want %v, %q, %v", tt.words, c.Boxes, c.Provenance, c.Confidence, tt.boxes, tt.kind, tt.confidence)
		}
	}
}

// TestDescriptionsAreNotQuoted checks that a quoted draft has no words of a model's description, and
// that a written one may cite it, marked.
func TestDescriptionsAreNotQuoted(t *testing.T) {
	text := "The chart shows a growth of ten per cent."
	evidence := []assay.Evidence{
		{Number: 1, Hit: assay.Hit{Text: text, Chunk: assay.Chunk{Provenance: assay.ProvenanceDescribed, Model: "vision/1"}}},
		{Number: 2, Hit: assay.Hit{Text: text}},
	}
	passages := []passage{{Text: text}, {Text: text}}
	draft := role.Draft{Statements: []role.Statement{{Text: text, Evidence: []int{1}}, {Text: text, Evidence: []int{2}}, {Text: text, Evidence: []int{2, 1}}}}
	var notes noteList
	claims, unusable := Env{}.claimsOf(draft, true, evidence, passages, &notes)
	if len(claims) != 1 || claims[0].cited[0].Number != 2 || claims[0].cited[0].Provenance != "" || !slices.Equal(unusable, []int{0, 2}) || len(notes.texts) == 0 {
		t.Errorf("quoted: %d claims, unusable %v, notes %v", len(claims), unusable, notes)
	}
	claims, _ = Env{}.claimsOf(draft, false, evidence, passages, &notes)
	if len(claims) != 3 || claims[0].cited[0].Provenance != assay.ProvenanceDescribed || claims[0].cited[0].Model != "vision/1" {
		t.Errorf("written: %+v", claims)
	}
}

// TestDescriptionsInPagesAreNotQuoted checks evidence with text of the document and a description, such
// as a page that an agent read.
func TestDescriptionsInPagesAreNotQuoted(t *testing.T) {
	own, seen := "The pump has nine valves in all.", "The drawing shows a red engine."
	text := own + "\n\n" + seen
	p := passage{Text: text, Structure: assay.Structure{Provenance: []assay.Provenance{
		{Start: len(own) + 2, End: len(text), Kind: assay.ProvenanceDescribed, Model: "vision/1"},
	}}}
	evidence := []assay.Evidence{{Number: 1, Hit: assay.Hit{Text: text, Chunk: assay.Chunk{End: len(text)}}}}
	draft := role.Draft{Statements: []role.Statement{{Text: own, Evidence: []int{1}}, {Text: seen, Evidence: []int{1}}}}
	var notes noteList
	claims, unusable := Env{}.claimsOf(draft, true, evidence, []passage{p}, &notes)
	if len(claims) != 1 || claims[0].Text != own || claims[0].cited[0].Provenance != "" || !slices.Equal(unusable, []int{1}) {
		t.Errorf("%d claims, unusable %v", len(claims), unusable)
	}
	claims, _ = Env{}.claimsOf(draft, false, evidence, []passage{p}, &notes)
	if len(claims) != 2 || claims[1].cited[0].Provenance != assay.ProvenanceDescribed || claims[1].cited[0].Model != "vision/1" {
		t.Errorf("written: %+v", claims)
	}
	if got := passageOf(claims[1].cited[0], p).Obtained; got != "description by vision/1" {
		t.Errorf("the verifier reads %q", got)
	}
}
