package eval

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/sync/errgroup"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval/metric"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/run"
	"github.com/assay-rag/assay/strategy"
)

// Handed is the number of passages that every strategy gives the generator when it is measured, so
// that no strategy gains by giving more.
const Handed = 10

// StrategyOptions configures Opened.Strategies.
type StrategyOptions struct {
	Strategies []string // by name; empty: all but managed, which calls a service
	Questions  int      // number of the set's first questions; 0: all

	Roles    string            // name of the role configuration in the rows; empty: "local"
	Models   engine.Models     // models for the roles; zero: all roles are local
	Settings strategy.Settings // thresholds; zero fields have their defaults

	// AsAsked gives the generator the same evidence as in a user's run, without the limit of Handed
	// passages. All of it counts.
	AsAsked bool

	// Wall limits the time for a question. 0 means an hour, so that the results do not depend on
	// the speed of the machine.
	Wall time.Duration
}

// A StrategyRow is the result of one strategy on one set.
type StrategyRow struct {
	Set       string `json:"set"`
	Strategy  string `json:"strategy"`
	Roles     string `json:"roles"`
	Scripted  bool   `json:"scripted,omitempty"` // with the models of Scripted, so the figures test the plumbing only
	AsAsked   bool   `json:"as_asked,omitempty"` // see StrategyOptions; all evidence counts
	Questions int    `json:"questions"`

	Recall  Mean    `json:"recall@10"`   // share of a question's relevant passages that the generator was given
	AllGold Mean    `json:"all_gold@10"` // share of questions for which it was given all of them
	Handed  float64 `json:"handed"`      // mean number of passages
	Over    int     `json:"over"`        // questions with more than Handed passages, of which only the first Handed count

	Answers int     `json:"answers"`      // questions with reference answers in the set
	Match   float64 `json:"answer_match"` // share of Answers with a reference answer in the text
	F1      float64 `json:"answer_f1"`    // mean word overlap with the reference answers
	Failed  int     `json:"failed"`       // questions for which the strategy returned an error
	Failure string  `json:"failure,omitempty"`

	Statuses  map[assay.Status]int `json:"statuses"`
	AskedBack int                  `json:"asked_back"`      // questions that were returned as ambiguous
	Notes     []Noted              `json:"notes,omitempty"` // of the answers, the most frequent first

	// Means per question. Steps counts the records of the journal, and Tokens is input plus output.
	Steps       float64 `json:"steps"`
	Searches    float64 `json:"searches"`
	Calls       float64 `json:"calls"`
	Tokens      float64 `json:"tokens"`
	CallsFailed int     `json:"calls_failed"` // failed model calls over all questions; in playback, those not recorded
	MedianMS    float64 `json:"median_ms"`    // wall time per question

	// Gain compares the row with static, if that was measured with the same roles.
	Gain *Gain `json:"gain,omitempty"`

	Outcomes []StrategyOutcome `json:"outcomes"` // in the order of the set's questions
}

// A StrategyOutcome is the result of one question.
type StrategyOutcome struct {
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
	Usage       assay.Usage  `json:"usage"`
	CallsFailed int          `json:"calls_failed,omitempty"`
	MS          float64      `json:"ms"`
	Failure     string       `json:"failure,omitempty"` // error of the strategy

	notes []assay.Note
}

// A Mean is a mean over questions with its 95% bootstrap bounds.
type Mean struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// A Gain is the difference of a strategy to another one on the same questions.
type Gain struct {
	Strategy string `json:"strategy"` // the other one
	Recall   Mean   `json:"recall@10"`
	AllGold  Mean   `json:"all_gold@10"`
}

// floorStrategy is the strategy with which the others are compared. localRoles names the roles in
// the rows if no model is used. managed is the strategy that calls a service with its own passages.
const (
	floorStrategy = "static"
	localRoles    = "local"
	managed       = "managed"
)

// Strategies asks the set's questions with each of the strategies and measures the results. All
// strategies use the default search and give the generator the same number of passages, unless
// opts.AsAsked is set. Each row is compared with that of static. Questions run in parallel, one per
// processor. On an error the finished rows are returned with it.
//
// If a strategy fails on a question, the question counts as one without evidence. Such an error
// does not end the measurement.
func (o *Opened) Strategies(ctx context.Context, opts StrategyOptions) ([]StrategyRow, error) {
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
	retriever := o.Retriever(Ranking{Graph: true, Rerank: true})
	var rows []StrategyRow
	for _, name := range opts.Strategies {
		outcomes, err := o.askAll(ctx, retriever, name, queries, opts)
		if err != nil {
			CompareStrategies(rows)
			return rows, err
		}
		row := rowOf(o.Set.Name, name, opts.Roles, queries, outcomes)
		row.Scripted, row.AsAsked = isScripted(opts.Models), opts.AsAsked
		rows = append(rows, row)
	}
	CompareStrategies(rows)
	return rows, nil
}

// CompareStrategies sets the gain over static for each row with the same set, roles and number of
// questions as a row of static.
func CompareStrategies(rows []StrategyRow) {
	for i := range rows {
		at := slices.IndexFunc(rows, func(r StrategyRow) bool {
			return r.Strategy == floorStrategy && r.Set == rows[i].Set && r.Roles == rows[i].Roles && r.Questions == rows[i].Questions
		})
		if at >= 0 && at != i {
			rows[i].Gain = gain(rows[i], rows[at])
		}
	}
}

// askAll asks each of the questions with one strategy.
func (o *Opened) askAll(ctx context.Context, retriever assay.Retriever, name string, queries []Query, opts StrategyOptions) ([]StrategyOutcome, error) {
	outcomes := make([]StrategyOutcome, len(queries))
	report := o.stage(name + " (" + opts.Roles + ")")
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
			if outcomes[i], err = o.ask(gctx, retriever, name, q, opts); err != nil {
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

// ask asks one question with a strategy in a run of its own. It returns an error only if ctx has
// ended or the journal is damaged.
func (o *Opened) ask(ctx context.Context, retriever assay.Retriever, name string, q Query, opts StrategyOptions) (StrategyOutcome, error) {
	out := StrategyOutcome{Question: q.ID, Kind: q.Kind}
	journal := &run.Memory{}
	session, err := run.New(run.Config{Run: "eval", Journal: journal, Budget: assay.Budget{Wall: opts.Wall}})
	if err != nil {
		return out, err
	}
	env := opts.Models.Equip(strategy.Env{
		Request:  strategy.Request{Question: q.Text, Access: assay.Local().Access()},
		Tools:    strategy.Tools{Retriever: retriever, Content: o.Stored},
		Settings: opts.Settings,
	})
	if env.Limits.Wall = opts.Wall; !opts.AsAsked {
		env.Limits.Passages = Handed
	}
	began := time.Now()
	answer, err := strategy.Ask(ctx, session.Scope(), env, name)
	out.MS = float64(time.Since(began).Microseconds()) / 1000
	if err = cmp.Or(session.Finish(), err); ctx.Err() != nil {
		return out, ctx.Err()
	}
	if err != nil {
		out.Failure = err.Error()
	}
	records := journal.Records()
	out.Steps, out.Usage = len(records), session.Scope().Spent()
	for _, rec := range records {
		out.CallsFailed += one(rec.Kind == assay.StepModel && rec.Error != nil)
	}
	out.Status, out.Stop, out.Answered, out.AskBack, out.notes = answer.Status, answer.Stop, answer.Strategy, answer.AskBack, answer.Notes
	if out.Handed, err = handed(records); err != nil {
		return out, err
	}
	most := Handed
	if opts.AsAsked {
		most = len(out.Handed)
	}
	out.judge(q, most, said(answer))
	return out, nil
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

// said returns the text of an answer without citation numbers: its claims, and the few words that
// join the clauses of a sentence.
func said(a assay.Answer) string {
	var b strings.Builder
	end := -1 // of the previous claim
	for _, c := range a.Claims {
		if c.Start < 0 || c.End < c.Start || c.End > len(a.Text) {
			continue
		}
		if 0 <= end && end <= c.Start {
			b.WriteString(joint(a.Text[end:c.Start]))
		}
		b.WriteString(a.Text[c.Start:c.End])
		end = c.End
	}
	return b.String()
}

// mostJoining is the greatest number of words that join two clauses.
const mostJoining = 3

// joint returns the words between two claims if they belong to the same sentence, else a space.
func joint(between string) string {
	words := strings.Fields(citationNumbers.ReplaceAllString(between, " "))
	if strings.Contains(between, "\n") || len(words) == 0 || len(words) > mostJoining {
		return " "
	}
	for _, w := range words {
		if strings.ContainsFunc(w, func(r rune) bool { return !unicode.IsLetter(r) && r != ',' && r != '’' && r != '\'' }) {
			return " "
		}
	}
	text := strings.Join(words, " ") + " "
	if !strings.HasPrefix(text, ",") {
		text = " " + text
	}
	return text
}

// citationNumbers matches the citation numbers in an answer.
var citationNumbers = lazyregexp.New(`\s*\[\d+(?:, *\d+)*\]`)

// judge compares the answer and the first most passages of the evidence with the labels.
func (o *StrategyOutcome) judge(q Query, most int, said string) {
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
func rowOf(set, name, roles string, queries []Query, outcomes []StrategyOutcome) StrategyRow {
	row := StrategyRow{Set: set, Strategy: name, Roles: roles, Questions: len(outcomes), Statuses: map[assay.Status]int{}, Outcomes: outcomes}
	notes := map[string]int{}
	var times []float64
	for i, o := range outcomes {
		row.Handed += float64(len(o.Handed))
		row.Over += one(len(o.Handed) > Handed)
		row.Steps += float64(o.Steps)
		row.Searches += float64(o.Usage.Searches)
		row.Calls += float64(o.Usage.Calls)
		row.Tokens += float64(o.Usage.InputTokens + o.Usage.OutputTokens)
		row.CallsFailed += o.CallsFailed
		row.AskedBack += one(o.AskBack != "")
		times = append(times, o.MS)
		if len(queries[i].Answers) > 0 {
			row.Answers++
			row.Match += float64(one(o.Match))
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
	for _, sum := range []*float64{&row.Handed, &row.Steps, &row.Searches, &row.Calls, &row.Tokens} {
		*sum /= float64(max(row.Questions, 1))
	}
	row.Match /= float64(max(row.Answers, 1))
	row.F1 /= float64(max(row.Answers, 1))
	row.MedianMS = median(times)
	row.Recall, row.AllGold = meanOf(recalls(outcomes)), meanOf(allGolds(outcomes))
	row.Notes = noted(notes)
	return row
}

func recalls(outcomes []StrategyOutcome) []float64 {
	xs := make([]float64, len(outcomes))
	for i, o := range outcomes {
		xs[i] = o.Recall
	}
	return xs
}

func allGolds(outcomes []StrategyOutcome) []float64 {
	xs := make([]float64, len(outcomes))
	for i, o := range outcomes {
		xs[i] = float64(one(o.AllGold))
	}
	return xs
}

// gain compares two rows of the same questions.
func gain(row, other StrategyRow) *Gain {
	return &Gain{
		Strategy: other.Strategy,
		Recall:   meanOf(minus(recalls(row.Outcomes), recalls(other.Outcomes))),
		AllGold:  meanOf(minus(allGolds(row.Outcomes), allGolds(other.Outcomes))),
	}
}

func minus(a, b []float64) []float64 {
	d := make([]float64, len(a))
	for i := range a {
		d[i] = a[i] - b[i]
	}
	return d
}

// noted lists notes by falling frequency.
func noted(times map[string]int) []Noted {
	var all []Noted
	for note, n := range times {
		all = append(all, Noted{note, n})
	}
	slices.SortFunc(all, func(a, b Noted) int { return cmp.Or(b.Queries-a.Queries, strings.Compare(a.Note, b.Note)) })
	return all
}

// median returns the median of xs. It sorts xs.
func median(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	slices.Sort(xs)
	return (xs[(len(xs)-1)/2] + xs[len(xs)/2]) / 2
}
