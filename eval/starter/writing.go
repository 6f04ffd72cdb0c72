package starter

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/role/prompted"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// The length, in bytes, of the passages that a model writes from.
const (
	shortPassage = 200
	longPassage  = 6000
)

// write asks a Writer for n questions, about documents in turn. If a passage yields no question, or
// one whose quote does not occur in it, write tries the next passage of the document.
func (g *gathering) write(ctx context.Context, w Writer, n int) ([]candidate, error) {
	var made []candidate
	at := make([]int, len(g.passages))
	for took := true; took && len(made) < n; {
		took = false
		for _, i := range spread(len(g.passages), n-len(made)) {
			if len(made) >= n {
				break
			}
			for at[i] < len(g.passages[i]) {
				p := g.passages[i][at[i]]
				at[i]++
				if len(p.Text) < shortPassage || len(p.Text) > longPassage {
					continue
				}
				took = true
				q, ok, err := w.Write(ctx, p)
				if err != nil {
					return nil, err
				}
				if c, fits := writtenCandidate(q, p); ok && fits && !alike(c, made) {
					made = append(made, c)
				}
				break
			}
		}
	}
	return made, nil
}

// writtenCandidate makes a case of a written question. It reports false if the quote does not occur
// in the passage.
func writtenCandidate(q Written, p Passage) (candidate, bool) {
	question := strings.Join(strings.Fields(q.Question), " ")
	at := strings.Index(p.Text, strings.TrimSpace(q.Quote))
	if q.Quote == "" || q.Answer == "" || at < 0 || !strings.HasSuffix(question, "?") {
		return candidate{}, false
	}
	quote := strings.TrimSpace(q.Quote)
	return candidate{kind: "written", words: contentWords(question), Case: testset.Case{
		Question: question, Answers: []string{strings.TrimSpace(q.Answer)},
		Gold:   []testset.Gold{{Document: p.document, Start: p.start + at, End: p.start + at + len(quote), Quote: quote}},
		Slices: map[string]string{"type": "written"},
	}}, true
}

// Prompted is a Writer that asks a language model.
type Prompted struct{ Model llm.Model }

//go:embed prompts/write.tmpl
var writeTemplate string

// A reply is the form of the model's answer.
type reply struct {
	Usable   bool   `json:"usable"`
	Question string `json:"question"`
	Answer   string `json:"answer"`
	Quote    string `json:"quote"`
}

var writing = prompted.NewTask[reply]("write_question", writeTemplate, nil)

// Write implements Writer. It reports false if the model's replies cannot be used.
func (w Prompted) Write(ctx context.Context, p Passage) (Written, bool, error) {
	heading := strings.Join(append([]string{p.Title}, p.Headings...), " › ")
	r, outcome, err := writing.Do(ctx, direct{}, prompted.Sheet[reply]{
		Model: w.Model, MaxTokens: 1000, Data: map[string]string{"Heading": heading, "Text": p.Text},
		Check: func(r *reply) []string {
			switch {
			case !r.Usable:
				return nil
			case !strings.HasSuffix(strings.TrimSpace(r.Question), "?"):
				return []string{`"question" is not a question with its question mark`}
			case strings.TrimSpace(r.Quote) == "" || !strings.Contains(p.Text, strings.TrimSpace(r.Quote)):
				return []string{`"quote" does not stand in the passage word for word`}
			}
			return nil
		},
	})
	if err != nil {
		return Written{}, false, err
	}
	if outcome.Failure != "" {
		return Written{}, false, fmt.Errorf("%s: %s: %w", w.Model.Model(), outcome.Failure, assay.ErrUnavailable)
	}
	return Written{Question: r.Question, Answer: r.Answer, Quote: r.Quote}, r.Usable, nil
}

// direct calls a model outside any run.
type direct struct{}

// attempts is the number of attempts of a call while the provider fails.
const attempts = 4

// Call implements role.Caller.
func (direct) Call(ctx context.Context, call role.Call) (llm.Response, error) {
	call.Request.Attempts = attempts
	return call.Model.Generate(ctx, call.Request, nil)
}

// Check implements role.Caller. It always fails, since writing questions needs no verifier.
func (direct) Check(context.Context, ground.Service, role.Claim) (ground.Judgement, error) {
	return ground.Judgement{}, errors.New("a verifier writes no questions")
}
