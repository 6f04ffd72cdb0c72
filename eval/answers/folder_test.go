package answers_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval/answers"
	"github.com/assay-rag/assay/eval/testset"
)

// TestFolderIdentity checks that a folder rejects another set or configuration, and a second
// process.
func TestFolderIdentity(t *testing.T) {
	dir := t.TempDir()
	id := answers.Identity{Set: "a", Hash: "1", Config: map[string]string{"data": "/x"}}
	folder, err := answers.OpenFolder(t.Context(), dir, id)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"evaluation.json", "outcomes.jsonl"} {
		if info, err := os.Stat(filepath.Join(dir, file)); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s quotes documents, and is %v (%v)", file, info.Mode(), err)
		}
	}
	if _, err := answers.OpenFolder(t.Context(), dir, id); !errors.Is(err, assay.ErrLocked) {
		t.Errorf("opened twice: %v", err)
	}
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		id   answers.Identity
		want string
	}{
		{id, ""},
		{answers.Identity{Set: "b", Hash: "2", Config: id.Config}, "its set is a, and now it is b"},
		{answers.Identity{Set: "a", Hash: "2", Config: id.Config}, "the questions, labels or passages of the set a have changed"},
		{answers.Identity{Set: "a", Hash: "1", Config: map[string]string{"data": "/y"}}, `its data is "/x", and now it is "/y"`},
		{answers.Identity{Set: "a", Hash: "1", Config: map[string]string{"data": "/x", "role generator": "m"}}, `its role generator is "", and now it is "m"`},
	} {
		folder, err := answers.OpenFolder(t.Context(), dir, tt.id)
		if tt.want == "" {
			if err != nil {
				t.Error(err)
			} else if err := folder.Close(); err != nil {
				t.Error(err)
			}
			continue
		}
		if !errors.Is(err, assay.ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.id, err, tt.want)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "evaluation.json"), []byte(`{"format": 99, "name": "x"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := answers.OpenFolder(t.Context(), dir, id); !errors.Is(err, assay.ErrNewer) {
		t.Errorf("a folder of a newer version: %v", err)
	}
}

// TestFolderTorn checks that an incomplete last line is dropped and its question is measured again
// from the stored run, without a second run. Any other unreadable line is damage.
func TestFolderTorn(t *testing.T) {
	e := handbook(t, engine.Config{})
	d := testset.Dataset{Name: "test", Hash: "1", Cases: []testset.Case{
		{ID: "1", Question: "Who approves travel to a customer?", Answers: []string{"the head of the department"}},
		{ID: "2", Question: "What do visitors of the office wear?", Answers: []string{"a yellow badge"}},
	}}
	dir := t.TempDir()
	file := filepath.Join(dir, "outcomes.jsonl")
	ask := func() (outcomes []answers.Outcome, err error) {
		folder, err := answers.OpenFolder(t.Context(), dir, answers.Identity{Set: d.Name, Hash: d.Hash})
		if err != nil {
			return nil, err
		}
		defer folder.Close()
		opts := answers.Options{Contenders: []answers.Contender{{Name: "static", Request: engine.Request{Strategy: "static"}}}, Principal: assay.Local()}
		if err := answers.AskAll(t.Context(), e, d, folder, opts); err != nil {
			return nil, err
		}
		for o, err := range folder.Outcomes(t.Context()) {
			if err != nil {
				return nil, err
			}
			outcomes = append(outcomes, o)
		}
		return outcomes, nil
	}
	first, err := ask()
	if err != nil || len(first) != 2 {
		t.Fatalf("%d outcomes, %v", len(first), err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{1, 20, len(whole) / 3} {
		if err := os.WriteFile(file, whole[:len(whole)-cut], 0o644); err != nil {
			t.Fatal(err)
		}
		again, err := ask()
		if err != nil || len(again) != 2 || again[1].Run != first[1].Run || again[1].Answer.Text != first[1].Answer.Text {
			t.Errorf("cut by %d: %d outcomes, %v", cut, len(again), err)
		}
	}
	runs, err := e.Runs(t.Context(), assay.Local(), 0)
	if err != nil || len(runs) != 2 {
		t.Errorf("%d runs, want 2 (%v)", len(runs), err)
	}
	if err := os.WriteFile(file, append([]byte("{\n"), whole...), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(); !errors.Is(err, assay.ErrDamaged) || !strings.Contains(err.Error(), "outcomes.jsonl:1:") {
		t.Errorf("a line that cannot be read: %v", err)
	}
}
