package main

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/claims"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/learn"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/embedded"
)

var fitVerifier = flag.Bool("fit-verifier", false, "fit the verifier's weights and write ground/weights.json")

// Parameters of the fit.
const (
	rowsPerSet    = 200 // claims from each set of training/nli
	rowsOfTwins   = 700 // claims from each file of made twins
	verifierRidge = 0.01
	leastCaught   = 0.95 // share of the changed development answers to reject at the floor for shown answers
)

// A fitCase is a claim to which the weights are fitted.
type fitCase struct {
	claims.Case
	set      string
	binary   bool // only "not supported" is known
	features []float64
}

func (c fitCase) made() bool { return strings.HasPrefix(c.set, "made/") }

// TestFitVerifier fits the logistic regression of ground.Local to the embedded reader and writes it
// to ground/weights.json:
//
//	ASSAY_TESTDATA=... ASSAY_MADE=... go test ./train/fit -run FitVerifier -fit-verifier -timeout 2h
//
// ASSAY_TESTDATA has the training sets in training/nli, and ASSAY_MADE the made twins that the
// reader was trained with; train/written has written statements. From all three it uses only the
// claims that were held out from the reader's training. It does not read the sets on which the
// verifier is measured. The floor for shown answers is chosen on the changed development answers
// and the pairs in ground/testdata.
func TestFitVerifier(t *testing.T) {
	if !*fitVerifier {
		t.Skip("it fits weights and takes minutes: with -fit-verifier")
	}
	reader, err := embedded.OpenReader()
	if err != nil {
		t.Fatal(err)
	}
	shared := os.Getenv("ASSAY_TESTDATA")
	cases := slices.Concat(nliCases(t, filepath.Join(shared, "training", "nli")), twinCases(t, os.Getenv("ASSAY_MADE")), writtenCases(t, "../written"))
	cases = measureCases(t, reader, cases)
	m := fitModel(cases)
	m.Reader = reader.Model()
	m.Made = "go test ./train/fit -run FitVerifier -fit-verifier: " + madeOf(cases)
	for _, sure := range []float64{0.5, 0.6, 0.65, 0.7, 0.75, 0.8} { // see role.Guarded
		share := contradictedFrom(m, cases, sure)
		t.Logf("contradicted from %.2f on: %.1f%% of the supported claims, %.1f%% of the contradicted, %.1f%% of the others", sure, share[assay.Supported], share[assay.Contradicted], share[assay.Unsupported])
	}
	changed, err := claims.ChangedAnswers("../../ground/testdata", shared, "dev")
	if err != nil {
		t.Fatal(err)
	}
	pairs, err := claims.PairCases("../../ground/testdata/pairs.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	m.Shown = shownFloor(t, ground.Local{Reader: reader, Model: m, Floor: 1e-9}, slices.Concat(changed, pairs))
	data, err := json.MarshalIndent(m, "", "\t")
	if err == nil {
		err = os.WriteFile("../../ground/weights.json", append(data, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s; shown %.2f, balanced %.2f, disputed %.2f", m.Made, m.Shown, m.Balanced, m.Disputed)
}

// eachLine decodes the lines of a JSON Lines file. A file that ends in .gz is decompressed.
func eachLine[T any](t *testing.T, file string, yield func(T)) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := io.NopCloser(f)
	if strings.HasSuffix(file, ".gz") {
		if z, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		var v T
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		yield(v)
	}
	if err := errors.Join(lines.Err(), z.Close()); err != nil {
		t.Fatal(err)
	}
}

// setAside reports whether claims about a text were held out from the reader's training. It must
// agree with set_aside in train/reader/data.py.
func setAside(text string) bool { return crc32.ChecksumIEEE([]byte(text))%32 == 0 }

var fitVerdicts = map[string]assay.Verdict{"supported": assay.Supported, "contradicted": assay.Contradicted, "neutral": assay.Unsupported}

// nliCases draws claims from each set in a folder, by hash.
func nliCases(t *testing.T, folder string) []fitCase {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.jsonl.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no training sets in %s: %v", folder, err)
	}
	var cases []fitCase
	for _, file := range files {
		var set []fitCase
		eachLine(t, file, func(row struct {
			Premise, Claim, Label string
			Binary                bool
		}) {
			if !setAside(row.Premise) {
				return
			}
			c := claims.Case{Claim: row.Claim, Evidence: []string{row.Premise}, Verdict: fitVerdicts[row.Label]}
			set = append(set, fitCase{Case: c, set: fitSet(file), binary: row.Binary})
		})
		cases = append(cases, drawn(set, rowsPerSet)...)
	}
	return cases
}

// twinCases draws claims, true and falsified ones, from each file of made twins in a folder.
func twinCases(t *testing.T, folder string) []fitCase {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "entail-*.jsonl.gz"))
	if folder == "" || err != nil {
		return nil
	}
	var cases []fitCase
	for _, file := range files {
		var set []fitCase
		eachLine(t, file, func(row struct {
			Heading, Passage, Kind string
			Decisive               [2]int // in runes
			True                   []string
			False                  []struct{ Claim, Label string }
		}) {
			source := row.Passage
			if !strings.HasPrefix(row.Kind, "paraphrase") {
				source = string([]rune(source)[row.Decisive[0]:row.Decisive[1]])
			}
			if !setAside(source) {
				return
			}
			add := func(claim string, v assay.Verdict) {
				c := claims.Case{Claim: claim, Evidence: []string{row.Passage}, Heading: []string{row.Heading}, Verdict: v}
				set = append(set, fitCase{Case: c, set: "made/" + fitSet(file)})
			}
			for _, claim := range row.True {
				add(claim, assay.Supported)
			}
			for _, f := range row.False {
				add(f.Claim, fitVerdicts[f.Label])
			}
		})
		cases = append(cases, drawn(set, rowsOfTwins)...)
	}
	return cases
}

// writtenAside reports whether a written document, or a pair of texts with this question, was held
// out from the reader's training. It must agree with written_aside in train/reader/written.py.
func writtenAside(name string) bool { return crc32.ChecksumIEEE([]byte(name))%5 == 0 }

// writtenCases returns the statements about the held-out written documents.
func writtenCases(t *testing.T, folder string) []fitCase {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "sections-*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no written documents in %s: %v", folder, err)
	}
	var cases []fitCase
	for _, file := range files {
		eachLine(t, file, func(row struct {
			Document, Heading, Text string
			True                    []string
			False                   []struct{ S, Verdict string }
		}) {
			if !writtenAside(row.Document) {
				return
			}
			add := func(claim string, v assay.Verdict) {
				c := claims.Case{Claim: claim, Evidence: []string{row.Text}, Heading: []string{row.Heading}, Verdict: v}
				cases = append(cases, fitCase{Case: c, set: "made/written"})
			}
			for _, claim := range row.True {
				add(claim, assay.Supported)
			}
			for _, f := range row.False {
				add(f.S, fitVerdicts[f.Verdict])
			}
		})
	}
	return cases
}

func fitSet(file string) string { return strings.TrimSuffix(filepath.Base(file), ".jsonl.gz") }

// drawn returns at most n cases, in the order of a hash of evidence and claim.
func drawn(cases []fitCase, n int) []fitCase {
	key := func(c fitCase) uint32 {
		h := fnv.New32a()
		h.Write([]byte(c.Evidence[0] + "\n" + c.Claim))
		return h.Sum32()
	}
	slices.SortStableFunc(cases, func(a, b fitCase) int { return cmp.Compare(key(a), key(b)) })
	return cases[:min(n, len(cases))]
}

// measureCases sets the features of cases and drops those without features.
func measureCases(t *testing.T, reader llm.Reader, cases []fitCase) []fitCase {
	t.Helper()
	g, ctx := errgroup.WithContext(t.Context())
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range cases {
		g.Go(func() (err error) {
			cases[i].features, err = (ground.Local{Reader: reader}).Features(ctx, cases[i].Claim, cases[i].Cited())
			if (i+1)%1000 == 0 {
				t.Logf("%d of %d claims", i+1, len(cases))
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(cases, func(c fitCase) bool { return c.features == nil })
}

// fitModel fits both regressions and the balanced floor. All sets have the same weight. Within a
// set, Supported has twice the weight of each other label. The made sets together have the same
// weight as all others together.
func fitModel(cases []fitCase) *ground.Model {
	count, sets := map[string]float64{}, map[bool]map[string]bool{false: {}, true: {}}
	for _, c := range cases {
		count[c.set+string(c.Verdict)]++
		sets[c.made()][c.set] = true
	}
	var supported, contradicted []learn.Row
	for _, c := range cases {
		row := learn.Row{Features: c.features, Positive: c.Verdict == assay.Supported, Weight: 1 / count[c.set+string(c.Verdict)]}
		row.Weight *= float64(len(sets[false])) / float64(len(sets[c.made()]))
		if c.Verdict == assay.Supported {
			row.Weight *= 2 // against the two others
		}
		supported = append(supported, row)
		if c.Verdict != assay.Supported && !c.binary {
			row.Positive = c.Verdict == assay.Contradicted
			contradicted = append(contradicted, row)
		}
	}
	m := &ground.Model{Features: ground.FeatureNames(), Supported: learn.Logistic(supported, verifierRidge), Contradicted: learn.Logistic(contradicted, verifierRidge)}
	labelled := slices.DeleteFunc(slices.Clone(cases), fitCase.made)
	m.Balanced = balancedFloor(m, labelled)
	m.Disputed = disputedFloor(m, slices.DeleteFunc(labelled, func(c fitCase) bool { return c.binary }))
	return m
}

// contradictedFrom returns, by label, the percentage of claims whose probability of a contradiction
// is at least sure.
func contradictedFrom(m *ground.Model, cases []fitCase, sure float64) map[assay.Verdict]float64 {
	share, of := map[assay.Verdict]float64{}, map[assay.Verdict]float64{}
	for _, c := range cases {
		of[c.Verdict]++
		if (1-learn.Sigmoid(m.Supported.LogOdds(c.features)))*learn.Sigmoid(m.Contradicted.LogOdds(c.features)) >= sure {
			share[c.Verdict]++
		}
	}
	for v := range share {
		share[v] *= 100 / of[v]
	}
	return share
}

// disputedFloor returns the floor on the probability of a contradiction that separates contradicted
// from unsupported claims with the best balanced accuracy.
func disputedFloor(m *ground.Model, cases []fitCase) float64 {
	best, most := 0.5, 0.0
	for floor := 0.05; floor < 0.951; floor += 0.01 {
		right, of := map[assay.Verdict]float64{}, map[assay.Verdict]float64{}
		for _, c := range cases {
			if c.Verdict == assay.Supported || learn.Sigmoid(m.Supported.LogOdds(c.features)) >= m.Balanced {
				continue
			}
			of[c.Verdict]++
			if (learn.Sigmoid(m.Contradicted.LogOdds(c.features)) >= floor) == (c.Verdict == assay.Contradicted) {
				right[c.Verdict]++
			}
		}
		if mean := right[assay.Contradicted]/of[assay.Contradicted] + right[assay.Unsupported]/of[assay.Unsupported]; mean > most {
			best, most = floor, mean
		}
	}
	return math.Round(best*100) / 100
}

// balancedFloor returns the floor with the best balanced accuracy, averaged over the sets.
func balancedFloor(m *ground.Model, cases []fitCase) float64 {
	best, most := 0.5, 0.0
	for floor := 0.05; floor < 0.951; floor += 0.01 {
		right, of := map[string]float64{}, map[string]float64{}
		for _, c := range cases {
			supported := c.Verdict == assay.Supported
			key := fmt.Sprint(c.set, " ", supported)
			of[key]++
			if (learn.Sigmoid(m.Supported.LogOdds(c.features)) >= floor) == supported {
				right[key]++
			}
		}
		sum := 0.0
		for _, key := range slices.Sorted(maps.Keys(of)) {
			sum += right[key] / of[key]
		}
		if mean := sum / float64(len(of)); mean > most {
			best, most = floor, mean
		}
	}
	return math.Round(best*100) / 100
}

// shownFloor returns the lowest floor, in steps of 0.01, that rejects the share leastCaught of the
// wrong answers.
func shownFloor(t *testing.T, v ground.Verifier, changed []claims.Case) float64 {
	t.Helper()
	judged, err := claims.Judge(t.Context(), v, changed, nil)
	if err != nil {
		t.Fatal(err)
	}
	var wrong []float64
	for _, j := range judged {
		if j.Gold == assay.Supported {
			continue
		}
		if j.Verdict != assay.Supported {
			j.Score = 0
		}
		wrong = append(wrong, j.Score)
	}
	slices.Sort(wrong)
	score := wrong[min(int(leastCaught*float64(len(wrong))), len(wrong)-1)]
	return min(math.Floor(score*100+1)/100, 0.99)
}

// madeOf lists the number of claims from each set.
func madeOf(cases []fitCase) string {
	count := map[string]int{}
	for _, c := range cases {
		count[c.set]++
	}
	var parts []string
	for _, set := range slices.Sorted(maps.Keys(count)) {
		parts = append(parts, fmt.Sprintf("%s %d", set, count[set]))
	}
	return strings.Join(parts, ", ")
}
