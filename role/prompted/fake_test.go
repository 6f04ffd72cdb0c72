package prompted_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/role/prompted"
)

// A caller is a role's caller that answers by a script, one entry a call; the last
// one goes on. It keeps what was asked.
type caller struct {
	t      *testing.T
	script []any // string: a reply; llm.Response; error
	calls  []role.Call
}

func (c *caller) Call(ctx context.Context, call role.Call) (llm.Response, error) {
	c.t.Helper()
	if err := ctx.Err(); err != nil {
		return llm.Response{}, err
	}
	c.calls = append(c.calls, call)
	if n := call.Request.MaxTokens; n < 1 {
		c.t.Errorf("call %d: MaxTokens %d", len(c.calls), n)
	}
	if m := call.Request.Messages; len(m) == 0 || m[len(m)-1].Speaker != llm.User || call.Prompt == "" || call.Role == "" {
		c.t.Errorf("call %d: role %q, prompt %q, messages %+v", len(c.calls), call.Role, call.Prompt, m)
	}
	if w := llm.FactsOf(call.Model).Window; w > 0 && call.Request.InputTokens()+call.Request.MaxTokens > w {
		c.t.Errorf("call %d: %d tokens and %d of reply do not fit into %d", len(c.calls), call.Request.InputTokens(), call.Request.MaxTokens, w)
	}
	switch s := c.script[min(len(c.calls), len(c.script))-1].(type) {
	case string:
		return llm.Response{Text: s, Finish: llm.FinishStop}, nil
	case llm.Response:
		return s, nil
	case error:
		return llm.Response{}, s
	}
	return llm.Response{}, errors.New("the script has something else")
}

func (c *caller) Check(context.Context, ground.Service, role.Claim) (ground.Judgement, error) {
	return ground.Judgement{}, errors.New("no prompted role checks with a service")
}

// last is the user's last message of the nth call, from 0.
func (c *caller) last(n int) string {
	m := c.calls[n].Request.Messages
	return m[len(m)-1].Text
}

// model is a model that is only named; callers answer for it.
type model struct{ facts llm.Facts }

func (model) Model() string      { return "fake/small" }
func (m model) Facts() llm.Facts { return m.facts }
func (model) Generate(context.Context, llm.Request, func(llm.Delta)) (llm.Response, error) {
	return llm.Response{}, errors.New("roles call models through their caller")
}

func config() prompted.Config { return prompted.Config{Model: model{}} }

func replies(t *testing.T, script ...any) *caller { return &caller{t: t, script: script} }

// down is how a provider fails.
var down = &llm.Error{Model: "fake/small", Kind: llm.RateLimited, Status: 429, Message: "slow down"}

func hit(n int, text string) assay.Hit {
	return assay.Hit{
		Chunk: assay.Chunk{ID: fmt.Sprintf("chunk-%d", n), End: len(text)}, Text: text,
		Title: fmt.Sprintf("Title %d", n), Scores: assay.Scores{Relevance: 1 - float64(n)/100},
	}
}

func hits(texts ...string) []assay.Hit {
	var out []assay.Hit
	for i, text := range texts {
		out = append(out, hit(i+1, text))
	}
	return out
}

func evidence(texts ...string) []assay.Evidence {
	var out []assay.Evidence
	for i, h := range hits(texts...) {
		out = append(out, assay.Evidence{Number: i + 1, Hit: h})
	}
	return out
}
