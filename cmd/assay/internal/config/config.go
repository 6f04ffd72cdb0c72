// Package config reads which models assay asks, for what and how: from one YAML file
// and from the environment. Load says what is configured and connects to nobody;
// Open makes of it what the engine works with.
//
// The file is the user's own, never one of the working or data directory: a folder
// that was copied from somewhere must not say where a key is sent.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/strategy"
)

// Sources are where configuration comes from.
type Sources struct {
	File    string                 // of --config; empty: $ASSAY_CONFIG, or config.yaml in the user's folder, if it is there
	Getenv  func(string) string    // required
	UserDir func() (string, error) // the user's folder of configuration; nil: os.UserConfigDir
}

// Local is the name of the roles, encoders and rerankers that need no provider.
const Local = "local"

// A Config is what is configured. It holds no connection.
type Config struct {
	Path     string   // of the file; empty: there is none
	Warnings []string // what is not wrong and should be known

	Providers map[string]*Provider // by name

	Roles     map[string]Choice // by role; the answer grader is here only where it is configured
	Verifier  Choice            // of the verifier: local, a model, or a guardrail
	Embedding Choice
	Rerank    Choice
	Domain    string // path of the domain file; empty: none
	NoCache   bool   // answers are not kept to be given again

	Strategy string            // of questions that name none; empty: the program's own
	Limits   strategy.Limits   // zero fields: the defaults
	Settings strategy.Settings // zero fields: the defaults

	Web     *Web     // who searches the web; nil: nobody
	Managed *Managed // a service that answers questions by itself; nil: there is none

	Secrets Secrets // every credential that was read

	file   *file // nil: there is none
	getenv func(string) string
	facts  map[string]modelFacts // by full name
}

// A Choice says who does something, and who said so.
type Choice struct {
	Provider string // empty: it is done locally
	Model    string // of the provider; empty: the one that its server has
	Small    bool   // of several that a server has: the job is a small one
	Why      string // "OPENAI_API_KEY is set", "roles.grader in /home/u/.config/assay/config.yaml:7"
	Line     int    // of the file; 0: it was not said there
}

// IsLocal reports whether no provider is asked.
func (c Choice) IsLocal() bool { return c.Provider == "" }

// Name is the model as answers name it: "openai/gpt-6-luna", "local".
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

	BaseURL string // empty: the vendor's own
	Key     Key
	Headers map[string]Key

	API     string // one of the type's formats, see apis; empty: the usual one
	Stream  bool
	Effort  string        // how much a model thinks before it answers, in the vendor's words; empty: little
	Timeout time.Duration // of an attempt; 0: the default
	Idle    time.Duration // without a byte; 0: the default
	Limits  Limits

	Azure *Azure
	AWS   AWS

	unset  error // a header's variable is not set; nil: all are
	given  bool  // it was set up, by the file or by a variable, and not only named
	listed bool  // its server says which models it has, and there is no default
}

// Limits bound what is asked of a provider at once and a minute; 0: no limit, for
// Concurrency the default.
type Limits struct{ Concurrency, RequestsPerMinute, TokensPerMinute int }

// Azure says how an Azure resource is asked.
type Azure struct{ APIVersion string }

// AWS says what is used of an AWS account.
type AWS struct {
	Region, Profile string // empty: as AWS's own tools find it

	GuardrailID      string
	GuardrailVersion string
	Threshold        float64 // of its grounding score, in [0, 1], beside the guardrail's own

	// For the IAM policy: the account that IDs are of, and the foundation models that
	// inference profiles lead to, as ARNs; those that are not here are asked for.
	AccountID         string
	InferenceProfiles map[string][]string

	KnowledgeBases []string // IDs
	Agents         []Agent
}

// An Agent is one of Bedrock's.
type Agent struct{ ID, Alias string }

// modelFacts is what is known of a model.
type modelFacts struct {
	llm.Facts
	Dimensions int // of an embedding model; 0: its own
	MaxTokens  int // that an embedding model or reranker takes of a text; 0: not known

	// What is put before texts, of embedding models that were trained with such.
	QueryPrefix, PassagePrefix string
}

// smallRoles are done by the small model, largeRoles by the large one. So is the verifier
// by the small one, where a model writes. The answer grader is local unless it is
// configured.
var (
	largeRoles = []string{role.GeneratorRole, role.AnalystRole, role.ActorRole}
	smallRoles = []string{
		role.PlannerRole, role.RewriterRole, role.RouterRole, role.GraderRole, role.QuerierRole, role.ReflectorRole,
		role.JudgeRole, role.CriticRole, role.ExtractorRole, role.SummariserRole, role.ComparerRole,
		role.ScorerRole, role.RetrievalGraderRole, role.SupportGraderRole, role.ClarifierRole,
	}
)

// smallGenerator is the role of the model that writes the answers to simple questions.
// There is one only where the file names it.
const smallGenerator = strategy.SmallGenerator

// Load reads the configuration. What is wrong with it is an *Error.
func Load(s Sources) (*Config, error) {
	c := &Config{getenv: s.Getenv, Providers: map[string]*Provider{}, Roles: map[string]Choice{}, facts: map[string]modelFacts{}}
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
	for _, step := range []func() error{c.providers, c.models, c.choose, c.strategies, c.web, c.managed} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// path returns the file to read; empty: there is none. One that was named has to be
// there.
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
		return "", nil // a user without a home has no file of his own
	}
	path := filepath.Join(dir, "assay", "config.yaml")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return path, nil
}

// choose says who does what.
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
	if _, ok := c.Roles[smallGenerator]; ok && c.Roles[role.GeneratorRole].IsLocal() {
		return c.file.wrong([]string{"roles", smallGenerator}, "as in large: PROVIDER/MODEL", "a model is named that writes what is simple, and none that writes the rest")
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
	if c.file.Verifier == "" {
		c.Verifier = c.usualVerifier(small)
	}
	for key, choice := range map[string]Choice{"embedding": c.Embedding, "rerank": c.Rerank} {
		if !choice.IsLocal() && choice.Model == "" {
			return c.file.wrong([]string{key}, "as in "+key+": "+choice.Provider+"/MODEL", "names a provider and no model")
		}
	}
	if c.getenv("ASSAY_MODEL") == Local { // the vectors of questions have to be those of the documents all the same
		c.Rerank = Choice{Why: "ASSAY_MODEL=local"}
	}
	if c.file.Domain != "" {
		c.Domain = c.beside(c.file.Domain)
	}
	return c.chooseVerifier()
}

// chooseRoles reads the roles of the file. ASSAY_MODEL, which is set for now, goes
// before them.
func (c *Config) chooseRoles() error {
	all := slices.Concat([]string{role.VerifierRole, role.AnswerGraderRole, smallGenerator}, largeRoles, smallRoles)
	for _, name := range slices.Sorted(maps.Keys(c.file.Roles)) {
		if !slices.Contains(all, name) {
			hint := "the roles are " + strings.Join(all, ", ")
			if near := Similar(name, all); len(near) > 0 {
				hint = "did you mean " + near[0] + "? " + hint
			}
			return c.file.wrong([]string{"roles", name}, hint, "there is no such role")
		}
		choice, err := c.fromFile(c.file.Roles[name], "roles", name)
		if err != nil {
			return err
		}
		if name == role.VerifierRole {
			if c.file.Verifier != "" {
				return c.file.wrong([]string{"roles", name}, "keep one of them", "verifier: says who verifies already")
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

// Guardrail is the model name by which a provider's guardrail verifies.
const Guardrail = "guardrail"

// usualVerifier returns who verifies where the file does not say: the small model where a
// model writes, else nobody but the local verifier.
func (c *Config) usualVerifier(small Choice) Choice {
	writer := c.Roles[role.GeneratorRole]
	if writer.IsLocal() {
		return Choice{Why: "the default"}
	}
	if small.IsLocal() {
		small = writer
	}
	small.Why = "the default where a model writes"
	return small
}

// chooseVerifier checks the verifier.
func (c *Config) chooseVerifier() error {
	v := c.Verifier
	if c.getenv("ASSAY_MODEL") == Local { // as ask --local does
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

// fromFile reads who does something from a value of the file.
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

// A nameError says why a value names nobody.
type nameError struct{ detail, hint string }

// named returns who is meant by "local", "PROVIDER" or "PROVIDER/MODEL".
func (c *Config) named(value string) (Choice, *nameError) {
	if value == Local {
		return Choice{}, nil
	}
	provider, model, _ := strings.Cut(value, "/")
	p := c.Providers[provider]
	if p == nil {
		known := slices.Sorted(maps.Keys(c.Providers))
		detail := shown(value) + " names no provider"
		hint := "write PROVIDER/MODEL or local; the providers are " + strings.Join(known, ", ")
		if near := Similar(provider, known); len(near) > 0 && !likeKey(value) {
			hint = "did you mean " + near[0] + "? " + hint
		}
		return Choice{}, &nameError{detail, hint}
	}
	return Choice{Provider: p.Name, Model: model}, nil
}

// defaults returns who does the large and the small roles where nothing else is
// said, and why.
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
		return large, small, f.wrong([]string{"small"}, "as in large: PROVIDER/MODEL", "a small model is named and no large one")
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

// pair returns the large and the small model that a choice stands for: a provider
// alone for its two defaults, a model for itself.
func (c *Config) pair(choice Choice, where string) (large, small Choice, err error) {
	large, small = choice, choice
	small.Small = true
	if choice.IsLocal() || choice.Model != "" {
		return large, small, nil
	}
	p := c.Providers[choice.Provider]
	if p.listed {
		return large, small, nil // its server says what it has
	}
	if p.Azure != nil {
		return large, small, &Error{Where: where, Detail: p.Name + " is an Azure resource, and its models are named by their deployments", Hint: "as in large: " + p.Name + "/DEPLOYMENT"}
	}
	large.Model, small.Model = kinds[p.Type].large, kinds[p.Type].small
	if large.Model == "" {
		return large, small, &Error{Where: where, Detail: p.Name + " serves no language models", Hint: "name another provider"}
	}
	return large, small, nil
}

// serving is the order in which providers are looked at when nothing says which one
// serves. AWS credentials are set for many reasons, so Bedrock has to be named.
var serving = []string{Anthropic, OpenAI, Gemini, ollama}

// first returns the provider that serves where no model is named: the only one in the
// file, or the first that a variable sets up.
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
		why := fmt.Sprintf("%s sets up several providers and does not say which serves", c.Path)
		c.Warnings = append(c.Warnings, why+"; name one with large:, as in large: "+inFile[0])
		return "", why
	}
	return "", "no model is configured"
}
