package ui

import (
	"fmt"
	"slices"

	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/store"
)

// retentionRoutes are about retention and holds.
func retentionRoutes() []Route {
	return []Route{
		page("/admin/retention", "admin.retention", "RetentionPolicies", showRetention),
		action("/admin/retention", "admin.retention.set", "SetRetention", setRetention),
		action("/admin/retention/remove", "admin.retention.remove", "RemoveRetention", removeRetention),
		action("/admin/retention/apply", "admin.retention.apply", "ApplyRetention", applyRetention),
		action("/admin/holds", "admin.holds.add", "AddHold", addHold),
		action("/admin/holds/remove", "admin.holds.remove", "RemoveHold", removeHold),
	}
}

// A retentionPage is the data of the page about retention and holds.
type retentionPage struct {
	Kinds []retentionRow
	Holds []holdRow
	Pager pager // of the holds
	Set   *adminForm
	Add   *adminForm
	Would *engine.Retained // what applying the policies would remove; nil: it was not tried
}

// A retentionRow is a kind of data with its policy.
type retentionRow struct {
	Kind, Is string
	engine.RetentionPolicy
}

// retainedKinds say what each kind of data is.
var retainedKinds = map[string]string{
	store.RetainRuns:     "Runs with questions, answers and steps",
	store.RetainJournals: "Steps of runs that failed",
	store.RetainVersions: "Old versions of documents that no run cites",
	store.RetainReviews:  "What reviewers wrote",
	store.RetainActs:     "Details of all other acts in the audit log",
}

// A holdRow is a hold with what it covers.
type holdRow struct {
	store.Hold
	Kind, Of string
	Ended    bool
}

func showRetention(q *request) error {
	var would *engine.Retained
	if q.query("try") != "" && q.may("ApplyRetention") {
		r, err := q.session.ApplyRetention(q.ctx(), true)
		if err != nil {
			return err
		}
		would = &r
	}
	return q.retention(200, newForm("retain", nil), newForm("hold", nil), would)
}

func (q *request) retention(status int, set, add *adminForm, would *engine.Retained) error {
	policies, err := q.session.RetentionPolicies(q.ctx())
	if err != nil {
		return err
	}
	holds, err := q.session.Holds(q.ctx())
	if err != nil {
		return err
	}
	d := retentionPage{Set: set, Add: add, Would: would}
	for _, kind := range store.Retained {
		row := retentionRow{Kind: kind, Is: retainedKinds[kind]}
		if i := slices.IndexFunc(policies, func(p engine.RetentionPolicy) bool { return p.Kind == kind }); i >= 0 {
			row.RetentionPolicy = policies[i]
		}
		d.Kinds = append(d.Kinds, row)
	}
	var rows []holdRow
	for _, h := range holds {
		row := holdRow{Hold: h, Kind: "Everything", Ended: h.Until != nil && !now().Before(*h.Until)}
		switch {
		case h.Run != "":
			row.Kind, row.Of = "Run", h.Run
		case h.Collection != "":
			row.Kind, row.Of = "Collection", h.Collection
		case h.User != "":
			row.Kind, row.Of = "User", h.User
		}
		rows = append(rows, row)
	}
	d.Holds, d.Pager = pageOf(q, rows)
	return q.renderStatus(status, "adminretention.html", q.adminView("Retention and holds", d))
}

// KindField returns the field that chooses a kind of data.
func (p retentionPage) KindField() adminField {
	var pairs []string
	for _, row := range p.Kinds {
		pairs = append(pairs, row.Kind, row.Is)
	}
	return p.Set.Field("kind", "Data", "").Of(pairs...)
}

func setRetention(q *request) error {
	f, err := q.sentForm("retain")
	if err != nil {
		return err
	}
	kind, days := f.Value("kind"), f.whole("days")
	if days < 1 || days > store.MaxRetentionDays {
		f.fail("days", fmt.Sprintf("Enter 1 to %s days.", grouped(store.MaxRetentionDays)))
	}
	if f.ok() {
		if err = q.session.SetRetention(q.ctx(), kind, days, f.Value("reason")); err == nil {
			return q.redirect("/admin/retention", "The retention is set. Nothing is removed before it is applied.")
		}
	}
	return q.again(f, err, func(status int) error { return q.retention(status, f, newForm("hold", nil), nil) })
}

func removeRetention(q *request) error {
	kind, err := q.form("kind")
	if err != nil {
		return err
	}
	c := confirmation{Title: "Remove the retention", Back: "/admin/retention", Button: "Keep this data from now on", Fields: []confirmField{{Name: "kind", Value: kind}}}
	return q.withReason(c, "The retention is removed. The data is kept.", func(reason string) error {
		return q.session.RemoveRetention(q.ctx(), kind, reason)
	})
}

// applyRetention removes what the policies do not keep. The box that confirms it must be checked.
func applyRetention(q *request) error {
	sure, err := q.form("sure")
	if err != nil {
		return err
	}
	if sure != "yes" {
		return q.redirect("/admin/retention?try=1", "Nothing was removed. Check the box to remove the data.")
	}
	done, err := q.session.ApplyRetention(q.ctx(), false)
	if err != nil {
		return q.refused(err, confirmation{Title: "Apply the retention", Back: "/admin/retention", Button: "Remove the data", Bad: true, Fields: []confirmField{{Name: "sure", Value: "yes"}}})
	}
	return q.redirect("/admin/retention", fmt.Sprintf("Removed: %s, the steps of %s, %s, details of %s.",
		count(done.Runs.Runs, "run"), count(done.Journals.Runs, "failed run"), count(done.Runs.Versions, "old version"), count(done.Acts, "act")))
}

func addHold(q *request) error {
	f, err := q.sentForm("hold")
	if err != nil {
		return err
	}
	h := store.Hold{Name: f.need("name", "The name"), Reason: f.need("reason", "The reason")}
	switch f.Value("kind") {
	case "run":
		h.Run = f.need("of", "The ID of the run")
	case "collection":
		h.Collection = f.need("of", "The name of the collection")
	case "user":
		h.User = f.need("of", "The name of the user")
	case "all":
		h.All = true
	default:
		f.fail("kind", "Choose what it covers.")
	}
	if until := f.date("until"); !until.IsZero() {
		h.Until = &until
	}
	if f.ok() {
		if err = q.session.AddHold(q.ctx(), h); err == nil {
			return q.redirect("/admin/retention", "The hold "+h.Name+" counts from now on.")
		}
	}
	return q.again(f, err, func(status int) error { return q.retention(status, newForm("retain", nil), f, nil) })
}

func removeHold(q *request) error {
	name, err := q.form("name")
	if err != nil {
		return err
	}
	c := confirmation{Title: "Remove the hold " + name, Back: "/admin/retention", Button: "Remove the hold", Fields: []confirmField{{Name: "name", Value: name}}}
	return q.withReason(c, "The hold "+name+" is removed.", func(reason string) error { return q.session.RemoveHold(q.ctx(), name, reason) })
}
