package job_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval/job"
	"github.com/assay-rag/assay/identity"
)

func openHost(t *testing.T, folders ...string) *engine.Host {
	t.Helper()
	h, err := engine.OpenHost(t.Context(), engine.HostConfig{Config: engine.Config{Dir: t.TempDir(), NoBackground: true}, Folders: folders})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func session(t *testing.T, h *engine.Host, role identity.Role) *engine.Session {
	t.Helper()
	g := identity.Grant{Tenant: engine.DefaultTenant, Principal: assay.Principal{User: "ann", Roles: []string{string(role)}}}
	for _, r := range identity.Roles {
		for _, scope := range r.Scopes {
			if r.Role == role {
				g.Rights = append(g.Rights, identity.Right{Scope: scope})
			}
		}
	}
	s, err := h.Session(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func questions(texts ...string) (all []json.RawMessage) {
	for _, text := range texts {
		all = append(all, json.RawMessage(text))
	}
	return all
}

// TestStart evaluates questions about a document.
func TestStart(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := session(t, openHost(t, folder), identity.Admin)
	const text = "# Leave\n\nUp to five days of leave may be carried over to the next year. Ada Stern leads the team."
	if err := os.WriteFile(filepath.Join(folder, "leave.md"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Ingest(t.Context(), engine.IngestRequest{Paths: []string{folder}}); err != nil {
		t.Fatal(err)
	}
	spec := job.Spec{
		Name: "handbook", Strategies: []string{"auto", "static"},
		Questions: questions(
			`{"id": "days", "question": "How many days of leave may be carried over?", "answers": ["five"], "gold": [{"document": "leave.md", "quote": "five days of leave"}]}`,
			`{"id": "moon", "question": "Who was the first person on the moon?", "answerable": false}`,
		),
	}
	e, err := job.Start(t.Context(), s, spec)
	if err != nil {
		t.Fatal(err)
	}
	for e.State == engine.EvaluationRunning {
		if e, err = s.Evaluation(t.Context(), e.ID); err != nil {
			t.Fatal(err)
		}
	}
	if e.State != engine.EvaluationDone || e.Done != 4 || e.All != 4 {
		t.Fatalf("the evaluation is %+v", e)
	}
	var r job.Result
	if err := json.Unmarshal(e.Result, &r); err != nil {
		t.Fatal(err)
	}
	if r.Set != "handbook" || len(r.Systems) != 2 || len(r.Questions) != 4 || len(r.Systems[0].Figures) == 0 {
		t.Errorf("the result is %s", e.Result)
	}
	for _, q := range r.Questions {
		if !q.Right || q.Run == "" {
			t.Errorf("question %s is %+v", q.ID, q)
		}
		if run, _, err := s.Run(t.Context(), q.Run); err != nil || run.Answer == nil {
			t.Errorf("run %s: %v", q.Run, err)
		}
	}
	for _, word := range []string{"carried", "Stern", "moon?"} {
		if strings.Contains(string(e.Result), word) {
			t.Errorf("the result has a text with %q: %s", word, e.Result)
		}
	}
}

// TestStartRefused checks which specs and sessions are refused.
func TestStartRefused(t *testing.T) {
	t.Parallel()
	h := openHost(t)
	one := questions(`{"question": "Who?"}`)
	for name, c := range map[string]struct {
		role identity.Role
		spec job.Spec
		want error
	}{
		"no questions":        {identity.Admin, job.Spec{}, assay.ErrInvalid},
		"no question in one":  {identity.Admin, job.Spec{Questions: questions(`{}`)}, assay.ErrInvalid},
		"an unknown field":    {identity.Admin, job.Spec{Questions: questions(`{"question": "Who?", "why": 1}`)}, assay.ErrInvalid},
		"one ID twice":        {identity.Admin, job.Spec{Questions: questions(`{"id": "a", "question": "Who?"}`, `{"id": "a", "question": "What?"}`)}, assay.ErrInvalid},
		"an unknown strategy": {identity.Admin, job.Spec{Questions: one, Strategies: []string{"none"}}, assay.ErrInvalid},
		"one strategy twice":  {identity.Admin, job.Spec{Questions: one, Strategies: []string{"auto", "auto"}}, assay.ErrInvalid},
		"many strategies":     {identity.Admin, job.Spec{Questions: one, Strategies: make([]string, job.MaxStrategies+1)}, assay.ErrInvalid},
		"many questions":      {identity.Admin, job.Spec{Questions: make([]json.RawMessage, job.MaxQuestions+1)}, assay.ErrInvalid},
		"a reader":            {identity.Reader, job.Spec{Questions: one}, assay.ErrForbidden},
		"an auditor":          {identity.Auditor, job.Spec{Questions: one}, assay.ErrForbidden}, // who may not ask
	} {
		if _, err := job.Start(t.Context(), session(t, h, c.role), c.spec); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// TestHostClose checks that closing a host ends an evaluation that runs, which is then interrupted.
func TestHostClose(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h, err := engine.OpenHost(t.Context(), engine.HostConfig{Config: engine.Config{Dir: dir, NoBackground: true}})
	if err != nil {
		t.Fatal(err)
	}
	var spec job.Spec
	for i := range 500 {
		spec.Questions = append(spec.Questions, json.RawMessage(fmt.Sprintf(`{"question": "What is the number %d?"}`, i)))
	}
	ctx, cancel := context.WithCancel(t.Context())
	e, err := job.Start(ctx, session(t, h, identity.Admin), spec)
	cancel() // the request has ended, the evaluation has not
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if h, err = engine.OpenHost(t.Context(), engine.HostConfig{Config: engine.Config{Dir: dir, NoBackground: true}}); err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	e, err = session(t, h, identity.Admin).Evaluation(t.Context(), e.ID)
	if err != nil || e.State != engine.EvaluationInterrupted {
		t.Errorf("the evaluation is %+v, %v", e, err)
	}
}
