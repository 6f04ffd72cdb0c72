package identity

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
)

// TestFromRequest presents requests with one credential, and with none, several and odd ones.
func TestFromRequest(t *testing.T) {
	_, key := newKeyText()
	const token = "eyJhbGciOiJSUzI1NiJ9.e30.c2ln"
	tests := []struct {
		name   string
		header http.Header
		query  string
		want   Reason
	}{
		{"a token", http.Header{"Authorization": {"Bearer " + token}}, "", ""},
		{"a key as a token", http.Header{"Authorization": {"Bearer " + key}}, "", ""},
		{"a key", http.Header{"X-Api-Key": {key}}, "", ""},
		{"in lower case", http.Header{"authorization": {"bearer " + token}}, "", ""},
		{"a harmless query", http.Header{"X-Api-Key": {key}}, "q=token&key=name", ""},
		{"another header", http.Header{"X-Api-Key": {key}, "X-Auth-Token": {"other"}}, "", ""},

		{"nothing", nil, "", NoCredential},
		{"another header alone", http.Header{"X-Auth-Token": {token}, "Cookie": {"token=" + token}}, "", NoCredential},
		{"a token and a key", http.Header{"Authorization": {"Bearer " + token}, "X-Api-Key": {key}}, "", Several},
		{"a key twice", http.Header{"X-Api-Key": {key, key}}, "", Several},
		{"a key in two spellings", http.Header{"X-Api-Key": {key}, "x-api-key": {key}}, "", Several},
		{"a token twice", http.Header{"Authorization": {"Bearer " + token, "Bearer " + token}}, "", Several},
		{"a token beside an empty header", http.Header{"Authorization": {"Bearer " + token, ""}}, "", Several},
		{"a key beside an empty header", http.Header{"Authorization": {""}, "X-Api-Key": {key}}, "", Several},
		{"two tokens in a line", http.Header{"Authorization": {"Bearer " + token + ", Bearer " + token}}, "", Malformed},
		{"two keys in a line", http.Header{"X-Api-Key": {key + "," + key}}, "", Malformed},
		{"an empty header", http.Header{"Authorization": {""}}, "", Malformed},
		{"a scheme alone", http.Header{"Authorization": {"Bearer"}}, "", Malformed},
		{"an empty token", http.Header{"Authorization": {"Bearer "}}, "", Malformed},
		{"no scheme", http.Header{"Authorization": {token}}, "", Malformed},
		{"Basic", http.Header{"Authorization": {"Basic YTpi"}}, "", Malformed},
		{"DPoP", http.Header{"Authorization": {"DPoP " + token}}, "", Malformed},
		{"Digest", http.Header{"Authorization": {`Digest username="a"`}}, "", Malformed},
		{"two spaces", http.Header{"Authorization": {"Bearer  " + token}}, "", Malformed},
		{"a tab", http.Header{"Authorization": {"Bearer\t" + token}}, "", Malformed},
		{"a space at the end", http.Header{"Authorization": {"Bearer " + token + " "}}, "", Malformed},
		{"a line break", http.Header{"Authorization": {"Bearer " + token + "\nX-Api-Key: a"}}, "", Malformed},
		{"quotes", http.Header{"Authorization": {`Bearer "` + token + `"`}}, "", Malformed},
		{"a zero byte", http.Header{"X-Api-Key": {key + "\x00"}}, "", Malformed},
		{"not ASCII", http.Header{"Authorization": {"Bearer é"}}, "", Malformed},
		{"a token as a key", http.Header{"X-Api-Key": {token}}, "", Malformed},
		{"a key after Bearer in X-API-Key", http.Header{"X-Api-Key": {"Bearer " + key}}, "", Malformed},
		{"a mistyped key", http.Header{"X-Api-Key": {flip(key, 30)}}, "", Malformed},
		{"a key cut off", http.Header{"Authorization": {"Bearer " + key[:60]}}, "", Malformed},
		{"a key in capitals", http.Header{"X-Api-Key": {strings.ToUpper(key)}}, "", Malformed},
		{"much", http.Header{"Authorization": {"Bearer " + strings.Repeat("a", MaxCredential+1)}}, "", TooLong},

		{"access_token in the query", nil, "access_token=" + token, InQuery},
		{"access_token beside a header", http.Header{"X-Api-Key": {key}}, "access_token=x", InQuery},
		{"api-key in the query", http.Header{"X-Api-Key": {key}}, "API-Key=", InQuery},
		{"a key under any name", http.Header{"X-Api-Key": {key}}, "q=" + key, InQuery},
		{"a token under any name", http.Header{"X-Api-Key": {key}}, "x=1&q=" + token, InQuery},
		{"a query that does not parse", http.Header{"X-Api-Key": {key}}, "access_token=%zz", Malformed},
		{"a query with semicolons", http.Header{"X-Api-Key": {key}}, "a=1;access_token=x", Malformed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, err := FromRequest(&http.Request{Header: test.header, URL: &url.URL{Path: "/", RawQuery: test.query}})
			if ReasonOf(err) != test.want {
				t.Fatalf("%v with the reason %q, want %q", err, ReasonOf(err), test.want)
			}
			if err == nil && c.text.Empty() {
				t.Error("no credential and no error")
			}
			if err != nil && (!errors.Is(err, assay.ErrUnauthenticated) || err.Error() != assay.ErrUnauthenticated.Error() || !c.text.Empty()) {
				t.Errorf("error %q with %v", err, c)
			}
		})
	}
	if _, err := FromRequest(&http.Request{Header: http.Header{"X-Api-Key": {key}}, URL: &url.URL{User: url.User(key)}}); ReasonOf(err) != InQuery {
		t.Errorf("a user in the URL: %v", err)
	}
}

// flip returns text with another letter at i.
func flip(text string, i int) string {
	c := byte('a')
	if text[i] == c {
		c = 'b'
	}
	return text[:i] + string(c) + text[i+1:]
}

// TestCredentialHidden prints a credential in every way.
func TestCredentialHidden(t *testing.T) {
	_, key := newKeyText()
	c, err := FromString(key)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "credential", c)
	texts := []string{string(data), log.String()}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		texts = append(texts, fmt.Sprintf(verb, c), fmt.Sprintf(verb, &c))
	}
	for _, text := range texts {
		if strings.Contains(text, key[23:]) || strings.Contains(text, fmt.Sprintf("%x", key[23:])) {
			t.Errorf("shown: %s", text)
		}
	}
	if _, err := new(Authenticator).Authenticate(t.Context(), Credential{}); ReasonOf(err) != NoCredential {
		t.Errorf("the zero Credential: %v", err)
	}
	if _, err := new(Authenticator).Authenticate(t.Context(), c); ReasonOf(err) != Unsupported {
		t.Errorf("a key for an Authenticator without keys: %v", err)
	}
}

// TestKeyText checks the checksum of keys: one wrong letter is always found.
func TestKeyText(t *testing.T) {
	id, key := newKeyText()
	if got, secret, ok := splitKey(key); !ok || got != id || len(secret) != 52 {
		t.Fatalf("splitKey(%q) = %q, %q, %t", key, got, secret, ok)
	}
	for i := range key {
		if _, _, ok := splitKey(flip(key, i)); ok {
			t.Errorf("another letter at %d is not found", i)
		}
	}
	if _, other := newKeyText(); other == key {
		t.Error("two equal keys")
	}
}

func FuzzFromHeader(f *testing.F) {
	_, key := newKeyText()
	f.Add("Authorization", "Bearer a.b.c", "X-Api-Key", key, "access_token=a")
	f.Add("x-api-key", key, "A", "b", "q=1")
	f.Fuzz(func(t *testing.T, name, value, name2, value2, query string) {
		h := http.Header{name: {value}}
		h[name2] = append(h[name2], value2)
		c, err := FromRequest(&http.Request{Header: h, URL: &url.URL{RawQuery: query}})
		checkParsed(t, c, err)
		if err != nil {
			return
		}
		carrying := 0
		for name, values := range h {
			if strings.EqualFold(name, "authorization") || strings.EqualFold(name, "x-api-key") {
				carrying += len(values)
			}
		}
		if carrying != 1 {
			t.Errorf("%d headers with a credential were accepted", carrying)
		}
	})
}

func FuzzFromString(f *testing.F) {
	_, key := newKeyText()
	for _, s := range []string{"", key, "a.b.c", "assay_", "Bearer x", "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := FromString(text)
		checkParsed(t, c, err)
	})
}

func checkParsed(t *testing.T, c Credential, err error) {
	t.Helper()
	if (err == nil) == c.text.Empty() {
		t.Fatalf("credential %t, error %v", !c.text.Empty(), err)
	}
	if err != nil && err.Error() != assay.ErrUnauthenticated.Error() {
		t.Errorf("error %q", err)
	}
	if err == nil && (len(c.text.Reveal()) > MaxCredential || strings.ContainsAny(c.text.Reveal(), " ,\r\n\x00")) {
		t.Errorf("accepted %q", c.text.Reveal())
	}
}

// FuzzAuthenticate presents any header, payload and signature, and any token. None of them is signed
// by the issuer.
func FuzzAuthenticate(f *testing.F) {
	i := newTestIssuer(f)
	a := i.authenticator(f, i.issuer())
	payload, err := json.Marshal(i.claims(nil))
	if err != nil {
		f.Fatal(err)
	}
	valid := i.token(f, "ec", i.claims(nil), nil)
	f.Add(`{"alg":"RS256","kid":"rsa"}`, string(payload), []byte("x"), valid+"x")
	f.Add(`{"alg":"none"}`, string(payload), []byte(""), "a.b.c")
	f.Fuzz(func(t *testing.T, header, payload string, signature []byte, token string) {
		for _, text := range []string{forge(header, payload, func(string) []byte { return signature }), token} {
			if strings.HasPrefix(text, valid[:strings.LastIndex(valid, ".")]) && text == valid {
				continue
			}
			if g, err := authenticate(t.Context(), a, text); err == nil {
				t.Errorf("%q is accepted: %+v", text, g)
			}
		}
	})
}
