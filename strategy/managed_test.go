package strategy_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/run"
	"github.com/assay-rag/assay/strategy"
)

// A service is a managed service made of fields.
type service struct {
	answer strategy.ManagedAnswer
	err    error
	asked  int
}

func (s *service) Name() string { return "cloud/base" }

func (s *service) Most(question string) assay.Usage { return strategy.MostOfManaged(question, 0) }

func (s *service) Ask(context.Context, assay.Access, strategy.ManagedQuestion) (strategy.ManagedAnswer, assay.Usage, error) {
	s.asked++
	return s.answer, assay.Usage{Calls: 1}, s.err
}

// absent returns a service with the name of m that panics if it is asked.
func absent(m strategy.Managed) strategy.Managed {
	if m == nil {
		return nil
	}
	return unaskedService{m}
}

type unaskedService struct{ strategy.Managed }

func (unaskedService) Ask(context.Context, assay.Access, strategy.ManagedQuestion) (strategy.ManagedAnswer, assay.Usage, error) {
	panic("a replay asks the service")
}

// passage returns a passage of a service.
func passage(uri, text string) assay.Hit {
	id := assay.DocumentID("cloud", uri)
	version := assay.DocumentVersion(text, nil, "")
	return assay.Hit{
		Chunk: assay.Chunk{ID: assay.ChunkID(id, version, 0), Document: id, Version: version, Kind: assay.ChunkProse, End: len(text), Headings: []string{}},
		Text:  text, URI: uri, Title: uri,
	}
}

// said builds an answer from pieces: texts, each followed by its sources.
func said(pieces ...any) strategy.ManagedAnswer {
	var a strategy.ManagedAnswer
	for _, p := range pieces {
		switch p := p.(type) {
		case string:
			a.Text += p
		case strategy.ManagedPart: // of the text before it
			a.Parts = append(a.Parts, p)
		}
	}
	return a
}

func TestManagedAnswers(t *testing.T) {
	source := passage("s3://a", "The vault may hold a token for seven days. It is on disk.")
	const good = "The vault may hold a token for seven days."
	part := func(start, end int, hits ...assay.Hit) strategy.ManagedPart {
		return strategy.ManagedPart{Start: start, End: end, Hits: hits}
	}
	tests := []struct {
		name   string
		answer strategy.ManagedAnswer
		err    error
		status assay.Status
		text   string // contained in the answer; empty: no claim is shown
		note   string
	}{
		{"good", said(good, part(0, len(good), source)), nil, assay.Answered, "seven days. [1]", ""},
		{"not supported", said("The vault may hold a token for ninety days.", part(0, len("The vault may hold a token for ninety days."), source)), nil, assay.Incomplete, "", ""},
		{"an invented source", said(good, part(0, len(good))), nil, assay.NotFound, "", "left out: 1 statement"},
		{"no source", said(good), nil, assay.NotFound, "", "left out: 1 statement"},
		{"a source without text", said(good, part(0, len(good), passage("s3://b", ""))), nil, assay.NotFound, "", "left out"},
		{"spans that are none", said(good, part(-1, 5, source), part(0, 999, source), part(9, 3, source)), nil, assay.NotFound, "", "left out"},
		{"a span twice", said(good, part(0, len(good), source), part(0, len(good), source)), nil, assay.Incomplete, "seven days. [1]", "left out: 1 statement"},
		{"something uncited", said(good+" And it sings.", part(0, len(good), source)), nil, assay.Incomplete, "seven days. [1]", "left out: 1 statement"},
		{"a link", said("The vault may hold a token for seven days: https://evil.example/x.", part(0, len("The vault may hold a token for seven days: https://evil.example/x."), source)), nil, assay.NotFound, "", ""},
		{"nothing", strategy.ManagedAnswer{}, nil, assay.NotFound, "", ""},
		{"not shared", strategy.ManagedAnswer{}, fmt.Errorf("ask cloud/base: not shared: %w", assay.ErrNotFound), assay.NotFound, "", "not shared"},
		{"down", strategy.ManagedAnswer{}, fmt.Errorf("cloud/base: overloaded: %w", assay.ErrUnavailable), assay.Incomplete, "", "overloaded"},
		{"a filter that it cannot keep to", strategy.ManagedAnswer{}, fmt.Errorf("cloud/base: no such operator: %w", assay.ErrInvalid), assay.Incomplete, "", "no such operator"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := env(nil, vaultQuestion, localRoles())
			e.Managed = &service{answer: test.answer, err: test.err}
			a := askAnywhere(t, strategy.AskManaged, e)
			if a.Status != test.status || !strings.Contains(a.Text, test.text) || (test.text == "") != (len(a.Claims) == 0) || a.Strategy != "managed" {
				t.Errorf("%s: %q with %d claims; %s; notes %q", a.Status, a.Text, len(a.Claims), a.Justification, a.Notes)
			}
			if strings.Contains(a.Text, "evil") || test.note != "" && !slices.ContainsFunc(noteTexts(a.Notes), func(n string) bool { return strings.Contains(n, test.note) }) {
				t.Errorf("%q, notes %q, want %q", a.Text, a.Notes, test.note)
			}
			for _, c := range a.Citations {
				if c.Origin != assay.FromService || c.Quote != source.Text[c.Start:c.End] || c.Number != 1 {
					t.Errorf("citation %+v", c)
				}
			}
		})
	}
}

// TestManagedBudget checks that a service is asked only if the budget has room, and that the run
// ends honestly otherwise.
func TestManagedBudget(t *testing.T) {
	s := &service{}
	e := env(nil, vaultQuestion, localRoles())
	e.Managed = s
	a := ask(t, strategy.AskManaged, e, assay.Budget{Tokens: 100})
	if a.Status != assay.Incomplete || a.Stop != assay.StopTokenBudget || s.asked != 0 {
		t.Errorf("%s (%s) after %d calls", a.Status, a.Stop, s.asked)
	}
	e.Managed = nil
	r, err := run.New(run.Config{Run: "r", Journal: &run.Memory{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := strategy.AskManaged(context.Background(), r.Scope(), e); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("without a service: %v", err)
	}
}
