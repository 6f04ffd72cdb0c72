package ui

import (
	"net/url"
	"strings"

	"github.com/assay-rag/assay/engine"
)

// egressRoutes are about the hosts that may be reached for the tenant.
func egressRoutes() []Route {
	return []Route{
		page("/admin/egress", "admin.egress", "EgressRestriction", showEgress),
		action("/admin/egress", "admin.egress.set", "RestrictEgress", setEgress),
	}
}

// An egressPage is the data of the page about the network.
type egressPage struct {
	*adminForm
	Rules engine.EgressRules
}

func showEgress(q *request) error { return q.egress(200, nil) }

// egress renders the page. f is nil for the rules as they are.
func (q *request) egress(status int, f *adminForm) error {
	rules, err := q.session.EgressRestriction(q.ctx())
	if err != nil {
		return err
	}
	if f == nil {
		f = newForm("egress", url.Values{"mode": {egressMode(rules)}, "allow": {strings.Join(rules.Allow, "\n")}})
	}
	return q.renderStatus(status, "adminegress.html", q.adminView("Network", egressPage{f, rules}))
}

// egressMode returns the choice of the form that rules are.
func egressMode(r engine.EgressRules) string {
	switch {
	case r.Offline:
		return "offline"
	case r.Allow != nil:
		return "list"
	}
	return "none"
}

func setEgress(q *request) error {
	f, err := q.sentForm("egress")
	if err != nil {
		return err
	}
	var rules engine.EgressRules
	notice := "The tenant has no rules of its own now."
	switch f.Value("mode") {
	case "none":
	case "offline":
		rules.Offline, notice = true, "Nothing leaves this machine for the tenant now."
	case "list":
		rules.Allow, notice = f.list("allow"), "Only the hosts of the list are reached for the tenant now."
		if len(rules.Allow) == 0 {
			f.fail("allow", "The list is empty. To reach nothing, choose that nothing leaves this machine.")
		}
	default:
		f.fail("mode", "Choose one.")
	}
	if f.ok() {
		if err = q.session.RestrictEgress(q.ctx(), rules, f.Value("reason")); err == nil {
			return q.redirect("/admin/egress", notice)
		}
	}
	return q.again(f, err, func(status int) error { return q.egress(status, f) })
}
