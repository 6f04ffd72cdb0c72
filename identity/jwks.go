package identity

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"golang.org/x/sync/singleflight"
)

// Limits of the keys of an issuer.
const (
	keysFresh   = 5 * time.Minute  // after this they are fetched again
	keysUsable  = 10 * time.Minute // after this they are not used if they could not be fetched again
	fetchEvery  = 10 * time.Second // between two fetches because of a signature that no key made
	retryEvery  = 2 * time.Second  // between two fetches that fail
	fetchWithin = 5 * time.Second  // the most time of a request
	maxDocument = 1 << 20          // the most bytes of the discovery document and of the keys
	maxKeys     = 64
	minRSABits  = 2048
	maxRSABits  = 8192 // larger ones make the verification expensive
)

// A keySet holds the keys of an issuer. It fetches them when they are first needed, when they are old,
// and when none of them made a signature.
type keySet struct {
	issuer string
	given  string // URL of the keys; empty: discovery finds it
	client *http.Client
	now    func() time.Time
	flight singleflight.Group

	mu      sync.Mutex
	found   string // the URL that discovery found
	keys    []jose.JSONWebKey
	fetched time.Time // when keys were fetched; zero: never
	tried   time.Time // when a fetch was last begun
	failed  error     // of the last fetch
}

// bounded returns a client for documents of an issuer: no redirects, no cookies, and limits on time
// and size.
func bounded(client *http.Client) *http.Client {
	c := *client
	c.Jar = nil
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if c.Timeout <= 0 || c.Timeout > fetchWithin {
		c.Timeout = fetchWithin
	}
	c.Transport = limited{c.Transport}
	return &c
}

// limited is a transport whose responses end with an error after maxDocument bytes.
type limited struct{ base http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = &limitedBody{resp.Body, maxDocument}
	return resp, nil
}

type limitedBody struct {
	io.ReadCloser
	left int
}

func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left+1)])
	if b.left -= n; b.left < 0 {
		return 0, fmt.Errorf("the response has more than %d bytes", maxDocument)
	}
	return n, err
}

// verify returns the payload of a token that one of the keys has signed.
func (s *keySet) verify(ctx context.Context, token *jose.JSONWebSignature) ([]byte, *Refusal) {
	keys, fetched, err := s.current(ctx)
	if err != nil {
		return nil, unreachable(ctx, err)
	}
	if payload, ok := verifyWith(keys, token); ok {
		return payload, nil
	}
	keys, again, err := s.renewed(ctx, fetched)
	if err != nil {
		return nil, unreachable(ctx, err)
	}
	if again {
		if payload, ok := verifyWith(keys, token); ok {
			return payload, nil
		}
	}
	return nil, refuse(BadSignature, "")
}

func unreachable(ctx context.Context, err error) *Refusal {
	if r := interrupted(ctx); r != nil {
		return r
	}
	return refuse(Unreachable, err.Error())
}

// verifyWith tries the keys that may have made the signature. A token that does not name its key is
// accepted only if the issuer has a single key for its algorithm.
func verifyWith(keys []jose.JSONWebKey, token *jose.JSONWebSignature) ([]byte, bool) {
	header := token.Signatures[0].Header
	var fit []jose.JSONWebKey
	for _, k := range keys {
		if fits(k, header.Algorithm) && (header.KeyID == "" || k.KeyID == header.KeyID) {
			fit = append(fit, k)
		}
	}
	if header.KeyID == "" && len(fit) != 1 {
		return nil, false
	}
	for _, k := range fit {
		if payload, err := token.Verify(k.Key); err == nil {
			return payload, true
		}
	}
	return nil, false
}

// fits reports whether a key is one for the algorithm.
func fits(k jose.JSONWebKey, algorithm string) bool {
	if k.Algorithm != "" && k.Algorithm != algorithm {
		return false
	}
	switch k.Key.(type) {
	case *rsa.PublicKey:
		return strings.HasPrefix(algorithm, "RS") || strings.HasPrefix(algorithm, "PS")
	case *ecdsa.PublicKey:
		return strings.HasPrefix(algorithm, "ES") // go-jose compares the curve
	case ed25519.PublicKey:
		return algorithm == oidc.EdDSA
	}
	return false
}

// current returns keys that may be used, and when they were fetched.
func (s *keySet) current(ctx context.Context) ([]jose.JSONWebKey, time.Time, error) {
	s.mu.Lock()
	keys, fetched, tried, failed := s.keys, s.fetched, s.tried, s.failed
	s.mu.Unlock()
	now := s.now()
	age := now.Sub(fetched)
	usable := !fetched.IsZero() && age >= 0 && age < keysUsable
	if usable && age < keysFresh {
		return keys, fetched, nil
	}
	if failed == nil || now.Sub(tried) >= retryEvery || now.Before(tried) {
		failed = s.refetch(ctx)
	}
	if failed == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.keys, s.fetched, nil
	}
	if usable && ctx.Err() == nil {
		return keys, fetched, nil
	}
	return nil, time.Time{}, failed
}

// renewed returns keys that were fetched after seen. again is false if they are not due to be fetched.
func (s *keySet) renewed(ctx context.Context, seen time.Time) (keys []jose.JSONWebKey, again bool, err error) {
	s.mu.Lock()
	keys, newer, tried := s.keys, s.fetched.After(seen), s.tried
	s.mu.Unlock()
	now := s.now()
	if newer {
		return keys, true, nil
	}
	if now.Sub(tried) < fetchEvery && !now.Before(tried) {
		return nil, false, nil
	}
	if err := s.refetch(ctx); err != nil {
		return nil, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys, true, nil
}

// refetch fetches the keys. Calls at the same time share one fetch, which goes on if a caller ends.
func (s *keySet) refetch(ctx context.Context) error {
	done := s.flight.DoChan("", func() (any, error) {
		began := s.now()
		s.mu.Lock()
		s.tried = began
		s.mu.Unlock()
		keys, err := s.fetch(context.WithoutCancel(ctx))
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.failed = err; err != nil {
			s.found = "" // it may have moved
			return nil, err
		}
		s.keys, s.fetched = keys, began
		return nil, nil
	})
	select {
	case r := <-done:
		return r.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *keySet) fetch(ctx context.Context) ([]jose.JSONWebKey, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*fetchWithin)
	defer cancel()
	address, err := s.address(ctx)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("the address of the keys: %w", err)
	}
	req.Header.Set("Accept", "application/jwk-set+json, application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("fetch the keys: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("fetch the keys: %s", resp.Status)
	}
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("fetch the keys: %w", err)
	}
	return parseKeys(data)
}

// address returns the URL of the keys. Discovery is that of OpenID Connect Discovery 1.0; the
// document must name the same issuer.
func (s *keySet) address(ctx context.Context) (string, error) {
	s.mu.Lock()
	found := s.found
	s.mu.Unlock()
	if s.given != "" || found != "" {
		return s.given + found, nil
	}
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, s.client), s.issuer)
	if err != nil {
		return "", fmt.Errorf("discovery: %w", err)
	}
	var document struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&document); err != nil {
		return "", fmt.Errorf("discovery: %w", err)
	}
	if err := checkIssuerURL(document.Keys, true); err != nil {
		return "", fmt.Errorf("discovery: jwks_uri: %w", err)
	}
	if isPlain(document.Keys) && !isPlain(s.issuer) {
		return "", errors.New("discovery: jwks_uri is not https")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found = document.Keys
	return document.Keys, nil
}

// parseKeys returns the keys of a JWK set (RFC 7517) that can verify signatures. Others are left out,
// as section 5 demands: symmetric and private keys, unknown and weak ones, and those for encryption.
func parseKeys(data []byte) ([]jose.JSONWebKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(data, &set); err != nil {
		return nil, errors.New("the keys are not a JWK set")
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("the issuer has %d keys, more than %d", len(set.Keys), maxKeys)
	}
	var keys []jose.JSONWebKey
	for _, raw := range set.Keys {
		var key jose.JSONWebKey
		if json.Unmarshal(raw, &key) == nil && verifies(key) {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("the issuer has no key that can verify a signature")
	}
	return keys, nil
}

func verifies(k jose.JSONWebKey) bool {
	if k.Use != "" && k.Use != "sig" || !k.Valid() || !k.IsPublic() {
		return false
	}
	switch key := k.Key.(type) {
	case *rsa.PublicKey:
		return key.N.BitLen() >= minRSABits && key.N.BitLen() <= maxRSABits
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return true
	}
	return false
}

// checkIssuerURL checks the URL of an issuer or of its keys: https, or http on this machine's
// loopback interface.
func checkIssuerURL(text string, query bool) error {
	u, err := url.Parse(text)
	if err != nil {
		return errors.New("want an https URL")
	}
	plain := u.Host != "" && u.User == nil && u.Fragment == ""
	switch {
	case !plain:
		return errors.New("want an https URL without a user and a fragment")
	case u.RawQuery != "" && !query:
		return errors.New("want an https URL without a query")
	case u.Scheme != "https" && !isPlain(text):
		return errors.New("want https, or http to this machine itself")
	}
	return nil
}

// isPlain reports whether a URL is http to a loopback address.
func isPlain(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" {
		return false
	}
	switch u.Hostname() {
	case "localhost", "127.0.0.1", "::1":
		return true
	}
	return false
}
