package engine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// TestRoundsOnRealDocuments runs the strategies that work in rounds on real documents with local
// roles.
func TestRoundsOnRealDocuments(t *testing.T) {
	t.Parallel()
	docs := filepath.Join(goRoot(t), "doc")
	if _, err := os.Stat(filepath.Join(docs, "go_spec.html")); err != nil {
		t.Skip("the documents are Go's own, which are not here: ", err)
	}
	e := openDir(t, t.TempDir())
	if _, err := e.Ingest(t.Context(), IngestRequest{Paths: []string{docs}}); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		strategy, question string
		says               string // substring of the answer; empty: no answer is found
		roles              []string
		most               int // maximum number of searches
	}{
		{"adaptive", "What is the zero value of a pointer?", "nil", []string{role.RouterTask}, 1},
		{"adaptive", "What is the difference between a send and a receive operation?", "receive", []string{role.RouterTask}, 8},
		{"adaptive", "How do I brew coffee with the moka pot?", "", []string{role.RouterTask}, 2},
		{"judge", "What happens when I send on a closed channel?", "run-time panic", []string{role.CriticTask, role.JudgeRole}, 3},
		{"judge", "How do I brew coffee with the moka pot?", "", nil, 3},
		{"reflect", "What happens when I send on a closed channel?", "run-time panic", []string{role.AnalystTask, role.ReflectorTask}, 3},
		{"reflect", "What is a data race and what does a closed channel do to a send?", "race", []string{role.AnalystTask, role.ReflectorTask}, 4},
		{"reflect", "How do I brew coffee with the moka pot?", "", nil, 3},
	}
	for _, tt := range tests {
		a, err := e.Answer(t.Context(), assay.Local(), Request{Question: tt.question, Strategy: tt.strategy})
		if err != nil {
			t.Fatal(err)
		}
		if a.Strategy != tt.strategy || len(a.Searched) > tt.most || tt.says == "" && len(a.Claims) > 0 || !strings.Contains(a.Text, tt.says) {
			t.Errorf("%s, %q: %s after %d searches: %q, want one that says %q after %d at most", a.Strategy, tt.question, a.Status, len(a.Searched), a.Text, tt.says, tt.most)
		}
		var asked []string
		_, steps, err := e.Run(t.Context(), assay.Local(), a.Run)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range steps {
			if name, _, _ := strings.Cut(s.Summary, ":"); s.Kind == assay.StepRole {
				if asked = append(asked, name); s.Summary == name {
					t.Errorf("%s, %q: %s says nothing of what it brought", tt.strategy, tt.question, s.Path)
				}
			}
		}
		for _, name := range tt.roles {
			if !slices.Contains(asked, name) {
				t.Errorf("%s, %q: asked %q, and not the %s", tt.strategy, tt.question, asked, name)
			}
		}
		replays(t, e, a.Run)
	}
}

// TestRoundsWithModels runs these strategies with all roles done by models.
func TestRoundsWithModels(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		strategy string
		roles    []string
	}{
		{"adaptive", []string{role.RouterTask, role.GraderRole}},
		{"judge", []string{role.GraderRole, role.CriticTask, role.JudgeRole, role.QuerierTask}},
		{"reflect", []string{role.PlannerRole, role.GraderRole, role.AnalystTask, role.ReflectorTask, role.QuerierTask}},
	} {
		by := handbook.models()
		once := func(name, first, then string) { // rejects at first
			by[name] = texts("fake/"+name, func(llm.Request) string {
				if by[name].calls() == 1 && first != "" {
					return first
				}
				return then
			})
		}
		once(role.RouterTask, "", `{"reason":"one fact","complexity":"simple"}`)
		once(role.QuerierTask, "", `{"reason":"not yet searched","gap":"who","query":"head of department approval"}`)
		once(role.CriticTask, "", `{"remarks":[{"statement":0,"flaw":"missing","advice":"say who"}],"grounded":"good","complete":"fair","relevant":"good","clear":"good"}`)
		once(role.JudgeRole, `{"reason":"no","revise":["say who"],"verdict":"REVISE"}`, `{"reason":"yes","revise":[],"verdict":"ACCEPT"}`)
		once(role.AnalystTask, "", `{"categories":[{"name":"Travel","statements":[{"text":"Travel to a customer is approved by the head of the department.","sources":[1]}]}],"answered":["who"],"open":["until when"]}`)
		once(role.ReflectorTask, `{"justification":"no","coverage":0.4,"status":"INCOMPLETE"}`, `{"justification":"yes","coverage":1,"status":"COMPLETED"}`)
		e := openModels(t, served(by))
		a, err := e.Answer(t.Context(), assay.Local(), Request{Question: "Who approves travel to a customer?", Strategy: tt.strategy})
		if err != nil {
			t.Fatal(err)
		}
		if a.Status != assay.Answered || a.Strategy != tt.strategy || !strings.Contains(a.Text, "head of the department") {
			t.Errorf("%s: %s: %q (%s), notes %q", tt.strategy, a.Status, a.Text, a.Justification, a.Notes)
		}
		for _, name := range tt.roles {
			if by[name].calls() == 0 || !slices.ContainsFunc(a.Roles, func(u assay.RoleUse) bool { return u.Role == role.Of(name) && u.Model == "fake/"+role.Of(name) }) {
				t.Errorf("%s: the %s was called %d times; the answer names %v", tt.strategy, name, by[name].calls(), a.Roles)
			}
		}
		replays(t, e, a.Run)
	}
}
