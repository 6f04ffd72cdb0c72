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

// built is the folder that build has made; empty: it has made none.
var built string

// build builds the program as users get it.
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

// A user runs the program in a home of their own, with one variable set.
type user struct {
	binary, home, variable string
}

// newUser is a user of a model server.
func newUser(t *testing.T, l *llama) user {
	t.Helper()
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return user{binary, t.TempDir(), "OPENAI_BASE_URL=" + l.base}
}

// A result is what a command came to.
type result struct {
	stdout, stderr string
	code           int
}

// command is a command to be run by the user.
func (u user) command(args ...string) *exec.Cmd {
	cmd := exec.Command(u.binary, args...)
	cmd.Env = []string{"HOME=" + u.home, "PATH=" + os.Getenv("PATH"), u.variable}
	return cmd
}

// run runs a command to its end, which has to come by itself.
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

// handbook are the arguments by which a command is about the handbook.
var handbook = []string{"--docs", "../engine/testdata/handbook"}

// The question, and how long the model may take over it: as long as a slow machine
// needs. What is left by then is an honest answer too.
const (
	leaveQuestion = "How long does parental leave last?"
	leaveTimeout  = 2 * time.Minute
)

// ask asks the question and checks that the answer is what its exit code says.
func (u user) ask(t *testing.T, more ...string) assay.Answer {
	t.Helper()
	r := u.run(t, slices.Concat([]string{"ask", "--json", "--timeout", leaveTimeout.String()}, handbook, more, []string{leaveQuestion})...)
	return checkAsked(t, r)
}

// checkAsked reads the answer to a question and checks that the exit code says what it
// says.
func checkAsked(t *testing.T, r result) assay.Answer {
	t.Helper()
	a := readAnswer(t, r)
	codes := map[assay.Status]int{assay.Answered: 0, assay.NotFound: 3, assay.Incomplete: 4, assay.Conflicting: 5}
	if want, ok := codes[a.Status]; !ok || r.code != want {
		t.Errorf("the status is %s and the exit code %d", a.Status, r.code)
	}
	return a
}

// readAnswer reads an answer and checks that nothing in it is unverified.
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

// TestLlamaAsk asks a real model server that one environment variable names. The model's
// statements are random words: verification must drop them and the answer must say so. The
// run must replay without the server, and the next question must be answered without it.
func TestLlamaAsk(t *testing.T) {
	l := startLlama(t).own(t)
	u := newUser(t, l)
	t.Run("doctor tries it", func(t *testing.T) {
		r := u.run(t, "doctor", "--data", t.TempDir())
		if !strings.Contains(r.stdout, "openai/tiny: answers") || r.code != 0 {
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

// checkWithout checks an answer that had to do without its model.
func checkWithout(t *testing.T, a assay.Answer) {
	t.Helper()
	if a.Status != assay.Answered || !strings.Contains(a.Text, "26 weeks") {
		t.Errorf("%s, want it answered by the local roles:\n%s", a.Status, a.Text)
	}
	if notes := notesOf(a); !strings.Contains(notes, "stood in") {
		t.Errorf("the user is not told that the local roles stood in: %q", a.Notes)
	}
}

// What the real model says of the question without having read anything, put into the
// form that a generator has, is checked like all that models say: no document says
// it, so nobody is shown it, and the answer tells that.
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

// An ignorant generator asks its model the question alone, and cites all passages for
// what it says.
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

// The server dies while a model is at work: the local roles go on, and say so.
func TestLlamaDies(t *testing.T) {
	const quote = "38" // the token that ends a string: without it the model writes until it is cut off
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

// notesOf returns the texts of an answer's notes, a line each.
func notesOf(a assay.Answer) string {
	var texts []string
	for _, n := range a.Notes {
		texts = append(texts, n.Text)
	}
	return strings.Join(texts, "\n")
}
