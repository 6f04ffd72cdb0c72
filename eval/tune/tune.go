// Package tune chooses settings by cross-validation on labelled questions.
package tune

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval"
	"github.com/assay-rag/assay/eval/answers"
	"github.com/assay-rag/assay/eval/metric"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/internal/retrieve"
	"github.com/assay-rag/assay/strategy"
)

// Options configures Run.
type Options struct {
	Strategy  string          // with which questions are asked
	Limits    strategy.Limits // the current configuration
	Escalate  string          // the strategy that auto goes on with; empty: the default
	Vectors   bool            // the store has vectors; otherwise their weight is not tuned
	Limit     int             // number of the set's first questions; 0: all
	Parallel  int             // questions at a time; 0: one per processor
	Principal assay.Principal

	Progress func(eval.Progress) // called by one goroutine at a time; may be nil
}

// A Tuning is the result of Run.
type Tuning struct {
	Set       string `json:"set"`
	Questions int    `json:"questions"` // with labels
	Knobs     []Knob `json:"settings"`  // in the order of the choice; each is tuned with the earlier ones set
	Change    bool   `json:"change"`    // any of the settings changed
}

// A Knob is one setting, or two that are chosen together.
type Knob struct {
	Name      string `json:"name"`
	Measure   string `json:"measure"`   // that is maximised
	Questions int    `json:"questions"` // to which the measure applies
	Groups    int    `json:"groups"`    // of questions about one document or one place in it, which are in one fold

	Current string           `json:"current"`
	Chosen  string           `json:"chosen"` // Current if there is no change
	Change  bool             `json:"change"`
	Gain    Gained           `json:"gain"`                       // on questions that took no part in the choice
	Why     string           `json:"why,omitempty"`              // reason if there is no change
	Needed  int              `json:"questions_needed,omitempty"` // estimate of the questions that separate the gain, or one of 0.02, from chance
	Tried   []TriedCandidate `json:"tried"`                      // the current one first; none if the measure applies to no question

	Cheaper  bool           `json:"cheaper,omitempty"`  // Chosen takes fewer steps and is not worse; Gain is then over all questions
	Note     string         `json:"note,omitempty"`     // remark on the candidates
	Settings map[string]any `json:"settings,omitempty"` // changed settings, by path in the configuration
}

// A Gained is a difference of means with its bounds.
type Gained struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	P    float64 `json:"p"`
}

// A TriedCandidate is a value with its mean over all questions.
type TriedCandidate struct {
	Value string  `json:"value"`
	Mean  float64 `json:"mean"`
	Steps float64 `json:"steps,omitempty"` // mean steps of a run; of routes only
}

// The paths of settings in the configuration.
const (
	weightSetting = "retrieval.vector_weight"
	rerankSetting = "retrieval.rerank"
	floorSetting  = "strategies.corrective.floor"
	heldSetting   = "strategies.corrective.held"
	routeSetting  = "strategies.auto.escalate"
)

// The values that are tried besides the current one.
var (
	tunedWeights = []float64{0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1}
	tunedFloors  = []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7}
	tunedHelds   = []float64{0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}
)

// tunedDepth is the number of hits that are measured: as many as a user reads, and more than become
// evidence.
const tunedDepth = 10

// Run chooses settings of searches and answers on a set's labelled questions, each by
// cross-validation (see choose). It first chooses the weight of vectors and whether hits are
// reranked, by nDCG@10 of the gold in a search for the question. With these it then chooses the
// floor of relevance and the abstention threshold, by the share of right outcomes. It tries a
// threshold below the default only if the set has enough unanswerable questions. If the strategy is
// auto, it last chooses the strategy that auto goes on with; see tuner.route. A set without labelled
// questions is assay.ErrInvalid. No language model is called.
//
// The measurements are kept in the folder, so that an interrupted Run can be resumed. Run removes
// its runs from the engine's store.
func Run(ctx context.Context, e *engine.Engine, d testset.Dataset, folder *answers.Folder, opts Options) (Tuning, error) {
	library, err := answers.OpenLibrary(ctx, answers.As(e, opts.Principal))
	if err != nil {
		return Tuning{}, err
	}
	t := &tuner{engine: e, set: d, folder: folder, library: library, Options: opts, limits: opts.Limits}
	out := Tuning{Set: d.Name}
	if out.Questions = d.Labelled(opts.Limit); out.Questions == 0 {
		return out, fmt.Errorf("%s has no labelled question to choose by: %w", d.Name, assay.ErrInvalid)
	}
	turns := []func(context.Context) (Knob, error){t.searches}
	for _, h := range thresholds {
		turns = append(turns, func(ctx context.Context) (Knob, error) { return t.threshold(ctx, h) })
	}
	if opts.Strategy == routed {
		turns = append(turns, t.route)
	}
	for _, turn := range turns {
		knob, err := turn(ctx)
		if err != nil {
			return out, err
		}
		out.Knobs = append(out.Knobs, knob)
		out.Change = out.Change || knob.Change
	}
	return out, nil
}

// A tuner tunes the settings on one set.
type tuner struct {
	Options
	engine  *engine.Engine
	set     testset.Dataset
	folder  *answers.Folder
	library *answers.Library
	limits  strategy.Limits // with the choices so far
}

func (t *tuner) cases() []testset.Case { return t.set.First(t.Limit) }

// A candidate is a value of a knob.
type candidate struct {
	says     string
	system   string // its name in the folder, unique for its settings
	limits   strategy.Limits
	escalate string // the strategy that auto goes on with; empty: the current one
	settings map[string]any
}

// searches chooses the weight of vectors and whether hits are reranked.
func (t *tuner) searches(ctx context.Context) (Knob, error) {
	k := Knob{Name: weightSetting + ", " + rerankSetting, Measure: "ndcg@10"}
	now := t.limits
	if now.VectorWeight == 0 {
		now.VectorWeight = retrieve.VectorWeight
	}
	weights := tunedWeights
	if !t.Vectors {
		k.Name, weights = rerankSetting, nil
	}
	all := []candidate{t.search(now, now.VectorWeight, now.Unranked)}
	for _, unranked := range []bool{now.Unranked, !now.Unranked} {
		for _, w := range slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(weights), now.VectorWeight)))) {
			if w != now.VectorWeight || unranked != now.Unranked {
				all = append(all, t.search(now, w, unranked))
			}
		}
	}
	var cases []testset.Case
	for _, c := range t.cases() {
		if len(c.Gold) > 0 {
			cases = append(cases, c)
		}
	}
	if err := t.searchAll(ctx, cases, all); err != nil {
		return k, err
	}
	err := t.settle(ctx, &k, cases, all)
	return k, err
}

// search returns a candidate for searches.
func (t *tuner) search(limits strategy.Limits, weight float64, unranked bool) candidate {
	limits.VectorWeight, limits.Unranked = weight, unranked
	c := candidate{limits: limits, settings: map[string]any{rerankSetting: !unranked}}
	says := "reranked"
	if unranked {
		says = "not reranked"
	}
	if t.Vectors {
		says = fmt.Sprintf("vectors %s, %s", decimal(weight), says)
		c.settings[weightSetting] = weight
	}
	c.says, c.system = says, "search, "+says
	return c
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// searchAll searches for each question with each candidate and stores the rank of the gold.
func (t *tuner) searchAll(ctx context.Context, cases []testset.Case, all []candidate) error {
	shown := t.progress("searching", len(cases)*len(all))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(t.parallel())
	for _, c := range cases {
		if gctx.Err() != nil {
			break
		}
		g.Go(func() error {
			rank, err := t.library.Ranker(gctx, c)
			if err != nil {
				return err
			}
			for _, x := range all {
				if !t.folder.Has(x.system, c.ID) {
					if err := t.searchOne(gctx, c, rank, x); err != nil {
						return fmt.Errorf("question %s: %w", c.ID, err)
					}
				}
				shown()
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// searchOne runs one search and stores its outcome. A failed search counts as one without hits.
func (t *tuner) searchOne(ctx context.Context, c testset.Case, rank answers.Ranker, x candidate) error {
	o := answers.Outcome{Case: c, System: x.system, Began: time.Now().UTC()}
	q := assay.Query{Text: c.Question, Filter: c.Filter, Collections: c.Collections, Limit: tunedDepth, VectorWeight: x.limits.VectorWeight, Unranked: x.limits.Unranked}
	found, err := t.engine.Search(ctx, t.Principal, q)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		o.Error = err.Error()
	}
	ranked, relevant := rank(found.Hits)
	o.Metrics = map[string]float64{"ndcg@10": metric.NDCG(ranked, relevant, tunedDepth, metric.Exponential)}
	o.History, o.Answers = nil, nil // stored in the set
	return t.folder.Add(o)
}

// A threshold is a tuned threshold of the answer.
type threshold struct {
	path    string // in the configuration
	tried   []float64
	current float64 // default
	of      func(*strategy.Limits) *float64
}

// thresholds are tuned in this order.
var thresholds = []threshold{
	{floorSetting, tunedFloors, strategy.DefaultLimits().Floor, func(l *strategy.Limits) *float64 { return &l.Floor }},
	{heldSetting, tunedHelds, strategy.DefaultLimits().MinAnswerability, func(l *strategy.Limits) *float64 { return &l.MinAnswerability }},
}

// leastUnanswerable is the number of unanswerable questions that are needed to try a threshold
// below the default.
const leastUnanswerable = 10

// threshold chooses one threshold.
func (t *tuner) threshold(ctx context.Context, h threshold) (Knob, error) {
	at := func(value float64) candidate {
		limits := t.limits
		*h.of(&limits) = value
		return candidate{says: decimal(value), limits: limits, settings: map[string]any{h.path: value}}
	}
	now := cmp.Or(*h.of(&t.limits), h.current)
	k := Knob{Name: h.path, Measure: "right"}
	least, refusing := 0.0, t.unanswerable()
	if refusing < leastUnanswerable {
		least = min(now, h.current)
		k.Note = fmt.Sprintf("no value below %s is tried: the set has %d unanswerable questions; with fewer than %d, answering more always looks better",
			decimal(least), refusing, leastUnanswerable)
	}
	all := []candidate{at(now)}
	for _, value := range h.tried {
		if value != now && value >= least {
			all = append(all, at(value))
		}
	}
	err := t.answers(ctx, &k, all)
	return k, err
}

// answers asks the questions with each candidate and chooses one.
func (t *tuner) answers(ctx context.Context, k *Knob, all []candidate) error {
	cases := t.labelled()
	labelled := t.set
	labelled.Cases = cases
	opts := answers.Options{Parallel: t.Parallel, Principal: t.Principal, Progress: t.Progress}
	for i := range all {
		all[i].system = "answers, " + k.Name + " " + all[i].says + t.chosen()
		request := engine.Request{Strategy: t.Strategy, Local: true, NoCache: true, Limits: all[i].limits}
		request.Settings.Auto.Escalate = cmp.Or(all[i].escalate, t.Escalate)
		opts.Contenders = append(opts.Contenders, answers.Contender{Name: all[i].system, Request: request})
	}
	err := answers.AskAll(ctx, t.engine, labelled, t.folder, opts)
	if err := errors.Join(err, t.forget(ctx, all)); err != nil {
		return err
	}
	return t.settle(ctx, k, cases, all)
}

// chosen describes the choices so far. It distinguishes outcomes that were measured under different
// choices.
func (t *tuner) chosen() string {
	weight, says := t.limits.VectorWeight, ""
	if weight > 0 && weight != retrieve.VectorWeight {
		says += ", vectors " + decimal(weight)
	}
	if t.limits.Unranked {
		says += ", not reranked"
	}
	if t.limits.Floor > 0 {
		says += ", floor " + decimal(t.limits.Floor)
	}
	if t.limits.MinAnswerability > 0 {
		says += ", held " + decimal(t.limits.MinAnswerability)
	}
	if t.Escalate != "" {
		says += ", on with " + t.Escalate
	}
	return says
}

// forget removes the runs of candidates from the store, because no user asked them.
func (t *tuner) forget(ctx context.Context, all []candidate) error {
	for o, err := range t.folder.Outcomes(context.WithoutCancel(ctx)) {
		if err != nil {
			return err
		}
		tried := slices.ContainsFunc(all, func(c candidate) bool { return c.system == o.System })
		if o.Run == "" || !tried {
			continue
		}
		if err := t.engine.DeleteRun(context.WithoutCancel(ctx), t.Principal, o.Run, ""); err != nil && !errors.Is(err, assay.ErrNotFound) {
			return err
		}
	}
	return nil
}

// settle reads the scores of the candidates and chooses one.
func (t *tuner) settle(ctx context.Context, k *Knob, cases []testset.Case, all []candidate) error {
	scores, err := t.scores(ctx, k.Measure, cases, all)
	if err != nil {
		return err
	}
	c := choose(scores, keptTogether(cases))
	k.Questions, k.Groups = c.Questions, c.Groups
	k.Current, k.Chosen, k.Change, k.Needed = all[0].says, all[0].says, c.Change, c.Needed
	k.Gain = Gained{c.Gain.Mean, c.Gain.Low, c.Gain.High, c.Gain.P}
	for i, x := range all {
		if len(cases) == 0 {
			break // nothing was measured
		}
		mean := 0.0
		for _, s := range scores[i] {
			mean += s / float64(len(cases))
		}
		k.Tried = append(k.Tried, TriedCandidate{Value: x.says, Mean: mean})
	}
	switch {
	case c.Change:
	case c.Questions < leastQuestions:
		k.Why, k.Needed = fmt.Sprintf("%d questions are too few to choose by; it takes %d at least", c.Questions, leastQuestions), max(c.Needed, leastQuestions)
	case c.Best == 0 && c.Gain.Mean == 0:
		k.Why = "no other value is significantly better"
	case c.Groups < leastGroups && c.Gain.Low > 0:
		k.Why = fmt.Sprintf("the questions are about %d places; at least %d are needed to generalise", c.Groups, leastGroups)
	case c.Needed <= c.Questions:
		k.Why = fmt.Sprintf("the gain may be due to chance, although these %d questions should suffice to detect a worthwhile one", c.Questions)
	default:
		k.Why = fmt.Sprintf("the gain may be due to chance; about %d questions are needed to tell", c.Needed)
	}
	if c.Change {
		k.Chosen, t.limits = all[c.Best].says, all[c.Best].limits
		k.Settings = map[string]any{}
		for path, value := range all[c.Best].settings {
			if value != all[0].settings[path] {
				k.Settings[path] = value
			}
		}
	}
	return nil
}

// scores reads a measure for each candidate and case from the folder.
func (t *tuner) scores(ctx context.Context, measure string, cases []testset.Case, all []candidate) ([][]float64, error) {
	at, row := map[string]int{}, map[string]int{}
	for i, c := range cases {
		at[c.ID] = i
	}
	scores := make([][]float64, len(all))
	for i, x := range all {
		row[x.system], scores[i] = i, make([]float64, len(cases))
	}
	for o, err := range t.folder.Outcomes(ctx) {
		if err != nil {
			return nil, err
		}
		r, tried := row[o.System]
		q, wanted := at[o.ID]
		if v := o.Metrics[measure]; tried && wanted && !math.IsNaN(v) {
			scores[r][q] = v
		}
	}
	return scores, nil
}

// leastGroups is the number of groups below which folds are too much alike.
const leastGroups = 20

// keptTogether returns the group of each question. Questions about one document form a group. If
// there are too few documents, questions about one place in a document do.
func keptTogether(cases []testset.Case) []string {
	groups, there := make([]string, len(cases)), map[string]bool{}
	for _, of := range []func(testset.Gold) string{
		func(g testset.Gold) string { return g.Document },
		func(g testset.Gold) string {
			return fmt.Sprintf("%s\x00%s\x00%s\x00%d", g.Document, g.Section, g.Quote, g.Start)
		},
	} {
		clear(there)
		for i, c := range cases {
			groups[i] = "question " + strings.ToLower(strings.Join(strings.Fields(c.Question), " "))
			if len(c.Gold) > 0 {
				groups[i] = "gold " + of(c.Gold[0])
				there[groups[i]] = true
			}
		}
		if len(there) >= leastGroups {
			break
		}
	}
	return groups
}

func (t *tuner) parallel() int {
	if t.Parallel > 0 {
		return t.Parallel
	}
	return runtime.GOMAXPROCS(0)
}

// progress returns a function that reports one more item as done.
func (t *tuner) progress(what string, all int) func() {
	var mu sync.Mutex
	done, began := 0, time.Now()
	return func() {
		mu.Lock()
		defer mu.Unlock()
		if done++; t.Progress != nil {
			t.Progress(eval.Progress{Set: t.set.Name, What: what, Done: done, All: all, Elapsed: time.Since(began)})
		}
	}
}
