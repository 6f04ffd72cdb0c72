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
	"github.com/assay-rag/assay/role"
)

// TestRewritingOnRealDocuments runs the strategies that rewrite the question, grade hits and
// statements, or walk the graph, on real documents with local roles.
func TestRewritingOnRealDocuments(t *testing.T) {
	t.Parallel()
	docs := filepath.Join(goRoot(t), "doc")
	if _, err := os.Stat(filepath.Join(docs, "go_spec.html")); err != nil {
		t.Skip("the documents are Go's own, which are not here: ", err)
	}
	e := openDir(t, t.TempDir())
	if _, err := e.Ingest(t.Context(), IngestRequest{Paths: []string{docs}}); err != nil {
		t.Fatal(err)
	}
	const closed = "What happens when I send on a closed channel?"
	tests := []struct {
		strategy, question string
		says               string // substring of the answer; empty: no answer is found
		roles              []string
		least, most        int // number of searches
	}{
		{"advanced", closed, "run-time panic", []string{role.RewriterRole}, 1, 2},
		{"advanced", "What is a data race and what is the zero value of a pointer?", "nil", []string{role.RewriterRole}, 2, 4},
		{"advanced", "How do I brew coffee with the moka pot?", "", []string{role.RewriterRole}, 1, 2},
		{"fusion", closed, "run-time panic", []string{role.RewriterRole}, 2, 4},
		{"fusion", "How do I brew coffee with the moka pot?", "", []string{role.RewriterRole}, 2, 4},
		{"self", closed, "run-time panic", []string{role.RetrievalGraderTask, role.SupportGraderTask}, 1, 3},
		{"self", "How do I brew coffee with the moka pot?", "", []string{role.QuerierTask}, 1, 3},
		{"graph", closed, "run-time panic", nil, 2, 4},
		{"graph", "How do I brew coffee with the moka pot?", "", nil, 1, 4},
	}
	for _, tt := range tests {
		a, err := e.Answer(t.Context(), assay.Local(), Request{Question: tt.question, Strategy: tt.strategy, Budget: assay.Budget{Wall: 10 * time.Minute}})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(a.Searched); a.Strategy != tt.strategy || n < tt.least || n > tt.most || tt.says == "" && len(a.Claims) > 0 || !strings.Contains(a.Text, tt.says) {
			t.Errorf("%s, %q: %s after %d searches: %q, want one that says %q after %d to %d", a.Strategy, tt.question, a.Status, n, a.Text, tt.says, tt.least, tt.most)
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

// graded returns a reply with the same grade for each thing in the request.
func graded(what, grade string, marks string) func(llm.Request) string {
	return func(req llm.Request) string {
		list := []map[string]any{}
		for i := range strings.Count(req.Messages[0].Text, marks) {
			list = append(list, map[string]any{what: i + 1, "grade": grade})
		}
		return jsonOf(map[string]any{"grades": list})
	}
}

// TestRewritingWithModels runs these strategies with all roles done by models, first with good
// models and then with failing providers.
func TestRewritingWithModels(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		strategy string
		roles    []string
	}{
		{"advanced", []string{role.PlannerRole, role.RewriterRole, role.GraderRole}},
		{"fusion", []string{role.RewriterRole, role.GraderRole}},
		{"self", []string{role.GraderRole, role.RetrievalGraderTask, role.SupportGraderTask}},
		{"graph", []string{role.GraderRole}},
	} {
		for _, fails := range []bool{false, true} {
			by := handbook.models()
			by[role.RewriterRole] = texts("fake/rewriter", func(llm.Request) string { return `{"queries":["customer visits need approval"]}` })
			by[role.RetrievalGraderTask] = texts("fake/retrieval_grader", graded("passage", "relevant", "<passage number="))
			by[role.SupportGraderTask] = texts("fake/support_grader", graded("statement", "supported", "<statement number="))
			if fails {
				for _, name := range []string{role.RewriterRole, role.RetrievalGraderTask, role.SupportGraderTask} {
					by[name] = failing("fake/"+name, llm.Unreachable, "down")
				}
			}
			e := openModels(t, served(by))
			a, err := e.Answer(t.Context(), assay.Local(), Request{Question: "Who approves travel to a customer?", Strategy: tt.strategy})
			if err != nil {
				t.Fatal(err)
			}
			if a.Status != assay.Answered || a.Strategy != tt.strategy || !strings.Contains(a.Text, "head of the department") {
				t.Errorf("%s: %s: %q (%s), notes %q", tt.strategy, a.Status, a.Text, a.Justification, a.Notes)
			}
			for _, name := range tt.roles {
				if by[name].calls() == 0 {
					t.Errorf("%s: the %s was not called", tt.strategy, name)
				}
				stood := slices.ContainsFunc(noteTexts(a.Notes), func(n string) bool { return strings.Contains(n, "the local "+name+" stood in") })
				if down := fails && by[name].name == "fake/"+name && name != role.PlannerRole && name != role.GraderRole; stood != down {
					t.Errorf("%s: notes %q: the local %s stood in: %v, want %v", tt.strategy, a.Notes, name, stood, down)
				}
			}
			replays(t, e, a.Run)
		}
	}
}
