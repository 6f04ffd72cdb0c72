package eval

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

// A Golden is a question with the section that its answer must cite, or without
// one when the documents do not answer it.
type Golden struct {
	Question string   `json:"question"`
	Document string   `json:"document,omitempty"` // end of the document's path
	Sections []string `json:"sections,omitempty"` // any of them will do; headings, as they stand
}

// Answerable reports whether the documents answer the question.
func (g Golden) Answerable() bool { return len(g.Sections) > 0 }

// ReadGolden reads golden questions, one JSON object a line.
func ReadGolden(file string) ([]Golden, error) {
	var golden []Golden
	err := readLines(file, func(line []byte) error {
		var g Golden
		if err := json.Unmarshal(line, &g); err != nil {
			return err
		}
		if g.Question == "" {
			return fmt.Errorf("no question")
		}
		golden = append(golden, g)
		return nil
	})
	return golden, err
}

// An AnswersReport says how golden questions were answered.
type AnswersReport struct {
	Answerable   int             `json:"answerable"`
	Right        int             `json:"right"`       // some citation is in a right section
	RightFirst   int             `json:"right_first"` // the first statement's is
	Unanswerable int             `json:"unanswerable"`
	Refused      int             `json:"refused"` // of the unanswerable: not_found
	Outcomes     []AnswerOutcome `json:"outcomes"`
}

// An AnswerOutcome is one question's.
type AnswerOutcome struct {
	Golden
	Status     assay.Status `json:"status"`
	Cited      []string     `json:"cited"` // "document › heading › heading", by statement
	Right      bool         `json:"right"`
	RightFirst bool         `json:"right_first"`
	Text       string       `json:"text"`
}

// Answers asks each golden question and measures the answers.
func Answers(ctx context.Context, e *engine.Engine, golden []Golden) (AnswersReport, error) {
	var report AnswersReport
	for _, g := range golden {
		a, err := e.Answer(ctx, assay.Local(), engine.Request{Question: g.Question, NoCache: true})
		if err != nil {
			return report, fmt.Errorf("ask %q: %w", g.Question, err)
		}
		o := AnswerOutcome{Golden: g, Status: a.Status, Text: a.Text}
		for i, c := range a.Citations {
			o.Cited = append(o.Cited, strings.Join(append([]string{path.Base(c.URI)}, c.Heading...), " › "))
			if g.Answerable() && cites(g, c) {
				o.Right = true
				o.RightFirst = o.RightFirst || i == 0
			}
		}
		if g.Answerable() {
			report.Answerable++
			report.Right += one(o.Right)
			report.RightFirst += one(o.RightFirst)
		} else {
			report.Unanswerable++
			o.Right = a.Status == assay.NotFound
			report.Refused += one(o.Right)
		}
		report.Outcomes = append(report.Outcomes, o)
	}
	return report, nil
}

// cites reports whether a citation stands in one of the right sections.
func cites(g Golden, c assay.Citation) bool {
	if !strings.HasSuffix(c.URI, g.Document) {
		return false
	}
	return slices.ContainsFunc(g.Sections, func(want string) bool {
		return slices.ContainsFunc(append([]string{c.Title}, c.Heading...), func(h string) bool {
			return strings.EqualFold(strings.ReplaceAll(h, "`", ""), want)
		})
	})
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}
