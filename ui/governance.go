package ui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/governance"
	"github.com/assay-rag/assay/internal/plot"
)

// governanceRoutes show the governance report, the audit log, checkpoints and stop switches.
func governanceRoutes() []Route {
	return []Route{
		page("/governance", "governance", "AuditReport", showGovernance),
		page("/governance/log", "governance.log", "AuditSearch", showAuditLog),
		page("/governance/runs", "governance.runs", "AuditRuns", showAuditRuns),
		page("/governance/runs/{id}", "governance.run", "AuditRun", showAuditRun),
		page("/governance/checkpoints", "governance.checkpoints", "AuditCheckpoints", showCheckpoints),
		action("/governance/checkpoints", "governance.compare", "AuditCompare", compareCheckpoint),
		page("/governance/stop", "governance.stops", "Stops", showStops),
		action("/governance/stop", "governance.stop", "Stop", stopTenant),
		action("/governance/start", "governance.start", "Start", startTenant),
	}
}

// A governanceHead is what all pages of the area begin with.
type governanceHead struct {
	Tab   string        // path of the page
	Stops []engine.Stop // that hold now; nil: none, or the user may not know
}

func (q *request) governanceHead(tab string) (h governanceHead, err error) {
	h.Tab = tab
	if q.may("Stops") {
		h.Stops, err = q.session.Stops(q.ctx())
	}
	return h, err
}

// renderGovernance writes a page of the area.
func (q *request) renderGovernance(status int, file, title string, data any) error {
	v := q.view("Governance", title, data)
	v.Wide = true
	return q.renderStatus(status, file, v)
}

// damagedLog writes the page of the area for an audit log that cannot be read because it was altered.
// It returns other errors.
func (q *request) damagedLog(head governanceHead, err error) error {
	if !errors.Is(err, assay.ErrDamaged) {
		return err
	}
	data := struct {
		governanceHead
		Problem string
	}{head, err.Error()}
	return q.renderGovernance(q.pages.config.Server.Problem(q.r, err).Status, "damagedlog.html", "Altered log", data)
}

// governancePeriods are the periods that one click selects, in days.
var governancePeriods = []struct {
	Days int
	Name string
}{{30, "30 days"}, {90, "90 days"}, {365, "12 months"}, {0, "All"}}

// A governancePage is the data of the governance report.
type governancePage struct {
	governanceHead
	From, To, Error string // as typed
	Periods         []periodLink
	Report          governance.Report
	Key             []governance.Figure // the figures that are shown first
	Plots           []plot.SVG
	Tables          []reportTable
	Bare            []governance.Table // without rows
	Download        string             // query of the written report
	Mapping         []duty
}

// A periodLink selects a period.
type periodLink struct {
	Name, Path string
	Current    bool
}

// keyFigures are the figures that are shown first.
var keyFigures = []string{"complete_traces", "override_rate", "reviews_needed", "iterations_p99", "session_p95", "tool_errors", "cost_per_session", "claims_dropped", "canary_alarms", "limits_hit"}

// maxTableRows is the most rows of a table of the report on the page.
const maxTableRows = 200

// A reportTable is a table of the report with its first rows.
type reportTable struct {
	governance.Table
	Cells [][]reportCell
	More  int
}

// A reportCell is a cell of a table: a text, a number or runs.
type reportCell struct {
	Text   string
	Number bool
	Runs   []string
}

func showTable(t governance.Table) reportTable {
	s := reportTable{Table: t, More: max(0, len(t.Rows)-maxTableRows)}
	for _, row := range t.Rows[:len(t.Rows)-s.More] {
		var cells []reportCell
		for _, c := range row {
			cell := reportCell{Text: governance.CellText(c)}
			switch c := c.(type) {
			case int, int64, float64:
				cell.Number = true
			case []string:
				cell.Runs = c
			}
			cells = append(cells, cell)
		}
		s.Cells = append(s.Cells, cells)
	}
	return s
}

// Column returns the name of a column in words.
func (reportTable) Column(name string) string { return strings.ReplaceAll(name, "_", " ") }

// periodOf reads the period of a form: two days in UTC, of which the second is included.
func periodOf(from, to string) (since, until time.Time, err error) {
	for _, day := range []struct {
		text string
		into *time.Time
	}{{from, &since}, {to, &until}} {
		if day.text == "" {
			continue
		}
		if *day.into, err = time.Parse(time.DateOnly, day.text); err != nil {
			return since, until, fmt.Errorf("%q is no day such as 2026-03-31: %w", day.text, assay.ErrInvalid)
		}
	}
	if !until.IsZero() {
		until = until.AddDate(0, 0, 1)
		if !since.Before(until) {
			return since, until, fmt.Errorf("the first day is after the last: %w", assay.ErrInvalid)
		}
	}
	return since, until, nil
}

func showGovernance(q *request) error {
	head, err := q.governanceHead("/governance")
	if err != nil {
		return err
	}
	p := governancePage{governanceHead: head, From: q.query("from"), To: q.query("to"), Mapping: duties}
	status := http.StatusOK
	since, until, err := periodOf(p.From, p.To)
	if errors.Is(err, assay.ErrInvalid) {
		status, p.Error = http.StatusBadRequest, withoutKind(err.Error())
		since, until = time.Time{}, time.Time{}
	}
	p.periods()
	if p.Report, err = q.session.AuditReport(q.ctx(), governance.Options{From: since, To: until}); err != nil {
		return q.damagedLog(head, err)
	}
	if err := q.governancePlots(&p, since, until); err != nil {
		return err
	}
	for _, name := range keyFigures {
		if f := p.Report.Figure(name); f.Name != "" {
			p.Key = append(p.Key, f)
		}
	}
	for _, t := range p.Report.Tables {
		if len(t.Rows) == 0 {
			p.Bare = append(p.Bare, t)
			continue
		}
		p.Tables = append(p.Tables, showTable(t))
	}
	v := url.Values{}
	if !since.IsZero() {
		v.Set("from", since.Format(time.RFC3339))
	}
	if !until.IsZero() {
		v.Set("to", until.Format(time.RFC3339))
	}
	if p.Download = v.Encode(); p.Download != "" {
		p.Download = "?" + p.Download
	}
	return q.renderGovernance(status, "governance.html", "Governance", p)
}

// periods sets the links to the usual periods.
func (p *governancePage) periods() {
	for _, one := range governancePeriods {
		link := periodLink{Name: one.Name, Path: "/governance"}
		from := ""
		if one.Days > 0 {
			from = now().UTC().AddDate(0, 0, -one.Days).Format(time.DateOnly)
			link.Path += "?from=" + from
		}
		link.Current = p.From == from && p.To == ""
		p.Periods = append(p.Periods, link)
	}
}

// governancePlots draws the plots of the report: outcomes, those of the written report, why searches
// ended, and acts.
func (q *request) governancePlots(p *governancePage, since, until time.Time) error {
	if q.may("AuditRuns") {
		runs, err := q.session.AuditRuns(q.ctx(), 0)
		if err != nil {
			return err
		}
		if bars := outcomeBars(runs, since, until); len(bars) > 0 {
			p.Plots = append(p.Plots, plot.Bars(plot.Frame{Title: "Outcomes", X: plot.Axis{Label: "questions"}, Y: plot.Axis{Label: "outcome"}}, bars))
		}
	}
	for _, svg := range governance.Plots(p.Report) {
		p.Plots = append(p.Plots, plot.SVG(svg))
	}
	for _, one := range []struct{ table, title, label, value string }{{"stops", "Why searches ended", "answers", "runs"}, {"events", "Alarms and administrative acts", "acts", "acts"}} {
		if bars := barsOf(p.Report.Table(one.table), one.value); len(bars) > 0 {
			p.Plots = append(p.Plots, plot.Bars(plot.Frame{Title: one.title, X: plot.Axis{Label: one.label}}, bars))
		}
	}
	return nil
}

// outcomeBars counts the questions of a period by their outcome.
func outcomeBars(runs []engine.AuditedRun, since, until time.Time) (bars []plot.Bar) {
	counts := map[assay.Status]float64{}
	for _, r := range runs {
		in := !r.Created.Before(since) && (until.IsZero() || r.Created.Before(until))
		if in && r.Status != "" && !r.Measuring && !r.Describing && r.ForkedFrom == nil {
			counts[r.Status]++
		}
	}
	for _, s := range []assay.Status{assay.Answered, assay.Incomplete, assay.Conflicting, assay.NotFound, assay.PendingReview, assay.Rejected} {
		if counts[s] > 0 {
			bars = append(bars, plot.Bar{Name: statuses[s].Word, Value: counts[s]})
		}
	}
	return bars
}

// barsOf adds up a column of a table by its first one.
func barsOf(t governance.Table, value string) (bars []plot.Bar) {
	at := slices.Index(t.Columns, value)
	for _, row := range t.Rows {
		name := strings.ReplaceAll(governance.CellText(row[0]), "_", " ")
		n, err := strconv.ParseFloat(governance.CellText(row[at]), 64)
		if err != nil {
			continue // the table has no number there
		}
		if i := slices.IndexFunc(bars, func(b plot.Bar) bool { return b.Name == name }); i >= 0 {
			bars[i].Value += n
		} else {
			bars = append(bars, plot.Bar{Name: name, Value: n})
		}
	}
	return bars
}

// auditPageSize is how many entries or runs are on one page.
const auditPageSize = 50

// An auditLogPage is the data of the audit log.
type auditLogPage struct {
	governanceHead
	Kind, User, Object, From, To, Error string // as typed
	Kinds                               []string
	Entries                             []shownEntry
	Next                                string // path of the next page; empty: there is none
	First                               string // path of the first page, if this is another
}

// A shownEntry is an entry of the audit log in words.
type shownEntry struct {
	engine.AuditEntry
	Words  string
	Facts  string // the detail of the act
	Object string
	OfRun  string // ID; empty: it is about something else
}

func newShownEntry(e engine.AuditEntry) shownEntry {
	s := shownEntry{AuditEntry: e, Words: actWords(e.Kind), Facts: cut(string(e.Detail), 400), Object: e.Subject, OfRun: e.Run}
	switch group, _, _ := strings.Cut(e.Kind, "."); group {
	case "run", "review":
		s.OfRun = cmp.Or(s.OfRun, e.Subject)
	case "checkpoint":
		s.Object = strings.TrimLeft(e.Subject, "0")
	}
	return s
}

func showAuditLog(q *request) error {
	head, err := q.governanceHead("/governance/log")
	if err != nil {
		return err
	}
	p := auditLogPage{governanceHead: head, Kind: q.query("kind"), User: q.query("user"), Object: q.query("object"), From: q.query("from"), To: q.query("to"), Kinds: actKinds()}
	since, until, err := periodOf(p.From, p.To)
	if errors.Is(err, assay.ErrInvalid) {
		p.Error = withoutKind(err.Error())
		return q.renderGovernance(http.StatusBadRequest, "auditlog.html", "Audit log", p)
	}
	before, _ := strconv.ParseInt(q.query("before"), 10, 64) // anything else is the first page
	f := engine.AuditFilter{Kind: p.Kind, User: p.User, Subject: p.Object, Since: since, Until: until, Before: max(0, before), Limit: auditPageSize}
	entries, next, err := q.session.AuditSearch(q.ctx(), f)
	if err != nil {
		return q.damagedLog(head, err)
	}
	for _, e := range entries {
		p.Entries = append(p.Entries, newShownEntry(e))
	}
	query := q.r.URL.Query()
	if query.Get("before") != "" {
		query.Del("before")
		p.First = "/governance/log?" + query.Encode()
	}
	if next > 0 {
		query.Set("before", strconv.FormatInt(next, 10))
		p.Next = "/governance/log?" + query.Encode()
	}
	return q.renderGovernance(http.StatusOK, "auditlog.html", "Audit log", p)
}

// entryWords are the kinds of entries of the audit log in words.
var entryWords = map[string]string{
	"record":    "A step of a run was recorded",
	"run.begun": "A question was asked", "run.suspended": "An answer waits for a review", "run.ended": "A run ended",
	"run.offered": "An answer may be given again", "run.cancelled": "A run was cancelled", "run.deleted": "A run was deleted",
	"run.expired": "A run was deleted by its retention", "run.erased": "A run was erased",
	"draft.stored": "The state of a review was stored", "content.changed": "Documents changed", "content.pruned": "Old versions of documents were dropped",
	"collection.set": "A collection was set", "source.set": "A source was set", "source.removed": "A source was removed",
	"act.erased":      "The payload of an entry was erased",
	"audit.key_added": "The log got its first key", "audit.key_rotated": "The key of the log was changed", "audit.key_replaced": "A lost key of the log was replaced",
	"checkpoint.published": "A checkpoint was published", "checkpoint.witnessed": "A checkpoint was cosigned",
	"policy.set": "A review policy was set", "policy.removed": "A review policy was removed",
	"review.needed": "An answer needs a review", "review.claimed": "A reviewer claimed an answer", "review.released": "A reviewer gave an answer back",
	"review.approved": "The first of two reviewers approved", "review.edited": "The first of two reviewers edited", "review.escalated": "A review is late",
	"review.decided": "A review was decided", "limit.set": "Limits were set", "limit.removed": "Limits were removed",
	"stop.set": "Everything was stopped", "stop.lifted": "A stop was lifted",
	"evaluation.started": "An evaluation began", "evaluation.ended": "An evaluation ended", "evaluation.removed": "An evaluation was removed",
	"canary.added": "A canary was added", "canary.removed": "A canary was removed", "canary.alarm": "The text of a canary was seen",
	"egress.set": "The rules for connections were set", "egress.removed": "The rules for connections were removed", "egress.refused": "A connection was refused",
	"webhook.set": "A receiver of messages was set", "webhook.removed": "A receiver of messages was removed", "webhook.disabled": "A receiver of messages was disabled",
	"hold.added": "A hold was added", "hold.removed": "A hold was removed", "retention.set": "A retention was set", "retention.removed": "A retention was removed",
	"share.created": "An answer was shared", "share.revoked": "A share was revoked", "feedback.set": "Feedback was given", "feedback.removed": "Feedback was removed",
	"question.added": "A labelled question was added", "question.changed": "A labelled question was changed", "question.removed": "A labelled question was removed",
	"backup.made": "A backup was made", "backup.restored": "A backup was restored",
}

// actWords returns a kind of entry in words.
func actWords(kind string) string { return cmp.Or(entryWords[kind], kind) }

// actKinds returns the kinds of entries, and their beginnings, for the filter.
func actKinds() (kinds []string) {
	for kind := range entryWords {
		kinds = append(kinds, kind)
		if group, _, ok := strings.Cut(kind, "."); ok && !slices.Contains(kinds, group+".") {
			kinds = append(kinds, group+".")
		}
	}
	slices.Sort(kinds)
	return kinds
}

// An auditRunsPage is the data of the list of the runs of all users.
type auditRunsPage struct {
	governanceHead
	Runs         []engine.AuditedRun
	User         string
	Status       string
	Statuses     []assay.Status
	Newer, Older string
	All          int
}

// IsRun reports that the page is about one run.
func (auditRunsPage) IsRun() bool { return false }

func showAuditRuns(q *request) error {
	head, err := q.governanceHead("/governance/runs")
	if err != nil {
		return err
	}
	p := auditRunsPage{governanceHead: head, User: q.query("user"), Status: q.query("status"), Statuses: []assay.Status{assay.Answered, assay.Incomplete, assay.Conflicting, assay.NotFound, assay.PendingReview, assay.Rejected}}
	runs, err := q.session.AuditRuns(q.ctx(), 0)
	if err != nil {
		return err
	}
	runs = slices.DeleteFunc(runs, func(r engine.AuditedRun) bool {
		return p.User != "" && r.Principal.User != p.User || p.Status != "" && string(r.Status) != p.Status
	})
	p.All = len(runs)
	n, err := strconv.Atoi(q.query("page"))
	if err != nil || n < 1 {
		n = 1
	}
	n = min(n, max(1, (p.All+auditPageSize-1)/auditPageSize))
	from := (n - 1) * auditPageSize
	to := min(from+auditPageSize, p.All)
	p.Runs = runs[from:to]
	at := func(n int) string {
		v := url.Values{"page": {strconv.Itoa(n)}}
		if p.User != "" {
			v.Set("user", p.User)
		}
		if p.Status != "" {
			v.Set("status", p.Status)
		}
		return "/governance/runs?" + v.Encode()
	}
	if n > 1 {
		p.Newer = at(n - 1)
	}
	if to < p.All {
		p.Older = at(n + 1)
	}
	return q.renderGovernance(http.StatusOK, "auditruns.html", "Runs of all users", p)
}

// An auditRunPage is the data of the trace of a run of any user, without its texts.
type auditRunPage struct {
	governanceHead
	Run   engine.AuditedRun
	Proof proofBadge
	Steps []auditedRow
	Next  string
	Prev  string
}

// IsRun reports that the page is about one run.
func (auditRunPage) IsRun() bool { return true }

// An auditedRow is a step without its texts.
type auditedRow struct {
	engine.AuditedStep
	kindWords
	Number int
}

func showAuditRun(q *request) error {
	head, err := q.governanceHead("/governance/runs")
	if err != nil {
		return err
	}
	r, err := q.session.AuditRun(q.ctx(), q.path("id"))
	if err != nil {
		return err
	}
	check, err := q.session.AuditCheckProof(q.ctx(), r.ID)
	if err != nil {
		return err
	}
	const size = 200
	p := auditRunPage{governanceHead: head, Run: r, Proof: badgeOf(check)}
	from, err := strconv.Atoi(q.query("from"))
	if err != nil || from < 0 || from > len(r.Trace) {
		from = 0
	}
	to := min(len(r.Trace), from+size)
	for _, s := range r.Trace[from:to] {
		p.Steps = append(p.Steps, auditedRow{s, wordsOfKind(s.Kind), s.Ordinal + 1})
	}
	path := "/governance/runs/" + url.PathEscape(r.ID)
	if to < len(r.Trace) {
		p.Next = fmt.Sprintf("%s?from=%d", path, to)
	}
	if from > 0 {
		p.Prev = fmt.Sprintf("%s?from=%d", path, max(0, from-size))
	}
	return q.renderGovernance(http.StatusOK, "auditruns.html", "Run of "+r.Principal.User, p)
}

// A checkpointsPage is the data of the list of checkpoints.
type checkpointsPage struct {
	governanceHead
	List      []shownCheckpoint
	More      int
	Size      int64 // of the log
	Uncovered int64 // entries after the newest checkpoint
	Note, Key string
	Error     string
	Compared  *shownCheckpoint
}

// A shownCheckpoint is a checkpoint with its signers.
type shownCheckpoint struct {
	engine.PublishedCheckpoint
	Signers []signer
}

// maxCheckpoints is the most checkpoints on the page.
const maxCheckpoints = 100

func showCheckpoints(q *request) error {
	p, err := q.checkpointsPage()
	if err != nil {
		return err
	}
	return q.renderGovernance(http.StatusOK, "checkpoints.html", "Checkpoints", p)
}

func (q *request) checkpointsPage() (p checkpointsPage, err error) {
	if p.governanceHead, err = q.governanceHead("/governance/checkpoints"); err != nil {
		return p, err
	}
	list, size, err := q.session.AuditCheckpoints(q.ctx())
	if err != nil {
		return p, err
	}
	p.Size, p.Uncovered = size, size
	if len(list) > 0 {
		p.Uncovered = max(0, size-list[0].Size)
	}
	p.More = max(0, len(list)-maxCheckpoints)
	for _, one := range list[:len(list)-p.More] {
		p.List = append(p.List, shownCheckpoint{one, signersOf(one.Keys)})
	}
	return p, nil
}

// compareCheckpoint checks the log against a checkpoint that was kept elsewhere.
func compareCheckpoint(q *request) error {
	note, err := q.form("note")
	if err != nil {
		return err
	}
	p, err := q.checkpointsPage()
	if err != nil {
		return err
	}
	p.Note, p.Key = strings.ReplaceAll(note, "\r\n", "\n"), strings.TrimSpace(q.r.PostForm.Get("key"))
	text := p.Note
	if text != "" {
		text += "\n" // each line of a note ends
	}
	compared, err := q.session.AuditCompare(q.ctx(), text, p.Key)
	status := http.StatusOK
	switch {
	case errors.Is(err, assay.ErrInvalid), errors.Is(err, assay.ErrNotFound):
		status, p.Error = http.StatusBadRequest, q.pages.config.Server.Problem(q.r, err).Detail
	case err != nil:
		return err
	default:
		p.Compared = &shownCheckpoint{compared, signersOf(compared.Keys)}
	}
	return q.renderGovernance(status, "checkpoints.html", "Checkpoints", p)
}

// A stopsPage is the data of the stop switch.
type stopsPage struct {
	governanceHead
	Own    *engine.Stop // the stop of the tenant; nil: there is none
	All    *engine.Stop // the stop of all tenants
	Reason string
	Error  string
}

func (q *request) stopsPage() (p stopsPage, err error) {
	p.governanceHead, err = q.governanceHead("/governance/stop")
	for i, s := range p.Stops {
		if s.All {
			p.All = &p.Stops[i]
		} else {
			p.Own = &p.Stops[i]
		}
	}
	return p, err
}

func showStops(q *request) error {
	p, err := q.stopsPage()
	if err != nil {
		return err
	}
	return q.renderGovernance(http.StatusOK, "stops.html", "Stop", p)
}

func stopTenant(q *request) error {
	return q.switchTenant(q.session.Stop, "Everything is stopped. Runs in progress end at their next step.")
}

func startTenant(q *request) error {
	return q.switchTenant(q.session.Start, "The stop is lifted. Questions and ingests are accepted again.")
}

// switchTenant stops or starts the tenant, with a reason.
func (q *request) switchTenant(change func(ctx context.Context, reason string) error, notice string) error {
	reason, err := q.form("reason")
	if err != nil {
		return err
	}
	message := "Say why. The reason stays in the audit log."
	if reason != "" {
		err = change(q.ctx(), reason)
		if err == nil {
			return q.redirect("/governance/stop", notice)
		}
		if !errors.Is(err, assay.ErrInvalid) && !errors.Is(err, assay.ErrNotFound) {
			return err
		}
		message = q.pages.config.Server.Problem(q.r, err).Detail
	}
	p, err := q.stopsPage()
	if err != nil {
		return err
	}
	p.Reason, p.Error = reason, message
	return q.renderGovernance(http.StatusBadRequest, "stops.html", "Stop", p)
}
