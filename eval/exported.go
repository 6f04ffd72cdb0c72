package eval

import (
	"strings"

	"github.com/assay-rag/assay"
)

// An Exported is a run as `assay runs export` writes it, one JSON object a line: what was
// asked, what was given for an answer, and room for what is right. Whoever corrects it
// sets Correct where the answer was right as it was given, or fills in Answers and Gold,
// or sets Unanswerable; a line of which nothing is filled in has not been judged.
type Exported struct {
	ID       string       `json:"id"` // of the run
	Question string       `json:"question"`
	History  []assay.Turn `json:"conversation,omitempty"`
	Filter   assay.Filter `json:"filter,omitzero"`

	Collections []string `json:"collections,omitempty"` // where it was asked; empty: everywhere

	Given Given `json:"given"`

	Correct      *bool    `json:"correct"`
	Answers      []string `json:"answers"`
	Gold         []Gold   `json:"gold"`
	Unanswerable bool     `json:"unanswerable"`
}

// Given is what a run answered.
type Given struct {
	Status assay.Status `json:"status"`
	Answer string       `json:"answer"`          // what stands in it, without its citation numbers
	Cited  []Gold       `json:"cited,omitempty"` // each place once
}

// judged reports whether somebody has said what is right.
func (r caseRecord) judged() bool {
	return r.Correct != nil || len(r.Answer)+len(r.Answers)+len(r.Gold)+len(r.Documents) > 0 || r.Unanswerable || r.Answerable != nil
}

// label gives a case the labels of the run that it was exported from, where that was
// right and nobody has written other ones.
func (g Given) label(c *Case, correct *bool) {
	if correct == nil || !*correct {
		return
	}
	if g.Status == assay.NotFound {
		c.Unanswerable = len(c.Gold)+len(c.Answers) == 0
		return
	}
	if c.Conflicting == nil {
		conflict := g.Status == assay.Conflicting
		c.Conflicting = &conflict
	}
	if len(c.Answers) == 0 && g.Answer != "" {
		c.Answers = []string{g.Answer}
	}
	if len(c.Gold) == 0 {
		c.Gold = g.Cited
	}
}

// Export returns a run for people to judge; text of a document is asked of nobody.
func Export(r assay.Run, history []assay.Turn, filter assay.Filter, collections []string) Exported {
	x := Exported{ID: r.ID, Question: r.Question, History: history, Filter: filter, Collections: collections, Answers: []string{}, Gold: []Gold{}}
	if r.Answer == nil {
		return x
	}
	x.Given.Status, x.Given.Answer = r.Answer.Status, strings.TrimSpace(said(*r.Answer))
	seen := map[Gold]bool{}
	for _, c := range r.Answer.Citations {
		g := Gold{Document: c.URI, Start: c.Start, End: c.End, Quote: c.Quote}
		if !seen[g] {
			seen[g] = true
			x.Given.Cited = append(x.Given.Cited, g)
		}
	}
	return x
}
