package ui

import (
	"net/http"

	"github.com/assay-rag/assay/engine"
)

// canaryRoutes are about canary documents.
func canaryRoutes() []Route {
	return []Route{
		page("/admin/canaries", "admin.canaries", "Canaries", showCanaries),
		action("/admin/canaries", "admin.canaries.add", "AddCanary", addCanary),
		page("/admin/canaries/made/{word}", "admin.canaries.made", "Canaries", showMadeCanary),
		action("/admin/canaries/remove", "admin.canaries.remove", "RemoveCanary", removeCanary),
	}
}

// A canaryPage is the data of the page of canaries.
type canaryPage struct {
	Rows  []engine.Canary
	Pager pager
	Add   *adminForm
}

func showCanaries(q *request) error { return q.canaries(200, newForm("canary", nil)) }

func (q *request) canaries(status int, f *adminForm) error {
	all, err := q.session.Canaries(q.ctx())
	if err != nil {
		return err
	}
	d := canaryPage{Add: f}
	d.Rows, d.Pager = pageOf(q, all)
	return q.renderStatus(status, "admincanaries.html", q.adminView("Canaries", d))
}

// A madeCanary is a new canary with its text.
type madeCanary struct {
	Canary engine.Canary
	Text   string
}

func addCanary(q *request) error {
	f, err := q.sentForm("canary")
	if err != nil {
		return err
	}
	canary, text, err := q.session.AddCanary(q.ctx(), engine.NewCanary{Collection: f.Value("collection")})
	if err == nil {
		return q.showOnce("/admin/canaries/made/", madeCanary{canary, text})
	}
	return q.again(f, err, func(status int) error { return q.canaries(status, f) })
}

func showMadeCanary(q *request) error {
	value, _ := q.pages.secrets.take(q, q.path("word"))
	made, ok := value.(madeCanary)
	if !ok {
		return q.renderStatus(http.StatusGone, "admincanarymade.html", q.adminView("The text is not shown again", madeCanary{}))
	}
	return q.render("admincanarymade.html", q.adminView("The new canary", made))
}

func removeCanary(q *request) error {
	name, err := q.form("name")
	if err != nil {
		return err
	}
	c := confirmation{Title: "Remove the canary " + name, Back: "/admin/canaries", Button: "Remove the canary", Fields: []confirmField{{Name: "name", Value: name}}}
	return q.withReason(c, "The canary "+name+" is removed.", func(reason string) error { return q.session.RemoveCanary(q.ctx(), name, reason) })
}
