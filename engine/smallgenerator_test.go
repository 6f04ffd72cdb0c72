package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// liar returns a model whose statements the documents do not support.
func liar(name string) *scripted {
	return texts(name, func(req llm.Request) string {
		return jsonOf(map[string]any{"shape": "prose", "columns": []string{}, "conflicts": []any{}, "open": []string{}, "statements": []map[string]any{
			{"text": "Travel to a customer is approved by the moon.", "sources": []int{1}, "item": false, "cells": []string{}, "section": ""},
		}})
	})
}

// TestSmallGenerator checks which generator writes the answer to each question, and that a replay
// takes the same course.
func TestSmallGenerator(t *testing.T) {
	t.Parallel()
	const travel = "Travel to a customer is approved by the head of the department."
	unsure := texts("fake/small", func(req llm.Request) string {
		return jsonOf(map[string]any{"shape": "prose", "columns": []string{}, "conflicts": []any{}, "open": []string{"who approves it"}, "statements": []any{}})
	})
	for _, tt := range []struct {
		name     string
		question string

		complexity role.Complexity
		small      *scripted
		wrote      []string // models that wrote, once per call
		answered   bool
	}{
		{"a simple question", someQuestion, role.Simple, texts("fake/small", handbook.write), []string{"fake/small"}, true},
		{"what does not hold", someQuestion, role.Simple, liar("fake/small"), []string{"fake/small", "fake/generator"}, true},
		{"what is open", someQuestion, role.Simple, unsure, []string{"fake/small", "fake/generator"}, true},
		{"a provider that fails", someQuestion, role.Simple, failing("fake/small", llm.Unreachable, "connection refused"), []string{"fake/small", "fake/generator"}, true},
		{"two parts", "Who approves travel to a customer, and which password does the wifi have?", role.Complex, texts("fake/small", handbook.write), []string{"fake/generator"}, false},
		{"a list", "Who are all the people that approve, list each who approves travel?", role.Moderate, texts("fake/small", handbook.write), []string{"fake/generator"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			by := handbook.models()
			by[role.RouterTask] = texts("fake/router", func(llm.Request) string {
				return jsonOf(map[string]any{"reason": "", "complexity": tt.complexity})
			})
			m := served(by)
			m.Small = tt.small
			delete(m.Roles, role.VerifierRole) // otherwise a model would accept everything
			m.LocalVerifier = true
			e := openModels(t, m)
			a, err := e.Answer(t.Context(), assay.Local(), Request{Question: tt.question, Strategy: "corrective"})
			if err != nil {
				t.Fatal(err)
			}
			if answered := a.Status == assay.Answered; answered != tt.answered || len(a.Claims) == 0 || !strings.Contains(a.Text, travel) {
				t.Errorf("%s: %q, notes %q", a.Status, a.Text, a.Notes)
			}
			var wrote []string
			for _, r := range a.Roles {
				if r.Role == role.GeneratorRole {
					wrote = append(wrote, r.Model)
				}
			}
			want := slices.Sorted(slices.Values(tt.wrote))
			if diff := cmp.Diff(want, wrote); diff != "" {
				t.Errorf("who wrote (-want +got):\n%s", diff)
			}
			if n := by[role.GeneratorRole].calls(); n > 1 {
				t.Errorf("the large one was asked %d times", n)
			}
			for _, note := range a.Notes {
				if strings.Contains(note.Text, "when the run began") {
					t.Errorf("notes %q", a.Notes)
				}
			}
			replays(t, e, a.Run)
		})
	}
}

// TestSmallGeneratorAlone checks that a small generator requires a large one.
func TestSmallGeneratorAlone(t *testing.T) {
	t.Parallel()
	m := served(handbook.models())
	m.Small = texts("fake/small", handbook.write)
	if err := m.check(); err != nil {
		t.Fatal(err)
	}
	delete(m.Roles, role.GeneratorRole)
	if err := m.check(); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("check = %v", err)
	}
}

// TestResumeWithSmall checks that a run interrupted at any call can be resumed with or without
// the small generator.
func TestResumeWithSmall(t *testing.T) {
	t.Parallel()
	for _, still := range []bool{true, false} {
		for at := 1; at <= 6; at++ {
			by := handbook.models()
			small := liar("fake/small")
			all := map[string]*scripted{"small": small}
			for name, m := range by {
				all[name] = m
			}
			ctx, leave := context.WithCancel(t.Context())
			interruptible(all, at, leave)
			m := served(by)
			m.Small = small
			e := openModels(t, m)
			_, err := e.Answer(ctx, assay.Local(), Request{Question: someQuestion, Strategy: "corrective"})
			leave()
			failed, ok := errors.AsType[*RunError](err)
			if err == nil {
				break // the run finished before this call
			}
			if !ok || !failed.Resumable {
				t.Fatalf("left at call %d: %v", at, err)
			}
			again := served(handbook.models())
			if still {
				again.Small = liar("fake/small")
			}
			e.config.Models = again
			a, err := last(e.Resume(t.Context(), assay.Local(), failed.Run))
			if errors.Is(err, assay.ErrInvalid) && !still {
				continue // interrupted in the middle of a job whose model changed
			}
			if err != nil || a.Status != assay.Answered {
				t.Errorf("left at call %d, small %v: %s, %v", at, still, a.Status, err)
				continue
			}
			replays(t, e, a.Run)
		}
	}
}
