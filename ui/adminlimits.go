package ui

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/limit"
)

// limitRoutes are about limits and usage.
func limitRoutes() []Route {
	return []Route{
		page("/admin/limits", "admin.limits", "LimitUsage", showLimits),
		page("/admin/limits/edit", "admin.limits.edit", "SetLimits", editLimits),
		action("/admin/limits", "admin.limits.set", "SetLimits", setLimits),
		action("/admin/limits/remove", "admin.limits.remove", "RemoveLimits", removeLimits),
	}
}

// A limitPage is the data of the page of limits.
type limitPage struct {
	Subjects []subjectRow
	Pager    pager
	Choose   *adminForm // of the subject whose limits are changed
}

// A subjectRow is a subject with its limits and what it has spent.
type subjectRow struct {
	Subject string
	Uses    []useRow
	Rules   []string // limits that are not counted here, in words
	Own     bool     // it has limits of its own, which can be changed
}

// A useRow is how far one limit is used up.
type useRow struct {
	engine.LimitUse
}

// What returns the measure in words.
func (u useRow) What() string { return measureWords(u.Measure) }

// Amount returns what was spent, in words.
func (u useRow) Amount() string { return amount(u.Measure, u.Spent+u.Reserved) }

// Most returns the limit in words; empty: there is none.
func (u useRow) Most() string {
	if u.Limit < 0 {
		return ""
	}
	return amount(u.Measure, u.Limit)
}

// Full reports whether nothing is left.
func (u useRow) Full() bool { return u.Limit >= 0 && u.Left == 0 }

// Used returns the sum of what was spent and reserved, at most the limit.
func (u useRow) Used() int64 { return min(u.Spent+u.Reserved, u.Limit) }

// Low is where the bar of the limit begins to warn.
func (u useRow) Low() int64 { return u.Limit / 4 * 3 }

// High is where the bar says that almost nothing is left.
func (u useRow) High() int64 { return u.Limit - u.Limit/10 }

// Near reports whether nine tenths are used up.
func (u useRow) Near() bool { return u.Limit > 0 && !u.Full() && u.Left*10 <= u.Limit }

// measureWords returns a measure in words.
func measureWords(m limit.Measure) string {
	unit := map[string]string{"requests": "Questions", "runs": "Runs at the same time", "calls": "Model calls", "tokens": "Tokens", "cost": "Cost"}[m.Unit()]
	if m.Period() == "" {
		return unit
	}
	return unit + " per " + m.Period()
}

// amount returns a number of a measure's unit. Cost is in units of the currency.
func amount(m limit.Measure, n int64) string {
	if m.Unit() == "cost" {
		return strconv.FormatFloat(float64(n)/1e6, 'f', -1, 64)
	}
	return grouped(n)
}

// subjectWords returns a subject in words, with the name of the user or key.
func subjectWords(subject string) (words, name string) {
	kind, name, _ := strings.Cut(subject, ":")
	return map[string]string{
		limit.Tenant: "The whole tenant", limit.Users: "Each user", limit.Keys: "Each API key", "user": "User", "key": "API key",
	}[kind], name
}

// Words returns the kind of the subject in words.
func (s subjectRow) Words() string { words, _ := subjectWords(s.Subject); return words }

// Name returns the user or key; empty: it is none.
func (s subjectRow) Name() string { _, name := subjectWords(s.Subject); return name }

func showLimits(q *request) error {
	return q.limits(200, newForm("limit", url.Values{"kind": {limit.Tenant}}))
}

func (q *request) limits(status int, choose *adminForm) error {
	table, err := q.session.Limits(q.ctx())
	if err != nil {
		return err
	}
	uses, err := q.session.LimitUsage(q.ctx())
	if err != nil {
		return err
	}
	d := limitPage{Choose: choose}
	d.Subjects, d.Pager = pageOf(q, subjectRows(table, uses))
	return q.renderStatus(status, "adminlimits.html", q.adminView("Limits and usage", d))
}

// subjectRows joins limits and uses, the tenant first and then what holds for several.
func subjectRows(table limit.Table, uses []engine.LimitUse) []subjectRow {
	rows := map[string]*subjectRow{}
	row := func(subject string) *subjectRow {
		if rows[subject] == nil {
			rows[subject] = &subjectRow{Subject: subject}
		}
		return rows[subject]
	}
	for subject, limits := range table {
		r := row(subject)
		r.Own = true
		for _, m := range limit.Measures {
			if most, ok := limits[m]; ok && (m.InMemory() || subject == limit.Users || subject == limit.Keys) {
				r.Rules = append(r.Rules, fmt.Sprintf("%s: %s", measureWords(m), amount(m, most)))
			}
		}
	}
	for _, u := range uses {
		r := row(u.Subject)
		r.Uses = append(r.Uses, useRow{u})
	}
	rank := []string{limit.Tenant, limit.Users, limit.Keys, "user", "key"}
	return slices.Collect(func(yield func(subjectRow) bool) {
		for _, subject := range slices.SortedFunc(maps.Keys(rows), func(a, b string) int {
			kindA, _, _ := strings.Cut(a, ":")
			kindB, _, _ := strings.Cut(b, ":")
			return cmp.Or(slices.Index(rank, kindA)-slices.Index(rank, kindB), strings.Compare(a, b))
		}) {
			if !yield(*rows[subject]) {
				return
			}
		}
	})
}

// A limitForm is the data of the page that changes limits.
type limitForm struct {
	*adminForm
	Subject  string
	Measures []adminField
}

// Words returns the kind of the subject in words.
func (l limitForm) Words() string { words, _ := subjectWords(l.Subject); return words }

// Name returns the user or key; empty: it is none.
func (l limitForm) Name() string { _, name := subjectWords(l.Subject); return name }

// editLimits shows the limits of the subject that the query names.
func editLimits(q *request) error {
	subject := q.query("subject")
	if subject == "" {
		if subject = q.query("kind"); subject == "user" || subject == "key" {
			subject += ":" + strings.TrimSpace(q.query("name"))
		}
	}
	if err := limit.CheckSubject(subject); err != nil {
		f := newForm("limit", q.r.URL.Query())
		f.fail("name", "Name the user, or the ID of the key.")
		return q.limits(400, f)
	}
	table, err := q.session.Limits(q.ctx())
	if err != nil {
		return err
	}
	values := url.Values{"subject": {subject}}
	for m, most := range table[subject] {
		values.Set(string(m), strings.ReplaceAll(amount(m, most), ",", ""))
	}
	return q.limitForm(200, newForm("limits", values))
}

func (q *request) limitForm(status int, f *adminForm) error {
	d := limitForm{adminForm: f, Subject: f.Value("subject")}
	for _, m := range limit.Measures {
		hint := ""
		if m.Unit() == "cost" {
			hint = "In units of the configured currency. Every model in use needs a price."
		}
		field := f.Field(string(m), measureWords(m), hint)
		field.ID = "limits-" + strings.ReplaceAll(string(m), "/", "-")
		d.Measures = append(d.Measures, field.As("decimal"))
	}
	return q.renderStatus(status, "adminlimitform.html", q.adminView("Change limits", d))
}

func setLimits(q *request) error {
	f, err := q.sentForm("limits")
	if err != nil {
		return err
	}
	subject, change := f.Value("subject"), limit.Limits{}
	for _, m := range limit.Measures {
		change[m] = f.limit(m)
	}
	if f.ok() {
		if err = q.session.SetLimits(q.ctx(), subject, change, f.Value("reason")); err == nil {
			words, name := subjectWords(subject)
			return q.redirect("/admin/limits", "The limits are changed: "+strings.TrimSpace(words+" "+name)+".")
		}
		if errors.Is(err, assay.ErrNotFound) { // there were no limits to remove
			f.Error, err = "Enter at least one limit.", nil
		}
	}
	return q.again(f, err, func(status int) error { return q.limitForm(status, f) })
}

// limit reads the limit of a measure; -1: none.
func (f *adminForm) limit(m limit.Measure) int64 {
	n := f.number(string(m))
	if n == nil {
		return -1
	}
	if m.Unit() == "cost" {
		*n *= 1e6
	}
	if *n = math.Round(*n); !(*n >= 0 && *n <= limit.Most) {
		f.fail(string(m), "A limit is 0 or more. Leave it empty for no limit.")
		return -1
	}
	return int64(*n)
}

func removeLimits(q *request) error {
	subject, err := q.form("subject")
	if err != nil {
		return err
	}
	words, name := subjectWords(subject)
	words = strings.TrimSpace(words + " " + name)
	c := confirmation{Title: "Remove the limits: " + words, Back: "/admin/limits", Button: "Remove the limits", Fields: []confirmField{{Name: "subject", Value: subject}}}
	return q.withReason(c, "The limits are removed: "+words+".", func(reason string) error {
		return q.session.RemoveLimits(q.ctx(), subject, reason)
	})
}
