package rest

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/source/sourcetest"
)

const token = "secret-token-123456789"

func bearer(_ context.Context, r *http.Request) error {
	r.Header.Set("Authorization", "Bearer "+token)
	return nil
}

// serve starts a server and a client for it.
func serve(t *testing.T, handler http.HandlerFunc) (*Client, *sourcetest.Clock) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	clock := sourcetest.NewClock()
	settings := source.Config{HTTP: http.DefaultClient, MaxBytes: 1000, Now: clock.Now, Sleep: clock.Sleep}
	c, err := New(Config{Name: "test", Base: server.URL, Settings: settings, Authorize: bearer, Headers: map[string]string{"X-Key": token}})
	if err != nil {
		t.Fatal(err)
	}
	return c, clock
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct {
		header, value string
		want          time.Duration
	}{
		"seconds":    {"Retry-After", "30", 30 * time.Second},
		"date":       {"Retry-After", "Thu, 01 Jan 2026 00:01:00 GMT", time.Minute},
		"past date":  {"Retry-After", "Wed, 31 Dec 2025 00:01:00 GMT", time.Second},
		"negative":   {"Retry-After", "-5", time.Second},
		"nonsense":   {"Retry-After", "5 minutes", time.Second},
		"none":       {"X-Other", "5", time.Second},
		"reset":      {"X-RateLimit-Reset", "2026-01-01T00:02Z", 2 * time.Minute},
		"reset long": {"X-RateLimit-Reset", "2026-01-01T00:03:00Z", 3 * time.Minute},
	} {
		requests := 0
		c, clock := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			if requests++; requests == 1 {
				w.Header().Set(test.header, test.value)
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			_, _ = io.WriteString(w, `{"a": 1}`)
		})
		var got struct{ A int }
		if err := c.Get(t.Context(), "/x", nil, &got); err != nil || got.A != 1 || clock.Slept() != test.want {
			t.Errorf("%s: %v after %v, want %v", what, err, clock.Slept(), test.want)
		}
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	for status, test := range map[int]struct {
		kind     error
		reason   source.Reason // of Skipped; empty: not skipped
		requests int
	}{
		400: {assay.ErrUnavailable, source.Unreadable, 1},
		401: {source.ErrCredentials, "", 1},
		403: {source.ErrCredentials, source.Unreadable, 1},
		404: {assay.ErrUnavailable, source.Vanished, 1},
		410: {assay.ErrUnavailable, source.Vanished, 1},
		429: {assay.ErrUnavailable, "", source.MaxAttempts},
		500: {assay.ErrUnavailable, source.Unreadable, source.MaxAttempts},
		502: {assay.ErrUnavailable, "", source.MaxAttempts},
		503: {assay.ErrUnavailable, "", source.MaxAttempts},
		504: {assay.ErrUnavailable, "", source.MaxAttempts},
	} {
		requests := 0
		c, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
			requests++
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"message": "denied for %s"}`, r.Header.Get("Authorization"))
		})
		err := c.Get(t.Context(), "/x?key=hidden", nil, new(any))
		if !errors.Is(err, test.kind) || Status(err) != status || requests != test.requests {
			t.Errorf("%d: %v after %d requests", status, err, requests)
		}
		if text := fmt.Sprint(err); strings.Contains(text, token) || strings.Contains(text, "hidden") || !strings.Contains(text, "denied for") {
			t.Errorf("%d: %s", status, text)
		}
		skip, ok := source.AsSkip(Skipped("u", err))
		if ok != (test.reason != "") || ok && skip.Reason != test.reason {
			t.Errorf("%d: skipped %v, want %q", status, skip, test.reason)
		}
	}
}

// TestForeignAddresses checks that addresses on other hosts get no credentials, and that lists do
// not lead there.
func TestForeignAddresses(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || r.Header.Get("X-Key") != "" {
			t.Errorf("another host got %v", r.Header)
		}
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(elsewhere.Close)
	c, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			t.Errorf("the service got %v", r.Header)
		}
		http.Redirect(w, r, elsewhere.URL+"/file", http.StatusFound)
	})
	if got, err := c.Download(t.Context(), "/x", nil); err != nil || string(got.Data) != "{}" {
		t.Errorf("a download elsewhere: %q, %v", got.Data, err)
	}
	if got, err := c.Download(t.Context(), elsewhere.URL, nil); err != nil || string(got.Data) != "{}" {
		t.Errorf("a download from elsewhere: %q, %v", got.Data, err)
	}
	if err := c.Get(t.Context(), "/x", nil, new(any)); !errors.Is(err, assay.ErrUnavailable) {
		t.Errorf("a redirect elsewhere: %v", err)
	}
	for _, ref := range []string{elsewhere.URL, "//evil.example/x", "https://evil.example", "http://user:word@" + strings.TrimPrefix(c.config.Base, "http://"), "ftp://x/y", "http://\x00"} {
		if err := c.Get(t.Context(), ref, nil, new(any)); !errors.Is(err, assay.ErrUnavailable) {
			t.Errorf("%q: %v", ref, err)
		}
	}
	if _, err := c.Download(t.Context(), "file:///etc/passwd", nil); !errors.Is(err, assay.ErrUnavailable) {
		t.Errorf("a file of the machine: %v", err)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	c, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", 1001))
	})
	_, err := c.Download(t.Context(), "/x", nil)
	if skip, ok := source.AsSkip(Skipped("u", err)); !ok || skip.Reason != source.TooLarge {
		t.Errorf("%v, want too large", err)
	}
	if c.TooLarge("u", 1000) != nil || c.TooLarge("u", 1001) == nil {
		t.Error("the limit is not 1000 bytes")
	}
	for what, n := range map[string]int{"empty pages": 0, "repeated": 1} {
		pager := c.Pager()
		var err error
		pages := 0
		for ; err == nil && pages < 10*maxEmptyPages; pages++ {
			next := fmt.Sprint(pages)
			if n > 0 {
				next = fmt.Sprint(pages % 100)
			}
			err = pager.Next(next, n)
		}
		if !errors.Is(err, assay.ErrUnavailable) || pages > maxEmptyPages {
			t.Errorf("%s: %v after %d pages", what, err, pages)
		}
	}
}

// TestGuard checks that the default client does not reach this machine.
func TestGuard(t *testing.T) {
	t.Parallel()
	reached := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	t.Cleanup(server.Close)
	c, err := New(Config{Name: "test", Base: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), "/x", nil, new(any)); err == nil || reached {
		t.Errorf("%v, reached %v", err, reached)
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"", "x", "ftp://x", "https://", "https://user:word@x", "http://example.com", "http://10.0.0.1"} {
		if _, err := New(Config{Name: "test", Base: base}); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%q: %v, want assay.ErrInvalid", base, err)
		}
	}
}

func TestRenew(t *testing.T) {
	t.Parallel()
	valid := "first"
	issued := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			issued++
			fmt.Fprintf(w, `{"access_token": %q, "expires_in": 3600}`, valid)
			return
		}
		if r.Header.Get("Authorization") != "Bearer "+valid {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(server.Close)
	settings := source.Config{HTTP: http.DefaultClient}
	issuer, err := New(Config{Name: "test", Base: server.URL, Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	tokens := &Tokens{Client: issuer, URL: "/token", Form: func(time.Time) (url.Values, error) { return url.Values{}, nil }}
	c, err := New(Config{Name: "test", Base: server.URL, Settings: settings, Authorize: tokens.Authorize, Renew: tokens.Forget})
	if err != nil {
		t.Fatal(err)
	}
	for _, valid = range []string{"first", "second", "second"} {
		if err := c.Get(t.Context(), "/x", nil, new(any)); err != nil {
			t.Errorf("%s: %v", valid, err)
		}
	}
	if issued != 2 {
		t.Errorf("%d tokens, want 2", issued)
	}
}

func TestSignJWT(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	parsed, err := ParseRSAKey(string(block))
	if err != nil {
		t.Fatal(err)
	}
	text, err := SignJWT(parsed, "k1", map[string]any{"iss": "a"})
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(text, ".")
	header, _ := base64.RawURLEncoding.DecodeString(parts[0])
	signature, _ := base64.RawURLEncoding.DecodeString(parts[2])
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err := rsa.VerifyPKCS1v15(&key.PublicKey, crypto.SHA256, sum[:], signature); err != nil || string(header) != `{"alg":"RS256","kid":"k1","typ":"JWT"}` {
		t.Errorf("%s: %v", header, err)
	}
	for _, bad := range []string{"", "x", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}))} {
		if _, err := ParseRSAKey(bad); err == nil {
			t.Errorf("ParseRSAKey(%q) has no error", bad)
		}
	}
}

func TestFeed(t *testing.T) {
	t.Parallel()
	at := func(second int) time.Time { return time.Date(2026, 1, 1, 0, 0, second, 0, time.UTC) }
	feed, err := NewFeed("test", "")
	if err != nil {
		t.Fatal(err)
	}
	var cursors []string
	for _, second := range []int{1, 1, 2, 3, 3} {
		cursors = append(cursors, feed.Cursor(at(second)))
	}
	want := []string{"", "", "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z", "2026-01-01T00:00:02Z"}
	if fmt.Sprint(cursors) != fmt.Sprint(want) || feed.End() != "2026-01-01T00:00:03Z" {
		t.Errorf("%q, %q", cursors, feed.End())
	}
	if got := feed.Cursor(at(2)) + feed.Cursor(at(9)); got != "" {
		t.Errorf("cursors %q of a list that is not in order", got)
	}
	next, err := NewFeed("test", "2026-01-01T00:00:03Z")
	if err != nil || !next.Old(at(3)) || next.Old(at(4)) || next.Old(time.Time{}) || next.End() != "2026-01-01T00:00:03Z" || !next.Since().Before(at(0)) {
		t.Errorf("%+v, %v", next, err)
	}
	if got := next.EndBefore(at(1)); got != "2026-01-01T00:00:03Z" {
		t.Errorf("the cursor goes back to %s", got)
	}
	if _, err := NewFeed("test", "yesterday"); !errors.Is(err, source.ErrCursor) {
		t.Errorf("%v, want source.ErrCursor", err)
	}
}

func TestFileName(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"a/b\\c\nd": "a b c d.x", "  ": "untitled.x", "..": "...x", "ü": "ü.x"} {
		if got := FileName(in, ".x"); got != want {
			t.Errorf("FileName(%q) = %q, want %q", in, got, want)
		}
	}
}
