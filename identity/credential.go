package identity

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/assay-rag/assay/internal/secret"
)

// MaxCredential is the most bytes of a credential.
const MaxCredential = 16 << 10

// A Credential is what a caller presented, checked for its form only. FromHeader, FromRequest and
// FromString make one. It is not shown however it is printed or encoded. The zero Credential is
// refused.
type Credential struct {
	text secret.Secret
	key  bool // it must be an API key
}

// Opaque reports whether c is a token that has neither the form of an API key nor that of a JSON web
// token.
func (c Credential) Opaque() bool {
	text := c.text.Reveal()
	return text != "" && !c.key && !strings.HasPrefix(text, "eyJ")
}

// String returns a mask, or "" for the zero Credential.
func (c Credential) String() string { return c.text.String() }

// MarshalText implements encoding.TextMarshaler like String, and so applies to JSON.
func (c Credential) MarshalText() ([]byte, error) { return c.text.MarshalText() }

// FromRequest returns the credential of an HTTP request, which must be in its header. A credential
// in the URL is refused.
func FromRequest(r *http.Request) (Credential, error) {
	if refusal := checkQuery(r.URL); refusal != nil {
		return Credential{}, refusal
	}
	return FromHeader(r.Header)
}

// FromHeader returns the one credential of a header: "Authorization: Bearer TOKEN", with an access
// token or an API key, or "X-API-Key: KEY". Any other number of these headers, another scheme and
// other forms are assay.ErrUnauthenticated, so that no second credential has an effect.
func FromHeader(h http.Header) (Credential, error) {
	var bearer, keys []string
	for name, values := range h { // a header made by hand may have names of any form
		switch {
		case strings.EqualFold(name, "Authorization"):
			bearer = append(bearer, values...)
		case strings.EqualFold(name, "X-API-Key"):
			keys = append(keys, values...)
		}
	}
	switch {
	case len(bearer)+len(keys) == 0:
		return Credential{}, refuse(NoCredential, "")
	case len(bearer)+len(keys) > 1:
		return Credential{}, refuse(Several, "")
	case len(keys) == 1:
		return parse(keys[0], true)
	}
	const scheme = "bearer "
	value := bearer[0]
	if len(value) < len(scheme) || !strings.EqualFold(value[:len(scheme)], scheme) {
		return Credential{}, refuse(Malformed, "the scheme of Authorization is not Bearer")
	}
	return parse(value[len(scheme):], false)
}

// FromString returns the credential in a text: an access token or an API key, for the command line
// and for doors without headers. The text is not trimmed.
func FromString(text string) (Credential, error) {
	if text == "" {
		return Credential{}, refuse(NoCredential, "")
	}
	return parse(text, false)
}

// parse checks the characters of a credential, which are those of RFC 6750, section 2.1.
func parse(text string, key bool) (Credential, error) {
	switch {
	case text == "":
		return Credential{}, refuse(Malformed, "it is empty")
	case len(text) > MaxCredential:
		return Credential{}, refuse(TooLong, "")
	case strings.Trim(text, tokenCharacters) != "" || strings.ContainsFunc(text, notToken):
		return Credential{}, refuse(Malformed, "it has a character that no credential has")
	case key && !isKey(text):
		return Credential{}, refuse(Malformed, "X-API-Key has no API key")
	case key || isKey(text):
		if _, _, ok := splitKey(text); !ok {
			return Credential{}, refuse(Malformed, "the API key is mistyped or cut off")
		}
		return Credential{secret.New(text), true}, nil
	}
	return Credential{secret.New(text), false}, nil
}

const tokenCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/="

func notToken(c rune) bool { return !strings.ContainsRune(tokenCharacters, c) }

// credentialNames are names of query parameters that carry credentials elsewhere.
var credentialNames = []string{
	"access_token", "accesstoken", "api_key", "apikey", "x_api_key", "authorization", "bearer", "bearer_token", "id_token", "auth_token",
}

// checkQuery refuses a URL with a parameter that is named like a credential or whose value has the
// form of one, and a URL with a user or password.
func checkQuery(u *url.URL) *Refusal {
	if u == nil {
		return nil
	}
	if u.User != nil {
		return refuse(InQuery, "the URL names a user")
	}
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return refuse(Malformed, "the query of the URL has no valid form")
	}
	for name, list := range values {
		plain := strings.ReplaceAll(strings.ToLower(name), "-", "_")
		if slices.Contains(credentialNames, plain) || slices.ContainsFunc(list, likeCredential) {
			return refuse(InQuery, "")
		}
	}
	return nil
}

// likeCredential reports whether text is an API key or a JSON web token.
func likeCredential(text string) bool {
	if _, _, ok := splitKey(text); ok {
		return true
	}
	return strings.HasPrefix(text, "eyJ") && strings.Count(text, ".") == 2
}
