package eval

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/mutate"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/learn"
)

// A VerifierTraining is what was learned from sets of labelled claims, and how well that
// does on claims that it was not learned from.
type VerifierTraining struct {
	Words   *ground.Model   `json:"-"` // by words alone
	Vectors *ground.Model   `json:"-"` // with the encoder's; nil where there was none
	Edits   *ground.Edits   `json:"-"` // that the model with vectors was learned with; nil: those of the program
	Tables  []VerifierTable `json:"tables"`
}

// A VerifierTable is the figures of one way to learn, a set each.
type VerifierTable struct {
	Learner   string             `json:"learner"`    // "baseline", "words" or "vectors"
	HeldOut   string             `json:"held_out"`   // "fold" or "set": what the model had not seen
	Sets      []string           `json:"sets"`       // names
	Figures   []GroundingFigures `json:"figures"`    // one for each of them
	TimesEach int                `json:"times_each"` // how often each claim was judged, by models of other folds
}

// outerFolds is how many parts cross-validation leaves out in turn.
const outerFolds = 5

// VerifierData is what a verifier is learned from.
type VerifierData struct {
	Sets    []GroundingSet  // labelled claims, two sets or more
	Made    []GroundingCase // claims made by a program
	Answers []GroundingCase // correct and changed answers, by which the floor for what is shown is chosen
}

// TrainVerifier learns the models of [ground.Learned] from labelled claims: by words alone
// and, unless encoder is nil, with its vectors and the networks edits, nil: those of the
// program. Made claims and answers are learned from as well, and not judged.
//
// What the models are worth is told twice. By cross-validation: claims are dealt into five
// folds, those that share their words or their evidence to the same one, and each is
// judged by a model that learned from the other four. And with one set held out: by a
// model that learned from the other sets. All that is chosen (weights, calibration,
// floors) is chosen inside what the model learns from. Beside that stands a baseline that
// has had the same sets: logistic regression over twenty plain features of words.
//
// It is deterministic: equal input gives the same models, bit for bit on one machine.
func TrainVerifier(ctx context.Context, data VerifierData, encoder ground.Encoder, edits *ground.Edits, progress func(done, all int)) (VerifierTraining, error) {
	if len(data.Sets) < 2 {
		return VerifierTraining{}, fmt.Errorf("a verifier is learned from two sets or more: %w", assay.ErrInvalid)
	}
	names := ground.FeatureNames(false)
	cases, err := measure(ctx, data, nil, nil, progress)
	if err != nil {
		return VerifierTraining{}, err
	}
	t := VerifierTraining{Edits: edits}
	plain := slices.DeleteFunc(restricted(cases, names, baselineFeatures), func(c measured) bool { return c.made })
	t.Tables = append(t.Tables, tables("baseline", data.Sets, plain, baselineFeatures, fitBaseline)...)
	byWords := func(cases []measured, names []string, seed uint64) *ground.Model {
		return fitVerifier(cases, names, nil, seed)
	}
	t.Tables = append(t.Tables, tables("words", data.Sets, cases, names, byWords)...)
	t.Words = byWords(cases, names, finalSeed)
	if encoder != nil {
		if edits == nil {
			if edits, err = ground.ShippedEdits(); err != nil {
				return VerifierTraining{}, err
			}
		}
		names := ground.FeatureNames(true)
		if cases, err = measure(ctx, data, encoder, edits, progress); err != nil {
			return VerifierTraining{}, err
		}
		withNets := func(cases []measured, names []string, seed uint64) *ground.Model {
			return fitVerifier(cases, names, edits.Bags, seed)
		}
		t.Tables = append(t.Tables, tables("vectors", data.Sets, cases, names, withNets)...)
		t.Vectors = withNets(cases, names, finalSeed)
	}
	return t, ctx.Err()
}

const finalSeed = 1

// baselineFeatures are what twenty lines of code see of a claim and its evidence.
var baselineFeatures = []string{
	"size.claim", "size.evidence", "size.evidence_sentences", "size.names", "size.numbers", "size.content",
	"cover.best", "cover.near", "cover.all", "cover.every_best", "cover.second", "cover.missing",
	"kind.name_all", "kind.name_missing", "kind.number_all", "kind.number_missing",
	"order.pairs_best", "order.pairs_all", "order.common", "mark.uneven",
}

// fitBaseline fits logistic regression alone.
func fitBaseline(cases []measured, names []string, seed uint64) *ground.Model {
	fit := func(cases []measured) *ground.Model {
		linear := func(rows []learn.Row) ground.Scorer { return ground.Scorer{Linear: learn.Logistic(rows, 0.01)} }
		return &ground.Model{Features: names, Supported: linear(supportedRows(cases)), Contradicted: linear(againstRows(cases)), Slope: 1}
	}
	signals := make([][]float64, len(cases))
	fold := foldsOf(cases, innerFolds, seed)
	for k := range innerFolds {
		part := fit(except(cases, fold, k))
		for i, c := range cases {
			if fold[i] == k {
				signals[i] = part.Signals(c.Measured)
			}
		}
	}
	m := fit(cases)
	settle(m, cases, signals)
	return m
}

// restricted returns cases with the features of some names only.
func restricted(cases []measured, names, wanted []string) []measured {
	var at []int
	for _, w := range wanted {
		at = append(at, slices.Index(names, w))
	}
	out := slices.Clone(cases)
	for i, c := range cases {
		out[i].Features = make([]float64, len(at))
		for j, k := range at {
			out[i].Features[j] = c.Features[k]
		}
	}
	return out
}

// measure finds the features of all cases.
func measure(ctx context.Context, data VerifierData, encoder ground.Encoder, edits *ground.Edits, progress func(done, all int)) ([]measured, error) {
	var cases []GroundingCase
	var out []measured
	add := func(set int, list []GroundingCase, m measured) {
		for _, c := range list {
			cases = append(cases, c)
			m.set, m.verdict, m.against = set, c.Verdict, c.against()
			out = append(out, m)
		}
	}
	for i, s := range data.Sets {
		add(i, s.Cases, measured{})
	}
	add(len(data.Sets), data.Made, measured{made: true, seeded: true})
	add(len(data.Sets)+1, data.Answers, measured{made: true, answer: true})
	for i, g := range groupsOf(cases) {
		out[i].group = g
	}
	for i := range data.Sets {
		sure(out, i)
	}
	step := inTurn(len(cases), progress)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, c := range cases {
		g.Go(func() (err error) {
			out[i].Measured, err = ground.Measure(gctx, encoder, edits, c.Claim, c.Cited())
			if err != nil {
				return fmt.Errorf("claim %s: %w", c.ID, err)
			}
			step()
			return nil
		})
	}
	return out, g.Wait()
}

// against says whether a claim is contradicted, of those that are not supported, as far
// as labels or the way it was made tell.
func (c GroundingCase) against() int {
	turned := func(edit string) bool {
		switch mutate.Kind(edit) {
		case mutate.Number, mutate.Date, mutate.Unit:
			return true
		}
		return strings.Contains(edit, "antonym") || strings.Contains(edit, "negation") || strings.Contains(edit, "comparison")
	}
	added := func(edit string) bool {
		return slices.ContainsFunc([]string{"hallucinated", "sibling", "left out", "other text", "dropped", "foreign half", "foreign end"}, func(word string) bool {
			return strings.Contains(edit, word)
		})
	}
	switch {
	case c.Verdict == assay.Supported:
		return -1
	case c.Verdict == assay.Contradicted:
		return 1
	case slices.ContainsFunc(c.Edits, added):
		return 0
	case slices.ContainsFunc(c.Edits, turned):
		return 1
	case len(c.Edits) > 0:
		return -1
	}
	return 0
}

// sure takes it back that what is not supported is not contradicted, in a set that does
// not tell the two apart: there a claim may be either.
func sure(cases []measured, set int) {
	for _, c := range cases {
		if c.set == set && c.against == 1 {
			return
		}
	}
	for i := range cases {
		if cases[i].set == set {
			cases[i].against = min(cases[i].against, 0)
		}
	}
}

// groupsOf gives cases that share a claim or a text one number.
func groupsOf(cases []GroundingCase) []int {
	parent := make([]int, len(cases))
	for i := range parent {
		parent[i] = i
	}
	root := func(i int) int {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}
	first := map[string]int{}
	for i, c := range cases {
		for _, key := range []string{"claim " + c.Claim, "text " + strings.Join(strings.Fields(strings.Join(c.Evidence, " ")), " ")} {
			if j, ok := first[key]; ok {
				parent[root(i)] = root(j)
			} else {
				first[key] = i
			}
		}
	}
	out := make([]int, len(cases))
	for i := range cases {
		out[i] = root(i)
	}
	return out
}

func shuffled[T any](list []T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 7))
	random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}

// apart returns the cases outside of a fold, without the made ones that share a claim or a
// text with one inside.
func apart(cases []measured, fold []int, k int) []measured {
	inside := map[int]bool{}
	for i, c := range cases {
		if fold[i] == k && !c.made {
			inside[c.group] = true
		}
	}
	return slices.DeleteFunc(except(cases, fold, k), func(c measured) bool { return c.made && inside[c.group] })
}

// tables measures a learner both ways.
func tables(learner string, sets []GroundingSet, cases []measured, names []string, fit func([]measured, []string, uint64) *ground.Model) []VerifierTable {
	folds := foldsOf(cases, outerFolds, 3)
	bySet := make([]int, len(cases))
	for i, c := range cases {
		bySet[i] = c.set
	}
	crossed := VerifierTable{Learner: learner, HeldOut: "fold", TimesEach: 1}
	left := VerifierTable{Learner: learner, HeldOut: "set", TimesEach: 1}
	for _, t := range []struct {
		table *VerifierTable
		fold  []int
		n     int
	}{{&crossed, folds, outerFolds}, {&left, bySet, len(sets)}} {
		judged := make([][]Judged, len(sets))
		models := make([]*ground.Model, t.n)
		var g errgroup.Group
		g.SetLimit(runtime.GOMAXPROCS(0))
		for k := range t.n {
			g.Go(func() error {
				models[k] = fit(apart(cases, t.fold, k), names, uint64(10+k))
				return nil
			})
		}
		_ = g.Wait() // fit cannot fail
		for i, c := range cases {
			if c.made || t.fold[i] >= t.n {
				continue
			}
			m := models[t.fold[i]]
			s, against := m.Odds(c.Measured)
			judged[c.set] = append(judged[c.set], Judged{Gold: c.verdict, Verdict: m.Verdict(s, against, m.Balanced), Score: m.Probability(s)})
		}
		for i, s := range sets {
			t.table.Sets = append(t.table.Sets, s.Name)
			t.table.Figures = append(t.table.Figures, FiguresOf(judged[i]))
		}
	}
	return []VerifierTable{crossed, left}
}
