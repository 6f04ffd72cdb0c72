package rest

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Tokens caches an OAuth access token. It is safe for concurrent use.
type Tokens struct {
	Client *Client // without Authorize
	URL    string  // of the token endpoint
	Form   func(now time.Time) (url.Values, error)

	mu      sync.Mutex
	token   string
	expires time.Time
}

// Authorize sets the access token of a request. It gets a new one if the cached one expires within
// a minute.
//
// Source: RFC 6749, sections 4.4 and 5.
func (t *Tokens) Authorize(ctx context.Context, r *http.Request) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.Client.Now()
	if t.token == "" || !now.Add(time.Minute).Before(t.expires) {
		if err := t.renew(ctx, now); err != nil {
			return err
		}
	}
	r.Header.Set("Authorization", "Bearer "+t.token)
	return nil
}

// Forget drops the cached token.
func (t *Tokens) Forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.token = ""
}

func (t *Tokens) renew(ctx context.Context, now time.Time) error {
	form, err := t.Form(now)
	if err != nil {
		return err
	}
	var reply struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"`
	}
	if err := t.Client.PostForm(ctx, t.URL, form, &reply); err != nil {
		// RFC 6749, section 5.2: refused credentials have the status 400 or 401.
		if failed, ok := errors.AsType[*Error](err); ok && failed.Status == http.StatusBadRequest {
			return t.Client.Failed(http.StatusUnauthorized, "%s", failed.Message)
		}
		return err
	}
	if reply.AccessToken == "" {
		return t.Client.Fail("the token endpoint returned no access token")
	}
	const longest = 24 * 60 * 60
	t.token = reply.AccessToken
	t.expires = now.Add(time.Duration(min(max(reply.ExpiresIn, 0), longest)) * time.Second)
	return nil
}

// ParseRSAKey reads a private key in PEM: PKCS #8 or PKCS #1.
func ParseRSAKey(text string) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("it is no private key in PEM")
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("the private key cannot be read")
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return nil, errors.New("the private key is not for RSA")
	}
	return key, nil
}

// SignJWT returns a JSON Web Token, signed with RS256.
//
// Source: RFC 7515 and RFC 7518, section 3.3.
func SignJWT(key *rsa.PrivateKey, keyID string, claims any) (string, error) {
	header := map[string]string{"alg": "RS256", "typ": "JWT"}
	if keyID != "" {
		header["kid"] = keyID
	}
	var text string
	for _, part := range []any{header, claims} {
		data, err := json.Marshal(part)
		if err != nil {
			return "", err
		}
		if text != "" {
			text += "."
		}
		text += base64.RawURLEncoding.EncodeToString(data)
	}
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		return "", err
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}
