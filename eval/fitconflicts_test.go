package eval

import (
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/learn"
	"github.com/assay-rag/assay/provider/embedded"
)

var fitConflicts = flag.Bool("fit-conflicts", false, "fit the weights of conflicts and write ground/conflicts.json")

// How the weights of conflicts are fitted.
const (
	conflictRidge  = 0.05
	conflictFolds  = 10
	conflictAlarms = 0.05 // of the controls, held out
)

// conflictRow is a development case with its features; without, it has no two answers that
// may conflict.
type conflictRow struct {
	ConflictCase
	features []float64
	score    float64 // by a model that was fitted without the cases of its question
}

// TestFitConflicts fits the logistic regression of ground.Conflicts to the reader in the
// program and writes it to ground/conflicts.json:
//
//	go test ./eval -run FitConflicts -fit-conflicts -v
//
// It takes minutes. The cases are those in ground/testdata/conflicts.jsonl, which are not
// those that conflicts are measured on.
func TestFitConflicts(t *testing.T) {
	if !*fitConflicts {
		t.Skip("with -fit-conflicts")
	}
	reader, err := embedded.OpenReader()
	if err != nil {
		t.Fatal(err)
	}
	var cases []ConflictCase
	if err := readWritten(filepath.Join("..", "ground", "testdata", "conflicts.jsonl"), &cases); err != nil {
		t.Fatal(err)
	}
	rows := make([]conflictRow, len(cases))
	for i, c := range cases {
		passages := []ground.Passage{writtenPassage(c.A), writtenPassage(c.B)}
		features, err := ground.ConflictFeatures(t.Context(), reader, c.Question, passages, func(i, j int) bool { return i != j })
		if err != nil {
			t.Fatal(err)
		}
		rows[i].ConflictCase = c
		if len(features) > 0 {
			rows[i].features = features[0]
		}
	}
	for fold := range conflictFolds {
		model := fitConflictRows(rows, func(c conflictRow) bool { return c.fold() != fold })
		for i, c := range rows {
			if c.features != nil && c.fold() == fold {
				rows[i].score = learn.Sigmoid(model.LogOdds(c.features))
			}
		}
	}
	least := leastConflict(rows)
	found, conflicts := countConflicts(rows, true, least)
	alarms, controls := countConflicts(rows, false, least)
	t.Logf("held out: %d of %d found, %d false alarms of %d", found, conflicts, alarms, controls)
	m := ground.ConflictModel{
		Made:     fmt.Sprintf("logistic regression over %d cases of ground/testdata/conflicts.jsonl; held out, %d of %d conflicts are found, with %d false alarms of %d", len(rows), found, conflicts, alarms, controls),
		Reader:   reader.Model(),
		Features: ground.ConflictFeatureNames(),
		Conflict: fitConflictRows(rows, func(conflictRow) bool { return true }),
		Least:    least,
	}
	data, err := json.MarshalIndent(m, "", "\t")
	if err == nil {
		err = os.WriteFile(filepath.Join("..", "ground", "conflicts.json"), append(data, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func writtenPassage(w WrittenText) ground.Passage {
	return ground.Passage{Quote: w.Text, Context: w.Text, Heading: []string{w.Title}}
}

// fold returns the part of the cases that a case is held out with. Cases of one question are
// in one part.
func (c conflictRow) fold() int {
	h := fnv.New32a()
	h.Write([]byte(c.Question))
	return int(h.Sum32() % conflictFolds)
}

func fitConflictRows(rows []conflictRow, include func(conflictRow) bool) *learn.Linear {
	var examples []learn.Row
	for _, c := range rows {
		if c.features != nil && include(c) {
			examples = append(examples, learn.Row{Features: c.features, Positive: c.Conflict, Weight: 1})
		}
	}
	return learn.Logistic(examples, conflictRidge)
}

// leastConflict returns the score of a control above which as many false alarms are raised
// as may be.
func leastConflict(rows []conflictRow) float64 {
	var scores []float64
	for _, c := range rows {
		if !c.Conflict {
			scores = append(scores, c.score)
		}
	}
	slices.Sort(scores)
	return scores[len(scores)-1-int(conflictAlarms*float64(len(scores)))] + 1e-6
}

func countConflicts(rows []conflictRow, conflict bool, least float64) (found, of int) {
	for _, c := range rows {
		if c.Conflict == conflict {
			of++
			if c.score >= least {
				found++
			}
		}
	}
	return found, of
}
