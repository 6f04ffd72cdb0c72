// Package bedrock implements access to Amazon Bedrock: language models through Converse, embedding
// and reranking models, knowledge bases, agents, and guardrails that check whether an answer is
// grounded. It uses the AWS SDK, which handles credentials, regions and formats. No type of the SDK
// is part of the package's API.
//
// [New] returns a [Provider] without contacting AWS: the SDK's configuration (files, environment,
// metadata service) is read at the first call. Each call is made once; the SDK's retries are
// disabled, since package resilient retries within the budget.
//
// Package awswire makes the calls, and detects the defects of replies that the SDK does not.
package bedrock

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/bedrockagentruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/smithy-go/auth/bearer"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/egress"
	"github.com/assay-rag/assay/provider/internal/awswire"
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

// A session is an SDK whose configuration has been read, with its clients of Bedrock.
type session struct {
	*awswire.Session
	runtime *bedrockruntime.Client
	agent   *bedrockagentruntime.Client
}

// An exchange is one call to Bedrock.
type exchange struct {
	*awswire.Exchange
	session *session
}

// exchange begins a call by name. The caller must call End.
func (p *Provider) exchange(ctx context.Context, name string) (*exchange, error) {
	s, err := p.session(ctx)
	if err != nil {
		return nil, awswire.Unopened(ctx, name, err)
	}
	x, err := s.Begin(ctx, name)
	if err != nil {
		return nil, err
	}
	return &exchange{x, s}, nil
}

// New returns a Provider for the configuration c. A contradictory configuration is ErrInvalid.
func New(c Config) (*Provider, error) {
	c.Name = cmp.Or(c.Name, "bedrock")
	c.AgentURL = cmp.Or(c.AgentURL, c.BaseURL)
	c.ControlURL = cmp.Or(c.ControlURL, c.BaseURL)
	switch {
	case strings.Contains(c.Name, "/"):
		return nil, fmt.Errorf("provider name %q contains a slash: %w", c.Name, assay.ErrInvalid)
	case !slices.Contains([]SchemaMode{"", SchemaFormat, SchemaTool, SchemaWords}, c.Schemas):
		return nil, fmt.Errorf("provider %s sends schemas as %q, want %q, %q or %q: %w", c.Name, c.Schemas, SchemaFormat, SchemaTool, SchemaWords, assay.ErrInvalid)
	}
	p := &Provider{config: c}
	if err := p.account().Check(c.Name); err != nil {
		return nil, err
	}
	return p, nil
}

// Region returns the provider's region: the configured one, or that of the SDK's configuration,
// which it reads. A missing region is ErrInvalid.
func (p *Provider) Region(ctx context.Context) (string, error) {
	s, err := p.session(ctx)
	if err != nil {
		return "", err
	}
	return s.Region, nil
}

// session returns the session, reading the SDK's configuration at the first call.
func (p *Provider) session(ctx context.Context) (*session, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open != nil {
		return p.open, nil
	}
	opened, err := p.account().Open(ctx)
	if err != nil {
		return nil, err
	}
	cfg, s := opened.AWS, &session{Session: opened}
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
		s.Bearer = o.BearerAuthTokenProvider
	}
	p.open = s
	return s, nil
}

// account returns the configuration of access to AWS.
func (p *Provider) account() awswire.Config {
	c := p.config
	return awswire.Config{
		Region: c.Region, Profile: c.Profile, Endpoints: []string{c.BaseURL, c.AgentURL, c.ControlURL},
		AccessKeyID: c.AccessKeyID, SecretAccessKey: c.SecretAccessKey, SessionToken: c.SessionToken,
		HTTP: c.HTTP, Egress: c.Egress, Idle: c.Idle, First: c.First, MaxBytes: c.MaxBytes,
	}
}

// bearerScheme is the SDK's name for authentication by API key.
const bearerScheme = "httpBearerAuth"
