// Package awswire makes calls to services of AWS with the AWS SDK, which handles credentials, regions
// and formats. Each call is made once: the SDK's retries are disabled, since package resilient
// retries within the budget.
//
// The SDK does not detect every defect of a reply. So each [Exchange] limits the bytes, abandons a
// server that stalls, rejects redirects, and detects a stream that ends within a frame.
package awswire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go/auth/bearer"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/awssign"
	"github.com/assay-rag/assay/internal/egress"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// A Secret is a credential that is hidden when printed.
type Secret = wire.Secret

// A Config configures access to a service of AWS. The zero Config uses the AWS SDK's configuration:
// region and credentials from the environment, the shared files and so on.
type Config struct {
	Region  string // empty: from the SDK's configuration
	Profile string // of the shared configuration; empty: the SDK's choice

	// Endpoints are the addresses of the service that replace AWS's; empty ones are ignored.
	Endpoints []string

	// Credentials. If empty, the SDK's chain of providers applies.
	AccessKeyID     string
	SecretAccessKey Secret
	SessionToken    Secret

	HTTP     *http.Client  // nil: according to the SDK's configuration, through Egress
	Egress   *egress.Guard // nil: the default one
	Idle     time.Duration // longest silence within a reply; 0: a minute
	First    time.Duration // longest wait for the start of a reply; 0: ten minutes
	MaxBytes int64         // largest reply; 0: 8 MiB
}

// Check returns assay.ErrInvalid if c has only half of a credential. name is that of the service.
func (c Config) Check(name string) error {
	if (c.AccessKeyID == "") != c.SecretAccessKey.Empty() {
		return fmt.Errorf("provider %s has only half of an AWS credential; set both the access key ID and the secret access key: %w", name, assay.ErrInvalid)
	}
	return nil
}

// A Session is an SDK whose configuration has been read.
type Session struct {
	AWS    aws.Config
	Region string
	HTTP   *http.Client         // does not follow redirects, which must not receive a credential
	Bearer bearer.TokenProvider // nil: requests are signed

	config Config
}

// Open reads the SDK's configuration. It calls no service but those that issue credentials. A missing
// region is assay.ErrInvalid.
func (c Config) Open(ctx context.Context) (*Session, error) {
	cfg, err := awssign.Load(ctx, awssign.Credentials{
		Region: c.Region, Profile: c.Profile, AccessKeyID: c.AccessKeyID, SecretAccessKey: c.SecretAccessKey, SessionToken: c.SessionToken, Egress: c.Egress,
	})
	if err != nil {
		return nil, err
	}
	cfg.ClientLogMode = 0
	return &Session{AWS: cfg, Region: cfg.Region, HTTP: c.client(cfg), config: c}, nil
}

// client returns the HTTP client: the configured one, or one with the proxies and certificates of
// the SDK's configuration.
func (c Config) client(cfg aws.Config) *http.Client {
	var h http.Client
	if c.HTTP != nil {
		h = *c.HTTP
	} else if b, ok := cfg.HTTPClient.(interface{ GetTransport() *http.Transport }); ok {
		t := b.GetTransport()
		c.scope().Apply(t)
		h.Transport = t
	} else {
		h.Transport = c.scope().Transport()
	}
	h.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &h
}

// scope returns the right to connect to AWS, which also issues credentials.
func (c Config) scope() *egress.Scope {
	hosts := egress.AWSHosts()
	for _, base := range c.Endpoints {
		if r, ok := egress.HostOf(base); ok {
			hosts = append(hosts, r)
		}
	}
	return c.Egress.Scope(egress.Scope{Purpose: egress.Provider, Hosts: hosts, Fixed: egress.AWSFixed(), Private: true, Proxy: true})
}

// An Account opens a service's Session at its first call. It is safe for concurrent use.
type Account struct {
	config Config
	mu     sync.Mutex
	open   *Session
}

// Account returns an account that opens the configuration when it is first used.
func (c Config) Account() *Account { return &Account{config: c} }

// Session returns the session. A failure is an *llm.Error about name, or wraps the context's error.
func (a *Account) Session(ctx context.Context, name string) (*Session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open != nil {
		return a.open, nil
	}
	s, err := a.config.Open(ctx)
	if err != nil {
		return nil, Unopened(ctx, name, err)
	}
	a.open = s
	return s, nil
}

// Unopened returns the error of a call by name whose session could not be opened.
func Unopened(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil {
		return err
	}
	return &llm.Error{Model: name, Kind: llm.BadRequest, Message: wire.Redact(err.Error())}
}

// Secrets returns every credential that a request may contain, so that they can be removed from
// errors. If there are no credentials, the error is an *llm.Error about name.
func (s *Session) Secrets(ctx context.Context, name string) ([]Secret, error) {
	var secrets []Secret
	if s.Bearer != nil {
		token, err := s.Bearer.RetrieveBearerToken(ctx)
		if err != nil {
			return nil, NoCredentials(ctx, name, err)
		}
		secrets = append(secrets, wire.NewSecret(token.Value))
	}
	c, err := s.AWS.Credentials.Retrieve(ctx)
	if err != nil {
		if s.Bearer != nil {
			return secrets, nil
		}
		return nil, NoCredentials(ctx, name, err)
	}
	return append(secrets, wire.NewSecret(c.SecretAccessKey), wire.NewSecret(c.SessionToken), wire.NewSecret(c.AccessKeyID)), nil
}

// NoCredentials returns the error of a call that was not made because credentials are missing.
func NoCredentials(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("ask %s: %w", name, ctx.Err())
	}
	return &llm.Error{Model: name, Kind: llm.BadKey, Message: wire.Redact("no AWS credentials: " + Innermost(err).Error())}
}

// Innermost returns the last error of a chain, since the SDK repeats its message on each level.
func Innermost(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}
