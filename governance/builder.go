package governance

import (
	"cmp"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/stats"
	"github.com/assay-rag/assay/store"
)

// A Builder makes a report from acts and runs. Acts come in the order of the log, runs in any order.
type Builder struct {
	options Options
	acts    int

	runs, measuring int
	traces          int // ended runs of the period
	unfinished      []string
	gaps            map[string]string
	observed        []observed
	tools           toolAudit
	reviews         reviews
	events          map[string]map[string]int // by group and month
	happened        []event
}

// An observed is a question of the period.
type observed struct {
	stats.Observation
	kind     string // shape of its plan
	repaired int    // claims of the answer whose citations were corrected
	refused  bool   // no draft passed the verifier
}

// An event is an act that the report lists.
type event struct {
	store.LoggedAct
	group, log string
}

// NewBuilder returns a builder without data.
func NewBuilder(o Options) *Builder {
	o.QuickDecision = cmp.Or(o.QuickDecision, quickDecision)
	return &Builder{options: o, gaps: map[string]string{}, tools: toolAudit{}, events: map[string]map[string]int{}}
}

// describeStrategy is the strategy of runs that describe images during an ingest.
const describeStrategy = "describe-images"

// Run adds a run with its journal, in order. unreadable is the error of reading the journal, or nil. An
// erased run counts for nothing.
func (b *Builder) Run(r assay.Run, records []assay.Record, unreadable error) {
	if !b.options.before(r.Created) || r.State == assay.RunErased {
		return
	}
	o := stats.Observe(r, records, unreadable)
	switch in := b.options.contains(r.Created); {
	case in && !o.Ended():
		b.unfinished = append(b.unfinished, r.ID)
	case in:
		b.traces++
		if o.Fault != "" {
			b.gaps[r.ID] = o.Fault
		}
	}
	req := requestOf(r)
	if o.Measuring || req.Strategy == describeStrategy {
		if b.options.contains(r.Created) {
			b.measuring++
		}
		return
	}
	for _, rec := range records {
		if rec.Kind == assay.StepTool {
			b.tools.add(r, o.Collections, rec)
		}
	}
	if !b.options.contains(r.Created) {
		return
	}
	b.runs++
	ob := observed{Observation: o, kind: planKind(records)}
	if r.Answer != nil && r.Answer.Cached == nil {
		for _, c := range r.Answer.Claims {
			if c.Repaired {
				ob.repaired++
			}
		}
		ob.refused = refusedReasons[r.Answer.Reason]
	}
	b.observed = append(b.observed, ob)
}

// refusedReasons are the reasons of answers whose whole draft was refused.
var refusedReasons = map[assay.Reason]bool{
	assay.ReasonUnsupported: true, assay.ReasonUnverified: true, assay.ReasonNotAccepted: true, assay.ReasonOffTopic: true,
}

// noPlan is the kind of a question that was not planned.
const noPlan = "unplanned"

// planKind returns the kind of a question: the shape of its first plan.
func planKind(records []assay.Record) string {
	for _, rec := range records {
		var plan struct {
			Shape string `json:"shape"`
		}
		if rec.Kind == assay.StepPlan && path.Base(rec.Path) == "plan" && json.Unmarshal(rec.Output, &plan) == nil && plan.Shape != "" {
			return plan.Shape
		}
	}
	return noPlan
}

// A group is the acts that one figure counts.
type group struct {
	name, title string
	kinds       []string // kinds of act, and beginnings of kinds that end in "."
	note        string   // the rest of the definition
}

// has reports whether the group counts acts of a kind.
func (g group) has(kind string) bool {
	return slices.ContainsFunc(g.kinds, func(k string) bool {
		return kind == k || strings.HasSuffix(k, ".") && strings.HasPrefix(kind, k)
	})
}

var groups = []group{
	{"canary_alarms", "Canary alarms", []string{"canary.alarm"}, ""},
	{"egress_refusals", "Refused connections logged", []string{"egress.refused"}, " Repeated ones of a host are logged once a minute."},
	{"stops", "Stops set and lifted", []string{"stop."}, ""},
	{"limit_changes", "Changes of limits", []string{"limit."}, ""},
	{"key_changes", "Changes of API keys", []string{"key."}, ""},
	{"tenant_changes", "Changes of the tenant", []string{"tenant."}, ""},
	{"policy_changes", "Changes of review policies", []string{"policy."}, ""},
	{"deletions", "Runs deleted, expired or erased", []string{store.KindRunDeleted, store.KindRunExpired, store.KindRunErased}, ""},
	{"erasures", "Payloads of acts erased", []string{store.KindErased}, ""},
	{"log_keys", "Changes of the audit log's keys", []string{"audit."}, ""},
	{"checkpoints", "Checkpoints published", []string{"checkpoint.published"}, ""},
}

// logs name where acts are from.
const (
	tenantLog = "tenant"
	storeLog  = "store"
)

// Act adds an act of the tenant's audit log.
func (b *Builder) Act(a store.LoggedAct) {
	if !b.options.contains(a.Time) {
		return
	}
	b.reviews.act(a)
	b.acts++
	b.event(a, tenantLog)
}

// storeAct adds an act of the store's own log. It has no detail, which may be about other tenants.
func (b *Builder) storeAct(a store.LoggedAct) {
	if b.options.contains(a.Time) {
		a.Detail = nil
		b.event(a, storeLog)
	}
}

func (b *Builder) event(a store.LoggedAct, log string) {
	for _, g := range groups {
		if !g.has(a.Kind) {
			continue
		}
		if b.events[g.name] == nil {
			b.events[g.name] = map[string]int{}
		}
		b.events[g.name][month(a.Time)]++
		b.happened = append(b.happened, event{a, g.name, log})
	}
}

// Report returns the report on what was added.
func (b *Builder) Report() Report {
	r := Report{
		Format: Format, Tenant: b.options.Tenant, From: moment(b.options.From), To: moment(b.options.To),
		Runs: b.runs, Measuring: b.measuring, Acts: b.acts, Figures: []Figure{}, Tables: []Table{},
	}
	for _, part := range []func() ([]Figure, []Table){
		b.traceSection, b.toolSection, b.overrideSection, b.iterationSection, b.timeSection, b.costSection, b.verifierSection, b.eventSection,
	} {
		figures, tables := part()
		r.Figures = append(r.Figures, figures...)
		for _, t := range tables {
			if t.Rows == nil {
				t.Rows = [][]any{}
			}
			r.Tables = append(r.Tables, t)
		}
	}
	return r
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
