package engine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/embedded"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/strategy"
)

// lenient returns models for every role that accept everything: all passages are relevant and
// sufficient, all answers are complete, and all claims are supported by the first words of their
// sources. The generator writes one true sentence that does not answer the question.
func lenient(sentence string) map[string]*scripted {
	by := clerks(func(form string, p seen, reply map[string]any, calls []llm.ToolCall) []llm.ToolCall {
		switch form {
		case "grade":
			reply["relevant_chunks"], reply["verdict"], reply["missing"] = p.numbers(), "sufficient", []string{}
		case "retrieval_grades":
			for _, g := range reply["grades"].([]any) {
				g.(map[string]any)["grade"] = "relevant"
			}
		case "scores":
			for _, s := range reply["scores"].([]any) {
				s.(map[string]any)["score"] = 10
			}
		case "support_grades":
			for _, g := range reply["grades"].([]any) {
				g.(map[string]any)["grade"] = "supported"
			}
		case "judgement":
			reply["revise"], reply["verdict"] = []string{}, "ACCEPT"
		case "reflection":
			reply["coverage"], reply["status"] = 1, "COMPLETED"
		case "verdicts":
			for _, v := range reply["verdicts"].([]any) {
				v := v.(map[string]any)
				v["verdict"], v["score"] = "supported", 1
			}
		case "answer_grade":
			reply["score"], reply["lacks"] = 10, []string{}
		case "answer":
			from := []int{}
			for _, of := range p.passages {
				if strings.Contains(of.text, sentence) {
					from = append(from, of.number)
				}
			}
			reply["statements"] = []any{map[string]any{"text": sentence, "sources": from, "item": false, "cells": []string{}, "section": ""}}
		}
		return calls
	})
	return by
}

// TestFloorHoldsWhoeverGrades checks that a question that no document answers is not answered
// with something else, whichever grader is used.
func TestFloorHoldsWhoeverGrades(t *testing.T) {
	t.Parallel()
	const crane = "The crane in Porto was installed in 1987."
	for name, with := range map[string]struct {
		encoders Encoders
		reader   func() (llm.Reader, error)
	}{"words": {}, "vectors": {encoders: embeddedEncoder{}}, "vectors and the reader": {embeddedEncoder{}, embedded.OpenReader}} {
		dir := t.TempDir()
		for file, text := range map[string]string{
			"crane.md":  "# Port of Porto\n\n## Crane\n\n" + crane + " What is the load of it? It lifts 40 tonnes.\n",
			"quay.md":   "# Quays\n\nThe north quay of the port is 600 metres long.\n",
			"safety.md": "# Safety\n\nHelmets are worn on the quay. What is lifted is lifted slowly.\n",
		} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		e := openConfig(t, Config{Dir: t.TempDir(), NoBackground: true, Encoders: with.encoders, Reader: with.reader})
		if _, err := e.Ingest(t.Context(), IngestRequest{Paths: []string{dir}, Wait: with.encoders != nil}); err != nil {
			t.Fatal(err)
		}
		for _, way := range [][]string{{role.GraderRole, role.GeneratorRole}, {role.GraderRole, role.GeneratorRole, role.JudgeRole}, roleNames} {
			by := lenient(crane)
			for r := range by {
				if !slices.Contains(way, r) {
					delete(by, r)
				}
			}
			e.config.Models = served(by)
			e.config.Models.LocalVerifier = false
			for _, s := range strategy.Names() {
				if s == "managed" {
					continue
				}
				a, err := e.Answer(t.Context(), assay.Local(), Request{Question: "What is the capital of Peru?", Strategy: s, NoCache: true, Budget: assay.Budget{Wall: 10 * time.Minute}})
				if err != nil {
					t.Fatal(err)
				}
				if a.Status != assay.NotFound || strings.Contains(a.Text, "crane") || len(a.Claims) > 0 {
					t.Errorf("%s, %d roles, %s: %s: %q: %s", name, len(by), s, a.Status, a.Text, a.Justification)
				}
				replays(t, e, a.Run)
			}
			a, err := e.Answer(t.Context(), assay.Local(), Request{Question: "When was the crane in Porto installed?", Strategy: "static", NoCache: true, Budget: assay.Budget{Wall: 10 * time.Minute}})
			if err != nil || a.Status != assay.Answered || !strings.Contains(a.Text, "1987") {
				t.Errorf("%s, %d roles: %s: %q, %v: %s", name, len(by), a.Status, a.Text, err, a.Justification)
			}
		}
	}
}

// TestAnswerRelevanceFloor checks that a true statement that does not answer the question is not
// shown. The lower of the scores of the reader and the answer grader decides.
func TestAnswerRelevanceFloor(t *testing.T) {
	t.Parallel()
	const lifts = "The crane lifts 40 tonnes."
	dir := t.TempDir()
	text := "# Crane\n\nThe crane in Porto was installed in 1987. " + lifts + "\n"
	if err := os.WriteFile(filepath.Join(dir, "crane.md"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		reader, score float64 // negative score: no model is asked, by static; else the judge, by adaptive
		want          assay.Status
		reason        assay.Reason
	}{
		{0.9, -1, assay.Answered, assay.ReasonSupported},
		{0.02, -1, assay.NotFound, assay.ReasonOffTopic},
		{0.9, 10, assay.Answered, assay.ReasonSupported},
		{0.02, 10, assay.NotFound, assay.ReasonOffTopic},
		{0.9, 1, assay.NotFound, assay.ReasonOffTopic},
	} {
		by := lenient(lifts)
		models := map[string]*scripted{role.GraderRole: by[role.GraderRole], role.GeneratorRole: by[role.GeneratorRole], role.VerifierRole: by[role.VerifierRole]}
		if tt.score >= 0 {
			models[role.RouterTask] = texts("fake/router", func(llm.Request) string { return jsonOf(map[string]any{"reason": "", "complexity": role.Moderate}) })
			models[role.AnswerGraderTask] = texts("fake/judge", func(llm.Request) string {
				return jsonOf(map[string]any{"lacks": []string{"a year"}, "score": tt.score})
			})
		}
		reader := &llmtest.Reader{OnRead: func(question string, p llm.Excerpt) (llm.Reading, error) {
			r, err := llmtest.ReadByWords(question, p)
			if r.Answerable = 0.9; p.Text == lifts {
				r.Answerable = tt.reader
			}
			return r, err
		}}
		e := openConfig(t, Config{Dir: t.TempDir(), NoBackground: true, Models: served(models), Reader: func() (llm.Reader, error) { return reader, nil }})
		ingestPaths(t, e, dir)
		how := "static"
		if tt.score >= 0 {
			how = "adaptive"
		}
		a := asked(t, e, Request{Question: "When was the crane in Porto installed?", Strategy: how})
		if a.Status != tt.want || a.Reason != tt.reason || (len(a.Claims) > 0) != (tt.want == assay.Answered) || strings.Contains(a.Text, "40") != (tt.want == assay.Answered) {
			t.Errorf("reader %v, score %v: %s (%s): %q: %s", tt.reader, tt.score, a.Status, a.Reason, a.Text, a.Justification)
		}
		replays(t, e, a.Run)
	}
}

// TestHostileModelVerifier checks that no part of a draft is shown if the verifier model's reply
// is wrong in any way.
func TestHostileModelVerifier(t *testing.T) {
	t.Parallel()
	const truth = "Travel to a customer is approved by the head of the department."
	verdict := func(quotes ...string) func(llm.Request) string {
		return func(req llm.Request) string {
			var verdicts []any
			for i := range promptIn(req).others["claim"] {
				verdicts = append(verdicts, map[string]any{"claim": i + 1, "reason": "yes", "quotes": quotes, "verdict": "supported", "score": 1})
			}
			return jsonOf(map[string]any{"verdicts": verdicts})
		}
	}
	for name, verifier := range map[string]*scripted{
		"fails":             failing("fake/verifier", llm.Overloaded, "later"),
		"says nothing":      texts("fake/verifier", func(llm.Request) string { return "" }),
		"says yes in prose": texts("fake/verifier", func(llm.Request) string { return "All claims are supported." }),
		"judges no claim":   texts("fake/verifier", func(llm.Request) string { return `{"verdicts":[]}` }),
		"judges another claim": texts("fake/verifier", func(llm.Request) string {
			return `{"verdicts":[{"claim":7,"quotes":["head"],"verdict":"supported","score":1}]}`
		}),
		"invents a verdict": texts("fake/verifier", func(llm.Request) string {
			return `{"verdicts":[{"claim":1,"quotes":["head"],"verdict":"certainly","score":1}]}`
		}),
		"quotes nothing":                texts("fake/verifier", verdict()),
		"quotes blanks":                 texts("fake/verifier", verdict(" ", "…")),
		"makes its quote up":            texts("fake/verifier", verdict("The head of the department signs for everybody.")),
		"makes one of its quotes up":    texts("fake/verifier", verdict("approved by the head of the department", "Nobody else does.")),
		"quotes the claim's paraphrase": texts("fake/verifier", verdict("is approved by the department's head")),
	} {
		by := handbook.models()
		by[role.VerifierRole] = verifier
		e := openModels(t, served(by))
		a := asked(t, e, Request{Question: someQuestion})
		if len(a.Claims) > 0 || a.Status == assay.Answered || strings.Contains(a.Text, truth) {
			t.Errorf("%s: %s (%s): %q", name, a.Status, a.Reason, a.Text)
		}
		replays(t, e, a.Run)
	}
}
