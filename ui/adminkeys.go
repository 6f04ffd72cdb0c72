package ui

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/identity"
)

// keyRoutes are about API keys.
func keyRoutes() []Route {
	return []Route{
		page("/admin/keys", "admin.keys", "Keys", showKeys),
		page("/admin/keys/new", "admin.keys.new", "CreateKey", newKey),
		action("/admin/keys", "admin.keys.create", "CreateKey", createKey),
		page("/admin/keys/{id}", "admin.keys.show", "Keys", showKey),
		action("/admin/keys/{id}/rotate", "admin.keys.rotate", "RotateKey", rotateKey),
		action("/admin/keys/{id}/revoke", "admin.keys.revoke", "RevokeKey", revokeKey),
		page("/admin/keys/made/{word}", "admin.keys.made", "Keys", showMadeKey),
	}
}

// A keyRow is an API key with its state.
type keyRow struct {
	identity.Key
	State string
}

// keyStates are how the states of keys are shown.
var keyStates = map[string]statusWords{
	"active":  {"good", "check", "Active", "The key is accepted."},
	"ending":  {"warn", "clock", "Ending", "Another key replaces it, and it is accepted until its time is over."},
	"expired": {"", "dash", "Expired", "The key is not accepted any more."},
	"revoked": {"bad", "cross", "Revoked", "The key is not accepted any more."},
}

// Words returns how the state is shown.
func (k keyRow) Words() statusWords { return keyStates[k.State] }

// Usable reports whether the key is accepted now.
func (k keyRow) Usable() bool { return k.State == "active" || k.State == "ending" }

// Soon reports whether a key that is accepted ends within two weeks.
func (k keyRow) Soon() bool {
	return k.Usable() && !k.Expires.IsZero() && k.Expires.Sub(now()) < 14*24*time.Hour
}

// A keyList is the data of the page of keys.
type keyList struct {
	Rows  []keyRow
	Pager pager
	All   bool // also those that are not accepted any more
	Ended int
}

func showKeys(q *request) error {
	keys, err := q.session.Keys(q.ctx())
	if err != nil {
		return err
	}
	d := keyList{All: q.query("all") != ""}
	var rows []keyRow
	for _, k := range slices.Backward(keys) { // the newest first
		row := keyRow{k, k.State(now())}
		if !row.Usable() {
			d.Ended++
		}
		if row.Usable() || d.All {
			rows = append(rows, row)
		}
	}
	d.Rows, d.Pager = pageOf(q, rows)
	return q.render("adminkeys.html", q.adminView("API keys", d))
}

// A keyForm is the data of the page that makes a key.
type keyForm struct {
	*adminForm
	Owner  string // the user that the key acts as; empty: any can be named
	Groups []string
	Roles  []roleChoice
	Until  string // the last day that the key may have; empty: any
}

// A roleChoice is a role that the user may give to a key.
type roleChoice struct {
	Role    string
	Allows  string
	Limited bool // it can be limited to collections
}

// roleAllows says what each role allows.
var roleAllows = map[identity.Role]string{
	identity.Reader:   "Ask questions and search.",
	identity.Editor:   "As a reader, and add, change and remove documents.",
	identity.Reviewer: "As a reader, and decide answers that wait for a person.",
	identity.Auditor:  "Read the audit log, proofs, reports and the runs of others, without their documents.",
	identity.Admin:    "Everything in this tenant. Documents stay hidden by their ACLs.",
}

// keyForm returns the page that makes a key, with what the user may choose.
func (q *request) keyForm(f *adminForm) keyForm {
	own := q.grant.Principal
	d := keyForm{adminForm: f, Groups: own.Groups}
	if own.User != assay.Local().User {
		d.Owner = own.User
	}
	if own.Key != "" && !q.grant.Expires.IsZero() {
		d.Until = q.grant.Expires.UTC().Format(time.DateOnly)
	}
	for _, r := range identity.Roles {
		if q.grant.Covers(identity.RoleIn{Role: r.Role}) {
			limited := r.Role != identity.Auditor && r.Role != identity.Admin
			d.Roles = append(d.Roles, roleChoice{string(r.Role), roleAllows[r.Role], limited})
		}
	}
	return d
}

func newKey(q *request) error {
	day := now().UTC().AddDate(0, 0, 90)
	if end := q.grant.Expires; q.grant.Principal.Key != "" && !end.IsZero() && end.Before(day) {
		day = end.UTC().AddDate(0, 0, -1)
	}
	f := newForm("key", url.Values{"role": {string(identity.Reader)}, "expires": {day.Format(time.DateOnly)}})
	return q.render("adminkeynew.html", q.adminView("New API key", q.keyForm(f)))
}

// A madeKey is a new key with its text.
type madeKey struct {
	Key  identity.Key
	Text string
	Old  string // ID of the key that it replaces
}

func createKey(q *request) error {
	f, err := q.sentForm("key")
	if err != nil {
		return err
	}
	d := q.keyForm(f)
	spec := f.keySpec(d)
	var key identity.Key
	var text string
	if f.ok() {
		if key, text, err = q.session.CreateKey(q.ctx(), spec); err == nil {
			return q.showOnce("/admin/keys/made/", madeKey{Key: key, Text: text})
		}
	}
	return q.again(f, err, func(status int) error {
		return q.renderStatus(status, "adminkeynew.html", q.adminView("New API key", d))
	})
}

// keySpec reads what a new key is for.
func (f *adminForm) keySpec(d keyForm) identity.KeySpec {
	spec := identity.KeySpec{User: d.Owner, Groups: f.list("groups"), Expires: f.date("expires")}
	if d.Owner == "" {
		spec.User = f.need("user", "The user")
	}
	spec.Groups = append(spec.Groups, f.values["group"]...)
	for _, r := range d.Roles {
		if !f.On("role", r.Role) {
			continue
		}
		in := identity.RoleIn{Role: identity.Role(r.Role)}
		if names := f.list("in-" + r.Role); r.Limited && len(names) > 0 {
			var err error
			if in, err = identity.ParseRole(r.Role + ":" + strings.Join(names, ",")); err != nil {
				f.fail("in-"+r.Role, "This is not a list of collections.")
			}
		}
		spec.Roles = append(spec.Roles, in)
	}
	if len(spec.Roles) == 0 {
		f.fail("role", "Choose at least one role.")
	}
	if f.Value("expires") == "" && !f.On("never", "yes") {
		f.fail("expires", "Choose the last day, or that the key never expires.")
	}
	if f.On("never", "yes") {
		spec.Expires = time.Time{}
	}
	return spec
}

// showOnce sends the browser to a page that shows a value once.
func (q *request) showOnce(path string, value any) error {
	word, err := q.pages.secrets.put(q, value)
	if err != nil {
		return err
	}
	http.Redirect(q.w, q.r, path+word, http.StatusSeeOther)
	return nil
}

func showMadeKey(q *request) error {
	value, _ := q.pages.secrets.take(q, q.path("word"))
	made, ok := value.(madeKey)
	if !ok {
		return q.renderStatus(http.StatusGone, "adminkeymade.html", q.adminView("The key is not shown again", madeKey{}))
	}
	return q.render("adminkeymade.html", q.adminView("Your new key", made))
}

// A keyPage is the data of the page of one key.
type keyPage struct {
	keyRow
	Rotate  *adminForm
	Revoke  *adminForm
	Own     bool // it could be made by the user, and so be rotated
	Current bool // it is the key of this session
}

// keyPage returns the page of the key that the path names.
func (q *request) keyPage() (keyPage, error) {
	keys, err := q.session.Keys(q.ctx())
	if err != nil {
		return keyPage{}, err
	}
	i := slices.IndexFunc(keys, func(k identity.Key) bool { return k.ID == q.path("id") })
	if i < 0 {
		return keyPage{}, assay.ErrNotFound
	}
	own := q.grant.Principal
	p := keyPage{keyRow: keyRow{keys[i], keys[i].State(now())}, Current: own.Key == keys[i].ID}
	p.Own = own.User == keys[i].User || own.User == assay.Local().User
	day := now().UTC().AddDate(0, 0, 90)
	if end := q.grant.Expires; own.Key != "" && !end.IsZero() && end.Before(day) {
		day = end.UTC().AddDate(0, 0, -1)
	}
	p.Rotate = newForm("rotate", url.Values{"grace": {"24"}, "expires": {day.Format(time.DateOnly)}})
	p.Revoke = newForm("revoke", nil)
	return p, nil
}

func showKey(q *request) error {
	p, err := q.keyPage()
	if err != nil {
		return err
	}
	return q.render("adminkey.html", q.adminView("API key "+p.ID, p))
}

func rotateKey(q *request) error {
	p, err := q.keyPage()
	if err != nil {
		return err
	}
	f, err := q.sentForm("rotate")
	if err != nil {
		return err
	}
	p.Rotate = f
	hours, expires := f.whole("grace"), f.date("expires")
	if hours < 0 || hours > 90*24 {
		f.fail("grace", "The old key is accepted for 0 to 2,160 hours.")
	}
	if f.ok() {
		var key identity.Key
		var text string
		if key, text, err = q.session.RotateKey(q.ctx(), p.ID, time.Duration(hours)*time.Hour, expires); err == nil {
			return q.showOnce("/admin/keys/made/", madeKey{key, text, p.ID})
		}
	}
	return q.again(f, err, func(status int) error {
		return q.renderStatus(status, "adminkey.html", q.adminView("API key "+p.ID, p))
	})
}

func revokeKey(q *request) error {
	id := q.path("id")
	c := confirmation{Title: "Revoke the key " + id, Back: "/admin/keys", Button: "Revoke the key"}
	return q.withReason(c, "The key "+id+" is revoked.", func(reason string) error { return q.session.RevokeKey(q.ctx(), id, reason) })
}

// An accessPage is the data of the page about groups.
type accessPage struct {
	engine.ACLSummary
	Groups []groupRow
	Pager  pager
	Own    []string // groups of the user
}

// A groupRow is a group or a user with what gives it rights.
type groupRow struct {
	Name, Kind string
	Keys       []identity.Key // that are accepted and have the group or are of the user
	In         []groupUse
}

// A groupUse is a collection in which ACLs name a group.
type groupUse struct {
	Collection string
	Documents  int
}

// showAccess shows which groups and users the ACLs name, and which keys have them.
func showAccess(q *request) error {
	d := accessPage{Own: q.grant.Principal.Groups}
	var err error
	if d.ACLSummary, err = q.session.ACLSummary(q.ctx()); err != nil {
		return err
	}
	keys, err := q.session.Keys(q.ctx())
	if err != nil {
		return err
	}
	d.Groups, d.Pager = pageOf(q, groupRows(d.ACLSummary, keys))
	return q.render("adminaccess.html", q.adminView("Groups and access", d))
}

// groupRows joins the names in ACLs with the keys that have them, by kind and name.
func groupRows(acl engine.ACLSummary, keys []identity.Key) []groupRow {
	rows := map[string]*groupRow{}
	row := func(name string) *groupRow {
		if rows[name] == nil {
			kind, short, _ := strings.Cut(name, ":")
			rows[name] = &groupRow{Name: short, Kind: kind}
		}
		return rows[name]
	}
	for _, c := range acl.Collections {
		for _, p := range c.Principals {
			r := row(p.Name)
			r.In = append(r.In, groupUse{c.Name, p.Documents})
		}
	}
	for _, k := range keys {
		if state := k.State(now()); state != "active" && state != "ending" {
			continue
		}
		for _, g := range k.Groups {
			r := row("group:" + g)
			r.Keys = append(r.Keys, k)
		}
		if r := rows["user:"+k.User]; r != nil {
			r.Keys = append(r.Keys, k)
		}
	}
	list := []groupRow{}
	for _, r := range rows {
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b groupRow) int { return strings.Compare(a.Kind+"\x00"+a.Name, b.Kind+"\x00"+b.Name) })
	return list
}
