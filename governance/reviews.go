package governance

import (
	"slices"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// A decision is what a reviewer decided about an answer. If the policies need two reviewers, the first
// decision leaves the answer open.
type decision struct {
	time         time.Time
	run          string
	what         string // approved, edited or rejected
	outcome      string // of the review, the same words; empty: it is open
	dwell, spent time.Duration
}

// reviews follows the acts on reviews.
type reviews struct {
	decisions []decision
	waited    int // reviews needed
	expired   int // rejected at their deadline, by no person
	erased    int // decisions whose payload was erased
	escalated []string
}

// reviewDetail is the part of the detail of a decision that the report uses.
type reviewDetail struct {
	Decision assay.Decision `json:"decision"` // of this reviewer
	Outcome  assay.Decision `json:"outcome"`  // of the review
	DwellMS  int64          `json:"dwell_ms"` // since the claim
	OpenMS   *int64         `json:"open_ms"`  // since the evidence was opened; negative: it was not; nil: not known
}

// byPerson are the decisions that a person makes.
var byPerson = []assay.Decision{assay.DecisionApproved, assay.DecisionEdited, assay.DecisionRejected}

// act adds an act of the period.
func (v *reviews) act(a store.LoggedAct) {
	switch a.Kind {
	case "review.needed":
		v.waited++
	case "review.escalated":
		v.escalated = append(v.escalated, a.Subject)
	case "review.decided", "review.approved", "review.edited":
		v.decide(a)
	}
}

func (v *reviews) decide(a store.LoggedAct) {
	var d reviewDetail
	decode(a.Detail, &d)
	switch {
	case a.Detail == nil:
		v.erased++
	case d.Decision == assay.DecisionExpired:
		v.expired++
	case slices.Contains(byPerson, d.Decision):
		dec := decision{time: a.Time, run: a.Subject, what: string(d.Decision), dwell: time.Duration(d.DwellMS) * time.Millisecond}
		dec.spent = dec.dwell
		if d.OpenMS != nil {
			dec.spent = max(0, min(dec.dwell, time.Duration(*d.OpenMS)*time.Millisecond))
		}
		if a.Kind == "review.decided" {
			dec.outcome = string(d.Outcome)
		}
		v.decisions = append(v.decisions, dec)
	}
}

// overrideLimit is the override rate above which there is an alert.
const overrideLimit = 0.30

func (b *Builder) overrideSection() ([]Figure, []Table) {
	byMonth := map[string]map[string]int{}
	overruled, quick := []string{}, []string{}
	dwell, decided := spread{}, 0
	decisions := Table{Name: "decisions", Title: "Decisions", Columns: []string{"time", "run", "decision", "outcome", "dwell_ms", "considered_ms", "quick"},
		Definition: "Every decision of a person in the period. The dwell time begins with the claim. The time of consideration begins when the evidence was opened, and is 0 if it was not; a quick decision has less than the limit. The outcome is that of the review; it is empty if another reviewer has to decide too."}
	for _, d := range b.reviews.decisions {
		isQuick := d.spent < b.options.QuickDecision
		if isQuick {
			quick = append(quick, d.run)
		}
		dwell.add(float64(d.dwell.Milliseconds()), d.run)
		decisions.add(d.time.UTC().Format(time.RFC3339), d.run, d.what, d.outcome, int(d.dwell.Milliseconds()), int(d.spent.Milliseconds()), isQuick)
		if d.outcome == "" {
			continue
		}
		m := byMonth[month(d.time)]
		if m == nil {
			m = map[string]int{}
			byMonth[month(d.time)] = m
		}
		m[d.outcome]++
		decided++
		if d.outcome != "approved" {
			overruled = append(overruled, d.run)
		}
	}
	months := Table{Name: "overrides", Title: "Overrides by month", Columns: []string{"month", "decided", "approved", "edited", "rejected", "override_rate", "alert"},
		Definition: "Decided reviews by month (UTC), by their outcome. The override rate is the share of edited and rejected answers; above 30% there is an alert."}
	for _, name := range keysOf(byMonth) {
		m := byMonth[name]
		all := m["approved"] + m["edited"] + m["rejected"]
		rate := float64(m["edited"]+m["rejected"]) / float64(all)
		months.add(name, all, m["approved"], m["edited"], m["rejected"], round(rate), rate > overrideLimit)
	}
	figures := []Figure{
		number(Figure{Name: "reviews_needed", Title: "Answers that waited for a person", Definition: "Acts review.needed. Runs: none."}, b.reviews.waited),
		share(Figure{Name: "override_rate", Title: "Override rate", Alert: &Bound{">", overrideLimit}, Runs: overruled,
			Definition: "Answers that a person edited or rejected, of all that a person decided. Runs: those."}, len(overruled), decided),
		percentile(Figure{Name: "dwell_p50", Title: "Median time of a decision", Definition: "Median of the time from the claim to the decision, by nearest rank. Runs: those at most that long.",
			Runs: dwell.where(func(x float64) bool { return x <= dwell.rank(0.5) })}, dwell, 0.5),
		share(Figure{Name: "quick_decisions", Title: "Decisions that were not considered", Alert: &Bound{">", 0}, Runs: quick,
			Definition: "Decisions less than " + b.options.QuickDecision.String() + " after the reviewer claimed the answer or opened its evidence, or without opening it, of all decisions. Runs: those."}, len(quick), len(dwell.values)),
		number(Figure{Name: "escalations", Title: "Reviews that were escalated", Runs: b.reviews.escalated, Definition: "Acts review.escalated. Runs: those."}, len(b.reviews.escalated)),
		number(Figure{Name: "reviews_expired", Title: "Reviews that expired", Definition: "Answers that were rejected at their deadline, by no person. Runs: none."}, b.reviews.expired),
		number(Figure{Name: "decisions_erased", Title: "Decisions that were erased", Definition: "Decisions whose payload was erased from the audit log. They count for no other figure. Runs: none."}, b.reviews.erased),
	}
	slices.SortStableFunc(decisions.Rows, func(x, y []any) int { return compareText(x[0], y[0]) })
	return figures, []Table{months, decisions}
}
