package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/learn"
	"github.com/assay-rag/assay/provider/embedded"
)

var fitConflicts = flag.Bool("fit-conflicts", false, "fit the weights of conflicts and write ground/conflicts.json")

// Parameters of the fit.
const (
	conflictRidge  = 0.05
	conflictFolds  = 10
	conflictAlarms = 0.05 // share of false alarms on held-out controls
	madeWeight     = 0.5  // weight of a made case relative to a written one
)

// A conflictCase is a question over two documents that contradict each other or only seem to.
type conflictCase struct {
	Question string       `json:"question"`
	A        conflictText `json:"a"`
	B        conflictText `json:"b"`
	Conflict bool         `json:"conflict"`
	Kind     string       `json:"kind"`
}

type conflictText struct {
	Title string `json:"title"`
	Text  string `json:"text"`
}

// conflictRow is a development case with its features. The features are nil if the case has no two
// answers that could conflict.
type conflictRow struct {
	conflictCase
	group    string // question or scene; cases of one group are held out together
	weight   float64
	features []float64
	score    float64 // by a model that was fitted without its group
}

// TestFitConflicts fits the logistic regression of ground.Conflicts to the embedded reader and
// writes it to ground/conflicts.json:
//
//	go test ./train/fit -run FitConflicts -fit-conflicts -v
//
// It takes minutes. The cases are those in ground/testdata/conflicts.jsonl, those in train/written
// that were held out from the reader's training, and those made from
// ground/testdata/conflictscenes.jsonl. None of them is used to measure conflicts.
func TestFitConflicts(t *testing.T) {
	if !*fitConflicts {
		t.Skip("it fits weights: with -fit-conflicts")
	}
	reader, err := embedded.OpenReader()
	if err != nil {
		t.Fatal(err)
	}
	rows := conflictRows(t)
	for i, c := range rows {
		passages := []ground.Passage{writtenPassage(c.A), writtenPassage(c.B)}
		features, err := ground.ConflictFeatures(t.Context(), reader, c.Question, passages, func(i, j int) bool { return i != j })
		if err != nil {
			t.Fatal(err)
		}
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
	logKinds(t, rows, least)
	m := ground.ConflictModel{
		Made:     fmt.Sprintf("logistic regression over %d cases of ground/testdata/conflicts.jsonl and conflictscenes.jsonl and train/written; held out, %d of %d conflicts are found, with %d false alarms of %d", len(rows), found, conflicts, alarms, controls),
		Reader:   reader.Model(),
		Features: ground.ConflictFeatureNames(),
		Conflict: fitConflictRows(rows, func(conflictRow) bool { return true }),
		Least:    least,
	}
	data, err := json.MarshalIndent(m, "", "\t")
	if err == nil {
		err = os.WriteFile(filepath.Join("..", "..", "ground", "conflicts.json"), append(data, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func writtenPassage(w conflictText) ground.Passage {
	return ground.Passage{Quote: w.Text, Context: w.Text, Heading: []string{w.Title}}
}

// conflictRows returns the written cases and those made from scenes.
func conflictRows(t *testing.T) []conflictRow {
	t.Helper()
	var cases []conflictCase
	eachLine(t, filepath.Join("..", "..", "ground", "testdata", "conflicts.jsonl"), func(c conflictCase) { cases = append(cases, c) })
	var scenes []conflictScene
	eachLine(t, filepath.Join("..", "..", "ground", "testdata", "conflictscenes.jsonl"), func(s conflictScene) { scenes = append(scenes, s) })
	files, err := filepath.Glob(filepath.Join("..", "written", "conflicts-*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no written conflicts in train/written: %v", err)
	}
	for _, file := range files {
		eachLine(t, file, func(row struct {
			Question, Relation, Kind string
			A, B                     conflictText
		}) {
			if writtenAside(row.Question) {
				cases = append(cases, conflictCase{Question: row.Question, A: row.A, B: row.B, Conflict: row.Relation == "conflict", Kind: row.Kind})
			}
		})
	}
	var rows []conflictRow
	for _, c := range cases {
		rows = append(rows, conflictRow{conflictCase: c, group: c.Question, weight: 1})
	}
	return append(rows, conflictsOf(scenes)...)
}

// logKinds logs, for each kind of case, how many are classified as conflicts.
func logKinds(t *testing.T, rows []conflictRow, least float64) {
	t.Helper()
	kinds := map[string][2]int{}
	for _, c := range rows {
		name := "control, " + c.Kind
		if c.Conflict {
			name = "conflict, " + c.Kind
		}
		n := kinds[name]
		if n[1]++; c.score >= least {
			n[0]++
		}
		kinds[name] = n
	}
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		t.Logf("%s: %d of %d", name, kinds[name][0], kinds[name][1])
	}
}

// fold returns the fold of a case, by its group.
func (c conflictRow) fold() int {
	h := fnv.New32a()
	h.Write([]byte(c.group))
	return int(h.Sum32() % conflictFolds)
}

func fitConflictRows(rows []conflictRow, include func(conflictRow) bool) *learn.Linear {
	var examples []learn.Row
	for _, c := range rows {
		if c.features != nil && include(c) {
			examples = append(examples, learn.Row{Features: c.features, Positive: c.Conflict, Weight: c.weight})
		}
	}
	return learn.Logistic(examples, conflictRidge)
}

// leastConflict returns the threshold at which the share conflictAlarms of the controls raises
// false alarms.
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
