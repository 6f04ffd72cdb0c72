package ui

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/review"
)

// policyRoutes are about review policies.
func policyRoutes() []Route {
	return []Route{
		page("/admin/policies", "admin.policies", "Policies", showPolicies),
		page("/admin/policies/edit", "admin.policies.edit", "SetPolicy", editPolicy),
		action("/admin/policies", "admin.policies.set", "SetPolicy", setPolicy),
		action("/admin/policies/remove", "admin.policies.remove", "RemovePolicy", removePolicy),
		action("/admin/policies/test", "admin.policies.test", "TestPolicies", testPolicies),
	}
}

// A policyPage is the data of the page of review policies.
type policyPage struct {
	Rows  []policyRow
	Pager pager
	Test  *adminForm
	Tried *triedPolicies
}

// A policyRow is a policy in words.
type policyRow struct {
	review.Policy
	When, Then []string
}

// A triedPolicies is the result of asking a question to test the policies.
type triedPolicies struct {
	Question string
	Answer   assay.Answer
	Matches  []review.Match
}

func showPolicies(q *request) error { return q.policies(200, newForm("test", nil), nil) }

func (q *request) policies(status int, test *adminForm, tried *triedPolicies) error {
	all, err := q.session.Policies(q.ctx())
	if err != nil {
		return err
	}
	d := policyPage{Test: test, Tried: tried}
	var rows []policyRow
	for _, p := range all {
		rows = append(rows, policyRow{p, policyWhen(p), policyThen(p)})
	}
	d.Rows, d.Pager = pageOf(q, rows)
	return q.renderStatus(status, "adminpolicies.html", q.adminView("Review policies", d))
}

// policyWhen returns the conditions of a policy in words.
func policyWhen(p review.Policy) []string {
	var when []string
	add := func(set bool, format string, args ...any) {
		if set {
			when = append(when, fmt.Sprintf(format, args...))
		}
	}
	statusNames := make([]string, len(p.Statuses))
	for i, s := range p.Statuses {
		statusNames[i] = strings.ToLower(statuses[s].Word)
	}
	add(p.Always, "every answer")
	add(len(p.Collections) > 0, "it cites the collection %s", strings.Join(p.Collections, " or "))
	add(len(p.Tags) > 0, "it cites a document with %s", strings.Join(tagLines(p.Tags), ", "))
	add(len(p.Strategies) > 0, "its strategy is %s", strings.Join(p.Strategies, " or "))
	add(len(statusNames) > 0, "its outcome is %s", strings.Join(statusNames, " or "))
	add(p.ScoreBelow != nil, "the lowest score of a claim is below %v", deref(p.ScoreBelow))
	add(p.RelevanceBelow != nil, "its relevance is below %v or unknown", deref(p.RelevanceBelow))
	add(p.CostAbove != nil, "it cost more than %v", float64(deref(p.CostAbove))/1e6)
	add(len(p.Groups) > 0, "the asker is in the group %s", strings.Join(p.Groups, " or "))
	add(len(p.Roles) > 0, "the asker has the role %s", strings.Join(p.Roles, " or "))
	add(len(p.Topics) > 0, "it is about %s", strings.Join(p.Topics, " or "))
	add(p.Sample > 0, "it is in a sample of %v %%", p.Sample)
	return when
}

// policyThen returns what follows if a policy matches, in words.
func policyThen(p review.Policy) []string {
	who := "a reviewer"
	if p.Reviewers != "" {
		who = "a reviewer of the group " + p.Reviewers
	}
	then := []string{who + " approves it"}
	if p.Approvals > 1 {
		then[0] = fmt.Sprintf("%d reviewers approve the same text", p.Approvals)
		if p.Reviewers != "" {
			then[0] += ", all of the group " + p.Reviewers
		}
	}
	if p.Deadline > 0 {
		after := "it is overdue"
		switch {
		case p.Reject && p.EscalateTo != "":
			after = "the group " + p.EscalateTo + " may also review, and it is rejected"
		case p.Reject:
			after = "it is rejected"
		case p.EscalateTo != "":
			after = "the group " + p.EscalateTo + " may also review"
		}
		then = append(then, fmt.Sprintf("after %v hours %s", p.Deadline.Hours(), after))
	}
	if p.Mandatory {
		then = append(then, "also for requests that ask for no review")
	}
	return then
}

func deref[T any](p *T) T {
	if p == nil {
		var none T
		return none
	}
	return *p
}

// tagLines returns tags as lines of a form, sorted.
func tagLines(tags map[string]string) []string {
	var lines []string
	for k, v := range tags {
		lines = append(lines, k+" = "+v)
	}
	slices.Sort(lines)
	return lines
}

// A policyForm is the data of the page that sets a policy.
type policyForm struct {
	*adminForm
	New      bool
	Statuses []adminOption
}

func (q *request) policyForm(status int, f *adminForm) error {
	d := policyForm{adminForm: f, New: f.Value("was") == ""}
	for _, s := range []assay.Status{assay.Answered, assay.Incomplete, assay.Conflicting, assay.NotFound} {
		d.Statuses = append(d.Statuses, adminOption{string(s), statuses[s].Word, f.On("status", string(s))})
	}
	title := "New review policy"
	if !d.New {
		title = "Review policy " + f.Value("was")
	}
	return q.renderStatus(status, "adminpolicyform.html", q.adminView(title, d))
}

// editPolicy shows the form of the policy that the query names, or an empty one.
func editPolicy(q *request) error {
	name := q.query("name")
	if name == "" {
		return q.policyForm(200, newForm("policy", url.Values{"approvals": {"1"}}))
	}
	all, err := q.session.Policies(q.ctx())
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(p review.Policy) bool { return p.Name == name })
	if i < 0 {
		return fmt.Errorf("review policy %q: %w", name, assay.ErrNotFound)
	}
	return q.policyForm(200, newForm("policy", policyValues(all[i])))
}

// policyValues returns a policy as the fields of its form.
func policyValues(p review.Policy) url.Values {
	v := url.Values{
		"name": {p.Name}, "was": {p.Name}, "collections": {strings.Join(p.Collections, ", ")}, "tags": {strings.Join(tagLines(p.Tags), "\n")},
		"strategies": {strings.Join(p.Strategies, ", ")}, "groups": {strings.Join(p.Groups, ", ")}, "roles": {strings.Join(p.Roles, ", ")},
		"topics": {strings.Join(p.Topics, "\n")}, "reviewers": {p.Reviewers}, "escalate": {p.EscalateTo}, "approvals": {strconv.Itoa(max(1, p.Approvals))},
	}
	number := func(name string, set bool, n float64) {
		if set {
			v.Set(name, strconv.FormatFloat(n, 'f', -1, 64))
		}
	}
	box := func(name string, set bool) {
		if set {
			v.Set(name, "yes")
		}
	}
	number("score", p.ScoreBelow != nil, deref(p.ScoreBelow))
	number("relevance", p.RelevanceBelow != nil, deref(p.RelevanceBelow))
	number("cost", p.CostAbove != nil, float64(deref(p.CostAbove))/1e6)
	number("sample", p.Sample > 0, p.Sample)
	number("threshold", p.TopicThreshold > 0, p.TopicThreshold)
	number("deadline", p.Deadline > 0, p.Deadline.Hours())
	box("always", p.Always)
	box("mandatory", p.Mandatory)
	box("reject", p.Reject)
	for _, s := range p.Statuses {
		v.Add("status", string(s))
	}
	return v
}

// policy reads the policy of a form.
func (f *adminForm) policy() review.Policy {
	p := review.Policy{
		Name: f.need("name", "The name"), Always: f.On("always", "yes"), Collections: f.list("collections"), Strategies: f.list("strategies"),
		Groups: f.list("groups"), Roles: f.list("roles"), Topics: f.lines("topics"), ScoreBelow: f.number("score"), RelevanceBelow: f.number("relevance"),
		Mandatory: f.On("mandatory", "yes"), Approvals: f.whole("approvals"), Reviewers: f.Value("reviewers"), EscalateTo: f.Value("escalate"), Reject: f.On("reject", "yes"),
		Sample: deref(f.number("sample")), TopicThreshold: deref(f.number("threshold")),
	}
	if cost := f.number("cost"); cost != nil {
		micros := int64(*cost * 1e6)
		p.CostAbove = &micros
	}
	if hours := f.number("deadline"); hours != nil {
		p.Deadline = time.Duration(*hours * float64(time.Hour))
	}
	for _, line := range f.lines("tags") {
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			f.fail("tags", "Write one tag on each line, as in department = finance.")
			continue
		}
		if p.Tags == nil {
			p.Tags = map[string]string{}
		}
		p.Tags[strings.TrimSpace(key)] = strings.TrimSpace(value)
	}
	for _, s := range f.values["status"] {
		p.Statuses = append(p.Statuses, assay.Status(s))
	}
	return p
}

func setPolicy(q *request) error {
	f, err := q.sentForm("policy")
	if err != nil {
		return err
	}
	p := f.policy()
	if was := f.Value("was"); was != "" && was != p.Name {
		f.fail("name", "A policy keeps its name. Remove it and make another one.")
	}
	if f.ok() {
		if err = q.session.SetPolicy(q.ctx(), p, f.Value("reason")); err == nil {
			return q.redirect("/admin/policies", "The policy "+p.Name+" holds from now on.")
		}
	}
	return q.again(f, err, func(status int) error { return q.policyForm(status, f) })
}

func removePolicy(q *request) error {
	name, err := q.form("name")
	if err != nil {
		return err
	}
	c := confirmation{Title: "Remove the policy " + name, Back: "/admin/policies", Button: "Remove the policy", Fields: []confirmField{{Name: "name", Value: name}}}
	return q.withReason(c, "The policy "+name+" is removed.", func(reason string) error { return q.session.RemovePolicy(q.ctx(), name, reason) })
}

// testPolicies asks a question and shows which policies match the answer.
func testPolicies(q *request) error {
	f, err := q.sentForm("test")
	if err != nil {
		return err
	}
	question := f.need("question", "The question")
	if f.ok() {
		tried := &triedPolicies{Question: question}
		tried.Answer, tried.Matches, err = q.session.TestPolicies(q.ctx(), engine.Request{Question: question, Collections: f.list("collections")})
		if err == nil {
			return q.policies(200, f, tried)
		}
	}
	return q.again(f, err, func(status int) error { return q.policies(status, f, nil) })
}
