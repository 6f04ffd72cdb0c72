package server

import (
	"bytes"
	"context"
	"time"

	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/governance"
	"github.com/assay-rag/assay/store"
)

// governanceRoutes report on how questions were answered and overseen.
func governanceRoutes() []Route {
	return []Route{
		route("GET", "/api/v1/governance/report", "governance.report", "AuditReport", "Report on traces, tools, reviews, limits, times, costs and alarms", governanceReport),
		raw("GET", "/api/v1/governance/report.html", "governance.page", "AuditReport", "The governance report as a page", governancePage).with(func(r *Route) {
			r.Media = []string{"text/html"}
		}),
	}
}

type governanceIn struct {
	From    time.Time `query:"from"`           // inclusive; none: from the first run
	To      time.Time `query:"to"`             // exclusive; none: to the last run
	Quick   int       `query:"quick_seconds"`  // decisions made in less time are flagged; 0: 5
	Session int       `query:"session_micros"` // the expected cost of a session, in millionths of the currency; 0: none
	Month   int       `query:"month_micros"`   // the expected cost of a month
}

func (in governanceIn) options() (o governance.Options, err error) {
	o = governance.Options{From: in.From, To: in.To, SessionMicros: int64(in.Session), MonthMicros: int64(in.Month)}
	o.QuickDecision, err = seconds("quick_seconds", in.Quick)
	if in.Session < 0 || in.Month < 0 {
		err = invalid("an expected cost is negative")
	}
	if !in.To.IsZero() && !in.From.Before(in.To) {
		err = invalid("from is not before to")
	}
	return o, err
}

func governanceReport(ctx context.Context, s *engine.Session, in governanceIn) (governance.Report, error) {
	o, err := in.options()
	if err != nil {
		return governance.Report{}, err
	}
	return s.AuditReport(ctx, o)
}

func governancePage(x *exchange, in governanceIn) error {
	report, err := governanceReport(x.r.Context(), x.session, in)
	if err != nil {
		return err
	}
	var page bytes.Buffer
	if err := governance.HTML(&page, report); err != nil {
		return err
	}
	h := x.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	x.sent = true
	_, err = x.w.Write(page.Bytes())
	return err
}

// stopRoutes stop and start the runs of a tenant.
func stopRoutes() []Route {
	return []Route{
		route("GET", "/api/v1/stops", "stops.list", "Stops", "List the stops that hold now",
			func(ctx context.Context, s *engine.Session, _ none) (stopList, error) {
				all, err := s.Stops(ctx)
				return stopList{all}, err
			}),
		route("POST", "/api/v1/stop", "stops.stop", "Stop", "End all runs of the tenant and refuse new ones",
			func(ctx context.Context, s *engine.Session, in reasonIn) (none, error) {
				return none{}, s.Stop(ctx, in.Body.Reason)
			}),
		route("POST", "/api/v1/start", "stops.start", "Start", "Lift the stop of the tenant",
			func(ctx context.Context, s *engine.Session, in reasonIn) (none, error) {
				return none{}, s.Start(ctx, in.Body.Reason)
			}),
	}
}

type stopList struct {
	Stops []engine.Stop `json:"stops"`
}

type reasonIn struct {
	Body reason `body:"application/json"`
}

// A reason says why something is done.
type reason struct {
	Reason string `json:"reason"` // for the audit log
}

// recordRoutes are about how long data is kept.
func recordRoutes() []Route {
	return []Route{
		route("GET", "/api/v1/holds", "holds.list", "Holds", "List legal holds", holds),
		route("PUT", "/api/v1/holds/{name}", "holds.add", "AddHold", "Add a legal hold", addHold),
		route("DELETE", "/api/v1/holds/{name}", "holds.remove", "RemoveHold", "Remove a legal hold",
			func(ctx context.Context, s *engine.Session, in removeIn) (none, error) {
				return none{}, s.RemoveHold(ctx, in.Name, in.Reason)
			}),
		route("GET", "/api/v1/retention", "retention.list", "RetentionPolicies", "List how long data is kept",
			func(ctx context.Context, s *engine.Session, _ none) (retentionList, error) {
				all, err := s.RetentionPolicies(ctx)
				return retentionList{all}, err
			}),
		route("PUT", "/api/v1/retention/{kind}", "retention.set", "SetRetention", "Set how long a kind of data is kept", setRetention),
		route("DELETE", "/api/v1/retention/{kind}", "retention.remove", "RemoveRetention", "Keep a kind of data until it is removed", removeRetention),
		route("POST", "/api/v1/retention/apply", "retention.apply", "ApplyRetention", "Apply the retention policies",
			func(ctx context.Context, s *engine.Session, in applyIn) (engine.Retained, error) {
				return s.ApplyRetention(ctx, in.DryRun)
			}),
	}
}

type holdList struct {
	Holds []holdView `json:"holds"`
}

// A holdView is a legal hold.
type holdView struct {
	Name string `json:"name"`
	store.Hold
}

func holds(ctx context.Context, s *engine.Session, _ none) (list holdList, err error) {
	all, err := s.Holds(ctx)
	for _, h := range all {
		list.Holds = append(list.Holds, holdView{h.Name, h})
	}
	return list, err
}

type addHoldIn struct {
	Name string     `path:"name"`
	Body store.Hold `body:"application/json"`
}

func addHold(ctx context.Context, s *engine.Session, in addHoldIn) (none, error) {
	in.Body.Name = in.Name
	return none{}, s.AddHold(ctx, in.Body)
}

type retentionList struct {
	Policies []engine.RetentionPolicy `json:"policies"`
}

type setRetentionIn struct {
	Kind   string    `path:"kind"`
	Reason string    `query:"reason"` // for the audit log
	Body   retention `body:"application/json"`
}

// A retention is how long a kind of data is kept.
type retention struct {
	Days int `json:"days"`
}

func setRetention(ctx context.Context, s *engine.Session, in setRetentionIn) (none, error) {
	return none{}, s.SetRetention(ctx, in.Kind, in.Body.Days, in.Reason)
}

type removeRetentionIn struct {
	Kind   string `path:"kind"`
	Reason string `query:"reason"` // for the audit log
}

func removeRetention(ctx context.Context, s *engine.Session, in removeRetentionIn) (none, error) {
	return none{}, s.RemoveRetention(ctx, in.Kind, in.Reason)
}

type applyIn struct {
	DryRun bool `query:"dry_run"` // count only
}

// canaryRoutes are about documents that must never be in an answer.
func canaryRoutes() []Route {
	return []Route{
		route("GET", "/api/v1/canaries", "canaries.list", "Canaries", "List canaries",
			func(ctx context.Context, s *engine.Session, _ none) (canaryList, error) {
				all, err := s.Canaries(ctx)
				return canaryList{all}, err
			}),
		route("POST", "/api/v1/canaries", "canaries.add", "AddCanary", "Add a canary with a generated text", addCanary),
		route("DELETE", "/api/v1/canaries/{name}", "canaries.remove", "RemoveCanary", "Remove a canary",
			func(ctx context.Context, s *engine.Session, in removeIn) (none, error) {
				return none{}, s.RemoveCanary(ctx, in.Name, in.Reason)
			}),
	}
}

type canaryList struct {
	Canaries []engine.Canary `json:"canaries"`
}

type addCanaryIn struct {
	Body newCanary `body:"application/json"`
}

// A newCanary says where a canary is added.
type newCanary struct {
	Collection string `json:"collection,omitempty"` // empty: "default"
}

// An addedCanary is a canary with its text, which is shown only now.
type addedCanary struct {
	engine.Canary
	Text string `json:"text"`
}

func addCanary(ctx context.Context, s *engine.Session, in addCanaryIn) (addedCanary, error) {
	canary, text, err := s.AddCanary(ctx, engine.NewCanary{Collection: in.Body.Collection})
	return addedCanary{canary, text}, err
}

// egressRoutes are about the hosts that may be reached for the tenant.
func egressRoutes() []Route {
	return []Route{
		route("GET", "/api/v1/egress", "egress.show", "EgressRestriction", "Show which hosts may be reached for the tenant",
			func(ctx context.Context, s *engine.Session, _ none) (engine.EgressRules, error) {
				return s.EgressRestriction(ctx)
			}),
		route("PUT", "/api/v1/egress", "egress.set", "RestrictEgress", "Restrict which hosts may be reached for the tenant", restrictEgress),
	}
}

type egressIn struct {
	Reason string             `query:"reason"` // for the audit log
	Body   engine.EgressRules `body:"application/json"`
}

func restrictEgress(ctx context.Context, s *engine.Session, in egressIn) (none, error) {
	return none{}, s.RestrictEgress(ctx, in.Body, in.Reason)
}
