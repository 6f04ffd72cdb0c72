// Package bedrock implements access to Amazon Bedrock: language models through Converse, embedding
// and reranking models, knowledge bases, agents, and guardrails that check whether an answer is
// grounded. It uses the AWS SDK, which handles credentials, regions and formats. No type of the SDK
// is part of the package's API.
//
// [New] returns a [Provider] without contacting AWS: the SDK's configuration (files, environment,
// metadata service) is read at the first call. Each call is made once; the SDK's retries are
// disabled, since package resilient retries within the budget.
//
// The SDK does not detect every defect of a reply. So each exchange goes through a reader of this
// package that limits the bytes, abandons a server that stalls, rejects redirects, and detects a
// stream that ends within a frame.
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
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/bedrockagentruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/smithy-go/auth/bearer"
	"github.com/aws/smithy-go/logging"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/egress"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// A Secret is a credential that is hidden when printed.
type Secret = wire.Secret

// A Config configures access to Bedrock. The zero Config uses the AWS SDK's configuration: region
// and credentials from the environment, the shared files and so on.
type Config struct {
	Name    string // prefix of model names, before the slash; empty: "bedrock"
	Region  string // empty: from the SDK's configuration
	Profile string // of the shared configuration; empty: the SDK's choice

	// Endpoints of Bedrock, for private ones: BaseURL for models and guardrails, AgentURL for
	// knowledge bases and agents, and ControlURL for the control plane, which is queried for
	// inference profiles. Empty: BaseURL if that is set, else AWS's endpoint for the region.
	BaseURL    string
	AgentURL   string
	ControlURL string

	// Credentials. If empty, the SDK's chain of providers applies.
	AccessKeyID     string
	SecretAccessKey Secret
	SessionToken    Secret
	Key             Secret // Bedrock API key, takes precedence; empty: AWS_BEARER_TOKEN_BEDROCK

	Stream bool // request replies of models as streams

	// Effort controls how much a model thinks before it answers, in Bedrock's terms ("low",
	// "medium", "high"). Empty: models with optional thinking do not think.
	Effort string

	// Schemas selects how models are asked for JSON that follows a schema. Empty: as documented for
	// the model.
	Schemas SchemaMode

	// Models maps an ARN that does not contain its foundation model (of an application inference
	// profile, a provisioned or an imported model) to that model. The supported request features
	// depend on it.
	Models map[string]string

	HTTP     *http.Client  // nil: according to the SDK's configuration, through Egress
	Egress   *egress.Guard // nil: the default one
	Idle     time.Duration // longest silence within a reply; 0: a minute
	First    time.Duration // longest wait for the start of a reply; 0: ten minutes
	MaxBytes int64         // largest reply; 0: 8 MiB
}

// A Provider is Bedrock in one region, with one set of credentials. It is safe for concurrent use.
type Provider struct {
	config Config

	mu   sync.Mutex
	open *session // nil until first used
}

// A session is an SDK whose configuration has been read.
type session struct {
	aws     aws.Config
	region  string
	runtime *bedrockruntime.Client
	agent   *bedrockagentruntime.Client
	bearer  bearer.TokenProvider // nil: requests are signed
	http    *http.Client         // does not follow redirects, which must not receive a credential
}

// New returns a Provider for the configuration c. A contradictory configuration is ErrInvalid.
func New(c Config) (*Provider, error) {
	c.Name = cmp.Or(c.Name, "bedrock")
	c.AgentURL = cmp.Or(c.AgentURL, c.BaseURL)
	c.ControlURL = cmp.Or(c.ControlURL, c.BaseURL)
	switch {
	case strings.Contains(c.Name, "/"):
		return nil, fmt.Errorf("provider name %q contains a slash: %w", c.Name, assay.ErrInvalid)
	case (c.AccessKeyID == "") != c.SecretAccessKey.Empty():
		return nil, fmt.Errorf("provider %s has only half of an AWS credential; set both the access key ID and the secret access key: %w", c.Name, assay.ErrInvalid)
	case !slices.Contains([]SchemaMode{"", SchemaFormat, SchemaTool, SchemaWords}, c.Schemas):
		return nil, fmt.Errorf("provider %s sends schemas as %q, want %q, %q or %q: %w", c.Name, c.Schemas, SchemaFormat, SchemaTool, SchemaWords, assay.ErrInvalid)
	}
	return &Provider{config: c}, nil
}

// Region returns the provider's region: the configured one, or that of the SDK's configuration,
// which it reads. A missing region is ErrInvalid.
func (p *Provider) Region(ctx context.Context) (string, error) {
	s, err := p.session(ctx)
	if err != nil {
		return "", err
	}
	return s.region, nil
}

// session returns the session, reading the SDK's configuration at the first call.
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
		return nil, fmt.Errorf("no AWS region is configured; set the provider's region, AWS_REGION or the profile's region: %w", assay.ErrInvalid)
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

// client returns the HTTP client: the configured one, or one with the proxies and certificates of
// the SDK's configuration.
func (p *Provider) client(cfg aws.Config) *http.Client {
	var h http.Client
	if p.config.HTTP != nil {
		h = *p.config.HTTP
	} else if b, ok := cfg.HTTPClient.(interface{ GetTransport() *http.Transport }); ok {
		t := b.GetTransport()
		p.scope().Apply(t)
		h.Transport = t
	} else {
		h.Transport = p.scope().Transport()
	}
	h.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &h
}

// scope returns the right to connect to AWS, which also issues credentials.
func (p *Provider) scope() *egress.Scope {
	hosts := egress.AWSHosts()
	for _, base := range []string{p.config.BaseURL, p.config.AgentURL, p.config.ControlURL} {
		if r, ok := egress.HostOf(base); ok {
			hosts = append(hosts, r)
		}
	}
	return p.config.Egress.Scope(egress.Scope{Purpose: egress.Provider, Hosts: hosts, Fixed: egress.AWSFixed(), Private: true, Proxy: true})
}

// bearerScheme is the SDK's name for authentication by API key.
const bearerScheme = "httpBearerAuth"

func (p *Provider) options() []func(*config.LoadOptions) error {
	c := p.config
	options := []func(*config.LoadOptions) error{
		config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }),
		config.WithLogger(logging.Nop{}),
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTransportOptions(p.scope().Apply)), // also for credentials
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

// given returns the configured secrets.
func (p *Provider) given() []Secret {
	return []Secret{p.config.SecretAccessKey, p.config.SessionToken, p.config.Key}
}

// secrets returns every credential that a request may contain, so that they can be removed from
// errors. If there are no credentials, the error is an *llm.Error about name.
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

// noCredentials returns the error of a call that was not made because credentials are missing.
func noCredentials(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("ask %s: %w", name, ctx.Err())
	}
	return &llm.Error{Model: name, Kind: llm.BadKey, Message: wire.Redact("no AWS credentials: " + innermost(err).Error())}
}

// innermost returns the last error of a chain, since the SDK repeats its message on each level.
func innermost(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}
