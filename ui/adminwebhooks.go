package ui

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/webhook"
)

// webhookRoutes are about webhooks.
func webhookRoutes() []Route {
	return []Route{
		page("/admin/webhooks", "admin.webhooks", "Webhooks", showWebhooks),
		page("/admin/webhooks/edit", "admin.webhooks.edit", "SetWebhook", editWebhook),
		page("/admin/webhooks/dead", "admin.webhooks.dead", "DeadWebhooks", showDead),
		action("/admin/webhooks", "admin.webhooks.set", "SetWebhook", setWebhook),
		action("/admin/webhooks/remove", "admin.webhooks.remove", "RemoveWebhook", removeWebhook),
		action("/admin/webhooks/test", "admin.webhooks.test", "TestWebhook", testWebhook),
		action("/admin/webhooks/retry", "admin.webhooks.retry", "RetryWebhooks", retryWebhooks),
	}
}

// A webhookRow is a webhook.
type webhookRow struct{ engine.WebhookState }

// Address returns where messages are sent without the path, which may be a credential.
func (w webhookRow) Address() string {
	scheme, rest, ok := strings.Cut(w.URL, "://")
	if !ok {
		return w.URL // a reference
	}
	u, err := url.Parse(w.URL)
	if err != nil || u.Host == "" || rest == "" {
		return "an address that cannot be read"
	}
	return scheme + "://" + u.Host
}

// A webhookPage is the data of the page of webhooks.
type webhookPage struct {
	Rows  []webhookRow
	Pager pager
	Dead  int
}

func showWebhooks(q *request) error {
	all, err := q.session.Webhooks(q.ctx())
	if err != nil {
		return err
	}
	d := webhookPage{}
	var rows []webhookRow
	for _, w := range all {
		d.Dead += w.Dead
		rows = append(rows, webhookRow{w})
	}
	d.Rows, d.Pager = pageOf(q, rows)
	return q.render("adminwebhooks.html", q.adminView("Webhooks", d))
}

// A webhookForm is the data of the page that sets a webhook.
type webhookForm struct {
	*adminForm
	New bool
}

func (q *request) webhookForm(status int, f *adminForm) error {
	d, title := webhookForm{f, f.Value("was") == ""}, "New webhook"
	if !d.New {
		title = "Webhook " + f.Value("was")
	}
	return q.renderStatus(status, "adminwebhookform.html", q.adminView(title, d))
}

// editWebhook shows the form of the webhook that the query names, or an empty one.
func editWebhook(q *request) error {
	name := q.query("name")
	if name == "" {
		return q.webhookForm(200, newForm("webhook", url.Values{"form": {string(webhook.Standard)}, "events": {"review.*"}}))
	}
	all, err := q.session.Webhooks(q.ctx())
	if err != nil {
		return err
	}
	w, err := webhookNamed(all, name)
	if err != nil {
		return err
	}
	v := url.Values{
		"name": {name}, "was": {name}, "events": {strings.Join(w.Events, "\n")}, "form": {string(w.Form)},
		"secrets": {strings.Join(w.Secrets, "\n")}, "link": {w.Link},
	}
	if !strings.Contains(w.URL, "://") { // a reference
		v.Set("url", w.URL)
	}
	return q.webhookForm(200, newForm("webhook", v))
}

// webhookNamed returns the webhook with a name.
func webhookNamed(all []engine.WebhookState, name string) (engine.WebhookState, error) {
	i := slices.IndexFunc(all, func(w engine.WebhookState) bool { return w.Name == name })
	if i < 0 {
		return engine.WebhookState{}, fmt.Errorf("webhook %q: %w", name, assay.ErrNotFound)
	}
	return all[i], nil
}

// webhookAddress returns the address of a form. Without one the webhook keeps its address, which pages
// do not show because its path may be a credential.
func (q *request) webhookAddress(f *adminForm) (string, error) {
	if f.Value("url") != "" || f.Value("was") == "" {
		return f.need("url", "The address"), nil
	}
	all, err := q.session.Webhooks(q.ctx())
	if err != nil {
		return "", err
	}
	w, err := webhookNamed(all, f.Value("was"))
	return w.URL, err
}

func setWebhook(q *request) error {
	f, err := q.sentForm("webhook")
	if err != nil {
		return err
	}
	name := f.need("name", "The name")
	address, err := q.webhookAddress(f)
	if err != nil {
		return err
	}
	t := webhook.Target{URL: address, Events: f.list("events"), Form: webhook.Form(f.Value("form")), Secrets: f.lines("secrets"), Link: f.Value("link")}
	if len(t.Events) == 0 {
		f.fail("events", "Name at least one event, as in review.needed, or * for all.")
	}
	if was := f.Value("was"); was != "" && was != name {
		f.fail("name", "A webhook keeps its name. Remove it and make another one.")
	}
	if f.ok() {
		if err = q.session.SetWebhook(q.ctx(), name, t, f.Value("reason")); err == nil {
			return q.redirect("/admin/webhooks", "The webhook "+name+" is set. Send a test to try it out.")
		}
	}
	return q.again(f, err, func(status int) error { return q.webhookForm(status, f) })
}

func removeWebhook(q *request) error {
	name, err := q.form("name")
	if err != nil {
		return err
	}
	c := confirmation{Title: "Remove the webhook " + name, Back: "/admin/webhooks", Button: "Remove the webhook", Fields: []confirmField{{Name: "name", Value: name}}}
	return q.withReason(c, "The webhook "+name+" is removed.", func(reason string) error { return q.session.RemoveWebhook(q.ctx(), name, reason) })
}

func testWebhook(q *request) error {
	name, err := q.form("name")
	if err != nil {
		return err
	}
	if err := q.session.TestWebhook(q.ctx(), name); err != nil {
		return q.refused(err, confirmation{Title: "Test the webhook " + name, Back: "/admin/webhooks", Button: "Try again", Fields: []confirmField{{Name: "name", Value: name}}})
	}
	return q.redirect("/admin/webhooks", "The receiver of "+name+" accepted the test.")
}

// A deadPage is the data of the page of messages that were given up.
type deadPage struct {
	Rows  []store.Message
	Pager pager
}

func showDead(q *request) error {
	all, err := q.session.DeadWebhooks(q.ctx())
	if err != nil {
		return err
	}
	d := deadPage{}
	d.Rows, d.Pager = pageOf(q, all)
	return q.render("admindead.html", q.adminView("Messages given up", d))
}

// retryWebhooks sends messages again that were given up: those of the form, or all.
func retryWebhooks(q *request) error {
	if err := q.parseForm(); err != nil {
		return err
	}
	ids := q.r.PostForm["id"]
	if len(ids) == 0 && q.r.PostForm.Get("all") == "" {
		return q.redirect("/admin/webhooks/dead", "Choose the messages to send again.")
	}
	n, err := q.session.RetryWebhooks(q.ctx(), ids...)
	if err != nil {
		return q.refused(err, confirmation{Title: "Send messages again", Back: "/admin/webhooks/dead", Button: "Send all again", Fields: []confirmField{{Name: "all", Value: "yes"}}})
	}
	return q.redirect("/admin/webhooks/dead", count(n, "message")+" will be sent again.")
}
