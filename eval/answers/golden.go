package answers

import (
	"path"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/stat"
	"github.com/assay-rag/assay/eval/testset"
)

// GoldenCounts counts the results on golden questions. A golden question has the sections of which
// an answer must cite any, or none if the documents do not answer it.
type GoldenCounts struct {
	Answerable   int `json:"answerable"`
	Right        int `json:"right"`       // a citation is in a gold section
	RightFirst   int `json:"right_first"` // the first citation is
	Unanswerable int `json:"unanswerable"`
	Refused      int `json:"refused"` // unanswerable questions with status not_found
}

// CountGolden counts the outcomes of a system on golden questions.
func CountGolden(s System) GoldenCounts {
	var c GoldenCounts
	for _, o := range s.Outcomes {
		if o.Unanswerable {
			c.Unanswerable++
			c.Refused += stat.One(o.Right)
			continue
		}
		c.Answerable++
		c.Right += stat.One(o.Right)
		c.RightFirst += stat.One(o.Right && len(o.Answer.Citations) > 0 && o.goldCited(o.Answer.Citations[0]))
	}
	return c
}

// goldCited reports whether a citation is in a gold section.
func (o Outcome) goldCited(c assay.Citation) bool {
	headings := append([]string{c.Title}, c.Heading...)
	return slices.ContainsFunc(o.Gold, func(g testset.Gold) bool {
		return (g.Document == "" || c.URI == g.Document || strings.HasSuffix(c.URI, "/"+strings.TrimPrefix(g.Document, "/"))) && under(headings, g.Section)
	})
}

// CitedSections lists the cited sections of an outcome, in the form "document › heading › heading".
func CitedSections(o Outcome) []string {
	var cited []string
	for _, c := range o.Answer.Citations {
		cited = append(cited, strings.Join(append([]string{path.Base(c.URI)}, c.Heading...), " › "))
	}
	return cited
}
