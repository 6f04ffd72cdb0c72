package testset

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/metric"
)

// An Exported is a run as written by `assay runs export`, one JSON object per line: the question,
// the given answer, and fields for a correction. The annotator sets Correct if the answer was
// right, or fills in Answers and Gold, or sets Unanswerable. A line without any of these has not
// been judged.
type Exported struct {
	ID       string       `json:"id"` // of the run
	Question string       `json:"question"`
	History  []assay.Turn `json:"conversation,omitempty"`
	Filter   assay.Filter `json:"filter,omitzero"`

	Collections []string `json:"collections,omitempty"` // that were searched; empty: all

	Given Given `json:"given"`

	Correct      *bool    `json:"correct"`
	Answers      []string `json:"answers"`
	Gold         []Gold   `json:"gold"`
	Unanswerable bool     `json:"unanswerable"`
}

// Given is the answer of a run.
type Given struct {
	Status assay.Status `json:"status"`
	Answer string       `json:"answer"`          // its text, without citation numbers
	Cited  []Gold       `json:"cited,omitempty"` // each place once
}

// judged reports whether the line has a label.
func (r caseRecord) judged() bool {
	return r.Correct != nil || len(r.Answer)+len(r.Answers)+len(r.Gold)+len(r.Documents) > 0 || r.Unanswerable || r.Answerable != nil
}

// label copies the answer and citations of the exported run to the case as labels, if the annotator
// marked the answer as correct and wrote no other labels.
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

// Export returns a run in the form for annotators. It reads no documents; the quotes are those of
// the citations. The error is assay.ErrDamaged if the run's request cannot be read.
func Export(r assay.Run) (Exported, error) {
	var asked struct {
		History     []assay.Turn `json:"history"`
		Filter      assay.Filter `json:"filter"`
		Collections []string     `json:"collections"`
	}
	if err := json.Unmarshal(r.Request, &asked); err != nil {
		return Exported{}, fmt.Errorf("run %s: cannot read its request: %w: %w", r.ID, assay.ErrDamaged, err)
	}
	x := Exported{ID: r.ID, Question: r.Question, History: asked.History, Filter: asked.Filter, Collections: asked.Collections, Answers: []string{}, Gold: []Gold{}}
	if r.Answer == nil {
		return x, nil
	}
	x.Given.Status, x.Given.Answer = r.Answer.Status, strings.TrimSpace(metric.Said(*r.Answer))
	seen := map[Gold]bool{}
	for _, c := range r.Answer.Citations {
		g := Gold{Document: c.URI, Start: c.Start, End: c.End, Quote: c.Quote}
		if !seen[g] {
			seen[g] = true
			x.Given.Cited = append(x.Given.Cited, g)
		}
	}
	return x, nil
}
