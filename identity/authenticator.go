package identity

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/secret"
)

// Options configure an Authenticator.
type Options struct {
	Keys   *Keys        // nil: no API key is accepted
	Tokens Tokens       // zero: no token is accepted
	Client *http.Client // fetches the issuers' keys; required with Tokens, and so is its Transport
	Now    func() time.Time

	// Untracked leaves out the record of when an API key was last used.
	Untracked bool

	// Observe, if not nil, is called with the result of each Authenticate, for logs: a grant, or a
	// refusal. If the use of an accepted API key could not be recorded, err says why.
	Observe func(ctx context.Context, g Grant, r *Refusal, err error)
}

// An Authenticator turns credentials into grants. All doors use the same one. It caches the keys of
// issuers and nothing else. It is safe for concurrent use.
type Authenticator struct {
	options Options
	skew    time.Duration
	issuers map[string]*tokenIssuer // by URL
}

// A tokenIssuer is an issuer and its keys.
type tokenIssuer struct {
	Issuer
	algorithms []jose.SignatureAlgorithm
	names      []string // of the algorithms
	keys       *keySet
}

// New returns an Authenticator. It connects to no issuer yet. A mistake in Tokens is a *ConfigError.
func New(o Options) (*Authenticator, error) {
	if err := o.Tokens.Check(); err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	a := &Authenticator{options: o, skew: o.Tokens.Skew, issuers: map[string]*tokenIssuer{}}
	if a.skew == 0 {
		a.skew = DefaultSkew
	}
	if len(o.Tokens.Issuers) == 0 {
		return a, nil
	}
	if o.Client == nil || o.Client.Transport == nil {
		return nil, fmt.Errorf("identity: issuers need an HTTP client with a transport: %w", assay.ErrInvalid)
	}
	client := bounded(o.Client)
	for _, issuer := range o.Tokens.Issuers {
		t := &tokenIssuer{Issuer: issuer, names: issuer.Algorithms}
		if len(t.names) == 0 {
			t.names = Algorithms
		}
		for _, name := range t.names {
			t.algorithms = append(t.algorithms, jose.SignatureAlgorithm(name))
		}
		t.keys = &keySet{issuer: issuer.URL, given: issuer.JWKS, client: client, now: o.Now}
		a.issuers[issuer.URL] = t
	}
	return a, nil
}

// Authenticate returns what the credential allows. Any error is a *Refusal, whose text names its
// kind only: assay.ErrUnauthenticated; assay.ErrForbidden for a caller who is known and has no tenant
// or role; assay.ErrUnavailable if the issuer's keys or the API keys cannot be read; or the error of
// ctx.
func (a *Authenticator) Authenticate(ctx context.Context, c Credential) (Grant, error) {
	g, refusal := a.grant(ctx, c)
	var err error
	if refusal == nil && g.Principal.Key != "" && !a.options.Untracked {
		err = a.options.Keys.touch(ctx, g.Principal.Key)
	}
	if a.options.Observe != nil {
		a.options.Observe(ctx, g, refusal, err)
	}
	if refusal != nil {
		return Grant{}, refusal
	}
	return g, nil
}

// Recheck returns a *Refusal for the grant of a token whose issuer is not accepted any more. It is
// made for HostConfig.Recheck of package engine, which checks expiry and API keys itself.
func (a *Authenticator) Recheck(_ context.Context, g Grant) error {
	if g.Issuer != "" && a.issuers[g.Issuer] == nil {
		return refuse(ForeignIssuer, fmt.Sprintf("%.200q", g.Issuer))
	}
	return nil
}

func (a *Authenticator) grant(ctx context.Context, c Credential) (Grant, *Refusal) {
	if r := interrupted(ctx); r != nil {
		return Grant{}, r
	}
	switch {
	case c.text.Empty():
		return Grant{}, refuse(NoCredential, "")
	case c.key && a.options.Keys == nil:
		return Grant{}, refuse(Unsupported, "API keys are not accepted here")
	case c.key:
		return a.options.Keys.grant(ctx, c.text.Reveal())
	case len(a.issuers) == 0:
		return Grant{}, refuse(Unsupported, "no issuer is configured, so that only API keys are accepted")
	}
	g, refusal := a.token(ctx, c.text)
	if refusal != nil {
		refusal.Detail = secret.Redact(refusal.Detail, c.text)
		return Grant{}, refusal
	}
	return g, nil
}

// token verifies an access token, which is a JSON web token in compact form (RFC 9068).
func (a *Authenticator) token(ctx context.Context, text secret.Secret) (Grant, *Refusal) {
	header, unverified, refusal := open(text.Reveal())
	if refusal != nil {
		return Grant{}, refusal
	}
	url, refusal := unverified.text("iss")
	if refusal != nil {
		return Grant{}, refusal
	}
	issuer := a.issuers[url]
	if issuer == nil {
		return Grant{}, refuse(ForeignIssuer, fmt.Sprintf("%.200q", url))
	}
	g, refusal := a.tokenOf(ctx, issuer, header, text.Reveal())
	if refusal != nil {
		refusal.Issuer = issuer.Name
	}
	return g, refusal
}

// open decodes the header and the claims of a token, neither of which is verified yet.
func open(token string) (header, unverified claims, refusal *Refusal) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 || parts[2] == "" && parts[1] == "" {
		return nil, nil, refuse(Malformed, "neither an API key nor a JSON web token")
	}
	for i, into := range []*claims{&header, &unverified} {
		data, err := base64.RawURLEncoding.Strict().DecodeString(parts[i])
		if err == nil {
			*into, err = decodeClaims(data)
		}
		if err != nil {
			return nil, nil, refuse(Malformed, "not a JSON web token")
		}
	}
	return header, unverified, nil
}

// checkHeader checks the header of a token. Keys and addresses of keys in it (jwk, jku, x5c, x5u) are
// never used.
func (i *tokenIssuer) checkHeader(header claims) *Refusal {
	if _, ok := header["crit"]; ok {
		return refuse(Critical, "")
	}
	if _, ok := header["b64"]; ok {
		return refuse(Critical, "b64")
	}
	algorithm, _ := header["alg"].(string)
	known := false
	for _, name := range i.names {
		known = known || name == algorithm
	}
	if !known {
		return refuse(BadAlgorithm, fmt.Sprintf("%.20q", algorithm))
	}
	kind, ok := header["typ"].(string)
	if _, given := header["typ"]; given && !ok {
		return refuse(BadType, "typ is not a text")
	}
	kind = strings.TrimPrefix(strings.ToLower(kind), "application/")
	switch {
	case kind == "at+jwt":
		return nil
	case i.RequireJWT:
		return refuse(BadType, fmt.Sprintf("%.40q, want at+jwt", kind))
	case kind == "" || kind == "jwt":
		return nil
	}
	return refuse(BadType, fmt.Sprintf("%.40q", kind))
}

// tokenOf verifies a token of an issuer. The library verifies the signature, the issuer and the
// audience; the claims are then read again, strictly, from the bytes that were signed.
func (a *Authenticator) tokenOf(ctx context.Context, issuer *tokenIssuer, header claims, token string) (Grant, *Refusal) {
	if refusal := issuer.checkHeader(header); refusal != nil {
		return Grant{}, refusal
	}
	signed := &verification{issuer: issuer}
	_, err := oidc.NewVerifier(issuer.URL, signed, &oidc.Config{
		ClientID: a.options.Tokens.Audience, SupportedSigningAlgs: issuer.names, SkipExpiryCheck: true, // it forgives five minutes
	}).Verify(ctx, token)
	switch {
	case signed.refusal != nil:
		return Grant{}, signed.refusal
	case signed.payload == nil:
		return Grant{}, refuse(Malformed, "not a JSON web token")
	}
	c, decodeErr := decodeClaims(signed.payload)
	if decodeErr != nil {
		return Grant{}, refuse(Malformed, "claims: "+decodeErr.Error())
	}
	expires, refusal := a.checkClaims(issuer, c)
	if refusal != nil {
		return Grant{}, refusal
	}
	if err != nil {
		return Grant{}, refuse(BadClaim, err.Error())
	}
	g, refusal := issuer.grant(c)
	g.Expires, g.Issuer = expires, issuer.URL
	return g, refusal
}

func (a *Authenticator) checkClaims(issuer *tokenIssuer, c claims) (expires time.Time, refusal *Refusal) {
	if c["iss"] != issuer.URL {
		return time.Time{}, refuse(ForeignIssuer, "")
	}
	if refusal := c.checkKind(a.options.Tokens.Audience); refusal != nil {
		return time.Time{}, refusal
	}
	return c.checkTimes(a.options.Now(), a.skew)
}

// A verification verifies one token's signature. It implements oidc.KeySet and keeps the result,
// which the library does not pass on.
type verification struct {
	issuer  *tokenIssuer
	payload []byte // nil: not verified
	refusal *Refusal
}

// VerifySignature implements oidc.KeySet.
func (v *verification) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	signed, err := jose.ParseSignedCompact(token, v.issuer.algorithms)
	if err != nil {
		return nil, errors.New("not a JSON web signature")
	}
	if v.payload, v.refusal = v.issuer.keys.verify(ctx, signed); v.refusal != nil {
		return nil, v.refusal
	}
	return v.payload, nil
}
