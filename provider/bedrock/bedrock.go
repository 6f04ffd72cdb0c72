// Package bedrock reaches Amazon Bedrock: language models by Converse, embedding and
// reranking models, knowledge bases, agents, and guardrails that check whether an
// answer is grounded. It speaks through the AWS SDK, whose credentials, regions and
// formats are AWS's own business; no type of the SDK leaves the package.
//
// [New] makes a [Provider] and asks AWS nothing: the SDK's configuration (files,
// environment, metadata service) is read at the first call. A call is made once; the
// SDK's own retries are off, since package resilient retries within the budget.
//
// The SDK's reading of replies is not trusted to notice everything: each exchange
// goes through a reader of ours that bounds its bytes, leaves a server that has
// fallen silent, refuses redirects, and knows a stream that ends inside of a frame.
package bedrock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/bedrockagentruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/smithy-go/auth/bearer"
	"github.com/aws/smithy-go/logging"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// A Secret is a credential that does not show itself.
type Secret = wire.Secret

// A Config says how to reach Bedrock. The zero Config reaches it as the AWS SDK finds
// it: region and credentials of the environment, the shared files and so on.
type Config struct {
	Name    string // before the slash in names of models; empty: "bedrock"
	Region  string // empty: that of the SDK's configuration
	Profile string // of the shared configuration; empty: the SDK's choice

	// Addresses of Bedrock's endpoints, for private ones: that of models and
	// guardrails, that of knowledge bases and agents, and that of the control plane,
	// which is asked for inference profiles. Empty: the first, where it is set, else
	// AWS's for the region.
	BaseURL    string
	AgentURL   string
	ControlURL string

	// Credentials. Empty: the SDK's chain finds them.
	AccessKeyID     string
	SecretAccessKey Secret
	SessionToken    Secret
	Key             Secret // a Bedrock API key, which goes before the others; empty: AWS_BEARER_TOKEN_BEDROCK

	Stream bool // replies of models are asked for as streams

	// Effort is how much a model thinks before it answers, in Bedrock's words ("low",
	// "medium", "high"). Empty: models whose thinking is a choice do not think.
	Effort string

	// Schemas is how models are asked for JSON that follows a schema. Empty: as is
	// documented for the model.
	Schemas SchemaMode

	// Models says which foundation model an ARN stands for that does not say so itself
	// (of an application inference profile, a provisioned or an imported model). What
	// may be asked of a model goes by it.
	Models map[string]string

	HTTP     *http.Client  // to reach Bedrock with; nil: one as the SDK's configuration says
	Idle     time.Duration // how long a reply that has begun may be silent; 0: a minute
	First    time.Duration // how long until a reply begins; 0: ten minutes
	MaxBytes int64         // of a reply; 0: 8 MiB
}

// A Provider is Bedrock in one region, with one set of credentials. It is safe for
// concurrent use.
type Provider struct {
	config Config

	mu   sync.Mutex
	open *session // nil until it is needed
}

// A session is the SDK with its configuration read.
type session struct {
	aws     aws.Config
	region  string
	runtime *bedrockruntime.Client
	agent   *bedrockagentruntime.Client
	bearer  bearer.TokenProvider // nil: requests are signed
	http    *http.Client         // follows no redirect: a credential must not
}

// New returns Bedrock as c says. A config that contradicts itself is ErrInvalid.
func New(c Config) (*Provider, error) {
	c.Name = cmp.Or(c.Name, "bedrock")
	c.AgentURL = cmp.Or(c.AgentURL, c.BaseURL)
	c.ControlURL = cmp.Or(c.ControlURL, c.BaseURL)
	switch {
	case strings.Contains(c.Name, "/"):
		return nil, fmt.Errorf("provider name %q has a slash: %w", c.Name, assay.ErrInvalid)
	case (c.AccessKeyID == "") != c.SecretAccessKey.Empty():
		return nil, fmt.Errorf("provider %s has half of an AWS credential: an access key ID and a secret access key belong together: %w", c.Name, assay.ErrInvalid)
	case !slices.Contains([]SchemaMode{"", SchemaFormat, SchemaTool, SchemaWords}, c.Schemas):
		return nil, fmt.Errorf("provider %s asks for schemas as %q, want %q, %q or %q: %w", c.Name, c.Schemas, SchemaFormat, SchemaTool, SchemaWords, assay.ErrInvalid)
	}
	return &Provider{config: c}, nil
}

// Region returns the region that the provider is in: the configured one, or that of
// the SDK's configuration, which it reads. No region is ErrInvalid.
func (p *Provider) Region(ctx context.Context) (string, error) {
	s, err := p.session(ctx)
	if err != nil {
		return "", err
	}
	return s.region, nil
}

// session reads the SDK's configuration, the first time it is asked.
func (p *Provider) session(ctx context.Context) (*session, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open != nil {
		return p.open, nil
	}
	cfg, err := config.LoadDefaultConfig(ctx, p.options()...)
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("read the AWS configuration: %w", ctx.Err())
		}
		return nil, fmt.Errorf("read the AWS configuration: %s: %w", wire.Redact(err.Error(), p.given()...), assay.ErrInvalid)
	}
	if cfg.Region == "" {
		return nil, fmt.Errorf("no AWS region is configured: set region: of the provider, AWS_REGION, or region of the profile: %w", assay.ErrInvalid)
	}
	cfg.ClientLogMode = 0
	s := &session{aws: cfg, region: cfg.Region, http: p.client(cfg)}
	s.runtime = bedrockruntime.NewFromConfig(cfg, func(o *bedrockruntime.Options) {
		if p.config.BaseURL != "" {
			o.BaseEndpoint = &p.config.BaseURL
		}
		if key := p.config.Key; !key.Empty() {
			o.BearerAuthTokenProvider = bearer.StaticTokenProvider{Token: bearer.Token{Value: key.Reveal()}}
			o.AuthSchemePreference = []string{bearerScheme}
		}
	})
	s.agent = bedrockagentruntime.NewFromConfig(cfg, func(o *bedrockagentruntime.Options) {
		if p.config.AgentURL != "" {
			o.BaseEndpoint = &p.config.AgentURL
		}
	})
	if o := s.runtime.Options(); len(o.AuthSchemePreference) > 0 && o.AuthSchemePreference[0] == bearerScheme {
		s.bearer = o.BearerAuthTokenProvider
	}
	p.open = s
	return s, nil
}

// client returns the HTTP client to reach AWS with: the configured one, or one with
// what the SDK's configuration says of proxies and certificates.
func (p *Provider) client(cfg aws.Config) *http.Client {
	var h http.Client
	if p.config.HTTP != nil {
		h = *p.config.HTTP
	} else if b, ok := cfg.HTTPClient.(interface{ GetTransport() *http.Transport }); ok {
		h.Transport = b.GetTransport()
	}
	h.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &h
}

// bearerScheme is the SDK's name of requests that carry an API key.
const bearerScheme = "httpBearerAuth"

func (p *Provider) options() []func(*config.LoadOptions) error {
	c := p.config
	options := []func(*config.LoadOptions) error{
		config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }),
		config.WithLogger(logging.Nop{}),
	}
	if c.Region != "" {
		options = append(options, config.WithRegion(c.Region))
	}
	if c.Profile != "" {
		options = append(options, config.WithSharedConfigProfile(c.Profile))
	}
	if c.AccessKeyID != "" {
		options = append(options, config.WithCredentialsProvider(
			credentials.NewStaticCredentialsProvider(c.AccessKeyID, c.SecretAccessKey.Reveal(), c.SessionToken.Reveal())))
	}
	return options
}

// given returns the secrets that were configured.
func (p *Provider) given() []Secret {
	return []Secret{p.config.SecretAccessKey, p.config.SessionToken, p.config.Key}
}

// secrets returns every credential that a request may carry, so that no reply can
// bring one of them into an error. Without any it is an *llm.Error about name.
func (s *session) secrets(ctx context.Context, name string) ([]Secret, error) {
	var secrets []Secret
	if s.bearer != nil {
		token, err := s.bearer.RetrieveBearerToken(ctx)
		if err != nil {
			return nil, noCredentials(ctx, name, err)
		}
		secrets = append(secrets, wire.NewSecret(token.Value))
	}
	c, err := s.aws.Credentials.Retrieve(ctx)
	if err != nil {
		if s.bearer != nil {
			return secrets, nil
		}
		return nil, noCredentials(ctx, name, err)
	}
	return append(secrets, wire.NewSecret(c.SecretAccessKey), wire.NewSecret(c.SessionToken), wire.NewSecret(c.AccessKeyID)), nil
}

// noCredentials is the error of a call that was not made for want of credentials.
func noCredentials(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("ask %s: %w", name, ctx.Err())
	}
	return &llm.Error{Model: name, Kind: llm.BadKey, Message: wire.Redact("no AWS credentials were found: " + innermost(err).Error())}
}

// innermost returns the error at the bottom of a chain: the SDK tells the same thing
// once on each level.
func innermost(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}
