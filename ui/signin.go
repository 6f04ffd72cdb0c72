package ui

import (
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/identity"
)

// A browser that is signed in has a cookie with a random word, and the server keeps the credential in
// memory. So no credential is stored in a browser, and signing out, a restart or its expiry ends the
// session. Each request checks the credential again.

const (
	sessionCookie = "assay-session"
	sessionIdle   = 12 * time.Hour
	sessionLife   = 7 * 24 * time.Hour
	maxSessions   = 20_000

	maxSessionsOfOne = 1000 // browsers of one user or API key, so that nobody drops the sessions of others
)

// sessions are the browsers that are signed in. It is safe for concurrent use.
type sessions struct {
	mu  sync.Mutex
	all map[[sha256.Size]byte]*signedIn // by the hash of the cookie
}

func newSessions() *sessions { return &sessions{all: map[[sha256.Size]byte]*signedIn{}} }

// A signedIn is the session of one browser.
type signedIn struct {
	owner       string // engine.SessionOwner
	credential  identity.Credential
	tokens      *tokens // of a provider; nil: the credential was typed
	begun, used time.Time
}

func (s *signedIn) over(at time.Time) bool {
	return at.Sub(s.used) > sessionIdle || at.Sub(s.begun) > sessionLife
}

// begin returns the value of the cookie of a new session. t is nil unless a provider gave the credential.
func (s *sessions) begin(owner string, c identity.Credential, t *tokens) string {
	word := rand.Text() + rand.Text() // 52 letters with 260 random bits
	s.mu.Lock()
	defer s.mu.Unlock()
	s.makeRoom(maxSessionsOfOne, func(one *signedIn) bool { return one.owner == owner })
	if len(s.all) >= maxSessions {
		s.makeRoom(maxSessions, func(*signedIn) bool { return true })
	}
	s.all[sha256.Sum256([]byte(word))] = &signedIn{owner, c, t, now(), now()}
	return word
}

// makeRoom drops those sessions of some that are over, and the one that was used least recently if there
// are most or more.
func (s *sessions) makeRoom(most int, of func(*signedIn) bool) {
	var oldest [sha256.Size]byte
	var last time.Time
	n := 0
	for hash, one := range s.all {
		switch {
		case !of(one):
			continue
		case one.over(now()):
			delete(s.all, hash)
			continue
		case last.IsZero() || one.used.Before(last):
			oldest, last = hash, one.used
		}
		n++
	}
	if n >= most {
		delete(s.all, oldest)
	}
}

// credential returns the credential of a request's session.
func (s *sessions) credential(r *http.Request) (identity.Credential, bool) {
	cookies := r.CookiesNamed(sessionCookie)
	if len(cookies) != 1 {
		return identity.Credential{}, false
	}
	hash := sha256.Sum256([]byte(cookies[0].Value))
	one := s.find(hash)
	if one == nil {
		return identity.Credential{}, false
	}
	if one.tokens == nil {
		return one.credential, true
	}
	c, ok := one.tokens.credential(r.Context())
	if !ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.all, hash)
	}
	return c, ok
}

// find returns the session of a cookie, which is used now; nil: there is none.
func (s *sessions) find(hash [sha256.Size]byte) *signedIn {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.all[hash]
	if one == nil {
		return nil
	}
	if one.over(now()) {
		delete(s.all, hash)
		return nil
	}
	one.used = now()
	return one
}

// end forgets the session of a request. It returns the tokens of a provider; nil: there were none.
func (s *sessions) end(r *http.Request) (t *tokens) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range r.CookiesNamed(sessionCookie) {
		hash := sha256.Sum256([]byte(c.Value))
		if one := s.all[hash]; one != nil {
			t = one.tokens
		}
		delete(s.all, hash)
	}
	return t
}

// signInRoutes are about the session of a browser.
func signInRoutes() []Route {
	return []Route{
		page("/sign-in", "sign-in", "", showSignIn),
		action("/sign-in", "sign-in.begin", "", signIn),
		page("/sign-in/provider", "sign-in.provider", "", beginAtProvider),
		page(callbackPath, "sign-in.callback", "", endAtProvider),
		action("/sign-out", "sign-out", "", signOut),
	}
}

// signInPath returns the path of the page that asks for a credential and then returns to a request's.
func signInPath(r *http.Request) string {
	if r.URL.Path == "/" && r.URL.RawQuery == "" {
		return "/sign-in"
	}
	return "/sign-in?" + url.Values{"to": {r.URL.RequestURI()}}.Encode()
}

// A signInForm is the data of the page that asks for a credential.
type signInForm struct {
	To       string
	Error    string
	Provider string // name; empty: there is none
	Begin    string // path that leads to the provider
}

// signInForm returns the data of that page.
func (q *request) signInForm(to, problem string) signInForm {
	f := signInForm{To: to, Error: problem}
	if p := q.pages.provider; p != nil {
		f.Provider, f.Begin = p.config.Name, "/sign-in/provider?"+url.Values{"to": {ownPath(to)}}.Encode()
	}
	return f
}

func showSignIn(q *request) error {
	if !q.pages.config.Server.Identified() {
		return q.redirect("/", "")
	}
	return q.render("signin.html", q.view("", "Sign in", q.signInForm(q.query("to"), "")))
}

// signIn checks a credential and begins a session.
func signIn(q *request) error {
	text, err := q.form("key")
	if err != nil {
		return err
	}
	to := q.r.PostForm.Get("to")
	var session *engine.Session
	c, err := identity.FromString(text)
	if err == nil {
		session, err = q.pages.config.Server.SessionOf(q.ctx(), c)
	}
	if err != nil {
		problem := q.pages.config.Server.Problem(q.r, err)
		return q.renderStatus(problem.Status, "signin.html", q.view("", "Sign in", q.signInForm(to, problem.Detail)))
	}
	q.pages.sessions.end(q.r)
	http.SetCookie(q.w, q.cookie(q.pages.sessions.begin(engine.SessionOwner(session), c, nil), int(sessionLife/time.Second)))
	return q.redirect(ownPath(to), "")
}

// signOut ends the session, and that at the provider if there is one.
func signOut(q *request) error {
	t := q.pages.sessions.end(q.r)
	http.SetCookie(q.w, q.cookie("", -1))
	if t != nil {
		if to := t.ended(q.ctx()); to != "" {
			return q.hop(to, "You are signed out")
		}
	}
	return q.redirect("/sign-in", "You are signed out.")
}

// cookie returns the cookie of a session.
func (q *request) cookie(value string, maxAge int) *http.Cookie {
	return &http.Cookie{Name: sessionCookie, Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, Secure: q.encrypted(), SameSite: http.SameSiteStrictMode}
}

// encrypted reports whether the browser speaks TLS with this server or with a proxy in front of it. Browsers
// send the origin with forms alone, so for a return from a provider the configured URL counts.
func (q *request) encrypted() bool {
	p := q.pages.provider
	return q.r.TLS != nil || strings.HasPrefix(q.r.Header.Get("Origin"), "https://") || p != nil && q.route.Path == callbackPath && p.encrypted()
}

// ownPath returns a path of this server that a form asked to go to; "/" for anything else.
func ownPath(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n") {
		return "/"
	}
	return to
}
