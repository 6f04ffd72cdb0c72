package ui

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/server"
)

// A request is one request for a page, with the session of its credential.
type request struct {
	pages   *Pages
	route   Route
	w       http.ResponseWriter
	r       *http.Request
	session *engine.Session
	grant   identity.Grant
}

// handler returns the handler of a route.
func (p *Pages) handler(route Route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := &request{pages: p, route: route, w: w, r: r}
		q.secure()
		if !server.FromOwnPage(r) {
			q.fail(fmt.Errorf("only pages of this server may send this: %w", assay.ErrForbidden))
			return
		}
		if err := q.serve(); err != nil {
			q.fail(err)
		}
	})
}

// policy is the Content-Security-Policy of every page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types assay"

// secure sets the headers of pages.
func (q *request) secure() {
	h := q.w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Referrer-Policy", "same-origin")
}

// serve opens the session and calls the route.
func (q *request) serve() error {
	if q.route.Call != "" {
		var err error
		if q.session, err = q.pages.config.Server.Session(q.r); err != nil {
			return err
		}
		q.grant = engine.SessionGrant(q.session)
		if err := engine.CheckMethod(q.r.Context(), q.session, q.route.Call); err != nil {
			if path := q.home(); errors.Is(err, assay.ErrForbidden) && q.r.URL.Path == "/" && path != "/" {
				return q.redirect(path, "") // one who may not ask, such as an auditor
			}
			return err
		}
	}
	if q.r.Method == http.MethodPost {
		q.r.Body = http.MaxBytesReader(q.w, q.r.Body, cmp.Or(q.route.MaxBody, DefaultMaxBody))
	}
	return q.route.handle(q)
}

// ctx returns the context of the request.
func (q *request) ctx() context.Context { return q.r.Context() }

// may reports whether the session has the right to call a method of engine.Session. Pages leave out
// what their user may not do; the engine checks it in any case.
func (q *request) may(method string) bool {
	return q.session != nil && engine.Allows(q.grant, method) == nil
}

// path returns a part of the path of the request, see http.Request.PathValue.
func (q *request) path(name string) string { return q.r.PathValue(name) }

// query returns a parameter of the URL; empty: it has none.
func (q *request) query(name string) string { return q.r.URL.Query().Get(name) }

// form returns a field of the form that was sent, without spaces around it. The error is
// assay.ErrInvalid if the form cannot be read.
func (q *request) form(name string) (string, error) {
	if err := q.parseForm(); err != nil {
		return "", err
	}
	return strings.TrimSpace(q.r.PostForm.Get(name)), nil
}

// parseForm reads the form into r.PostForm. The error is assay.ErrInvalid if it cannot be read.
func (q *request) parseForm() error {
	err := q.r.ParseForm()
	if _, large := errors.AsType[*http.MaxBytesError](err); err != nil && !large {
		return fmt.Errorf("read the form: %w: %w", assay.ErrInvalid, err)
	}
	return err
}

// A view is the data of a template: the frame of the page, and Data of the page itself.
type view struct {
	Title   string
	Main    string // name of the navigation entry of the page; empty: none
	Nav     []navEntry
	User    string
	Tenant  string
	Signed  bool // a credential was needed, so that the user can sign out
	Notice  string
	Version string
	Theme   string // light or dark, if the user has chosen; empty: that of the system
	Wide    bool   // the page uses the whole width
	Data    any

	request *request
}

// May reports whether the user has the right to call a method of engine.Session.
func (v view) May(method string) bool { return v.request.may(method) }

// A navEntry is an entry of the navigation.
type navEntry struct {
	Name, Path string
	Current    bool
}

// areas are the entries of the navigation, with the method that decides who sees each.
var areas = []struct{ name, path, call string }{
	{"Ask", "/", "Begin"},
	{"Documents", "/documents", "Documents"},
	{"Reviews", "/reviews", "Reviews"},
	{"Evaluation", "/evaluations", "Evaluations"},
	{"Governance", "/governance", "AuditReport"},
	{"Admin", "/admin", "Doctor"},
}

// home returns the path of the first area that the user may see; "/" if there is none.
func (q *request) home() string {
	for _, a := range areas {
		if q.may(a.call) {
			return a.path
		}
	}
	return "/"
}

// view returns the frame of a page. area is the name of its navigation entry.
func (q *request) view(area, title string, data any) view {
	v := view{Title: title, Main: area, Version: q.pages.config.Version, Data: data, request: q, Signed: q.pages.config.Server.Identified()}
	if c, err := q.r.Cookie("assay-theme"); err == nil && (c.Value == "light" || c.Value == "dark") {
		v.Theme = c.Value
	}
	if q.session == nil {
		return v
	}
	v.User, v.Tenant = q.grant.Principal.User, q.grant.Tenant
	for _, a := range areas {
		if q.may(a.call) {
			v.Nav = append(v.Nav, navEntry{a.name, a.path, a.name == area})
		}
	}
	return v
}

// render writes a page: the template of a file with the data of v.
func (q *request) render(file string, v view) error { return q.renderStatus(http.StatusOK, file, v) }

// renderStatus writes a page with a status.
func (q *request) renderStatus(status int, file string, v view) error {
	v.Notice = q.takeNotice()
	return q.execute(status, file, "page", v)
}

// fragment writes a part of a page: a template that the file defines, without the frame.
func (q *request) fragment(file, name string, v view) error {
	return q.execute(http.StatusOK, file, name, v)
}

func (q *request) execute(status int, file, name string, data any) error {
	text, err := q.text(file, name, data)
	if err != nil {
		return err
	}
	h := q.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Accept-Encoding")
	text = encodeBody(q.w, q.r, text)
	q.w.WriteHeader(status)
	_, _ = q.w.Write(text) // the client may be gone
	return nil
}

// text executes a template that a file defines.
func (q *request) text(file, name string, data any) ([]byte, error) {
	t := q.pages.templates[file]
	if t == nil {
		return nil, fmt.Errorf("ui: there is no template %s", file)
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, name, data); err != nil {
		return nil, fmt.Errorf("ui: %w", err)
	}
	return b.Bytes(), nil
}

// redirect sends the browser to a page after a form, with a notice that the page shows once; empty:
// none.
func (q *request) redirect(path, notice string) error {
	if notice != "" {
		http.SetCookie(q.w, &http.Cookie{
			Name: noticeCookie, Value: base64.RawURLEncoding.EncodeToString([]byte(cut(notice, maxNotice))), Path: "/",
			MaxAge: 60, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: q.encrypted(),
		})
	}
	http.Redirect(q.w, q.r, path, http.StatusSeeOther)
	return nil
}

const (
	noticeCookie = "assay-notice"
	maxNotice    = 500 // bytes
)

// takeNotice returns the notice of a redirect, which is then forgotten.
func (q *request) takeNotice() string {
	c, err := q.r.Cookie(noticeCookie)
	if err != nil {
		return ""
	}
	http.SetCookie(q.w, &http.Cookie{Name: noticeCookie, Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	text, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil || len(text) > maxNotice {
		return ""
	}
	return string(text)
}

// cut returns the start of a text, at most n bytes, without half a character.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "")
}

// A failure is the data of the page that reports an error.
type failure struct {
	server.Problem
	Retry bool // the same request may succeed later
}

// fail writes the page for an error. A browser without a valid credential is sent to the page that asks
// for one.
func (q *request) fail(err error) {
	if server.IsUnauthenticated(err) && q.r.Method == http.MethodGet && q.pages.config.Server.Identified() {
		http.Redirect(q.w, q.r, signInPath(q.r), http.StatusSeeOther)
		return
	}
	f := failure{Problem: q.pages.config.Server.Problem(q.r, err)}
	if f.RetryAfter > 0 {
		f.Retry = true
		q.w.Header().Set("Retry-After", fmt.Sprint(f.RetryAfter))
	}
	v := q.view("", f.Title, f)
	if err := q.renderStatus(f.Status, "error.html", v); err != nil {
		q.pages.config.Log.ErrorContext(q.ctx(), "page failed", "route", q.route.Name, "error", err)
		http.Error(q.w, "internal error", http.StatusInternalServerError)
	}
}

// unknown writes the page for a path that does not exist.
func (p *Pages) unknown(w http.ResponseWriter, r *http.Request) {
	q := &request{pages: p, route: Route{Name: "unknown"}, w: w, r: r}
	q.secure()
	if s, err := p.config.Server.Session(r); err == nil {
		q.session, q.grant = s, engine.SessionGrant(s)
	}
	q.fail(fmt.Errorf("there is no page %s: %w", r.URL.Path, assay.ErrNotFound))
}

// now is the time that pages relate times to.
func now() time.Time { return time.Now() }
