package config

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/internal/egress"
	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/resilient"
	"github.com/assay-rag/assay/provider/azuresearch"
	"github.com/assay-rag/assay/provider/bedrock"
	"github.com/assay-rag/assay/provider/kendra"
	"github.com/assay-rag/assay/provider/s3vectors"
	"github.com/assay-rag/assay/provider/vertex"
)

// fileService is an entry of the section services: a service whose passages are searched beside the
// documents. Its name is that of its collection. One of the services is given.
type fileService struct {
	KnowledgeBase *fileKnowledgeBase `yaml:"knowledge_base"`
	Kendra        *fileKendra        `yaml:"kendra"`
	S3Vectors     *fileS3Vectors     `yaml:"s3_vectors"`
	AzureSearch   *fileAzureSearch   `yaml:"azure_search"`
	VertexSearch  *fileVertexSearch  `yaml:"vertex_search"`
	VertexVectors *fileVertexVectors `yaml:"vertex_vectors"`

	// Who may see its documents; see passage.Sharing.
	OpenTo    []string `yaml:"open_to"`
	UsersKey  string   `yaml:"users_key"`
	GroupsKey string   `yaml:"groups_key"`
	ACLKey    string   `yaml:"acl_key"`
	TenantKey string   `yaml:"tenant_key"`
	Tenant    string   `yaml:"tenant"`

	Filter string   `yaml:"filter"` // of every search, as in --filter
	Lists  []string `yaml:"lists"`  // keys that hold lists
	Pages  int      `yaml:"pages"`  // most calls of a search
}

type fileKnowledgeBase struct {
	Provider string `yaml:"provider"`
	ID       string `yaml:"id"`
	Search   string `yaml:"search"`
	Rerank   string `yaml:"rerank"`
	Implicit *struct {
		Model      string              `yaml:"model"`
		Attributes []bedrock.Attribute `yaml:"attributes"`
	} `yaml:"implicit"`
	EpochKeys []string `yaml:"epoch_keys"`
}

type fileKendra struct {
	Provider    string `yaml:"provider"`
	BaseURL     string `yaml:"base_url"`
	Index       string `yaml:"index"`
	UserContext bool   `yaml:"user_context"`
}

type fileS3Vectors struct {
	Provider  string `yaml:"provider"`
	BaseURL   string `yaml:"base_url"`
	Bucket    string `yaml:"bucket"`
	Index     string `yaml:"index"`
	Embedding string `yaml:"embedding"`
}

type fileAzureSearch struct {
	BaseURL  string `yaml:"base_url"`
	Index    string `yaml:"index"`
	Key      string `yaml:"key"`
	Version  string `yaml:"api_version"`
	Semantic string `yaml:"semantic"`
	Fields   struct {
		Text, ID, URI, Title, Page, Vector string
		Metadata                           []string
	} `yaml:"fields"`
}

type fileVertexSearch struct {
	BaseURL       string `yaml:"base_url"`
	ServingConfig string `yaml:"serving_config"`
	Segments      bool   `yaml:"segments"`
	Key           string `yaml:"key"`
}

type fileVertexVectors struct {
	BaseURL       string `yaml:"base_url"`
	IndexEndpoint string `yaml:"index_endpoint"`
	DeployedIndex string `yaml:"deployed_index"`
	Measure       string `yaml:"measure"`
	Embedding     string `yaml:"embedding"`
	Key           string `yaml:"key"`
}

// A Service is an entry of the section services.
type Service struct {
	Name   string // of its collection
	Filter assay.Filter
	Key    Key // of Azure, or an access token of Google; empty: Google's default credentials
	Line   int

	in      fileService
	command string // prints the key; empty: none, or it has run
}

// services reads the section services.
func (c *Config) services() error {
	for _, name := range slices.Sorted(maps.Keys(c.file.Services)) {
		in := c.file.Services[name]
		at := func(keys ...string) []string { return append([]string{"services", name}, keys...) }
		s := &Service{Name: name, in: in, Line: c.file.line("services", name)}
		if !providerName.MatchString(name) {
			return c.file.wrong(at(), "use lower-case letters, digits, - and _", "invalid name of a collection")
		}
		if kinds := in.kinds(); len(kinds) != 1 {
			return c.file.wrong(at(), "as in knowledge_base: {id: ABCDEFGHIJ}", "want one of knowledge_base, kendra, s3_vectors, azure_search, vertex_search and vertex_vectors, not %d", len(kinds))
		}
		if len(in.OpenTo) == 0 && in.UsersKey+in.GroupsKey+in.ACLKey == "" {
			return c.file.wrong(at(), `as in open_to: ["*"], or acl_key, or users_key and groups_key`, "does not say which users may see its documents")
		}
		if in.Pages < 0 {
			return c.file.wrong(at("pages"), "", "must not be negative")
		}
		var err error
		if s.Filter, err = assay.ParseFilter(in.Filter); in.Filter != "" && err != nil {
			return c.file.wrong(at("filter"), "as in filter: year >= 2024", "%s", withoutKind(err))
		}
		if err := c.checkAWS(in, at); err != nil {
			return err
		}
		if kind, key := in.key(); key != "" {
			if s.Key, s.command, err = c.credential(key, at(kind, "key")...); err != nil {
				return err
			}
			c.Secrets.add(s.Key.Secret)
		}
		c.Services = append(c.Services, s)
	}
	return nil
}

// kinds returns the services that an entry names.
func (s fileService) kinds() []string {
	var kinds []string
	for kind, given := range map[string]bool{
		"knowledge_base": s.KnowledgeBase != nil, "kendra": s.Kendra != nil, "s3_vectors": s.S3Vectors != nil,
		"azure_search": s.AzureSearch != nil, "vertex_search": s.VertexSearch != nil, "vertex_vectors": s.VertexVectors != nil,
	} {
		if given {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// key returns the credential of a service that is configured with one, and its kind.
func (s fileService) key() (kind, key string) {
	switch {
	case s.AzureSearch != nil:
		return "azure_search", s.AzureSearch.Key
	case s.VertexSearch != nil:
		return "vertex_search", s.VertexSearch.Key
	case s.VertexVectors != nil:
		return "vertex_vectors", s.VertexVectors.Key
	}
	return "", ""
}

// aws returns the name of the provider whose account a service of AWS uses; empty: it is not of AWS.
func (s fileService) aws() (kind, provider string) {
	switch {
	case s.KnowledgeBase != nil:
		return "knowledge_base", cmp.Or(s.KnowledgeBase.Provider, Bedrock)
	case s.Kendra != nil:
		return "kendra", cmp.Or(s.Kendra.Provider, Bedrock)
	case s.S3Vectors != nil:
		return "s3_vectors", cmp.Or(s.S3Vectors.Provider, Bedrock)
	}
	return "", ""
}

// checkAWS checks that a service of AWS names a provider of type bedrock.
func (c *Config) checkAWS(in fileService, at func(...string) []string) error {
	kind, name := in.aws()
	if p := c.Providers[name]; name != "" && (p == nil || p.Type != Bedrock) {
		return c.file.wrong(at(kind, "provider"), "name a provider of type bedrock", "%s is not a provider of type bedrock", shown(name))
	}
	return nil
}

// baseURL returns the address that the configuration names for a service; empty: the vendor's.
func (s fileService) baseURL() string {
	switch {
	case s.AzureSearch != nil:
		return s.AzureSearch.BaseURL
	case s.VertexSearch != nil:
		return cmp.Or(s.VertexSearch.BaseURL, "https://discoveryengine.googleapis.com")
	case s.VertexVectors != nil:
		return s.VertexVectors.BaseURL
	}
	return ""
}

// sharing returns who may see the documents of a service.
func (s fileService) sharing() bedrock.Sharing {
	return bedrock.Sharing{OpenTo: s.OpenTo, UsersKey: s.UsersKey, GroupsKey: s.GroupsKey, ACLKey: s.ACLKey, TenantKey: s.TenantKey, Tenant: s.Tenant}
}

// serviceScope returns the right to connect to a service that is not of AWS. Google's regional hosts and
// those that issue its tokens are fixed.
func (c *Config) serviceScope(s fileService) *egress.Scope {
	scope := scopeOf(c.Egress, egress.Provider, s.baseURL())
	if s.VertexSearch != nil || s.VertexVectors != nil {
		scope.Fixed = egress.MustRules("discoveryengine.googleapis.com:443", "*.googleapis.com:443", vertex.MetadataHost)
	}
	return scope
}

// Services opens the configured services. It calls none of them, but may ask a provider for a vector.
func (s *Set) Services(ctx context.Context) ([]engine.SearchService, error) {
	var out []engine.SearchService
	for _, service := range s.c.Services {
		opened, err := s.service(ctx, service)
		if err != nil {
			if _, ok := err.(*Error); ok {
				return nil, err
			}
			return nil, &Error{Where: s.c.where(), Line: service.Line, Detail: s.c.Secrets.Scrub(strings.TrimSuffix(err.Error(), ": "+assay.ErrInvalid.Error()))}
		}
		out = append(out, opened)
	}
	return out, nil
}

// service opens one service.
func (s *Set) service(ctx context.Context, c *Service) (engine.SearchService, error) {
	if c.command != "" {
		kind, _ := c.in.key()
		var err error
		if c.Key, err = s.c.runCommand(c.command, "services", c.Name, kind, "key"); err != nil {
			return nil, err
		}
		c.command = ""
	}
	if kind, provider := c.in.aws(); kind != "" {
		return s.awsService(ctx, c, provider)
	}
	guard := resilient.New(resilient.Config{})
	client := s.c.serviceScope(c.in).Client(0)
	in, sharing := c.in, c.in.sharing()
	if a := in.AzureSearch; a != nil {
		f := a.Fields
		return azuresearch.New(azuresearch.Config{
			BaseURL: a.BaseURL, Index: a.Index, Version: a.Version, Collection: c.Name, Key: c.Key.Secret, Semantic: a.Semantic,
			Fields:  azuresearch.Fields{Text: f.Text, ID: f.ID, URI: f.URI, Title: f.Title, Page: f.Page, Vector: f.Vector, Metadata: f.Metadata, Lists: in.Lists},
			Sharing: sharing, Filter: c.Filter, Pages: in.Pages, Guard: guard, HTTP: client,
		})
	}
	service := vertex.Service{Collection: c.Name, Token: s.googleToken(c, client), Sharing: sharing, Filter: c.Filter, Guard: guard, HTTP: client}
	if v := in.VertexSearch; v != nil {
		service.BaseURL = v.BaseURL
		return vertex.NewSearch(vertex.Search{Service: service, ServingConfig: v.ServingConfig, Segments: v.Segments, Pages: in.Pages})
	}
	v := in.VertexVectors
	service.BaseURL = v.BaseURL
	embedder, err := s.serviceEmbedder(ctx, v.Embedding, c.Name, "vertex_vectors")
	if err != nil {
		return nil, err
	}
	return vertex.NewVectors(vertex.Vectors{Service: service, IndexEndpoint: v.IndexEndpoint, DeployedIndex: v.DeployedIndex, Measure: vertex.Measure(v.Measure), Embedder: embedder})
}

// googleToken returns the source of the access tokens of a service of Google.
func (s *Set) googleToken(c *Service, client *http.Client) func(context.Context) (secret.Secret, error) {
	if !c.Key.Empty() {
		return func(context.Context) (secret.Secret, error) { return c.Key.Secret, nil }
	}
	credentials := &vertex.Credentials{Getenv: s.c.getenv, HTTP: client}
	return credentials.Token
}

// awsService opens a service of AWS with the account of a provider.
func (s *Set) awsService(ctx context.Context, c *Service, provider string) (engine.SearchService, error) {
	e, err := s.endpoint(provider)
	if err != nil {
		return nil, err
	}
	p, in := s.c.Providers[provider], c.in
	if k := in.KnowledgeBase; k != nil {
		base := bedrock.KnowledgeBase{
			ID: k.ID, Collection: c.Name, Sharing: in.sharing(), Search: bedrock.SearchType(strings.ToUpper(k.Search)), Filter: c.Filter,
			RerankModel: k.Rerank, EpochKeys: k.EpochKeys, Pages: in.Pages, Guard: e.guard,
		}
		if k.Implicit != nil {
			base.ImplicitModel, base.Attributes = k.Implicit.Model, k.Implicit.Attributes
		}
		return e.bedrock.KnowledgeBase(base)
	}
	account := kendra.Account{Region: p.AWS.Region, Profile: p.AWS.Profile, Egress: s.c.Egress, Idle: p.Idle}
	guard := resilient.New(resilient.Config{})
	if k := in.Kendra; k != nil {
		return kendra.New(kendra.Config{
			Account: account, BaseURL: k.BaseURL, Index: k.Index, Collection: c.Name, UserContext: k.UserContext,
			Sharing: in.sharing(), Filter: c.Filter, Lists: in.Lists, Pages: in.Pages, Guard: guard,
		})
	}
	v := in.S3Vectors
	embedder, err := s.serviceEmbedder(ctx, v.Embedding, c.Name, "s3_vectors")
	if err != nil {
		return nil, err
	}
	return s3vectors.New(s3vectors.Config{
		Account: account, BaseURL: v.BaseURL, Bucket: v.Bucket, Index: v.Index, Collection: c.Name, Embedder: embedder,
		Sharing: in.sharing(), Filter: c.Filter, Guard: guard,
	})
}

// serviceEmbedder opens the model of a service's vectors.
func (s *Set) serviceEmbedder(ctx context.Context, model, service, kind string) (llm.Embedder, error) {
	if !s.c.HasProvider(model) {
		return nil, s.c.file.wrong([]string{"services", service, kind, "embedding"}, "as in embedding: bedrock/amazon.titan-embed-text-v2:0", "%s is not a model of a configured provider", shown(model))
	}
	return s.Encoder(ctx, s.c.EncoderName(model))
}

// services reports the configured services. They are not tried, because most searches cost money.
func (x *examination) services() Check {
	c := Check{Name: "services", OK: true, Detail: "no search services are configured"}
	services, err := x.s.Services(x.ctx)
	if err != nil {
		c.OK, c.Err, c.Detail = false, err, err.Error()
		return c
	}
	var names []string
	for _, s := range services {
		names = append(names, s.Collection()+" ("+s.Model()+")")
	}
	if len(names) > 0 {
		c.Detail = fmt.Sprintf("searched beside the documents: %s; not tried, because searches may cost money", strings.Join(names, ", "))
	}
	return c
}
