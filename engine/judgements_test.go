package engine

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// TestWrittenAnswerIsProven checks a model that cites a wrong passage, invents a number and puts
// two facts into one sentence. The local verifier corrects the citation, drops the invention and
// proves each fact with an exact quote. The run is stored and replayed with this result.
func TestWrittenAnswerIsProven(t *testing.T) {
	t.Parallel()
	const receipts, locks = "Receipts are handed in within 30 days.", "The platform team locks the device and wipes its disk."
	write := texts("fake/generator", func(req llm.Request) string {
		shown := passages(req)
		right := holding(shown, receipts)
		var wrong []int
		for n := range shown {
			if !slices.Contains(right, n) {
				wrong = append(wrong, n)
			}
		}
		slices.Sort(wrong)
		statement := func(text string, sources []int) map[string]any {
			return map[string]any{"text": text, "sources": sources, "item": false, "cells": []string{}, "section": ""}
		}
		return jsonOf(map[string]any{"shape": "prose", "columns": []string{}, "conflicts": []any{}, "open": []string{}, "statements": []any{
			statement(receipts, wrong[:1]), statement("Receipts are handed in within 90 days.", right), statement(locks, holding(shown, locks)),
		}})
	})
	e := openModels(t, served(map[string]*scripted{role.GeneratorRole: write}))
	a, err := e.Answer(t.Context(), assay.Local(), Request{
		Question: "When are receipts handed in, and who locks the device?", Strategy: "corrective",
	})
	if err != nil {
		t.Fatal(err)
	}
	type shown struct {
		Text     string
		Quotes   []string
		Repaired bool
	}
	var got []shown
	for i, c := range a.Claims {
		s := shown{Text: a.Text[c.Start:c.End], Repaired: c.Repaired}
		for _, ci := range a.Citations {
			if ci.Claim == i {
				s.Quotes = append(s.Quotes, strings.Join(strings.Fields(ci.Quote), " "))
			}
		}
		got = append(got, s)
	}
	want := []shown{
		{receipts, []string{receipts}, true},
		{locks, []string{locks}, false},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: %q, notes %q (-want +got):\n%s", a.Status, a.Text, a.Notes, diff)
	}
	if a.Relevance == nil || strings.Contains(a.Text, "90") {
		t.Errorf("relevance %v, text %q", a.Relevance, a.Text)
	}
	checkShown(t, e, "corrective", a)
	replays(t, e, a.Run)
}
