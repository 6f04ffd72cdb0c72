package ui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

// adminRoutes are for administrators.
func adminRoutes() []Route {
	return slices.Concat(
		[]Route{
			page("/admin", "admin", "Doctor", showAdmin),
			page("/admin/vectors", "admin.vectors", "Vectors", showVectors),
			embedRoute(),
			action("/admin/encoder", "admin.encoder", "UseEncoder", useEncoder),
			page("/admin/access", "admin.access", "ACLSummary", showAccess),
			page("/admin/backup", "admin.backup", "Doctor", showBackup),
		},
		keyRoutes(), limitRoutes(), policyRoutes(), egressRoutes(), retentionRoutes(), webhookRoutes(), canaryRoutes(),
	)
}

// adminAreas are the pages of the area, with the method that decides who sees each.
var adminAreas = []struct{ name, path, call string }{
	{"Overview", "/admin", "Doctor"},
	{"API keys", "/admin/keys", "Keys"},
	{"Groups and access", "/admin/access", "ACLSummary"},
	{"Limits", "/admin/limits", "LimitUsage"},
	{"Review policies", "/admin/policies", "Policies"},
	{"Network", "/admin/egress", "EgressRestriction"},
	{"Retention", "/admin/retention", "RetentionPolicies"},
	{"Webhooks", "/admin/webhooks", "Webhooks"},
	{"Canaries", "/admin/canaries", "Canaries"},
	{"Backup", "/admin/backup", "Doctor"},
}

// AdminTabs returns the pages of the area that the user may see.
func (v view) AdminTabs() []navEntry {
	var tabs []navEntry
	path := v.request.r.URL.Path
	for _, a := range adminAreas {
		if v.May(a.call) {
			current := path == a.path || a.path != "/admin" && strings.HasPrefix(path, a.path+"/")
			tabs = append(tabs, navEntry{a.name, a.path, current})
		}
	}
	return tabs
}

// adminView returns the frame of a page of the area.
func (q *request) adminView(title string, data any) view { return q.view("Admin", title, data) }

// quickCheck is how long the overview waits for checks that read every document.
const quickCheck = 3 * time.Second

// An adminOverview is the data of the first page of the area.
type adminOverview struct {
	Checks  []adminCheck
	Failed  int
	Late    bool // not all checks ended within quickCheck
	Roles   []engine.RoleModel
	Vectors vectorView
}

// An adminCheck is one of the engine's checks with an explanation.
type adminCheck struct {
	engine.Check
	Means, Do string
}

// checkTexts say what each check looks at, and what to do if it fails.
var checkTexts = map[string][2]string{
	"databases":      {"The databases are intact, of this version, and can be written.", "Ask the operator: free the disk, or restore the last backup. Searches may still work."},
	"writer":         {"One process at a time adds documents.", "Wait until the other process has ended."},
	"size":           {"The space that documents, vectors, index and runs take.", "Ask the operator to look at the disk."},
	"documents":      {"Each document can be read, and its passages lie within its text.", "Remove the document that is named and add it again."},
	"index":          {"The full-text index follows the documents.", "Nothing: the next search repairs it. If it fails again, ask the operator."},
	"vectors":        {"The encoder can be opened, and passages have vectors.", "Choose another encoder below, or ask the operator to install the model. Searches use words until then."},
	"reader":         {"The model that finds answers in passages can be opened.", "Ask the operator to install the model again."},
	"runs":           {"The journal of every run is complete.", "Do not rely on the runs that are named. Restore the last backup to have them again."},
	"audit log":      {"The audit log has not been altered and agrees with the data.", "Keep the data as it is and ask an auditor. Compare with the last checkpoint."},
	"stops":          {"No one has stopped the tenant.", "Find out why it was stopped. Questions can be asked again once the stop is lifted."},
	"data directory": {"The data can be opened.", "Ask the operator to look at the data directory."},
}

func showAdmin(q *request) error {
	all := q.query("checks") == "all"
	o := adminOverview{}
	var err error
	if o.Roles, err = q.session.RoleModels(q.ctx()); err != nil {
		return err
	}
	var late bool
	if o.Checks, o.Failed, o.Late, err = q.checks(all); err != nil {
		return err
	}
	if o.Vectors, late, err = q.vectors(all); err != nil {
		return err
	}
	o.Late = o.Late || late
	return q.render("admin.html", q.adminView("Admin", o))
}

// within calls fn, for quickCheck at most unless all is set. late is set if that was too short.
func (q *request) within(all bool, fn func(context.Context) error) (late bool, err error) {
	ctx, cancel := context.WithCancel(q.ctx())
	if !all {
		ctx, cancel = context.WithTimeout(q.ctx(), quickCheck)
	}
	defer cancel()
	err = fn(ctx)
	if err != nil && ctx.Err() != nil && q.ctx().Err() == nil {
		return true, nil
	}
	return false, err
}

// checks returns the engine's checks, those that failed first.
func (q *request) checks(all bool) (rows []adminCheck, failed int, late bool, err error) {
	var checks []engine.Check
	late, err = q.within(all, func(ctx context.Context) (err error) {
		checks, err = q.session.Doctor(ctx)
		return err
	})
	for _, c := range checks {
		if errors.Is(c.Err, context.DeadlineExceeded) {
			continue // it is reported as late
		}
		text := checkTexts[c.Name]
		row := adminCheck{Check: c, Means: text[0]}
		if !c.OK {
			failed++
			row.Do = text[1]
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b adminCheck) int {
		switch {
		case a.OK == b.OK:
			return 0
		case b.OK:
			return -1
		}
		return 1
	})
	return rows, failed, late, err
}

// A vectorView is the encoders with their coverage.
type vectorView struct {
	engine.VectorStatus
	Known bool // it could be read in time
}

// Missing returns the number of chunks without a vector of the wanted model.
func (v vectorView) Missing() int {
	for _, m := range v.Models {
		if m.Model == v.Wanted {
			return v.Chunks - m.Embedded
		}
	}
	return 0
}

// vectors returns the encoders in use.
func (q *request) vectors(all bool) (v vectorView, late bool, err error) {
	late, err = q.within(all, func(ctx context.Context) (err error) {
		v.VectorStatus, err = q.session.Vectors(ctx)
		return err
	})
	v.Known = err == nil && !late
	return v, late, err
}

// showVectors renders the part of the overview that changes while vectors are made.
func showVectors(q *request) error {
	v, _, err := q.vectors(true)
	if err != nil {
		return err
	}
	return q.fragment("admin.html", "vectors", q.adminView("Admin", v))
}

// embedRoute returns the route that makes the missing vectors. It takes as long as that takes, so it
// counts as a stream.
func embedRoute() Route {
	r := action("/admin/vectors", "admin.embed", "Embed", embedVectors)
	r.Stream = true
	return r
}

func embedVectors(q *request) error {
	report, err := q.session.Embed(q.ctx(), nil)
	if err != nil {
		return err
	}
	notice := count(report.Stored, "vector") + " made."
	if n := len(report.Failed); n > 0 {
		notice += " " + count(n, "passage") + " could not be embedded."
	}
	return q.redirect("/admin", notice)
}

// useEncoder chooses the encoder of the documents.
func useEncoder(q *request) error {
	name, err := q.form("name")
	if err != nil {
		return err
	}
	if err := q.session.UseEncoder(q.ctx(), name, ""); err != nil {
		return q.refused(err, confirmation{
			Title: "Choose the encoder", Back: "/admin", Button: "Use this encoder", Fields: []confirmField{{Name: "name", Label: "Name of the encoder", Value: name}},
		})
	}
	if name == "" {
		return q.redirect("/admin", "The default encoder is used from now on.")
	}
	return q.redirect("/admin", "The encoder "+name+" is used from now on.")
}

// showBackup explains how backups are made.
func showBackup(q *request) error { return q.render("adminbackup.html", q.adminView("Backup", nil)) }

// A confirmation is the data of a page that asks again before something changes, or shows why it was
// refused. What was typed is in its fields.
type confirmation struct {
	Title, Back, Button, Error string
	Action                     string // path of the form; empty: that of the request
	Fields                     []confirmField
	Bad                        bool // it removes something
}

// A confirmField is a field of a confirmation. One without a label is hidden.
type confirmField struct{ Name, Label, Value string }

// refused renders the page for a form that the engine refused. Failures of the server are returned.
func (q *request) refused(err error, c confirmation) error {
	detail, status, ok := q.inputError(err)
	if !ok {
		return err
	}
	c.Error = detail
	return q.renderStatus(status, "adminconfirm.html", q.adminView(c.Title, c))
}

// inputError returns what to say about an error that other input may avoid.
func (q *request) inputError(err error) (detail string, status int, ok bool) {
	for _, kind := range []error{
		assay.ErrInvalid, assay.ErrForbidden, assay.ErrNotFound, assay.ErrLocked, assay.ErrReadOnly, assay.ErrStopped, assay.ErrQuota,
		assay.ErrUnavailable, assay.ErrBusy, assay.ErrChanged,
	} {
		if errors.Is(err, kind) {
			p := q.pages.config.Server.Problem(q.r, err)
			detail = p.Detail
			if detail == "" {
				detail = p.Title
			}
			return sentence(detail), p.Status, true
		}
	}
	return "", 0, false
}

// sentence returns a text that begins with a capital letter and ends with a full stop.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	first := strings.ToUpper(text[:1])
	if text[0] >= 0x80 {
		first = text[:1]
	}
	return strings.TrimSuffix(first+text[1:], ".") + "."
}

// withReason reads the reason of a form that removes something, which must not be empty, and calls fn
// with it. If it is missing or fn refuses, the form is shown again.
func (q *request) withReason(c confirmation, notice string, fn func(reason string) error) error {
	reason, err := q.form("reason")
	if err != nil {
		return err
	}
	c.Bad = true
	c.Fields = append(c.Fields, confirmField{"reason", "Reason, for the audit log", reason})
	if reason == "" {
		c.Error = "A reason is missing. It is kept in the audit log."
		return q.renderStatus(http.StatusBadRequest, "adminconfirm.html", q.adminView(c.Title, c))
	}
	if err := fn(reason); err != nil {
		return q.refused(err, c)
	}
	return q.redirect(c.Back, notice)
}

// A pager is the place of a page in a list.
type pager struct {
	Page, Pages, All int
	Previous, Next   string // paths; empty: none
}

// pageSize is the number of rows of a page of a list.
const pageSize = 50

// pageOf returns the rows of a list that the request's page shows.
func pageOf[T any](q *request, all []T) ([]T, pager) {
	p := pager{Page: 1, Pages: max(1, (len(all)+pageSize-1)/pageSize), All: len(all)}
	if _, err := fmt.Sscanf(q.query("page"), "%d", &p.Page); err != nil || p.Page < 1 {
		p.Page = 1
	}
	p.Page = min(p.Page, p.Pages)
	at := func(n int) string {
		query := q.r.URL.Query()
		query.Set("page", fmt.Sprint(n))
		return q.r.URL.Path + "?" + query.Encode()
	}
	if p.Page > 1 {
		p.Previous = at(p.Page - 1)
	}
	if p.Page < p.Pages {
		p.Next = at(p.Page + 1)
	}
	start := (p.Page - 1) * pageSize
	return all[start:min(len(all), start+pageSize)], p
}
