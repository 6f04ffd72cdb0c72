package server

import (
	"context"
	"net/http"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/identity"
)

// TestHost checks which values of the header Host are accepted without identity.
func TestHost(t *testing.T) {
	t.Parallel()
	s := newServing(t, func(c *Config) { c.Hosts = []string{"Assay.example.com", "192.168.1.7:8484"} }, nil)
	for host, want := range map[string]int{
		"localhost": 404, "localhost:8484": 404, "LOCALHOST.": 404, "127.0.0.1:8484": 404, "127.8.9.1": 404, "[::1]:8484": 404, "[::1]": 404,
		"[::ffff:127.0.0.1]": 404, "assay.example.com": 404, "assay.example.com:443": 404, "192.168.1.7": 404,
		"": 403, "evil.example": 403, "localhost.evil.example": 403, "127.0.0.1.evil.example": 403, "localhost@evil.example": 403,
		"0.0.0.0:8484": 403, "[::]": 403, "192.168.1.8": 403, "assay.example.com.evil": 403, "[fe80::1%25lo]": 403, "[::1%25lo]": 403, "127.1": 403, "2130706433": 403,
	} {
		if w := s.do("GET", "/nope", func(r *http.Request) { r.Host = host }); w.Code != want {
			t.Errorf("Host %q: %d, want %d", host, w.Code, want)
		}
	}
}

// TestHostWithIdentity checks that any name is accepted with identity unless names are listed.
func TestHostWithIdentity(t *testing.T) {
	t.Parallel()
	any := newServing(t, func(c *Config) { c.Authenticate = refuseAll }, nil)
	listed := newServing(t, func(c *Config) { c.Authenticate, c.Hosts = refuseAll, []string{"a.example"} }, nil)
	for _, test := range []struct {
		s    serving
		host string
		want int
	}{{any, "b.example", 404}, {any, "localhost", 404}, {listed, "a.example", 404}, {listed, "b.example", 403}, {listed, "localhost", 403}} {
		if w := test.s.do("GET", "/nope", func(r *http.Request) { r.Host = test.host }); w.Code != test.want {
			t.Errorf("Host %q: %d, want %d", test.host, w.Code, test.want)
		}
	}
}

// TestOrigin checks which pages may send requests.
func TestOrigin(t *testing.T) {
	t.Parallel()
	s := newServing(t, func(c *Config) { c.Origins = []string{"https://chat.example.com", "http://localhost:3000"} }, nil)
	for _, test := range []struct {
		name    string
		method  string
		headers map[string]string
		want    int
		shared  string
	}{
		{"a program", "POST", nil, 404, ""},
		{"the server's own page", "POST", map[string]string{"Origin": "http://localhost:8484", "Sec-Fetch-Site": "same-origin"}, 404, ""},
		{"a listed origin", "POST", map[string]string{"Origin": "https://chat.example.com", "Sec-Fetch-Site": "cross-site"}, 404, "https://chat.example.com"},
		{"another port", "POST", map[string]string{"Origin": "http://localhost:3000"}, 404, "http://localhost:3000"},
		{"a port that is not listed", "POST", map[string]string{"Origin": "http://localhost:3001"}, 403, ""},
		{"a foreign page", "POST", map[string]string{"Origin": "https://evil.example"}, 403, ""},
		{"a foreign page that reads", "GET", map[string]string{"Origin": "https://evil.example"}, 403, ""},
		{"an opaque origin", "POST", map[string]string{"Origin": "null"}, 403, ""},
		{"no origin at all", "POST", map[string]string{"Origin": ""}, 403, ""},
		{"a form of a foreign page", "POST", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403, ""},
		{"a link of a foreign page", "GET", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 404, ""},
		{"a link of a foreign page in an old browser", "GET", map[string]string{"Sec-Fetch-Site": "cross-site"}, 404, ""},
		{"an image of a foreign page", "GET", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403, ""},
		{"an image of a page of another port", "GET", map[string]string{"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}, 403, ""},
		{"an address that the user enters", "GET", map[string]string{"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}, 404, ""},
		{"a listed origin with more", "POST", map[string]string{"Origin": "https://chat.example.com.evil"}, 403, ""},
		{"preflight", "OPTIONS", map[string]string{"Origin": "https://chat.example.com", "Access-Control-Request-Method": "POST"}, 204, "https://chat.example.com"},
		{"preflight of a foreign page", "OPTIONS", map[string]string{"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}, 403, ""},
	} {
		w := s.do(test.method, "/nope", func(r *http.Request) {
			for name, value := range test.headers {
				r.Header.Set(name, value)
			}
		})
		if got := w.Header().Get("Access-Control-Allow-Origin"); w.Code != test.want || got != test.shared {
			t.Errorf("%s: %d, shared with %q, want %d, %q", test.name, w.Code, got, test.want, test.shared)
		}
		if w.Header().Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: cookies are allowed", test.name)
		}
	}
	two := func(r *http.Request) {
		r.Header["Origin"] = []string{"https://chat.example.com", "https://evil.example"}
	}
	if w := s.do("POST", "/nope", two); w.Code != 403 {
		t.Errorf("two origins: %d", w.Code)
	}
}

func TestCheckOrigin(t *testing.T) {
	t.Parallel()
	for origin, want := range map[string]bool{
		"https://chat.example.com": true, "http://localhost:3000": true, "http://[::1]:3000": true,
		"*": false, "https://*.example.com": false, "https://chat.example.com/": false, "https://Chat.example.com": false, "chat.example.com": false,
		"null": false, "": false, "ftp://x": false, "https://u@x": false, "https://": false, "https://x?y": false,
	} {
		if err := CheckOrigin(origin); (err == nil) != want {
			t.Errorf("CheckOrigin(%q) = %v", origin, err)
		}
	}
}

// refuseAll accepts no credential.
func refuseAll(context.Context, identity.Credential) (identity.Grant, error) {
	return identity.Grant{}, assay.ErrUnauthenticated
}
