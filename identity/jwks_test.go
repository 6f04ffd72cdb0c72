package identity

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assay-rag/assay"
)

// TestRotation changes the issuer's keys.
func TestRotation(t *testing.T) {
	i := newTestIssuer(t)
	i.publish("rsa")
	a := i.authenticator(t, i.issuer())
	try := func(key string, want Reason, fetches int) {
		t.Helper()
		_, err := authenticate(t.Context(), a, i.token(t, key, i.claims(nil), nil))
		if ReasonOf(err) != want || i.fetched() != fetches {
			t.Errorf("a token of the key %s: %v with the reason %q after %d fetches; want %q after %d", key, err, ReasonOf(err), i.fetched(), want, fetches)
		}
	}
	try("rsa", "", 1)
	try("rsa", "", 1)

	i.publish("rsa", "rsa2")
	try("rsa2", BadSignature, 1) // the keys are fetched once in ten seconds because of unknown ones
	i.clock = i.clock.Add(fetchEvery)
	try("rsa2", "", 2)
	for range 100 {
		try("ec", BadSignature, 2)
	}

	i.publish("rsa2") // the old key is removed
	try("rsa", "", 2)
	i.clock = i.clock.Add(keysFresh)
	try("rsa", BadSignature, 3)
	try("rsa2", "", 3)

	i.publish("rsa") // the removed key is refused as soon as another token makes the keys be fetched
	i.clock = i.clock.Add(fetchEvery)
	try("ec", BadSignature, 4)
	try("rsa2", BadSignature, 4)
	try("rsa", "", 4)
}

// TestUnreachable checks that no token is accepted if the issuer's keys cannot be had, and that keys
// are used for ten minutes at most.
func TestUnreachable(t *testing.T) {
	i := newTestIssuer(t)
	a := i.authenticator(t, i.issuer())
	try := func(name string, want Reason, fetches int) {
		t.Helper()
		_, err := authenticate(t.Context(), a, i.token(t, "rsa", i.claims(nil), nil))
		if ReasonOf(err) != want || i.fetched() != fetches || want == Unreachable && !errors.Is(err, assay.ErrUnavailable) {
			t.Errorf("%s: %v with the reason %q after %d fetches; want %q after %d", name, err, ReasonOf(err), i.fetched(), want, fetches)
		}
	}
	fails := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "down", http.StatusServiceUnavailable) })
	i.answerWith(fails)
	try("at first", Unreachable, 1)
	try("at once again", Unreachable, 1)
	i.clock = i.clock.Add(retryEvery)
	try("two seconds later", Unreachable, 2)
	i.answerWith(nil)
	i.clock = i.clock.Add(retryEvery)
	try("reachable", "", 3)
	i.answerWith(fails)
	i.clock = i.clock.Add(keysFresh)
	try("after five minutes", "", 4)
	i.clock = i.clock.Add(keysUsable - keysFresh - time.Second)
	try("before ten minutes", "", 5)
	i.clock = i.clock.Add(time.Second)
	try("after ten minutes, too soon for another attempt", Unreachable, 5)
	i.clock = i.clock.Add(retryEvery)
	try("after ten minutes", Unreachable, 6)
	i.clock = i.clock.Add(-time.Hour)
	try("with a clock that went back", Unreachable, 7)
}

// TestHostileKeys answers the request for keys in ways that must not give access, stall or exhaust
// memory.
func TestHostileKeys(t *testing.T) {
	text := func(s string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, s) }
	}
	tests := []struct {
		name   string
		answer http.HandlerFunc
		detail string
	}{
		{"endless", func(w http.ResponseWriter, r *http.Request) {
			block := []byte(strings.Repeat(" ", 64<<10))
			for r.Context().Err() == nil {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		}, "more than 1048576 bytes"},
		{"silent", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, ""}, // the text depends on who notices first,
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/keys", http.StatusFound)
		}, "302 found"},
		{"a web page", text("<html>"), "not a jwk set"},
		{"nothing", text(""), "not a jwk set"},
		{"deep", text(`{"keys":` + strings.Repeat("[", 400_000)), "not a jwk set"},
		{"no keys", text(`{"keys":[]}`), "no key that can verify"},
		{"many keys", text(`{"keys":[` + strings.Repeat(`{},`, 100) + `{}]}`), "more than 64"},
		{"a symmetric key", text(`{"keys":[{"kty":"oct","kid":"rsa","k":"c2VjcmV0"}]}`), "no key that can verify"},
		{"a weak key", text(`{"keys":[{"kty":"RSA","kid":"rsa","n":"` + base64.RawURLEncoding.EncodeToString(bytes.Repeat([]byte{0xf7}, 128)) + `","e":"AQAB"}]}`), "no key that can verify"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			i := newTestIssuer(t)
			i.answer = test.answer
			client := *i.server.Client()
			if test.name == "silent" {
				client.Timeout = 50 * time.Millisecond
			}
			a, err := New(Options{Tokens: Tokens{Audience: testAudience, Issuers: []Issuer{i.issuer()}}, Client: &client, Now: func() time.Time { return i.clock }})
			if err != nil {
				t.Fatal(err)
			}
			_, err = authenticate(t.Context(), a, i.token(t, "rsa", i.claims(nil), nil))
			r, ok := errors.AsType[*Refusal](err)
			if !ok || r.Reason != Unreachable {
				t.Fatalf("%v with the reason %q, want %q", err, ReasonOf(err), Unreachable)
			}
			if !strings.Contains(strings.ToLower(r.Detail), test.detail) {
				t.Errorf("detail %q, want %q", r.Detail, test.detail)
			}
		})
	}
}

// TestDiscovery answers the request for the discovery document.
func TestDiscovery(t *testing.T) {
	for _, test := range []struct{ name, document string }{
		{"another issuer", `{"issuer":"https://evil.example.com","jwks_uri":"URL/keys"}`},
		{"keys in a file", `{"issuer":"URL","jwks_uri":"file:///etc/keys"}`},
		{"keys over http", `{"issuer":"URL","jwks_uri":"http://keys.example.com/keys"}`},
		{"no keys", `{"issuer":"URL"}`},
		{"not JSON", `<html>`},
	} {
		t.Run(test.name, func(t *testing.T) {
			i := newTestIssuer(t)
			i.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/.well-known/openid-configuration" {
					t.Errorf("%s was requested", r.URL)
				}
				fmt.Fprint(w, strings.ReplaceAll(test.document, "URL", i.server.URL))
			})
			_, err := authenticate(t.Context(), i.authenticator(t, i.issuer()), i.token(t, "rsa", i.claims(nil), nil))
			if ReasonOf(err) != Unreachable {
				t.Errorf("%v with the reason %q", err, ReasonOf(err))
			}
		})
	}
}

// TestConcurrentFetch checks that callers at the same time share one fetch, and that one who stops
// waiting does not end it.
func TestConcurrentFetch(t *testing.T) {
	i := newTestIssuer(t)
	began, release := make(chan bool), make(chan bool)
	var once sync.Once
	handler := i.server.Config.Handler
	i.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		once.Do(func() { close(began); <-release })
		handler.ServeHTTP(w, r)
	})
	a := i.authenticator(t, i.issuer())
	token := i.token(t, "rsa", i.claims(nil), nil)
	ctx, cancel := context.WithCancel(t.Context())
	impatient := make(chan error)
	go func() {
		_, err := authenticate(ctx, a, token)
		impatient <- err
	}()
	<-began
	cancel()
	if err := <-impatient; !errors.Is(err, context.Canceled) || ReasonOf(err) != Interrupted {
		t.Errorf("a cancelled Authenticate: %v", err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := authenticate(t.Context(), a, token); err != nil {
				t.Errorf("%v, %+v", err, err)
			}
		})
	}
	close(release)
	all.Wait()
	if n := i.fetched(); n != 1 {
		t.Errorf("%d fetches, want 1", n)
	}
}
