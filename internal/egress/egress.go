// Package egress decides which connections leave this process. Every connection is made by a
// [Scope] of a [Guard]: those to models, web searches, pages, sources, webhooks and issuers of
// identities.
//
// A host is checked by name before it is resolved, so that a refused name causes no query of DNS,
// and each address that it resolves to is checked when it is connected to. A name whose address
// changes between two resolutions is therefore checked as well. HTTP requests are checked before
// each request, also on connections that are kept open and through proxies.
//
// A host is either named by an administrator, as the address of a model is, or chosen by text, such
// as the pages that a web search finds or the target of a redirect. Text reaches only the public
// internet, and only in scopes that allow it.
package egress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/assay-rag/assay"
)

// The purposes of connections.
const (
	Provider = "provider" // models, embeddings, rerankers, guardrails and managed services
	Search   = "search"   // search engines
	Page     = "page"     // pages that a web search found
	Source   = "source"
	Models   = "models" // downloads of encoders
	Webhook  = "webhook"
	Identity = "identity" // keys and configuration of issuers
	Witness  = "witness"  // witnesses of checkpoints
	Health   = "health"   // servers, by assay health
	Index    = "index"    // nodes of the operator's search cluster

	Telemetry = "telemetry" // receivers of traces and metrics
)

// ErrRefused is wrapped by the error of a connection that was refused. It is an assay.ErrInvalid.
var ErrRefused = fmt.Errorf("refused by the egress rules: %w", assay.ErrInvalid)

// A RefusedError is the error of a connection that was refused. It wraps ErrRefused.
type RefusedError struct {
	Purpose string
	Host    string // HOST:PORT, fit for a log
	Rule    string // why, such as "egress.allow does not name it"
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s may not be reached (%s): %s", e.Host, e.Purpose, e.Rule)
}

// Unwrap returns ErrRefused.
func (e *RefusedError) Unwrap() error { return ErrRefused }

// A Config configures a Guard. Its zero value is the default: hosts that are named by an
// administrator, and the public internet for scopes that allow it.
type Config struct {
	Offline bool   // only this machine, and no query of DNS
	Why     string // why Offline is set; empty: "offline"
	Allow   List   // nothing else is reached; nil: no list
	Also    List   // reached besides the hosts that are configured

	Resolver *net.Resolver // nil: the system's

	// Permit admits a connection that would be refused. It is for tests, whose servers are on
	// loopback, and must be nil otherwise.
	Permit func(netip.AddrPort) bool
}

// A Guard makes scopes. It is safe for concurrent use.
type Guard struct {
	config Config
	proxy  func(*url.URL) (*url.URL, error)
}

// New returns a Guard. It reads the proxies of the environment (HTTPS_PROXY, HTTP_PROXY, NO_PROXY).
func New(c Config) *Guard {
	return &Guard{config: c, proxy: httpproxy.FromEnvironment().ProxyFunc()}
}

// Offline reports whether only this machine can be reached.
func (g *Guard) Offline() bool { return g.config.Offline }

// Allow returns the list of rules outside of which nothing is reached; nil: there is none.
func (g *Guard) Allow() List { return g.config.Allow }

// Also returns the rules for hosts besides those that are configured.
func (g *Guard) Also() List { return g.config.Also }

// A Scope is the right to connect to some hosts for one purpose.
type Scope struct {
	Guard   *Guard
	Purpose string
	Hosts   List // named by an administrator
	Fixed   List // named by the program, such as the hosts of a vendor and AWS's credentials

	Private bool // Hosts and Fixed may have private addresses, as a model's server in the own network
	Public  bool // text may choose any other public host, at the ports 80 and 443
	Proxy   bool // the proxies of the environment are used

	proxies *sync.Map // addresses of proxies that were used
}

// Scope returns s with the guard. A nil Guard is the default one.
func (g *Guard) Scope(s Scope) *Scope {
	if g == nil {
		g = New(Config{})
	}
	s.Guard, s.proxies = g, &sync.Map{}
	return &s
}

// A Tenant is what connections on behalf of a tenant are subject to, besides the Guard. Contexts
// carry it.
type Tenant struct {
	// Allow returns the tenant's own list; nil: none. A connection is refused if it fails.
	Allow func(ctx context.Context) (List, error)

	// Refused is called after a connection was refused. It must not block. It may be nil.
	Refused func(ctx context.Context, refused *RefusedError) error
}

type tenantKey struct{}

// WithTenant returns a context whose connections are made on behalf of t.
func WithTenant(ctx context.Context, t *Tenant) context.Context {
	return context.WithValue(ctx, tenantKey{}, t)
}

func tenantOf(ctx context.Context) *Tenant {
	t, _ := ctx.Value(tenantKey{}).(*Tenant)
	return t
}

// A target is a host that was admitted by its name. Its addresses are still to be checked.
type target struct {
	scope      *Scope
	host, port string // normalised; the host may be an address
	literal    netip.Addr
	named      bool // by an administrator
	rule       string
	lists      []List // that must each admit the target
}

// refuse returns the error of a refused host, and reports it.
func (s *Scope) refuse(ctx context.Context, host, port, format string, args ...any) error {
	e := &RefusedError{Purpose: s.Purpose, Host: shown(host, port), Rule: fmt.Sprintf(format, args...)}
	if t := tenantOf(ctx); t != nil && t.Refused != nil {
		if err := t.Refused(ctx, e); err != nil {
			return fmt.Errorf("%w (and it could not be recorded: %w)", e, err)
		}
	}
	return e
}

// Reasons of refusals.
const (
	byOffline = "%s: nothing leaves this machine"
	byList    = "egress.allow does not name it"
	byTenant  = "the tenant's egress rules do not name it"
	byDefault = "it is not a configured host"
	byClass   = "its address is %s; egress.allow must name the host or its network"
	byPublic  = "pages and links are read from the public internet alone, at the ports 80 and 443"
)

// target checks a host by its name. It does not resolve it.
func (s *Scope) target(ctx context.Context, host, port string) (target, error) {
	t := target{scope: s, host: host, port: port}
	if a, err := netip.ParseAddr(host); err == nil {
		if a.Zone() != "" {
			return t, s.refuse(ctx, host, port, "it has a zone")
		}
		t.literal = a.Unmap()
		t.host = t.literal.String()
	} else if t.host, err = normalName(host); err != nil {
		return t, s.refuse(ctx, host, port, "it is no name of a host")
	}
	if s.Guard.config.Permit != nil && t.literal.IsValid() {
		if p, err := netip.ParseAddrPort(net.JoinHostPort(t.host, port)); err == nil && s.Guard.config.Permit(p) {
			t.named, t.rule = true, "permitted by a test"
			return t, nil
		}
	}
	if by, ok := s.named(t); ok {
		t.named, t.rule = true, "configured as "+by.text
	}
	if s.Guard.config.Offline {
		if !t.named || !t.thisMachine() {
			return t, s.refuse(ctx, t.host, port, byOffline, cmp.Or(s.Guard.config.Why, "offline"))
		}
		t.rule += ", on this machine"
	}
	if err := t.addLists(ctx); err != nil {
		return t, err
	}
	_, _, listed := s.Guard.extra().name(t.host, port)
	switch {
	case t.named, listed:
	case !s.Public:
		return t, s.refuse(ctx, t.host, port, byDefault)
	case !webPort(port):
		return t, s.refuse(ctx, t.host, port, byPublic)
	default:
		t.rule = "the public internet"
	}
	return t, nil
}

// named returns the rule of the scope for a target.
func (s *Scope) named(t target) (by Rule, ok bool) {
	hosts := slices.Concat(s.Hosts, s.Fixed)
	if t.literal.IsValid() {
		return hosts.networkOf(t.literal, t.port)
	}
	by, _, ok = hosts.name(t.host, t.port)
	return by, ok
}

// extra returns the rules that admit hosts besides those of a scope.
func (g *Guard) extra() List { return slices.Concat(g.config.Allow, g.config.Also) }

// addLists checks the target against the list of the guard and that of the tenant, as far as its
// name decides.
func (t *target) addLists(ctx context.Context) error {
	s := t.scope
	if l := s.Guard.config.Allow; l != nil {
		if !t.mayMatch(l) {
			return s.refuse(ctx, t.host, t.port, byList)
		}
		t.lists = append(t.lists, l)
		if by, _, ok := l.name(t.host, t.port); ok {
			t.rule = "egress.allow: " + by.text
		}
	}
	tenant := tenantOf(ctx)
	if tenant == nil || tenant.Allow == nil {
		return nil
	}
	own, err := tenant.Allow(ctx)
	if err != nil {
		return fmt.Errorf("read the tenant's egress rules: %w", err)
	}
	if own != nil && !t.mayMatch(own) {
		return s.refuse(ctx, t.host, t.port, byTenant)
	}
	if own != nil {
		t.lists = append(t.lists, own)
	}
	return nil
}

// mayMatch reports whether the list admits the target, or may do so once it is resolved. A network
// admits only targets that an administrator named.
func (t *target) mayMatch(l List) bool {
	if _, _, ok := l.name(t.host, t.port); ok {
		return true
	}
	if t.named && l.networks() {
		return true
	}
	return l.public() && (t.named || t.scope.Public && webPort(t.port))
}

// matches reports whether the list admits the target at an address.
func (t *target) matches(l List, a netip.Addr) bool {
	if _, _, ok := l.name(t.host, t.port); ok {
		return true
	}
	if _, ok := l.networkOf(a, t.port); ok && t.named {
		return true
	}
	return l.public() && classOf(a) == publicClass
}

// admit checks an address that the target is connected at.
func (t *target) admit(ctx context.Context, a netip.Addr) error {
	s, a := t.scope, a.Unmap()
	if p := netip.AddrPortFrom(a, portNumber(t.port)); s.Guard.config.Permit != nil && s.Guard.config.Permit(p) {
		return nil
	}
	if s.Guard.config.Offline && !a.IsLoopback() {
		return s.refuse(ctx, t.host, t.port, byOffline, cmp.Or(s.Guard.config.Why, "offline"))
	}
	for _, l := range t.lists {
		if !t.matches(l, a) {
			return s.refuse(ctx, t.host, t.port, byList)
		}
	}
	extra := s.Guard.extra()
	_, exact, _ := extra.name(t.host, t.port)
	_, network := extra.networkOf(a, t.port)
	_, fixed := s.Fixed.networkOf(a, t.port)
	admitted := true
	switch c := classOf(a); {
	case c == publicClass:
	case !t.named:
		return s.refuse(ctx, t.host, t.port, byPublic) // does not tell how a name resolves inside a network
	case c == privateClass:
		admitted = s.Private || exact || network
	default:
		admitted = fixed || network
	}
	if !admitted {
		return s.refuse(ctx, t.host, t.port, byClass, classOf(a).words())
	}
	return nil
}

// thisMachine reports whether the target's name alone says that it is on this machine.
func (t *target) thisMachine() bool { return t.host == "localhost" || t.literal.IsLoopback() }

func webPort(port string) bool { return port == "80" || port == "443" }

func portNumber(port string) uint16 {
	p, _ := netip.ParseAddrPort("0.0.0.0:" + port)
	return p.Port()
}

// Check checks the host of a URL by its name, without resolving it. The error wraps ErrRefused.
func (s *Scope) Check(ctx context.Context, u *url.URL) error {
	_, err := s.Explain(ctx, u)
	return err
}

// Explain is Check that returns the rule which admits the URL.
func (s *Scope) Explain(ctx context.Context, u *url.URL) (rule string, err error) {
	host, port, ok := hostOf(u)
	switch {
	case !ok:
		return "", s.refuse(ctx, u.Host, "", "it names no host and port")
	case u.User != nil:
		return "", s.refuse(ctx, host, port, "the address has a user in it")
	}
	t, err := s.target(ctx, host, port)
	if err != nil {
		return "", err
	}
	if t.literal.IsValid() {
		if err := t.admit(ctx, t.literal); err != nil {
			return "", err
		}
	}
	return t.rule, nil
}

// hostOf returns the host and port of a URL.
func hostOf(u *url.URL) (host, port string, ok bool) {
	host, port = u.Hostname(), u.Port()
	if port == "" {
		if strings.HasSuffix(u.Host, ":") {
			return "", "", false
		}
		port = map[string]string{
			"http": "80", "https": "443", "postgres": "5432", "postgresql": "5432", "mysql": "3306", "sqlserver": "1433",
		}[strings.ToLower(u.Scheme)]
	}
	return host, port, host != "" && portNumber(port) > 0
}

// dialTimeout bounds how long a connection takes to open, and localTimeout one to a metadata service,
// which answers at once or does not exist.
const (
	dialTimeout  = 30 * time.Second
	localTimeout = time.Second
)

// DialContext connects to HOST:PORT, as net.Dialer does. The error wraps ErrRefused if the host, or
// each address that it resolves to, is refused.
func (s *Scope) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if network == "unix" {
		return s.dialUnix(ctx, address)
	}
	if !strings.HasPrefix(network, "tcp") && !strings.HasPrefix(network, "udp") {
		return nil, s.refuse(ctx, address, "", "%s is no network that is used", network)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || portNumber(port) == 0 {
		return nil, s.refuse(ctx, address, "", "it names no host and port")
	}
	t, err := s.dialTarget(ctx, host, port)
	if err != nil {
		return nil, err
	}
	hosts := []string{t.host}
	if t.host == "localhost" { // without DNS
		hosts = []string{"127.0.0.1", "::1"}
	}
	var conn net.Conn
	for _, h := range hosts {
		if conn, err = t.dial(ctx, network, h); err == nil {
			return conn, nil
		}
	}
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return nil, refused // without the system's words about the call
	}
	return nil, err
}

// dialTarget checks the host of a connection: a proxy that was chosen for a request, or a target.
func (s *Scope) dialTarget(ctx context.Context, host, port string) (target, error) {
	if _, proxied := s.proxies.Load(strings.ToLower(net.JoinHostPort(host, port))); !proxied {
		return s.target(ctx, host, port)
	}
	rule, err := ParseRule(net.JoinHostPort(host, port))
	if err != nil {
		return target{}, s.refuse(ctx, host, port, "it is no name of a host")
	}
	proxy := *s
	proxy.Hosts, proxy.Private, proxy.Public = List{rule}, true, false
	return proxy.target(ctx, host, port)
}

// dial connects to one name or address of the target.
func (t *target) dial(ctx context.Context, network, host string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout, Resolver: t.scope.Guard.config.Resolver}
	if t.literal.IsValid() && classOf(t.literal) == specialClass {
		d.Timeout = localTimeout
	}
	d.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return t.scope.refuse(ctx, t.host, t.port, "it has no address")
		}
		return t.admit(ctx, at.Addr())
	}
	return d.DialContext(ctx, network, net.JoinHostPort(host, t.port))
}

// dialUnix connects to a socket on this machine, which a database may have.
func (s *Scope) dialUnix(ctx context.Context, path string) (net.Conn, error) {
	if !s.Private {
		return nil, s.refuse(ctx, path, "", "it is a socket of this machine")
	}
	d := net.Dialer{Timeout: dialTimeout}
	return d.DialContext(ctx, "unix", path)
}

// Apply makes a transport connect through the scope.
func (s *Scope) Apply(t *http.Transport) {
	t.DialContext, t.DialTLSContext, t.OnProxyConnectResponse = s.DialContext, nil, nil
	t.Proxy = s.forRequest
}

// forRequest checks each request before it is sent, also on a connection that is kept open, and
// returns its proxy. Through a proxy the target is checked by its name only, because the proxy
// resolves it. The proxy itself is checked like any host when it is connected to.
func (s *Scope) forRequest(r *http.Request) (*url.URL, error) {
	if err := s.Check(r.Context(), r.URL); err != nil {
		return nil, err
	}
	if !s.Proxy || s.Guard.config.Offline {
		return nil, nil
	}
	proxy, err := s.Guard.proxy(r.URL)
	if proxy == nil || err != nil {
		return nil, err
	}
	port := proxy.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[proxy.Scheme]
	}
	s.proxies.Store(strings.ToLower(net.JoinHostPort(proxy.Hostname(), port)), true)
	return proxy, nil
}

// Transport returns a new transport with the scope.
func (s *Scope) Transport() *http.Transport {
	t := &http.Transport{
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           100,
		MaxIdleConnsPerHost:    8,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: 1 << 20,
	}
	s.Apply(t)
	return t
}

// Client returns a client with a transport of its own and the redirects of Redirects. A timeout of 0
// is none.
func (s *Scope) Client(timeout time.Duration) *http.Client {
	return &http.Client{Transport: s.Transport(), Timeout: timeout, CheckRedirect: Redirects}
}

// maxRedirects is the largest number of redirects of a request.
const maxRedirects = 5

// Redirects is the CheckRedirect of clients that follow redirects: at most five, without a Referer,
// and without the credentials if the target is another origin, to which net/http would send them if
// only the port, the scheme or the subdomain differs. The scope checks each target.
func Redirects(r *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	r.Header.Del("Referer")
	if first := via[0].URL; r.URL.Scheme != first.Scheme || r.URL.Host != first.Host {
		r.Header.Del("Authorization")
		r.Header.Del("Cookie")
	}
	return nil
}
