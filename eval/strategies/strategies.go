// Package strategies measures strategies on labelled retrieval sets, all over the same search. Cost
// measures ways to save calls and tokens.
package strategies

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval"
	"github.com/assay-rag/assay/eval/metric"
	"github.com/assay-rag/assay/eval/retrieval"
	"github.com/assay-rag/assay/eval/scripted"
	"github.com/assay-rag/assay/eval/stat"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/run"
	"github.com/assay-rag/assay/strategy"
)

// Handed is the number of passages that every strategy gives the generator when it is measured, so
// that no strategy gains by giving more.
const Handed = 10

// Options configures Strategies.
type Options struct {
	Strategies []string // by name; empty: all but managed, which calls a service
	Questions  int      // number of the set's first questions; 0: all
	Naive      bool     // the first row is the baseline Naive

	Roles    string            // name of the role configuration in the rows; empty: "local"
	Models   engine.Models     // models for the roles; zero: all roles are local
	Settings strategy.Settings // thresholds; zero fields have their defaults

	// AsAsked gives the generator the same evidence as in a user's run, without the limit of Handed
	// passages. All of it counts.
	AsAsked bool

	// ByWords lets the local roles judge by words alone, without the reader. It is many times faster
	// than what ask does.
	ByWords bool

	// Wall limits the time for a question. 0 means an hour, so that the results do not depend on
	// the speed of the machine.
	Wall time.Duration
}

// Naive is the name of the baseline in a Row: strategy.Naive with the models of the generator. It is
// not the name of a strategy.
const Naive = "naive"

// A Row is the result of one strategy on one set.
type Row struct {
	Set       string `json:"set"`
	Strategy  string `json:"strategy"`
	Roles     string `json:"roles"`
	Scripted  bool   `json:"scripted,omitempty"` // with the models of Scripted, so the figures test the plumbing only
	AsAsked   bool   `json:"as_asked,omitempty"` // see Options; all evidence counts
	Questions int    `json:"questions"`

	Recall  stat.Interval `json:"recall@10"`   // share of a question's relevant passages that the generator was given
	AllGold stat.Interval `json:"all_gold@10"` // share of questions for which it was given all of them
	Handed  float64       `json:"handed"`      // mean number of passages
	Over    int           `json:"over"`        // questions with more than Handed passages, of which only the first Handed count

	Answers int     `json:"answers"`      // questions with reference answers in the set
	Match   float64 `json:"answer_match"` // share of Answers with a reference answer in the text
	F1      float64 `json:"answer_f1"`    // mean word overlap with the reference answers
	Failed  int     `json:"failed"`       // questions for which the strategy returned an error
	Failure string  `json:"failure,omitempty"`

	Statuses  map[assay.Status]int `json:"statuses"`
	AskedBack int                  `json:"asked_back"`      // questions that were returned as ambiguous
	Notes     []retrieval.Noted    `json:"notes,omitempty"` // of the answers, the most frequent first

	// Means per question. Steps counts the records of the journal, and Tokens is input plus output.
	Steps       float64 `json:"steps"`
	Searches    float64 `json:"searches"`
	Iterations  float64 `json:"iterations"` // searches of each sub-question; of questions without a search 0
	Calls       float64 `json:"calls"`
	Tokens      float64 `json:"tokens"`
	CallsFailed int     `json:"calls_failed"` // failed model calls over all questions; in playback, those not recorded
	MedianMS    float64 `json:"median_ms"`    // wall time per question

	// Gain compares the row with static, if that was measured with the same roles.
	Gain *Gain `json:"gain,omitempty"`

	Outcomes []Outcome `json:"outcomes"` // in the order of the set's questions
}

// A Outcome is the result of one question.
type Outcome struct {
	Question    string       `json:"question"` // its ID
	Kind        string       `json:"kind,omitempty"`
	Status      assay.Status `json:"status"`
	Stop        assay.Stop   `json:"stop"`
	Answered    string       `json:"answered_by"` // the strategy that produced the answer
	AskBack     string       `json:"ask_back,omitempty"`
	Handed      []string     `json:"handed"`           // passage IDs, in the order of their citation numbers
	Missed      []string     `json:"missed,omitempty"` // relevant passages that are not in Handed
	Recall      float64      `json:"recall@10"`
	AllGold     bool         `json:"all_gold@10"`
	Match       bool         `json:"answer_match"`
	F1          float64      `json:"answer_f1"`
	Steps       int          `json:"steps"`
	Iterations  float64      `json:"iterations"` // searches of each of its sub-questions, in the mean
	Usage       assay.Usage  `json:"usage"`
	CallsFailed int          `json:"calls_failed,omitempty"`
	MS          float64      `json:"ms"`
	Failure     string       `json:"failure,omitempty"` // error of the strategy

	notes []assay.Note
}

// A Gain is the difference of a strategy to another one on the same questions.
type Gain struct {
	Strategy string        `json:"strategy"` // the other one
	Recall   stat.Interval `json:"recall@10"`
	AllGold  stat.Interval `json:"all_gold@10"`
}

// floorStrategy is the strategy with which the others are compared. localRoles names the roles in
// the rows if no model is used. managed is the strategy that calls a service with its own passages.
const (
	floorStrategy = "static"
	localRoles    = "local"
	managed       = "managed"
)

// Measure asks the set's questions with each of the strategies and measures the results. All
// strategies use the default search and give the generator the same number of passages, unless
// opts.AsAsked is set. Each row is compared with that of static. Questions run in parallel, one per
// processor. On an error the finished rows are returned with it.
//
// If a strategy fails on a question, the question counts as one without evidence. Such an error
// does not end the measurement.
func Measure(ctx context.Context, o *retrieval.Opened, opts Options) ([]Row, error) {
	if len(opts.Strategies) == 0 {
		opts.Strategies = slices.DeleteFunc(strategy.Names(), func(name string) bool { return name == managed })
	}
	opts.Roles, opts.Wall = cmp.Or(opts.Roles, localRoles), cmp.Or(opts.Wall, time.Hour)
	for _, name := range opts.Strategies {
		if _, err := strategy.Lookup(name); err != nil {
			return nil, err
		}
	}
	queries := o.Set.Queries
	if opts.Questions > 0 {
		queries = queries[:min(len(queries), opts.Questions)]
	}
	retriever := o.Retriever(retrieval.Ranking{Graph: true, Rerank: true})
	names := opts.Strategies
	if opts.Naive {
		names = append([]string{Naive}, names...)
	}
	var rows []Row
	for _, name := range names {
		outcomes, err := askEach(ctx, o, retriever, name, queries, opts)
		if err != nil {
			Compare(rows)
			return rows, err
		}
		row := rowOf(o.Set.Name, name, opts.Roles, queries, outcomes)
		row.Scripted, row.AsAsked = scripted.IsScripted(opts.Models), opts.AsAsked
		rows = append(rows, row)
	}
	Compare(rows)
	return rows, nil
}

// Compare sets the gain over static for each row with the same set, roles and number of
// questions as a row of static.
func Compare(rows []Row) {
	for i := range rows {
		at := slices.IndexFunc(rows, func(r Row) bool {
			return r.Strategy == floorStrategy && r.Set == rows[i].Set && r.Roles == rows[i].Roles && r.Questions == rows[i].Questions
		})
		if at >= 0 && at != i {
			rows[i].Gain = gain(rows[i], rows[at])
		}
	}
}

// askEach asks each of the questions with one strategy.
func askEach(ctx context.Context, o *retrieval.Opened, retriever assay.Retriever, name string, queries []testset.Query, opts Options) ([]Outcome, error) {
	outcomes := make([]Outcome, len(queries))
	report := o.Stage(name + " (" + opts.Roles + ")")
	var mu sync.Mutex
	done := 0
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, q := range queries {
		if gctx.Err() != nil {
			break
		}
		g.Go(func() error {
			var err error
			if outcomes[i], err = askOne(gctx, o, retriever, name, q, opts); err != nil {
				return fmt.Errorf("%s: %s: question %s: %w", o.Set.Name, name, q.ID, err)
			}
			mu.Lock()
			defer mu.Unlock()
			done++
			report(done, len(queries))
			return nil
		})
	}
	return outcomes, errors.Join(g.Wait(), ctx.Err())
}

// cachedReadings is the number of readings kept for a question.
const cachedReadings = 256

// readingRoles has the reader of the set for the local roles, if there is one. It reads each passage
// of a question once.
func readingRoles(o *retrieval.Opened, byWords bool) strategy.Roles {
	if o.Reader == nil || byWords {
		return strategy.Roles{}
	}
	return strategy.Roles{Reader: llm.CacheReadings(o.Reader, cachedReadings)}
}

// askOne asks one question with a strategy in a run of its own. It returns an error only if ctx has
// ended or the journal is damaged.
func askOne(ctx context.Context, o *retrieval.Opened, retriever assay.Retriever, name string, q testset.Query, opts Options) (Outcome, error) {
	out := Outcome{Question: q.ID, Kind: q.Kind}
	journal := &run.Memory{}
	session, err := run.New(run.Config{Run: "eval", Journal: journal, Budget: assay.Budget{Wall: opts.Wall}})
	if err != nil {
		return out, err
	}
	env := opts.Models.Equip(strategy.Env{
		Request:  strategy.Request{Question: q.Text, Access: assay.Local().Access()},
		Tools:    strategy.Tools{Retriever: retriever, Content: o.Stored, Roles: readingRoles(o, opts.ByWords)},
		Settings: opts.Settings,
	})
	if env.Limits.Wall = opts.Wall; !opts.AsAsked {
		env.Limits.Passages = Handed
	}
	began := time.Now()
	var answer assay.Answer
	if name == Naive {
		answer, err = naive(ctx, o, session.Scope(), env)
	} else {
		answer, err = strategy.Ask(ctx, session.Scope(), env, name)
	}
	out.MS = float64(time.Since(began).Microseconds()) / 1000
	if err = cmp.Or(session.Finish(), err); ctx.Err() != nil {
		return out, ctx.Err()
	}
	if err != nil {
		out.Failure = err.Error()
	}
	records := journal.Records()
	out.Steps, out.Usage = len(records), session.Scope().Spent()
	var searches []string
	for _, rec := range records {
		out.CallsFailed += stat.One(rec.Kind == assay.StepModel && rec.Error != nil)
		if rec.Kind == assay.StepSearch {
			searches = append(searches, rec.Path)
		}
	}
	out.Iterations = eval.Iterations(searches)
	out.Status, out.Stop, out.Answered, out.AskBack, out.notes = answer.Status, answer.Stop, answer.Strategy, answer.AskBack, answer.Notes
	if out.Handed, err = handed(records); err != nil {
		return out, err
	}
	most := Handed
	if opts.AsAsked {
		most = len(out.Handed)
	}
	out.judge(q, most, metric.Said(answer))
	return out, nil
}

// naive asks a question with the baseline. The statements of its draft are the claims of the answer,
// without a verdict. If the set has no vectors, it searches by words.
func naive(ctx context.Context, o *retrieval.Opened, s run.Scope, env strategy.Env) (assay.Answer, error) {
	mode := assay.ModeVector
	if o.Embedder == nil {
		mode = assay.ModeText
	}
	env.Retriever = o.Retriever(retrieval.Ranking{Mode: mode})
	draft, err := strategy.Naive(ctx, s, env, mode)
	answer := assay.Answer{Strategy: Naive, Status: assay.NotFound, Stop: assay.StopSufficient}
	for _, st := range draft.Statements {
		if answer.Text != "" {
			answer.Text += " "
		}
		start := len(answer.Text)
		answer.Text += st.Text
		answer.Claims = append(answer.Claims, assay.Claim{Start: start, End: len(answer.Text), Citations: st.Evidence})
		answer.Status = assay.Answered
	}
	return answer, err
}

// handed returns the passages that the generator was given in its last step. An answer that is
// revised is written from the evidence found by then.
func handed(records []assay.Record) ([]string, error) {
	ids := []string{}
	for _, rec := range slices.Backward(records) {
		if rec.Kind != assay.StepGenerate {
			continue
		}
		var in struct {
			Evidence []struct {
				Hit struct {
					URI string `json:"uri"`
				} `json:"hit"`
			} `json:"evidence"`
		}
		if err := json.Unmarshal(rec.Input, &in); err != nil {
			return nil, fmt.Errorf("step %s: %w: %w", rec.Path, assay.ErrDamaged, err)
		}
		for _, ev := range in.Evidence {
			ids = append(ids, ev.Hit.URI)
		}
		return ids, nil
	}
	return ids, nil
}

// judge compares the answer and the first most passages of the evidence with the labels.
func (o *Outcome) judge(q testset.Query, most int, said string) {
	counted := o.Handed[:min(len(o.Handed), most)]
	found := 0
	for id := range q.Relevant {
		if slices.Contains(counted, id) {
			found++
		} else {
			o.Missed = append(o.Missed, id)
		}
	}
	slices.Sort(o.Missed)
	o.Recall, o.AllGold = float64(found)/float64(len(q.Relevant)), found == len(q.Relevant)
	o.Match, o.F1 = metric.Contains(said, q.Answers) == 1, metric.F1(said, q.Answers)
}

// rowOf aggregates outcomes.
func rowOf(set, name, roles string, queries []testset.Query, outcomes []Outcome) Row {
	row := Row{Set: set, Strategy: name, Roles: roles, Questions: len(outcomes), Statuses: map[assay.Status]int{}, Outcomes: outcomes}
	notes := map[string]int{}
	var times []float64
	for i, o := range outcomes {
		row.Handed += float64(len(o.Handed))
		row.Over += stat.One(len(o.Handed) > Handed)
		row.Steps += float64(o.Steps)
		row.Searches += float64(o.Usage.Searches)
		row.Iterations += o.Iterations
		row.Calls += float64(o.Usage.Calls)
		row.Tokens += float64(o.Usage.InputTokens + o.Usage.OutputTokens)
		row.CallsFailed += o.CallsFailed
		row.AskedBack += stat.One(o.AskBack != "")
		times = append(times, o.MS)
		if len(queries[i].Answers) > 0 {
			row.Answers++
			row.Match += float64(stat.One(o.Match))
			row.F1 += o.F1
		}
		if o.Failure != "" {
			row.Failed++
			row.Failure = cmp.Or(row.Failure, o.Failure)
		} else {
			row.Statuses[o.Status]++
		}
		for _, note := range o.notes {
			notes[note.Text]++
		}
	}
	for _, sum := range []*float64{&row.Handed, &row.Steps, &row.Searches, &row.Iterations, &row.Calls, &row.Tokens} {
		*sum /= float64(max(row.Questions, 1))
	}
	row.Match /= float64(max(row.Answers, 1))
	row.F1 /= float64(max(row.Answers, 1))
	row.MedianMS = stat.Percentile(times, 50)
	row.Recall, row.AllGold = stat.Bootstrap(recalls(outcomes)), stat.Bootstrap(allGolds(outcomes))
	row.Notes = retrieval.CountNotes(notes)
	return row
}

func recalls(outcomes []Outcome) []float64 {
	xs := make([]float64, len(outcomes))
	for i, o := range outcomes {
		xs[i] = o.Recall
	}
	return xs
}

func allGolds(outcomes []Outcome) []float64 {
	xs := make([]float64, len(outcomes))
	for i, o := range outcomes {
		xs[i] = float64(stat.One(o.AllGold))
	}
	return xs
}

// gain compares two rows of the same questions.
func gain(row, other Row) *Gain {
	return &Gain{
		Strategy: other.Strategy,
		Recall:   stat.Bootstrap(minus(recalls(row.Outcomes), recalls(other.Outcomes))),
		AllGold:  stat.Bootstrap(minus(allGolds(row.Outcomes), allGolds(other.Outcomes))),
	}
}

func minus(a, b []float64) []float64 {
	d := make([]float64, len(a))
	for i := range a {
		d[i] = a[i] - b[i]
	}
	return d
}
