package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// built is the folder with the built program; empty before build succeeds.
var built string

// build builds the program in its released form.
var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "assay-e2e-")
	if err != nil {
		return "", err
	}
	built = dir
	binary := filepath.Join(dir, "assay")
	cmd := exec.Command("go", "build", "-o", binary, "../cmd/assay")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", errors.New(string(out))
	}
	return binary, nil
})

// A user runs the program in a home directory of their own with one environment variable set.
type user struct {
	binary, home, variable string
}

// newUser returns a user of a model server.
func newUser(t *testing.T, l *llama) user {
	t.Helper()
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return user{binary, t.TempDir(), "OPENAI_BASE_URL=" + l.base}
}

// A result is the output and exit code of a command.
type result struct {
	stdout, stderr string
	code           int
}

// command returns a command with the user's environment.
func (u user) command(args ...string) *exec.Cmd {
	cmd := exec.Command(u.binary, args...)
	cmd.Env = []string{"HOME=" + u.home, "PATH=" + os.Getenv("PATH"), u.variable}
	return cmd
}

// run runs a command until it exits.
func (u user) run(t *testing.T, args ...string) result {
	t.Helper()
	cmd := u.command(args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || !exit.Exited()) {
		t.Fatalf("assay %v: %v\n%s", args, err, &stderr)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// handbook holds the arguments that select the handbook.
var handbook = []string{"--docs", "../engine/testdata/handbook"}

// leaveTimeout allows for a slow machine. An abstention at the timeout is valid as well.
const (
	leaveQuestion = "How long does parental leave last?"
	leaveTimeout  = 2 * time.Minute
)

// ask asks the question and checks that the answer matches the exit code.
func (u user) ask(t *testing.T, more ...string) assay.Answer {
	t.Helper()
	r := u.run(t, slices.Concat([]string{"ask", "--json", "--timeout", leaveTimeout.String()}, handbook, more, []string{leaveQuestion})...)
	return checkAsked(t, r)
}

// checkAsked parses the answer to a question and checks that its status matches the exit code.
func checkAsked(t *testing.T, r result) assay.Answer {
	t.Helper()
	a := readAnswer(t, r)
	codes := map[assay.Status]int{assay.Answered: 0, assay.NotFound: 3, assay.Incomplete: 4, assay.Conflicting: 5}
	if want, ok := codes[a.Status]; !ok || r.code != want {
		t.Errorf("the status is %s and the exit code %d", a.Status, r.code)
	}
	return a
}

// readAnswer parses an answer and checks that it has no unverified claims.
func readAnswer(t *testing.T, r result) assay.Answer {
	t.Helper()
	var a assay.Answer
	if err := json.Unmarshal([]byte(r.stdout), &a); err != nil {
		t.Fatalf("the answer: %v\n%s\n%s", err, r.stdout, r.stderr)
	}
	t.Logf("%s (%s): %s\n%s\nnotes %q\nroles %+v", a.Status, a.Stop, a.Justification, a.Text, a.Notes, a.Roles)
	checkHonest(t, a)
	return a
}

// TestLlamaAsk queries a real model server configured by one environment variable. The model's
// statements are random words, so verification must drop them and the answer must report it. The
// run must replay without the server, and the next question must be answered without it.
func TestLlamaAsk(t *testing.T) {
	l := startLlama(t).own(t)
	u := newUser(t, l)
	t.Run("doctor tries it", func(t *testing.T) {
		r := u.run(t, "doctor", "--data", t.TempDir())
		if !strings.Contains(r.stdout, "openai/tiny: replied") || r.code != 0 {
			t.Errorf("doctor, exit code %d:\n%s\n%s", r.code, r.stdout, r.stderr)
		}
	})
	var asked assay.Answer
	t.Run("ask", func(t *testing.T) {
		asked = u.ask(t)
		i := slices.IndexFunc(asked.Roles, func(r assay.RoleUse) bool { return r.Model == "openai/tiny" })
		if i < 0 || asked.Roles[i].Usage.Calls == 0 || asked.Roles[i].Usage.InputTokens == 0 {
			t.Errorf("no role is said to be the model's: %+v", asked.Roles)
		}
		if asked.Status != assay.Answered && len(asked.Notes) == 0 && asked.Justification == "" {
			t.Errorf("the user is not told why there is no answer: %+v", asked)
		}
	})
	l.stop()
	t.Run("replay without the server", func(t *testing.T) {
		r := u.run(t, slices.Concat([]string{"replay", asked.Run, "--json"}, handbook)...)
		if r.code != 0 {
			t.Errorf("replay, exit code %d: %s", r.code, r.stderr)
		}
		again := readAnswer(t, r)
		if diff := cmp.Diff(plain(asked), plain(again)); diff != "" {
			t.Errorf("replayed (-first +again):\n%s", diff)
		}
	})
	t.Run("doctor misses it", func(t *testing.T) {
		r := u.run(t, "doctor", "--data", t.TempDir())
		if !strings.Contains(r.stdout, "FAIL") || r.code == 0 {
			t.Errorf("doctor, exit code %d:\n%s\n%s", r.code, r.stdout, r.stderr)
		}
	})
	t.Run("ask without the server", func(t *testing.T) { checkWithout(t, u.ask(t)) })
	t.Run("ask locally", func(t *testing.T) {
		a := u.ask(t, "--local")
		if a.Status != assay.Answered || !strings.Contains(a.Text, "26 weeks") || a.Usage.Calls != 0 {
			t.Errorf("%s with %d calls, want it answered locally:\n%s", a.Status, a.Usage.Calls, a.Text)
		}
	})
}

// checkWithout checks an answer that was produced without the model.
func checkWithout(t *testing.T, a assay.Answer) {
	t.Helper()
	if a.Status != assay.Answered || !strings.Contains(a.Text, "26 weeks") {
		t.Errorf("%s, want it answered by the local roles:\n%s", a.Status, a.Text)
	}
	if notes := notesOf(a); !strings.Contains(notes, "stood in") {
		t.Errorf("the user is not told that the local roles stood in: %q", a.Notes)
	}
}

// TestLlamaIsVerified checks that the output of a real model that has seen no passage is verified
// like any other. The model's text is put into a generator's format. No document supports it, so it
// must not be shown, and the answer must report that.
func TestLlamaIsVerified(t *testing.T) {
	l := startLlama(t)
	m := &ignorant{inner: l.open(t, true).Model("tiny")}
	e := openHandbook(t, map[string]llm.Model{role.GeneratorRole: m})
	got, err := e.Answer(t.Context(), assay.Local(), engine.Request{Question: leaveQuestion, NoCache: true, Strategy: "static", Budget: assay.Budget{Wall: leaveTimeout}})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the model said %q; %s: %s\nnotes %q\nroles %+v", m.said, got.Status, got.Justification, got.Notes, got.Roles)
	checkHonest(t, got)
	switch {
	case m.said == "":
		t.Fatalf("the model was not heard: %q", got.Notes)
	case strings.Contains(m.said, "26 weeks"):
		t.Skip("the model has guessed right")
	}
	if strings.Contains(got.Text, m.said) {
		t.Errorf("the answer says what no document does:\n%s", got.Text)
	}
	if !strings.Contains(notesOf(got)+got.Justification, "supported") {
		t.Errorf("the user is not told that what the model wrote is not supported: %q, %s", got.Notes, got.Justification)
	}
}

// An ignorant generator passes only the question to its model, and cites all passages for the
// reply.
type ignorant struct {
	inner llm.Model
	said  string
}

func (m *ignorant) Model() string { return m.inner.Model() }

func (m *ignorant) Generate(ctx context.Context, req llm.Request, stream func(llm.Delta)) (llm.Response, error) {
	got, err := m.inner.Generate(ctx, ask(fence("question", req), 30), nil)
	if err != nil {
		return got, err
	}
	m.said = strings.Join(strings.Fields(got.Text), " ")
	got.Finish = llm.FinishStop
	got.Text = text(object{
		"shape": "prose", "columns": []string{}, "conflicts": []string{}, "open": []string{},
		"statements": []object{{"text": m.said, "sources": passagesWith("", req), "item": false, "cells": []string{}, "section": ""}},
	})
	return got, nil
}

// TestLlamaDies checks that the local roles take over, and the answer reports it, if the server
// dies during a call.
func TestLlamaDies(t *testing.T) {
	const quote = "38" // the token that ends a string; without it the model writes up to the limit
	l := startLlama(t, "--logit-bias", quote+"-50").own(t)
	u := newUser(t, l)
	ingested := u.run(t, slices.Concat([]string{"ask", "--local"}, handbook, []string{leaveQuestion})...)
	if ingested.code != 0 {
		t.Fatalf("ask --local: %+v", ingested)
	}
	cmd := u.command(slices.Concat([]string{"ask", "--json", "--timeout", leaveTimeout.String()}, handbook, []string{leaveQuestion})...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the server is at work", 50*time.Millisecond, func() bool { return l.slot(t).Busy })
	l.stop()
	cmd.Wait()
	checkWithout(t, checkAsked(t, result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}))
}

// notesOf returns the texts of an answer's notes, one per line.
func notesOf(a assay.Answer) string {
	var texts []string
	for _, n := range a.Notes {
		texts = append(texts, n.Text)
	}
	return strings.Join(texts, "\n")
}
