package eval

import (
	"path"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
)

// GoldenCounts are what golden questions came to: questions with the sections of which an
// answer must cite any, or without one when the documents do not answer them.
type GoldenCounts struct {
	Answerable   int `json:"answerable"`
	Right        int `json:"right"`       // some citation is in a right section
	RightFirst   int `json:"right_first"` // the first statement's is
	Unanswerable int `json:"unanswerable"`
	Refused      int `json:"refused"` // of the unanswerable: not_found
}

// CountGolden counts a system's outcomes of golden questions.
func CountGolden(s System) GoldenCounts {
	var c GoldenCounts
	for _, o := range s.Outcomes {
		if o.Unanswerable {
			c.Unanswerable++
			c.Refused += one(o.Right)
			continue
		}
		c.Answerable++
		c.Right += one(o.Right)
		c.RightFirst += one(o.Right && len(o.Answer.Citations) > 0 && o.goldCited(o.Answer.Citations[0]))
	}
	return c
}

// goldCited reports whether a citation stands in a section that is gold.
func (o Outcome) goldCited(c assay.Citation) bool {
	headings := append([]string{c.Title}, c.Heading...)
	return slices.ContainsFunc(o.Gold, func(g Gold) bool {
		return (g.Document == "" || c.URI == g.Document || strings.HasSuffix(c.URI, "/"+strings.TrimPrefix(g.Document, "/"))) && under(headings, g.Section)
	})
}

// CitedSections lists what an outcome cites, by statement: "document › heading › heading".
func CitedSections(o Outcome) []string {
	var cited []string
	for _, c := range o.Answer.Citations {
		cited = append(cited, strings.Join(append([]string{path.Base(c.URI)}, c.Heading...), " › "))
	}
	return cited
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}
