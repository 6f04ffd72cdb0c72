// Package config reads the configuration of the models that assay calls from one YAML file and from
// the environment. Load reads it without connecting to any server. Open turns it into the values
// that the engine works with.
//
// The file is the user's own. It is never read from the working or data directory, because a copied
// folder must not decide where a key is sent.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/internal/egress"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/strategy"
)

// Sources are the places that configuration is read from.
type Sources struct {
	File    string                 // from --config; empty: $ASSAY_CONFIG, or config.yaml in the user's folder, if it exists
	Getenv  func(string) string    // required
	UserDir func() (string, error) // the user's configuration folder; nil: os.UserConfigDir
	Offline bool                   // from --offline; $ASSAY_OFFLINE and the file set it too
	Models  []string               // MODEL or ROLE=MODEL, from --model; they take precedence over the file and the environment
}

// Local is the name of the roles, encoders and rerankers that need no provider.
const Local = "local"

// A Config is a checked configuration. It holds no connections.
type Config struct {
	Path     string   // of the file; empty: no file
	Warnings []string // problems that are not errors

	Providers map[string]*Provider // by name

	Roles     map[string]Choice // by role; the answer grader is present only if it is configured
	Verifier  Choice            // local, a model, or a guardrail
	Embedding Choice
	Rerank    Choice
	Domain    string // path of the domain file; empty: none
	NoCache   bool   // disables the answer cache

	Strategy string            // for questions that name none; empty: the program's default
	Limits   strategy.Limits   // zero fields: the defaults
	Settings strategy.Settings // zero fields: the defaults

	Web     *Web     // the web search; nil: none
	Managed *Managed // a service that answers questions itself; nil: none

	Services []*Service // searched beside the documents

	Identity identity.Tokens // whose access tokens are accepted; zero: none are

	Server Server  // of assay serve
	SignIn *SignIn // where users of its pages sign in; nil: with a key or a token only

	Telemetry Telemetry // where traces and metrics go; zero: nowhere
	Redis     Redis     // shares limits between servers; zero: none

	// Outgoing wraps the transport of providers that are called over HTTP; nil: it is not wrapped.
	// It must be set before a provider is opened.
	Outgoing func(http.RoundTripper) http.RoundTripper

	Egress  *egress.Guard // decides which hosts are reached
	Secrets Secrets       // all credentials that were read

	offline    bool // Sources.Offline
	running    sync.Mutex
	webCommand string // prints the key of the web search; empty: none, or it has run

	overrides []string // Sources.Models
	file      *file    // empty if there is no file
	getenv    func(string) string
	facts     map[string]modelFacts // by full name
}

// A Choice is the model that does a job, and the reason for it.
type Choice struct {
	Provider string // empty: done locally
	Model    string // of the provider; empty: the one that its server has
	Small    bool   // set for small jobs
	Why      string // "OPENAI_API_KEY is set", "roles.grader in /home/u/.config/assay/config.yaml:7"
	Line     int    // in the file; 0: not from the file
}

// IsLocal reports whether the job is done without a provider.
func (c Choice) IsLocal() bool { return c.Provider == "" }

// Name returns the name of the model as answers report it: "openai/gpt-6-luna", "local".
func (c Choice) Name() string {
	switch {
	case c.IsLocal():
		return Local
	case c.Model == "":
		return c.Provider
	}
	return c.Provider + "/" + c.Model
}

// A Provider is an endpoint that serves models.
type Provider struct {
	Name string
	Type string
	From string // where it was configured, for people

	BaseURL string // empty: the vendor's
	Key     Key
	Headers map[string]Key

	API     string // one of the type's formats, see apis; empty: the default
	Stream  bool
	Effort  string        // how much a model reasons before it answers, in the vendor's terms; empty: little
	Timeout time.Duration // of an attempt; 0: the default
	Idle    time.Duration // without a byte; 0: the default
	Limits  Limits

	Azure *Azure
	AWS   AWS

	command string // prints the key; empty: none, or it has run

	outgoing func(http.RoundTripper) http.RoundTripper // see Config.Outgoing

	unset  error // error for a header's variable that is not set; nil: all are set
	given  bool  // configured by the file or a variable
	listed bool  // its server lists its models; there is no default
}

// Limits bound the calls to a provider: those at once, and the requests and tokens per minute. Zero
// means no limit, or the default for Concurrency.
type Limits struct{ Concurrency, RequestsPerMinute, TokensPerMinute int }

// Azure configures an Azure resource.
type Azure struct{ APIVersion string }

// AWS configures the use of an AWS account.
type AWS struct {
	Region, Profile string // empty: found as AWS's own tools do

	GuardrailID      string
	GuardrailVersion string
	Threshold        float64 // of the grounding score, in [0, 1], in addition to the guardrail's own

	// The following are for the IAM policy: the account that IDs belong to, and the foundation
	// models, as ARNs, that each inference profile routes to. Bedrock is asked for profiles that
	// are missing here.
	AccountID         string
	InferenceProfiles map[string][]string

	KnowledgeBases []string // IDs
	Agents         []Agent
}

// An Agent identifies a Bedrock agent.
type Agent struct{ ID, Alias string }

// modelFacts holds the known properties of a model.
type modelFacts struct {
	llm.Facts
	Dimensions int // of an embedding model; 0: the model's default
	MaxTokens  int // token limit of an embedding model or reranker; 0: unknown

	// Prefixes of queries and passages, for embedding models that were trained with them.
	QueryPrefix, PassagePrefix string
}

// largeRoles use the large model and smallRoles the small one. The verifier also uses the small one
// if a model writes the answers.
var (
	largeRoles = []string{role.GeneratorRole, role.ActorRole}
	smallRoles = []string{role.PlannerRole, role.RewriterRole, role.GraderRole, role.JudgeRole}
)

// smallGenerator is the role of the model that writes the answers to simple questions. It exists
// only if the file names a model for it.
const smallGenerator = strategy.SmallGenerator

// Load reads the configuration. An invalid configuration is an *Error.
func Load(s Sources) (*Config, error) {
	c := &Config{getenv: s.Getenv, overrides: s.Models, offline: s.Offline, Providers: map[string]*Provider{}, Roles: map[string]Choice{}, facts: map[string]modelFacts{}}
	path, err := s.path()
	if err != nil {
		return nil, err
	}
	c.file = &file{}
	if path != "" {
		if c.file, err = readFile(path); err != nil {
			return nil, err
		}
		c.Path = path
	}
	c.NoCache = c.file.Cache != nil && !*c.file.Cache
	c.environment()
	for _, step := range []func() error{c.egress, c.readCommands, c.providers, c.models, c.choose, c.strategies, c.web, c.managed, c.services, c.graph, c.identity, c.server, c.signIn, c.telemetry, c.checkStore, c.redis} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// path returns the file to read, or "" if there is none. A file that was named explicitly must
// exist.
func (s Sources) path() (string, error) {
	if s.File != "" {
		return s.File, nil
	}
	if named := s.Getenv("ASSAY_CONFIG"); named != "" {
		return named, nil
	}
	find := s.UserDir
	if find == nil {
		find = os.UserConfigDir
	}
	dir, err := find()
	if err != nil {
		return "", nil // a user without a home has no file
	}
	path := filepath.Join(dir, "assay", "config.yaml")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return path, nil
}

// choose assigns a model to each role and job.
func (c *Config) choose() error {
	large, small, err := c.defaults()
	if err != nil {
		return err
	}
	for _, name := range largeRoles {
		c.Roles[name] = large
	}
	for _, name := range smallRoles {
		c.Roles[name] = small
	}
	if err := c.chooseRoles(); err != nil {
		return err
	}
	given, err := c.override()
	if err != nil {
		return err
	}
	if _, ok := c.Roles[smallGenerator]; ok && c.Roles[role.GeneratorRole].IsLocal() {
		return c.file.wrong([]string{"roles", smallGenerator}, "as in large: PROVIDER/MODEL", "a model for simple answers needs a generator model for all others")
	}
	for _, x := range []struct {
		key, value string
		into       *Choice
	}{{"verifier", c.file.Verifier, &c.Verifier}, {"embedding", c.file.Embedding, &c.Embedding}, {"rerank", c.file.Rerank, &c.Rerank}} {
		*x.into = Choice{Why: "the default"}
		if x.value != "" {
			if *x.into, err = c.fromFile(x.value, x.key); err != nil {
				return err
			}
		}
	}
	switch {
	case given != nil:
		c.Verifier = *given
	case c.file.Verifier == "":
		c.Verifier = c.usualVerifier(small)
	}
	for key, choice := range map[string]Choice{"embedding": c.Embedding, "rerank": c.Rerank} {
		if !choice.IsLocal() && choice.Model == "" {
			return c.file.wrong([]string{key}, "as in "+key+": "+choice.Provider+"/MODEL", "names a provider without a model")
		}
	}
	if c.getenv("ASSAY_MODEL") == Local { // query vectors must still match those of the documents
		c.Rerank = Choice{Why: "ASSAY_MODEL=local"}
	}
	if c.file.Domain != "" {
		c.Domain = c.beside(c.file.Domain)
	}
	return c.chooseVerifier()
}

// chooseRoles reads the roles of the file. ASSAY_MODEL takes precedence over them.
func (c *Config) chooseRoles() error {
	all := configurable()
	for _, name := range slices.Sorted(maps.Keys(c.file.Roles)) {
		if !slices.Contains(all, name) {
			hint := "the roles are " + strings.Join(all, ", ")
			if near := Similar(name, all); len(near) > 0 {
				hint = "did you mean " + near[0] + "? " + hint
			}
			return c.file.wrong([]string{"roles", name}, hint, "unknown role")
		}
		choice, err := c.fromFile(c.file.Roles[name], "roles", name)
		if err != nil {
			return err
		}
		if name == role.VerifierRole {
			if c.file.Verifier != "" {
				return c.file.wrong([]string{"roles", name}, "keep one of the two", "conflicts with the key verifier")
			}
			c.file.Verifier = c.file.Roles[name]
			continue
		}
		choice.Small = name == smallGenerator || slices.Contains(smallRoles, name)
		if name == smallGenerator && choice.IsLocal() {
			continue
		}
		if c.getenv("ASSAY_MODEL") == "" {
			c.Roles[name] = choice
		}
	}
	return nil
}

// configurable returns the roles that a configuration may name.
func configurable() []string {
	return slices.Concat([]string{role.VerifierRole, smallGenerator}, largeRoles, smallRoles)
}

// override applies Sources.Models: a MODEL to all roles that have one by default, a ROLE=MODEL to that
// role, which wins over a MODEL. verifier is nil if they name none.
func (c *Config) override() (verifier *Choice, err error) {
	const flag = "--model"
	byRole := map[string]Choice{}
	for _, value := range c.overrides {
		name, model, ok := strings.Cut(value, "=")
		if !ok {
			name, model = "", value
		}
		if all := configurable(); name != "" && !slices.Contains(all, name) {
			return nil, &Error{Where: flag, Detail: "unknown role " + shown(name), Hint: "the roles are " + strings.Join(all, ", ")}
		}
		choice, wrong := c.named(model)
		if wrong != nil {
			return nil, &Error{Where: flag, Detail: wrong.detail, Hint: wrong.hint}
		}
		choice.Why = flag + " " + value
		large, small, err := c.pair(choice, flag)
		if err != nil {
			return nil, err
		}
		if name != "" {
			byRole[name] = large
			if name == smallGenerator || slices.Contains(smallRoles, name) {
				byRole[name] = small
			}
			continue
		}
		for _, r := range largeRoles {
			c.Roles[r] = large
		}
		for _, r := range smallRoles {
			c.Roles[r] = small
		}
		usual := c.usualVerifier(small)
		verifier = &usual
	}
	for name, choice := range byRole {
		if name == role.VerifierRole {
			verifier = &choice
			continue
		}
		if c.Roles[name] = choice; name == smallGenerator && choice.IsLocal() {
			delete(c.Roles, name)
		}
	}
	return verifier, nil
}

// Guardrail is the model name that selects a provider's guardrail as verifier.
const Guardrail = "guardrail"

// usualVerifier returns the default verifier: the small model if a model writes the answers,
// otherwise the local verifier.
func (c *Config) usualVerifier(small Choice) Choice {
	writer := c.Roles[role.GeneratorRole]
	if writer.IsLocal() {
		return Choice{Why: "the default"}
	}
	if small.IsLocal() {
		small = writer
	}
	small.Why = "the default with a generator model"
	return small
}

// chooseVerifier checks the verifier.
func (c *Config) chooseVerifier() error {
	v := c.Verifier
	if c.getenv("ASSAY_MODEL") == Local && len(c.overrides) == 0 { // like ask --local
		c.Verifier, c.Rerank = Choice{Why: "ASSAY_MODEL=local"}, Choice{Why: "ASSAY_MODEL=local"}
		return nil
	}
	if v.Model == Guardrail {
		p := c.Providers[v.Provider]
		if p.Type != Bedrock || p.AWS.GuardrailID == "" {
			return c.file.wrong([]string{"verifier"}, "set providers."+v.Provider+".aws.guardrail {id, version}", "the provider %s has no guardrail", v.Provider)
		}
	}
	return nil
}

// fromFile returns the Choice that a value of the file names.
func (c *Config) fromFile(value string, path ...string) (Choice, error) {
	line := c.file.line(path...)
	choice, err := c.named(value)
	if err != nil {
		return Choice{}, c.file.wrong(path, err.hint, "%s", err.detail)
	}
	choice.Why = fmt.Sprintf("%s in %s:%d", dotted(path), c.Path, line)
	choice.Line = line
	return choice, nil
}

// A nameError reports that a value names no provider.
type nameError struct{ detail, hint string }

// named parses "local", "PROVIDER" or "PROVIDER/MODEL".
func (c *Config) named(value string) (Choice, *nameError) {
	if value == Local {
		return Choice{}, nil
	}
	provider, model, _ := strings.Cut(value, "/")
	p := c.Providers[provider]
	if p == nil {
		known := slices.Sorted(maps.Keys(c.Providers))
		detail := shown(value) + " does not name a configured provider"
		hint := "write PROVIDER/MODEL or local; the providers are " + strings.Join(known, ", ")
		if near := Similar(provider, known); len(near) > 0 && !likeKey(value) {
			hint = "did you mean " + near[0] + "? " + hint
		}
		return Choice{}, &nameError{detail, hint}
	}
	return Choice{Provider: p.Name, Model: model}, nil
}

// defaults returns the choices for the large and the small roles that are not configured one by
// one.
func (c *Config) defaults() (large, small Choice, err error) {
	if value := c.getenv("ASSAY_MODEL"); value != "" {
		choice, wrong := c.named(value)
		if wrong != nil {
			return large, small, &Error{Where: "ASSAY_MODEL", Detail: wrong.detail, Hint: wrong.hint}
		}
		choice.Why = "ASSAY_MODEL=" + choice.Name()
		return c.pair(choice, "ASSAY_MODEL")
	}
	f := c.file
	if f.Large == "" && f.Small == "" {
		provider, why := c.first()
		if provider == "" {
			return Choice{Why: why}, Choice{Why: why}, nil
		}
		return c.pair(Choice{Provider: provider, Why: why}, why)
	}
	if f.Large == "" {
		return large, small, f.wrong([]string{"small"}, "as in large: PROVIDER/MODEL", "a small model needs a large one")
	}
	if large, err = c.fromFile(f.Large, "large"); err != nil {
		return large, small, err
	}
	if large, small, err = c.pair(large, large.Why); err != nil || f.Small == "" {
		return large, small, err
	}
	if small, err = c.fromFile(f.Small, "small"); err != nil {
		return large, small, err
	}
	_, small, err = c.pair(small, small.Why)
	return large, small, err
}

// pair returns the large and the small model for a choice. A bare provider yields its two default
// models, and a model yields itself for both.
func (c *Config) pair(choice Choice, where string) (large, small Choice, err error) {
	large, small = choice, choice
	small.Small = true
	if choice.IsLocal() || choice.Model != "" {
		return large, small, nil
	}
	p := c.Providers[choice.Provider]
	if p.listed {
		return large, small, nil // its server lists its models
	}
	if p.Azure != nil {
		return large, small, &Error{Where: where, Detail: p.Name + " is an Azure resource, whose models are named by deployment", Hint: "as in large: " + p.Name + "/DEPLOYMENT"}
	}
	large.Model, small.Model = kinds[p.Type].large, kinds[p.Type].small
	if large.Model == "" {
		return large, small, &Error{Where: where, Detail: p.Name + " serves no language models", Hint: "name another provider"}
	}
	return large, small, nil
}

// serving is the order in which providers are considered if none is configured explicitly. Bedrock
// is not in it, because AWS credentials are set for many reasons.
var serving = []string{Anthropic, OpenAI, Gemini, ollama}

// first returns the provider to use if no model is named: the only one in the file, or the first
// that a variable sets up.
func (c *Config) first() (name, why string) {
	var inFile []string
	for _, name := range slices.Sorted(maps.Keys(c.file.Providers)) {
		if p := c.Providers[name]; p.listed || kinds[p.Type].large != "" {
			inFile = append(inFile, name)
		}
	}
	if len(inFile) == 1 {
		return inFile[0], fmt.Sprintf("providers.%s in %s:%d", inFile[0], c.Path, c.file.line("providers", inFile[0]))
	}
	for _, name := range serving {
		if p := c.Providers[name]; p.given {
			return name, p.From
		}
	}
	if len(inFile) > 1 {
		why := fmt.Sprintf("%s configures several providers without choosing one", c.Path)
		c.Warnings = append(c.Warnings, why+"; choose one, as in large: "+inFile[0])
		return "", why
	}
	return "", "no model is configured"
}
