package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
)

func TestWriteAnswer(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		answer assay.Answer
		want   string
	}{
		{"answered", assay.Answer{
			Status: assay.Answered,
			Text:   "Water boils at 100 degrees. [1] It freezes at 0. [2]",
			Citations: []assay.Citation{
				{Number: 2, Claim: 1, URI: "https://a.example/w", Title: "Water", Heading: []string{"Water", "Cold"}, Page: 3, Start: 9, End: 19, Quote: "freezes at 0"},
				{Number: 1, Claim: 0, URI: "https://a.example/v", Title: "Steam", Line: 7, Start: 50, End: 60, Quote: "boils at\n100 degrees"},
				{Number: 1, Claim: 0, URI: "https://a.example/v", Title: "Steam", Line: 2, Start: 5, End: 9, Quote: "Water"},
				{Number: 1, Claim: 1, URI: "https://a.example/v", Title: "Steam", Line: 2, Start: 5, End: 9, Quote: "Water"},
				{Number: 1, Claim: 1, URI: "https://a.example/v", Title: "Steam", Line: 7, Start: 53, End: 60, Quote: "at\n100 degrees"},
			},
		}, `Water boils at 100 degrees. [1] It
freezes at 0. [2]

Sources
[1] Steam
    https://a.example/v:2
      Water
    https://a.example/v:7
      boils at 100 degrees
[2] Water › Cold
    https://a.example/w, page 3
      freezes at 0
`},
		{"incomplete", assay.Answer{
			Status:        assay.Incomplete,
			Text:          "One. [1]",
			Justification: "1 part is not fully answered.",
			Missing:       []assay.Gap{{Text: "who signs"}, {Text: "a copy", ByModel: true}},
			Citations:     []assay.Citation{{Number: 1, URI: "https://a.example/", Title: "A", Line: 1, End: 3, Quote: "One"}},
		}, `One. [1]

Incomplete: 1 part is not fully
answered.

Missing
  - who signs
  - a copy (model)

Sources
[1] A
    https://a.example/:1
      One
`},
		{"repaired", assay.Answer{
			Status:    assay.Answered,
			Text:      "One. [2]",
			Claims:    []assay.Claim{{End: 4, Verdict: assay.Supported, Citations: []int{2}, Repaired: true}},
			Citations: []assay.Citation{{Number: 2, URI: "https://a.example/", Title: "A", Line: 1, End: 3, Quote: "One"}},
		}, `One. [2]

Sources
[2] A (corrected: the writer cited another source)
    https://a.example/:1
      One
`},
		{"not found", assay.Answer{
			Status:   assay.NotFound,
			Text:     "Not found in these documents.",
			Searched: []assay.Searched{{Query: "capital of France", Hits: 2, TopRelevance: 0.125}, {Query: "France", ByModel: true}},
			Closest:  []assay.Closest{{URI: "https://a.example/m", Title: "Markets", Heading: []string{"Capital"}, Line: 4, Relevance: 0.125, Quote: "Capital flows."}},
		}, `Not found in these documents.

Searched
  - "capital of France": 2 hits, best
    relevance 0.12
  - "France" (model): 0 hits

Closest
  - Markets › Capital
    https://a.example/m:4 (relevance 0.12)
      Capital flows.
`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var b strings.Builder
			if err := writeAnswer(&b, test.answer, 40); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, b.String()); diff != "" {
				t.Errorf("writeAnswer (-want +got):\n%s", diff)
			}
		})
	}
}
