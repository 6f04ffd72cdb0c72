package llmtest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
)

const sufficient = `{"verdict":"sufficient","relevant_chunks":["c1","c2"],"cited":[1,2],"open":null,"done":true}`

func request() llm.Request {
	return llm.Request{System: "You grade.", Messages: []llm.Message{{Speaker: llm.User, Text: "Is it enough?"}}, MaxTokens: 64, Attempts: 1,
		Schema: &llm.Schema{Name: "grade", Schema: []byte(`{"type":"object"}`)}}
}

// TestFaults checks that each fault has a unique name, ends when its context does, and has an
// effect: its outcome differs from that of the model without it.
func TestFaults(t *testing.T) {
	if n := len(llmtest.ModelFaults); n < 80 {
		t.Errorf("%d faults", n)
	}
	seen := map[llmtest.ModelFault]bool{}
	for _, fault := range llmtest.ModelFaults {
		if seen[fault] {
			t.Errorf("the fault %q is there twice", fault)
		}
		seen[fault] = true
		t.Run(string(fault), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := &llmtest.Scripted{Reply: llmtest.Say(sufficient)}
				first, ended := outcome(t, llmtest.HostileModel(inner, fault))
				second, _ := outcome(t, llmtest.HostileModel(inner, fault))
				if diff := cmp.Diff(first, second); diff != "" {
					t.Errorf("the second time is another (-first +second):\n%s", diff)
				}
				plain, _ := outcome(t, inner)
				if cmp.Equal(plain, first) && !ended {
					t.Errorf("nothing is wrong with %+v", first)
				}
			})
		})
	}
}

// A result is the outcome of a call in comparable form.
type result struct {
	Response     llm.Response
	Error, Panic string
	Told         string
}

// outcome calls a model. It reports whether the call ran until its context ended.
func outcome(t *testing.T, m llm.Model) (r result, ended bool) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			r.Panic = "panic"
		}
	}()
	var told strings.Builder
	response, err := m.Generate(ctx, request(), func(d llm.Delta) { told.WriteString("|" + d.Text) })
	r.Response, r.Told = response, told.String()
	if failed, ok := errors.AsType[*llm.Error](err); ok && failed == nil {
		r.Error = "a nil *llm.Error"
	} else if err != nil {
		r.Error = err.Error()
	}
	return r, ctx.Err() != nil
}

func TestScripted(t *testing.T) {
	m := &llmtest.Scripted{Name: "test/one", Reply: llmtest.ByRule(
		llmtest.Rule{Has: "grade", Reply: llmtest.Queue("first", "second")},
		llmtest.Rule{Has: "Hello", Reply: llmtest.Say("Hello, you.")},
	)}
	var told []string
	ask := func(req llm.Request) string {
		r, err := m.Generate(t.Context(), req, func(d llm.Delta) { told = append(told, d.Text) })
		if err != nil {
			return err.Error()
		}
		return r.Text
	}
	hello := llm.Request{Messages: []llm.Message{{Speaker: llm.User, Text: "Hello"}}, MaxTokens: 1}
	got := []string{ask(request()), ask(request()), ask(hello), ask(request()), ask(llm.Request{})}
	want := []string{"first", "second", "Hello, you.",
		"scripted/model: refused request: the script is at its end", "scripted/model: refused request: no rule is for this request"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("replies (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"first", "second", "Hello, ", "you."}, told); diff != "" {
		t.Errorf("the stream was told (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]llm.Request{request(), request(), hello, request(), {}}, m.Requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestRecorded(t *testing.T) {
	one, other, retried := request(), request(), request()
	other.System, retried.Attempts = "You plan.", 3
	exchanges := []llmtest.Exchange{
		{Request: one, Response: llm.Response{Text: "a", Usage: assay.Usage{InputTokens: 5, OutputTokens: 1}}},
		{Request: one, Error: &llm.Error{Model: "m", Kind: llm.Overloaded}},
		{Request: other, Response: llm.Response{Text: "b"}},
	}
	m := &llmtest.Scripted{Reply: llmtest.Recorded(exchanges)}
	var got []string
	for _, req := range []llm.Request{other, one, retried, one, {}} {
		r, err := m.Generate(t.Context(), req, nil)
		if err != nil {
			r.Text = err.Error()
		}
		got = append(got, r.Text)
	}
	want := []string{"b", "a", "m: overloaded", "m: overloaded", "scripted/model: refused request: nobody has recorded this request"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
