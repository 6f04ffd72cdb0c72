package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/assay-rag/assay"
)

// noDNS fails the test if a name is resolved.
func noDNS(t *testing.T) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		t.Error("a name was resolved")
		return nil, errors.New("no DNS")
	}}
}

// TestCheck is the table of docs/egress.md: what each kind of scope reaches under each kind of rules.
func TestCheck(t *testing.T) {
	t.Parallel()
	provider := Scope{Purpose: Provider, Hosts: MustRules("api.example.com:443", "localhost:11434", "10.0.0.7:8080"), Private: true}
	source := Scope{Purpose: Source, Hosts: MustRules("wiki.example.com:443", "10.0.0.9:443"), Fixed: MustRules("*.files.example:443")}
	page := Scope{Purpose: Page, Public: true}
	for _, c := range []struct {
		rules Config
		scope Scope
		url   string
		want  bool
	}{
		{Config{}, provider, "https://api.example.com/v1", true},
		{Config{}, provider, "https://API.Example.COM./v1", true},
		{Config{}, provider, "https://api.example.com:8443/", false},
		{Config{}, provider, "https://api.example.com.evil.example/", false},
		{Config{}, provider, "https://evil.example/", false},
		{Config{}, provider, "https://user@api.example.com/", false},
		{Config{}, provider, "http://localhost:11434/", true},
		{Config{}, provider, "http://localhost:6379/", false},
		{Config{}, provider, "http://10.0.0.7:8080/", true},
		{Config{}, provider, "http://[::ffff:10.0.0.7]:8080/", true},
		{Config{}, provider, "http://169.254.169.254/", false},
		{Config{}, source, "https://wiki.example.com/", true},
		{Config{}, source, "https://cdn.files.example/a", true},
		{Config{}, source, "https://files.example/a", false},
		{Config{}, source, "https://elsewhere.example/", false},
		{Config{}, source, "https://10.0.0.9/", false}, // without allow-private
		{Config{}, page, "https://anything.example/", true},
		{Config{}, page, "http://anything.example:8080/", false},
		{Config{}, page, "http://127.0.0.1/", false},
		{Config{}, page, "http://[fe80::1%25eth0]/", false},
		{Config{}, page, "http://bücher.example/", true},
		{Config{Also: MustRules("files.example")}, source, "https://files.example/a", true},
		{Config{Also: MustRules("10.0.0.0/8")}, source, "https://10.0.0.9/", true},
		{Config{Also: MustRules("10.0.0.0/8")}, source, "https://10.0.0.8/", false},         // not configured
		{Config{Also: MustRules("localhost:11434")}, page, "http://localhost:11434/", true}, // refused at its address
		{Config{Allow: MustRules("api.example.com")}, provider, "https://api.example.com/v1", true},
		{Config{Allow: MustRules("*.example.com")}, provider, "https://api.example.com/v1", true},
		{Config{Allow: MustRules("other.example")}, provider, "https://api.example.com/v1", false},
		{Config{Allow: MustRules("10.0.0.0/8")}, provider, "http://10.0.0.7:8080/", true},
		{Config{Allow: MustRules("10.0.0.0/8:9")}, provider, "http://10.0.0.7:8080/", false},
		{Config{Allow: List{}}, provider, "https://api.example.com/v1", false},
		{Config{Allow: MustRules("api.example.com")}, page, "https://anything.example/", false},
		{Config{Allow: MustRules("public")}, page, "https://anything.example/", true},
		{Config{Allow: MustRules("public", "10.0.0.0/8")}, page, "http://10.0.0.9/", false},
		{Config{Allow: MustRules("bücher.example")}, page, "http://xn--bcher-kva.example/", true},
		{Config{Offline: true}, provider, "https://api.example.com/v1", false},
		{Config{Offline: true}, provider, "http://localhost:11434/", true},
		{Config{Offline: true}, provider, "http://10.0.0.7:8080/", false},
		{Config{Offline: true}, page, "https://anything.example/", false},
	} {
		u, err := url.Parse(c.url)
		if err != nil {
			t.Fatal(err)
		}
		c.rules.Resolver = noDNS(t)
		err = New(c.rules).Scope(c.scope).Check(t.Context(), u)
		if (err == nil) != c.want || err != nil && (!errors.Is(err, ErrRefused) || !errors.Is(err, assay.ErrInvalid)) {
			t.Errorf("%s by %s, allow %v, also %v, offline %v: %v, want allowed %v", c.url, c.scope.Purpose, c.rules.Allow, c.rules.Also, c.rules.Offline, err, c.want)
		}
		if err != nil && !c.want && u.User == nil {
			if _, dialed := New(c.rules).Scope(c.scope).DialContext(t.Context(), "tcp", HostPort(u)); !errors.Is(dialed, ErrRefused) {
				t.Errorf("%s is dialled: %v", c.url, dialed)
			}
		}
	}
}

func TestClasses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]class{
		"8.8.8.8": publicClass, "2606:4700::1111": publicClass, "::ffff:8.8.8.8": publicClass,
		"127.0.0.1": privateClass, "::1": privateClass, "10.1.1.1": privateClass, "172.16.0.1": privateClass, "192.168.0.1": privateClass,
		"100.64.0.1": privateClass, "fd00::1": privateClass, "::ffff:127.0.0.1": privateClass,
		"169.254.169.254": specialClass, "fe80::1": specialClass, "fe80::1%eth0": specialClass, "224.0.0.1": specialClass, "0.0.0.0": specialClass, "::": specialClass,
		"168.63.129.16": specialClass, "100.100.100.200": specialClass, "fd00:ec2::254": specialClass, "64:ff9b::7f00:1": specialClass, "2002:7f00:1::1": specialClass,
		"255.255.255.255": specialClass, "192.0.2.1": specialClass,
	} {
		if got := classOf(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s is %d, want %d", text, got, want)
		}
	}
}

// TestTenant checks that a tenant's rules narrow, never widen, and that refusals are reported.
func TestTenant(t *testing.T) {
	t.Parallel()
	s := New(Config{Resolver: noDNS(t)}).Scope(Scope{Purpose: Provider, Hosts: MustRules("a.example", "b.example")})
	var refused []string
	var failure error
	ctx := WithTenant(t.Context(), &Tenant{
		Allow:   func(context.Context) (List, error) { return MustRules("a.example", "c.example"), failure },
		Refused: func(_ context.Context, e *RefusedError) error { refused = append(refused, e.Host); return nil },
	})
	for host, want := range map[string]bool{"a.example": true, "b.example": false, "c.example": false} {
		if err := s.Check(ctx, &url.URL{Scheme: "https", Host: host}); (err == nil) != want {
			t.Errorf("%s: %v", host, err)
		}
	}
	if len(refused) != 2 {
		t.Errorf("reported %q", refused)
	}
	failure = errors.New("the registry cannot be read")
	if err := s.Check(ctx, &url.URL{Scheme: "https", Host: "a.example"}); !errors.Is(err, failure) {
		t.Errorf("it does not fail closed: %v", err)
	}
}

// TestKeptConnection checks that each request is checked, also one on a connection that is open.
func TestKeptConnection(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	host, _ := HostOf(server.URL)
	client := New(Config{}).Scope(Scope{Purpose: Provider, Hosts: List{host}, Private: true}).Client(0)
	allowed := atomic.Bool{}
	allowed.Store(true)
	ctx := WithTenant(t.Context(), &Tenant{Allow: func(context.Context) (List, error) {
		if allowed.Load() {
			return nil, nil
		}
		return List{}, nil
	}})
	get := func() error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(r)
		if err == nil {
			res.Body.Close()
		}
		return err
	}
	if err := get(); err != nil {
		t.Fatal(err)
	}
	allowed.Store(false)
	if err := get(); !errors.Is(err, ErrRefused) {
		t.Errorf("on an open connection: %v", err)
	}
}

// TestProxy checks that a proxy is used for hosts that are allowed alone, that it must be allowed by
// a list itself, and that scopes of text use none.
func TestProxy(t *testing.T) {
	var asked atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer proxy.Close()
	t.Setenv("HTTP_PROXY", proxy.URL)
	at := strings.TrimPrefix(proxy.URL, "http://")
	for i, c := range []struct {
		rules Config
		scope Scope
		host  string
		asked int32
	}{
		{Config{}, Scope{Hosts: MustRules("a.example"), Proxy: true}, "a.example", 1},
		{Config{}, Scope{Hosts: MustRules("a.example"), Proxy: true}, "b.example", 0},
		{Config{}, Scope{Hosts: MustRules("a.example"), Proxy: true}, "169.254.169.254", 0},
		{Config{Allow: MustRules("a.example")}, Scope{Hosts: MustRules("a.example"), Proxy: true}, "a.example", 0},
		{Config{Allow: MustRules("a.example", at)}, Scope{Hosts: MustRules("a.example"), Proxy: true}, "a.example", 1},
		{Config{Offline: true}, Scope{Hosts: MustRules("a.example"), Proxy: true}, "a.example", 0},
	} {
		asked.Store(0)
		res, err := New(c.rules).Scope(c.scope).Client(0).Get("http://" + c.host + "/")
		if err == nil {
			res.Body.Close()
		}
		if asked.Load() != c.asked || c.asked == 0 && !errors.Is(err, ErrRefused) {
			t.Errorf("%d: the proxy was asked %d times, %v", i, asked.Load(), err)
		}
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "*", "*.", "*.com", "a b", "https://a.example", "user@a.example", "a.example:", "a.example:0", "a.example:99999", "a.example:http", "[fe80::1%eth0]", "a..b", "a.*.b", "::ffff:0:0/96x"} {
		if _, err := ParseRule(bad); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, good := range []string{"a.example", "a.example.", "*.a.example:443", "10.0.0.0/8", "10.0.0.0/8:5432", "[::1]:80", "::1", "fd00::/8", "localhost:11434", "under_score.example", "public"} {
		if _, err := ParseRule(good); err != nil {
			t.Error(err)
		}
	}
}

func FuzzRule(f *testing.F) {
	for _, s := range []string{"a.example:80", "*.bücher.example", "10.0.0.0/8:1", "[::1]:1", "public", "a\u200b.example", "１２７.0.0.1"} {
		f.Add(s, "http://a.example/")
	}
	f.Fuzz(func(t *testing.T, rule, address string) {
		r, err := ParseRule(rule)
		if err != nil {
			return
		}
		u, err := url.Parse(address)
		if err != nil {
			return
		}
		// No rule for names lets text reach an address that is not public.
		s := New(Config{Also: List{r}, Allow: List{r}}).Scope(Scope{Purpose: Page, Public: true})
		if s.Check(t.Context(), u) != nil {
			return
		}
		if a, err := netip.ParseAddr(u.Hostname()); err == nil && classOf(a) != publicClass {
			t.Errorf("%q lets %q through", rule, address)
		}
	})
}

func Example() {
	s := New(Config{Allow: MustRules("*.example.com")}).Scope(Scope{Purpose: Provider, Hosts: MustRules("api.example.com")})
	for _, address := range []string{"https://api.example.com/v1", "https://api.example.org/v1"} {
		u, _ := url.Parse(address)
		rule, err := s.Explain(context.Background(), u)
		fmt.Println(rule, err)
	}
	// Output:
	// egress.allow: *.example.com <nil>
	//  api.example.org:443 may not be reached (provider): egress.allow does not name it
}
