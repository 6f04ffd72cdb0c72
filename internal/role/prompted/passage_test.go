package prompted

import (
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

func TestFit(t *testing.T) {
	sentence := "Tenants give notice three months ahead of the end of the lease. "
	passages := []passage{{1, "A", strings.Repeat(sentence, 3), ""}, {2, "B", strings.Repeat(sentence, 3), ""}, {3, "C", sentence, ""}}
	need := func(n int) int {
		sum := 0
		for _, p := range passages[:n] {
			sum += llm.EstimateTokens(p.String())
		}
		return sum
	}
	tests := []struct {
		room, kept int
		note       string
	}{
		{need(3), 3, ""},
		{need(3) - 1, 2, "room for 2 of 3 passages"},
		{need(2) - 1, 2, "room for 1 of 3 passages, and for a part of passage 2"},
		{need(1) + 10, 1, "room for 1 of 3 passages"},
		{need(1) - 1, 1, "room for 0 of 3 passages, and for a part of passage 1"},
		{10, 0, "room for 0 of 3 passages"},
	}
	for _, tt := range tests {
		kept, notes := fit(passages, tt.room)
		used := 0
		for _, p := range kept {
			used += llm.EstimateTokens(p.String())
		}
		if len(kept) != tt.kept || used > tt.room || (tt.note == "") != (notes == nil) || tt.note != "" && !strings.HasSuffix(notes[0], tt.note) {
			t.Errorf("fit in %d: %d passages of %d tokens, %q; want %d, %q", tt.room, len(kept), used, notes, tt.kept, tt.note)
		}
	}
}

// TestFitHuge checks that a passage of several megabytes is cut quickly. A slow implementation
// would not finish.
// TestPassageMark checks that models are told how the text of a passage was obtained, however long its
// headings are.
func TestPassageMark(t *testing.T) {
	title := strings.Repeat("long ", 100)
	for _, tt := range []struct {
		chunk assay.Chunk
		want  string
	}{
		{assay.Chunk{}, ""},
		{assay.Chunk{Provenance: assay.ProvenanceRecognized, Confidence: 0.62}, " [recognised text, confidence 62 %]\nText."},
		{assay.Chunk{Provenance: assay.ProvenanceDescribed, Model: "eyes/1"}, " [description by eyes/1, not the document's words]\nText."},
		{assay.Chunk{Provenance: assay.ProvenanceDescribed, Model: "a\nb<|im_end|>"}, " [description by a b< |im_end| >, not the document's words]\nText."},
	} {
		got := passageOf(1, assay.Hit{Title: title, Chunk: tt.chunk}, "Text.").String()
		if !strings.Contains(got, tt.want) || tt.want == "" && strings.Contains(got, "[") {
			t.Errorf("passage %q, want %q in it", got, tt.want)
		}
	}
	claims := claimsOf([]role.Claim{{Text: "A.", Cited: []ground.Passage{{Quote: "A.", Context: "A.", Heading: []string{"T"}, Obtained: "description by eyes/1"}}}}, []int{0})
	if got := claims[0].Sources[0].Text; got != "T [description by eyes/1]\nA." {
		t.Errorf("source %q", got)
	}
}

func TestFitHuge(t *testing.T) {
	for _, text := range []string{strings.Repeat("A short one. ", 1<<18), strings.Repeat("x", 4<<20), strings.Repeat("\u202e", 1<<20)} {
		kept, _ := fit([]passage{{1, "", text, ""}}, 50_000)
		for _, p := range kept {
			if n := llm.EstimateTokens(p.String()); n > 50_000 {
				t.Errorf("%d tokens", n)
			}
		}
	}
}

func TestMost(t *testing.T) {
	for n := range 20 {
		for limit := -1; limit <= n; limit++ {
			if got := most(n, func(k int) bool { return k <= limit }); got != max(0, limit) {
				t.Errorf("most(%d, up to %d) = %d", n, limit, got)
			}
		}
	}
}

func TestStatementText(t *testing.T) {
	for in, want := range map[string]string{
		"It is so [1].": "It is so.",
		"It is so.[1][2, 3] And so [sources 1–2]": "It is so. And so",
		"Use handlers[0] and a[i].":               "Use handlers[0] and a[i].",
		" on\ntwo  lines ":                        "on two lines",
		"func f() {\n\treturn x[1]\n}":            "func f() {\n\treturn x[1]\n}",
		"hid\u200bden":                            "hidden",
	} {
		if got := statementText(in); got != want {
			t.Errorf("statementText(%q) = %q, want %q", in, got, want)
		}
	}
}
