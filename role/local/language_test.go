package local

import (
	"context"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/role"
)

// termsIn are the terms of a search for text over documents in some languages.
func termsIn(text string, languages ...string) []assay.Term {
	var terms []assay.Term
	for _, t := range analysis.QueryTerms(text, languages) {
		terms = append(terms, assay.Term{Text: t.Text, Stem: t.Forms[0], Forms: t.Forms[1:], Chunks: 1, Weight: 0.5})
	}
	return terms
}

// A passage in German answers a question whose words it has in other forms, among
// German documents alone and beside English ones.
func TestGerman(t *testing.T) {
	const question = "Wo stehen die Häuser der Familie?"
	hit := assay.Hit{
		Chunk:    assay.Chunk{ID: "c1", Kind: assay.ChunkProse, Headings: []string{}},
		Text:     "Der Garten ist groß. Das alte Haus der Familien steht am Rand des Dorfes. Es regnet.",
		Language: "de",
		Scores:   assay.Scores{Relevance: 0.9},
	}
	for _, languages := range [][]string{{"de"}, {"de", "en"}} {
		terms := termsIn(question, languages...)
		g, err := Grader{}.Grade(context.Background(), nil, role.GradeInput{Question: question, Hits: []assay.Hit{hit}, Terms: terms, Floor: 0.5})
		if err != nil {
			t.Fatal(err)
		}
		if g.Verdict != assay.Sufficient {
			t.Errorf("%v: Grade = %s, missing %q (%s), want sufficient", languages, g.Verdict, g.Missing, g.Reason)
		}
		q := read(question, terms)
		best := candidate{}
		for _, c := range candidatesOf(q, assay.Evidence{Number: 1, Hit: hit}) {
			if c.score > best.score {
				best = c
			}
		}
		if !strings.Contains(best.text, "Haus") {
			t.Errorf("%v: the best sentence is %q", languages, best.text)
		}
	}
}
