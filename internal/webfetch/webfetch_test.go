package webfetch

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/egress"
)

// names is a DNS server on loopback. Each query for a name's address gets the next of its answers;
// the last one repeats.
type names struct {
	t       testing.TB
	mu      sync.Mutex
	answers map[string][]string
}

// resolver starts the server, and returns a resolver that uses it.
func (n *names) resolver() *net.Resolver {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		n.t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		buf := make([]byte, 2048)
		for {
			size, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if reply := n.reply(buf[:size]); reply != nil {
				_, _ = conn.WriteTo(reply, from)
			}
		}
	})
	n.t.Cleanup(func() { conn.Close(); done.Wait() })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func (n *names) reply(request []byte) []byte {
	var m dnsmessage.Message
	if m.Unpack(request) != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	m.Response, m.Authoritative, m.Additionals = true, true, nil
	for _, text := range n.next(q) {
		addr := netip.MustParseAddr(text)
		h := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
		switch {
		case q.Type == dnsmessage.TypeA && addr.Is4():
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: addr.As4()}})
		case q.Type == dnsmessage.TypeAAAA && addr.Is6():
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: addr.As16()}})
		}
	}
	out, err := m.Pack()
	if err != nil {
		n.t.Error(err)
	}
	return out
}

// next returns the addresses of a name. It advances to the next answer with each query for IPv4.
func (n *names) next(q dnsmessage.Question) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	name := strings.TrimSuffix(q.Name.String(), ".")
	list := n.answers[name]
	if len(list) == 0 {
		return nil
	}
	if q.Type == dnsmessage.TypeA && len(list) > 1 {
		n.answers[name] = list[1:]
	}
	return strings.Fields(list[0])
}

// dials records attempted connections, and permits those to one address.
type dials struct {
	mu     sync.Mutex
	tried  []string
	permit string // "127.0.0.1:8080"; empty: none
}

func (d *dials) Permit(at netip.AddrPort) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tried = append(d.tried, at.String())
	return at.String() == d.permit
}

// forbidden holds addresses of every kind that must be refused.
var forbidden = map[string]string{
	"loopback": "127.0.0.1", "loopback, another": "127.8.9.10", "loopback, IPv6": "::1",
	"private 10": "10.0.0.1", "private 172": "172.16.5.4", "private 172, its end": "172.31.255.255", "private 192": "192.168.1.1",
	"link-local": "169.254.1.1", "link-local, IPv6": "fe80::1", "AWS's metadata": "169.254.169.254", "AWS's metadata, IPv6": "fd00:ec2::254",
	"Alibaba's metadata": "100.100.100.200", "Oracle's metadata": "192.0.0.192", "Azure's metadata": "168.63.129.16",
	"shared address space": "100.64.0.1", "its end": "100.127.255.255", "this network": "0.0.0.0", "this network, more": "0.1.2.3", "unspecified, IPv6": "::",
	"multicast": "224.0.0.1", "multicast, IPv6": "ff02::1", "reserved": "240.0.0.1", "broadcast": "255.255.255.255",
	"documentation 1": "192.0.2.1", "documentation 2": "198.51.100.1", "documentation 3": "203.0.113.1", "documentation, IPv6": "2001:db8::1", "documentation, IPv6, new": "3fff::1",
	"benchmarks": "198.18.0.1", "benchmarks, IPv6": "2001:2::1", "6to4 relay": "192.88.99.1",
	"IPv4-mapped loopback": "::ffff:127.0.0.1", "IPv4-mapped private": "::ffff:10.0.0.1", "IPv4-mapped metadata": "::ffff:169.254.169.254", "IPv4-compatible": "::127.0.0.1",
	"NAT64": "64:ff9b::7f00:1", "NAT64, local": "64:ff9b:1::7f00:1", "6to4": "2002:7f00:1::1", "Teredo": "2001:0:7f00:1::1", "unique local": "fd12:3456::1", "site-local": "fec0::1", "discard only": "100::1", "SRv6": "5f00::1",
}

// TestGuard checks that a name that resolves to an address that is not public is refused at the
// connection.
func TestGuard(t *testing.T) {
	for what, address := range forbidden {
		t.Run(what, func(t *testing.T) {
			n := &names{t: t, answers: map[string][]string{"page.test": {address}}}
			d := new(dials)
			f := New(Config{Guard: egress.New(egress.Config{Resolver: n.resolver(), Permit: d.Permit}), Timeout: time.Minute})
			for _, scheme := range []string{"http", "https"} {
				_, err := f.Fetch(t.Context(), scheme+"://page.test/secret")
				if !errors.Is(err, egress.ErrRefused) || !errors.Is(err, assay.ErrInvalid) || errors.Is(err, assay.ErrUnavailable) {
					t.Errorf("%s to %s: %v, want it refused", scheme, address, err)
				}
			}
			if len(d.tried) == 0 {
				t.Error("the guard was not asked about the connection")
			}
			host := address
			if strings.Contains(address, ":") {
				host = "[" + address + "]"
			}
			if err := New(Config{}).Check("http://" + host + "/"); !errors.Is(err, egress.ErrRefused) {
				t.Errorf("the address as it stands: %v, want it refused", err)
			}
		})
	}
	for _, public := range []string{"93.184.216.34", "8.8.8.8", "172.32.0.1", "100.128.0.1", "[2606:4700::1111]", "168.63.129.17"} {
		if err := New(Config{}).Check("https://" + public); err != nil {
			t.Errorf("%s: %v, want it let through", public, err)
		}
	}
	for _, address := range []string{"93.184.216.34:22", "93.184.216.34:8080", "nonsense", "[fe80::1%eth0]:80"} {
		if _, err := New(Config{}).scope.DialContext(t.Context(), "tcp", address); !errors.Is(err, egress.ErrRefused) {
			t.Errorf("%s: %v, want it refused", address, err)
		}
	}
}

// TestRebinding checks that each connection is checked, so that a name that resolves first to a
// public address and then to a private one is refused.
func TestRebinding(t *testing.T) {
	n := &names{t: t, answers: map[string][]string{"rebind.test": {"203.0.113.9", "127.0.0.1", "10.0.0.1", "192.168.0.1 169.254.169.254"}}}
	d := new(dials)
	f := New(Config{Guard: egress.New(egress.Config{Resolver: n.resolver(), Permit: d.Permit}), Timeout: time.Minute})
	for range 4 {
		if _, err := f.Fetch(t.Context(), "http://rebind.test/"); !errors.Is(err, egress.ErrRefused) {
			t.Errorf("%v, want it refused", err)
		}
	}
	for _, want := range []string{"203.0.113.9:80", "127.0.0.1:80", "10.0.0.1:80", "169.254.169.254:80"} {
		if !strings.Contains(strings.Join(d.tried, " "), want) {
			t.Errorf("checked %q, want %s among them", d.tried, want)
		}
	}
}

// TestUnknownName checks that an error does not tell the address of the resolver, which is of the
// internal network.
func TestUnknownName(t *testing.T) {
	n := &names{t: t, answers: map[string][]string{"known.test": {"203.0.113.9"}}}
	f := New(Config{Guard: egress.New(egress.Config{Resolver: n.resolver()}), Timeout: time.Minute})
	_, err := f.Fetch(t.Context(), "http://unknown.test/")
	if !errors.Is(err, assay.ErrUnavailable) || !strings.Contains(err.Error(), "no such host") || strings.Contains(err.Error(), "127.0.0.1") || strings.Contains(err.Error(), " on ") {
		t.Errorf("an unknown name: %v", err)
	}
}

// page starts a server on loopback, and returns it with a fetcher that may reach only that server and
// waits a minute unless c says otherwise.
func page(t *testing.T, c Config, h http.HandlerFunc, resolver ...*net.Resolver) (*Fetcher, string) {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	d := &dials{permit: u.Host}
	rules := egress.Config{Permit: d.Permit}
	for _, r := range resolver {
		rules.Resolver = r
	}
	c.Guard, c.Timeout = egress.New(rules), cmp.Or(c.Timeout, time.Minute)
	return New(c), s.URL
}

func TestFetch(t *testing.T) {
	f, at := page(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Referer") != "" || r.Header.Get("Cookie") != "" {
			t.Errorf("it was told %v", r.Header)
		}
		switch r.URL.Path {
		case "/":
			http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
			http.Redirect(w, r, "/page", http.StatusFound)
		case "/page":
			w.Header().Set("Content-Type", "text/html; charset=iso-8859-1")
			_, _ = w.Write([]byte("<p>caf\xe9</p>"))
		}
	})
	got, err := f.Fetch(t.Context(), at)
	if err != nil || got.URL != at+"/page" || got.Type != "text/html" || string(got.Data) != "<p>café</p>" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestRedirects checks that redirects are subject to the same rules as addresses.
func TestRedirects(t *testing.T) {
	n := &names{t: t, answers: map[string][]string{"inner.test": {"127.0.0.1"}}}
	for _, to := range []string{
		"http://127.0.0.1:1/", "http://169.254.169.254/latest/meta-data/", "http://[::1]/", "http://inner.test/", "https://inner.test/",
		"file:///etc/passwd", "gopher://127.0.0.1/", "http://user:word@8.8.8.8/", "http://8.8.8.8:22/", "http://8.8.8.8:6379/", "javascript:alert(1)",
	} {
		f, at := page(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusFound)
		}, n.resolver())
		if _, err := f.Fetch(t.Context(), at); !errors.Is(err, egress.ErrRefused) {
			t.Errorf("to %s: %v, want it refused", to, err)
		}
	}
	const redirects = 5
	asked := 0
	f, at := page(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		asked++
		http.Redirect(w, r, fmt.Sprintf("/%d", asked), http.StatusFound)
	})
	if _, err := f.Fetch(t.Context(), at); !errors.Is(err, assay.ErrUnavailable) || asked != redirects+1 {
		t.Errorf("%v after %d requests, want an end after %d redirects", err, asked, redirects)
	}
}

// TestHostilePages checks the limits on a page, and that a response that is not a text page is an
// error.
func TestHostilePages(t *testing.T) {
	tests := map[string]struct {
		config Config
		serve  http.HandlerFunc
		want   string
	}{
		"too large": {Config{MaxBytes: 1000}, html(func(w http.ResponseWriter) { _, _ = io.WriteString(w, strings.Repeat("x", 1001)) }), "larger than 1000 bytes"},
		"endless": {Config{}, html(func(w http.ResponseWriter) {
			for noise := bytes.Repeat([]byte("noise "), 1<<14); ; {
				if _, err := w.Write(noise); err != nil {
					return
				}
			}
		}), "larger than"},
		"a bomb": {Config{}, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			for zeros := make([]byte, 1<<20); ; {
				if _, err := z.Write(zeros); err != nil {
					return
				}
			}
		}, "larger than"},
		"a trickle": {Config{Timeout: 200 * time.Millisecond}, html(func(w http.ResponseWriter) {
			for range 1000 {
				if _, err := io.WriteString(w, "x"); err != nil {
					return
				}
				w.(http.Flusher).Flush()
				time.Sleep(20 * time.Millisecond)
			}
		}), "longer than"},
		"silent": {Config{Timeout: 100 * time.Millisecond}, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, ""},
		"a header of 1 MB": {Config{}, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X", strings.Repeat("x", 1<<20))
		}, ""},
		"cut off": {Config{}, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "10")
			html(func(http.ResponseWriter) {})(w, r)
		}, ""},
		"an error":  {Config{}, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) }, "HTTP 500"},
		"not there": {Config{}, http.NotFound, "HTTP 404"},
		"a PDF":     {Config{}, typed("application/pdf"), "no page of text"},
		"no type": {Config{}, func(w http.ResponseWriter, r *http.Request) {
			w.Header()["Content-Type"] = nil
			_, _ = io.WriteString(w, "x")
		}, "no page of text"},
		"two types":   {Config{}, typed("text/html, application/pdf"), "no page of text"},
		"an encoding": {Config{}, typed("text/html; charset=klingon"), "klingon"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f, at := page(t, test.config, test.serve)
			got, err := f.Fetch(t.Context(), at)
			if !errors.Is(err, assay.ErrUnavailable) || !strings.Contains(fmt.Sprint(err), test.want) || got.Data != nil {
				t.Errorf("%d bytes, %v; want %q", len(got.Data), err, test.want)
			}
			if err != nil && len(err.Error()) > 1000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		})
	}
}

func html(write func(http.ResponseWriter)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		write(w)
	}
}

func typed(kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, "<p>a page</p>")
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f, at := page(t, Config{}, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	if _, err := f.Fetch(ctx, at); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
}

// TestProxy checks that pages are not fetched through a proxy, even if the environment names one,
// since the guard could not check the proxy's connections.
func TestProxy(t *testing.T) {
	asked := false
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer proxy.Close()
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("HTTPS_PROXY", proxy.URL)
	n := &names{t: t, answers: map[string][]string{"page.test": {"10.0.0.1"}}}
	if _, err := New(Config{Guard: egress.New(egress.Config{Resolver: n.resolver()}), Timeout: time.Minute}).Fetch(t.Context(), "http://page.test/"); !errors.Is(err, egress.ErrRefused) || asked {
		t.Errorf("%v, the proxy was asked: %v", err, asked)
	}
}

func TestCheck(t *testing.T) {
	f := New(Config{})
	for address, ok := range map[string]bool{
		"http://example.com/": true, "https://example.com/a?b=c#d": true, "https://example.com:443/": true, "http://example.com:80": true, "HTTPS://EXAMPLE.COM": true,
		"": false, "example.com": false, "/a": false, "//example.com/": false, "ftp://example.com/": false, "file:///etc/passwd": false,
		"javascript:alert(1)": false, "data:text/html,x": false, "http:example.com": false, "http://": false, "http://:80/": false,
		"http://user@example.com/": false, "http://user:word@example.com/": false, "http://example.com:8080/": false, "http://example.com:22/": false,
		"http://example.com:/": false, "http://127.0.0.1/": false, "http://[::1]/": false, "http://[fe80::1%25eth0]/": false, "http://exa mple.com/": false,
		"https://example.com/" + strings.Repeat("a", maxURL): false,
	} {
		if err := f.Check(address); (err == nil) != ok || err != nil && !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%.60q: %v, want fine: %v", address, err, ok)
		}
	}
}

// FuzzCheck checks that an accepted address is HTTP, has no user, uses a web port and is not a
// forbidden literal address.
func FuzzCheck(f *testing.F) {
	for _, s := range []string{"http://example.com", "https://[2606:4700::1111]:443/x", "http://127.1/", "http://0x7f000001/", "http://[::ffff:127.0.0.1]/", "http://a@b", "http://a:b@c:80/", "http://exa\x00mple.com", "http://127.0.0.1%2f@example.com", "http:\\\\example.com"} {
		f.Add(s)
	}
	fetcher := New(Config{})
	f.Fuzz(func(t *testing.T, address string) {
		u, err := fetcher.check(t.Context(), address)
		if err != nil {
			if !errors.Is(err, assay.ErrInvalid) || len(err.Error()) > 1000 {
				t.Errorf("%q: %v", address, err)
			}
			return
		}
		if u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Hostname() == "" || u.Port() != "" && u.Port() != "80" && u.Port() != "443" {
			t.Errorf("%q is let through: %+v", address, u)
		}
		if ip, err := netip.ParseAddr(u.Hostname()); err == nil && (ip.IsPrivate() || ip.IsLoopback() || ip.Is4In6() || ip.IsUnspecified() || ip.IsMulticast() || ip.IsLinkLocalUnicast()) {
			t.Errorf("%q is let through", address)
		}
	})
}

// TestNobodyPermits checks that only test files set Permit.
func TestNobodyPermits(t *testing.T) {
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && file != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || filepath.Base(filepath.Dir(file)) == "egress" {
			return nil
		}
		data, err := os.ReadFile(file)
		if err == nil && bytes.Contains(data, []byte("egress")) && bytes.Contains(data, []byte("Permit:")) {
			t.Errorf("%s permits connections that the guard refuses", file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
