package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/ingest"
	"github.com/assay-rag/assay/parse"
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

// TestProvenanceIsShown checks that recognised and described words are marked as such where they are
// cited, and that a page without text is reported with a way to read it.
func TestProvenanceIsShown(t *testing.T) {
	t.Parallel()
	a := assay.Answer{Status: assay.Answered, Text: "One. [1] Two. [2]", Claims: []assay.Claim{{End: 4, Citations: []int{1}}, {Start: 9, End: 13, Citations: []int{2}}},
		Citations: []assay.Citation{
			{Number: 1, URI: "/a.pdf", Title: "A", Page: 2, End: 4, Quote: "One.", Provenance: assay.ProvenanceRecognized, Confidence: 0.618},
			{Number: 2, URI: "/b.pdf", Title: "B", Page: 1, End: 4, Quote: "Two.", Provenance: assay.ProvenanceDescribed, Model: "vision/1"},
		}}
	var b strings.Builder
	if err := writeAnswer(&b, a, 80); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"      recognised text, confidence 62 %: One.\n", "      description by vision/1: Two.\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	b.Reset()
	writeReport(&b, ingest.Report{Added: 3, RecognizedDocuments: 2, RecognizedPages: 12, OCR: "tesseract 5.3.0"}, "")
	if want := "text recognised in images of 2 documents, with 12 pages of no other text, by tesseract 5.3.0\n3 added"; !strings.HasPrefix(b.String(), want) {
		t.Errorf("report %q, want %q", b.String(), want)
	}
	b.Reset()
	advice := "to read images and pages without text, " + installTesseract() + "; the next ingest reads them\n"
	writeReport(&b, ingest.Report{Added: 2, Pages: []ingest.PageReport{
		{URI: "/a.pdf", PageCounts: assay.PageCounts{Total: 12, NoText: 3}}, {URI: "/b.pdf", PageCounts: assay.PageCounts{Total: 1, Failed: 1}},
		{URI: "/c.pdf", PageCounts: assay.PageCounts{Total: 4, NoText: 1, Failed: 2}},
	}}, "")
	want := "/a.pdf: 3 of 12 pages have no text\n/b.pdf: 1 of 1 page could not be read\n/c.pdf: 1 of 4 pages have no text, 2 of 4 pages could not be read\n" +
		advice + "2 added"
	if !strings.HasPrefix(b.String(), want) {
		t.Errorf("report\n%swant\n%s", b.String(), want)
	}
	b.Reset()
	image := ingest.Skipped{URI: "/d.png", Reason: ingest.NeedsProgram, Detail: "an image; " + parse.NeedsOCR}
	writeReport(&b, ingest.Report{Skipped: []ingest.Skipped{image, image, {URI: "/e.pdf", Reason: ingest.Damaged, Detail: "broken", Earlier: true}}}, " --data d")
	want = strings.Repeat("skipped /d.png: an image; "+parse.NeedsOCR+"\n", 2) + "skipped /e.pdf: broken (failed earlier, unchanged)\n" +
		"to try again what failed earlier, run: assay ingest --retry-failed --data d\n" + advice + "0 added"
	if !strings.HasPrefix(b.String(), want) {
		t.Errorf("report\n%swant\n%s", b.String(), want)
	}
}
