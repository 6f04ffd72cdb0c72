package config

import (
	"fmt"
	"maps"
	"math"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/jina"
)

// ollama is the name of the provider that OLLAMA_HOST sets up. It speaks OpenAI's format.
const ollama = "ollama"

// environment sets up the providers that environment variables configure. Afterwards all known
// providers are present, so that they can be named. Those that can be used have given set.
func (c *Config) environment() {
	for _, t := range types {
		k := kinds[t]
		p := &Provider{Name: t, Type: t, Stream: true}
		if k.keyEnv != "" {
			p.Key = newKey(strings.TrimSpace(c.getenv(k.keyEnv)), k.keyEnv)
		}
		if !p.Key.Empty() {
			p.given, p.From = true, k.keyEnv+" is set"
		}
		if k.baseEnv != "" {
			if base := strings.TrimSpace(c.getenv(k.baseEnv)); base != "" {
				p.BaseURL, p.given, p.From = base, true, k.baseEnv+" is set"
			}
		}
		if t == Gemini && p.Key.Empty() { // as Google's own tools do
			if p.Key = newKey(strings.TrimSpace(c.getenv("GOOGLE_API_KEY")), "GOOGLE_API_KEY"); !p.Key.Empty() {
				p.From = "GOOGLE_API_KEY is set"
			}
		}
		c.Providers[t] = p
	}
	p := &Provider{Name: ollama, Type: OpenAI, Stream: true, BaseURL: ollamaURL(c.getenv("OLLAMA_HOST"))}
	if c.getenv("OLLAMA_HOST") != "" {
		p.given, p.From = true, "OLLAMA_HOST is set"
	}
	c.Providers[ollama] = p
	// The credentials of AWS's own tools must not be shown either.
	for _, name := range []string{"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID", "AWS_BEARER_TOKEN_BEDROCK", "AWS_CONTAINER_AUTHORIZATION_TOKEN"} {
		c.Secrets.add(secret.New(c.getenv(name)))
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		if u, err := url.Parse(c.getenv(name)); err == nil && u.User != nil {
			password, _ := u.User.Password()
			c.Secrets.add(secret.New(password), secret.New(u.User.Username()))
		}
	}
}

// ollamaURL returns the endpoint for a value of OLLAMA_HOST: a host, a port, both or a URL. The
// unspecified address, which listens on all interfaces, becomes the loopback address.
func ollamaURL(value string) string {
	const port = "11434"
	value = strings.TrimSpace(value)
	scheme, rest, ok := strings.Cut(value, "://")
	if !ok {
		scheme, rest = "http", value
	}
	rest, path, _ := strings.Cut(strings.TrimRight(rest, "/"), "/")
	host, p, err := net.SplitHostPort(rest)
	if err != nil {
		host, p = strings.Trim(rest, "[]"), port
		if ok && scheme == "https" {
			p = "443"
		}
	}
	if host == "" || host == "0.0.0.0" || host == "::" {
		host = "127.0.0.1"
	}
	if p == "" {
		p = port
	}
	base := scheme + "://" + net.JoinHostPort(host, p)
	if path != "" {
		base += "/" + strings.TrimSuffix(strings.TrimSuffix(path, "v1"), "/")
	}
	return strings.TrimRight(base, "/") + "/v1"
}

// providerName matches valid names of providers. The name precedes the slash in the names of its
// models.
var providerName = lazyregexp.New(`^[a-z0-9][a-z0-9._-]{0,40}$`)

// providers adds the providers of the file and checks all providers.
func (c *Config) providers() error {
	for _, name := range slices.Sorted(maps.Keys(c.file.Providers)) {
		if err := c.provider(name, c.file.Providers[name]); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Providers)) {
		p := c.Providers[name]
		if err := c.checkURL(p); err != nil {
			return err
		}
		if p.Azure == nil && p.Type == OpenAI && isAzure(p.BaseURL) {
			p.Azure = new(Azure)
		}
		p.listed = p.Type == OpenAI && p.Azure == nil && p.BaseURL != "" && p.BaseURL != kinds[OpenAI].url
		c.Secrets.add(p.Key.Secret)
		for _, h := range p.Headers {
			c.Secrets.add(h.Secret)
		}
	}
	return nil
}

// apis lists the formats of the types that have several.
var apis = map[string][]string{OpenAI: {"chat", "responses"}, Jina: {string(jina.TEI), string(jina.Voyage)}}

// provider reads one provider of the file.
func (c *Config) provider(name string, in fileProvider) error {
	at := func(key string) []string { return []string{"providers", name, key} }
	if !providerName.MatchString(name) || name == Local {
		return c.file.wrong([]string{"providers", name}, "use lower-case letters, digits, - and _", "invalid provider name")
	}
	p := c.Providers[name]
	if p == nil {
		p = &Provider{Name: name, Stream: true}
		c.Providers[name] = p
	}
	p.given, p.From = true, fmt.Sprintf("%s:%d", c.Path, c.file.line("providers", name))
	if in.Type != "" {
		p.Type = in.Type
	}
	if p.Type == "" {
		return c.file.wrong([]string{"providers", name}, "add type: "+strings.Join(types, ", or "), "the type is missing")
	}
	if !slices.Contains(types, p.Type) {
		return c.file.wrong(at("type"), "the types are "+strings.Join(types, ", "), "unknown type %s", shown(p.Type))
	}
	if in.BaseURL != "" {
		// The key of the vendor's own endpoint is sent to another one only if the file configures
		// that.
		p.BaseURL, p.Key = in.BaseURL, Key{}
	}
	if err := c.readKey(p, in); err != nil {
		return err
	}
	if err := c.readHeaders(p, in); err != nil {
		return err
	}
	p.API, p.Effort = in.API, in.Effort
	if p.API != "" && !slices.Contains(apis[p.Type], p.API) {
		return c.file.wrong(at("api"), "type openai supports chat and responses; type jina supports tei and voyage besides its own", "%s is not a format of type %s", shown(p.API), p.Type)
	}
	if in.Stream != nil {
		p.Stream = *in.Stream
	}
	var err error
	if p.Timeout, err = c.file.duration(in.Timeout, at("timeout")...); err != nil {
		return err
	}
	if p.Idle, err = c.file.duration(in.Idle, at("idle_timeout")...); err != nil {
		return err
	}
	p.Limits = Limits(in.Limits)
	for key, n := range map[string]int{"concurrency": p.Limits.Concurrency, "requests_per_minute": p.Limits.RequestsPerMinute, "tokens_per_minute": p.Limits.TokensPerMinute} {
		if n < 0 {
			return c.file.wrong(append(at("limits"), key), "", "a limit must not be negative; 0 means no limit")
		}
	}
	return c.clouds(p, in)
}

// clouds reads the settings that are specific to Azure or AWS.
func (c *Config) clouds(p *Provider, in fileProvider) error {
	path := []string{"providers", p.Name}
	if in.Azure != nil {
		if p.Type != OpenAI || in.BaseURL == "" {
			return c.file.wrong(append(path, "azure"), "set type: openai and base_url: https://RESOURCE.openai.azure.com", "an Azure resource needs type openai and a base_url")
		}
		p.Azure = &Azure{APIVersion: in.Azure.APIVersion}
	}
	if in.AWS == nil {
		return nil
	}
	if p.Type != Bedrock {
		return c.file.wrong(append(path, "aws"), "", "only providers of type bedrock have AWS settings")
	}
	p.AWS = AWS{
		Region: in.AWS.Region, Profile: in.AWS.Profile, AccountID: in.AWS.AccountID,
		InferenceProfiles: in.AWS.InferenceProfiles, KnowledgeBases: in.AWS.KnowledgeBases,
	}
	if g := in.AWS.Guardrail; g != nil {
		if g.ID == "" || g.Version == "" {
			return c.file.wrong(append(path, "aws", "guardrail"), "as in guardrail: {id: gr-1abc, version: DRAFT}", "needs an id and a version")
		}
		if !(g.Threshold >= 0 && g.Threshold <= 1) {
			return c.file.wrong(append(path, "aws", "guardrail", "threshold"), "", "a threshold must be between 0 and 1")
		}
		p.AWS.GuardrailID, p.AWS.GuardrailVersion, p.AWS.Threshold = g.ID, g.Version, g.Threshold
	}
	for _, a := range in.AWS.Agents {
		if a.ID == "" || a.Alias == "" {
			return c.file.wrong(append(path, "aws", "agents"), "as in agents: [{id: AGENT1, alias: ALIAS1}]", "each needs an id and an alias")
		}
		p.AWS.Agents = append(p.AWS.Agents, Agent(a))
	}
	return nil
}

// readKey reads a provider's key from its configured place. A variable that is not set is an error
// only when the provider is used.
func (c *Config) readKey(p *Provider, in fileProvider) error {
	path := []string{"providers", p.Name}
	given := 0
	for _, v := range []string{in.Key, in.KeyEnv, in.KeyFile} {
		if v != "" {
			given++
		}
	}
	if given > 1 {
		return c.file.wrong(path, "keep one of key_env, key_file and key", "the key is given more than once")
	}
	p.command = ""
	switch {
	case in.KeyEnv != "":
		if likeKey(in.KeyEnv) || strings.ContainsAny(in.KeyEnv, " =") {
			return c.file.wrong(append(path, "key_env"), "write the name, as in key_env: OPENAI_API_KEY", "want the name of an environment variable, not a key")
		}
		p.Key = newKey(strings.TrimSpace(c.getenv(in.KeyEnv)), in.KeyEnv)
	case in.KeyFile != "":
		k, err := c.fromKeyFile(in.KeyFile, append(path, "key_file")...)
		p.Key = k
		return err
	case in.Key != "":
		k, command, err := c.credential(in.Key, append(path, "key")...)
		p.Key, p.command = k, command
		return err
	}
	return nil
}

// beside resolves a path of the file. A relative path is relative to the file's folder, and ~/ is
// the user's home.
func (c *Config) beside(name string) string {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	if filepath.IsAbs(name) || c.Path == "" {
		return name
	}
	return filepath.Join(filepath.Dir(c.Path), name)
}

// readHeaders reads the headers that are sent with every request. All their values are treated as
// secret.
func (c *Config) readHeaders(p *Provider, in fileProvider) error {
	p.Headers = map[string]Key{}
	for name, value := range in.Headers {
		if sendsCredential(name) || likeKey(value) {
			return c.file.wrong([]string{"providers", p.Name, "headers", name}, "as in headers_env: {"+name+": VARIABLE}", "a credential must not be in the file itself")
		}
		p.Headers[name] = newKey(value, fmt.Sprintf("headers.%s in %s", name, c.Path))
	}
	for _, name := range slices.Sorted(maps.Keys(in.HeadersEnv)) {
		variable := in.HeadersEnv[name]
		value := strings.TrimSpace(c.getenv(variable))
		if value == "" && p.unset == nil { // reported when the provider is used
			p.unset = c.file.wrong([]string{"providers", p.Name, "headers_env", name}, "set it, or remove the header", "the variable %s is not set", shown(variable))
		}
		p.Headers[name] = newKey(value, variable)
	}
	for name, value := range p.Headers {
		if !headerName.MatchString(name) || strings.ContainsAny(value.Reveal(), "\r\n\x00") {
			return c.file.wrong([]string{"providers", p.Name, "headers"}, "", "one of them is not a valid HTTP header")
		}
	}
	return nil
}

var headerName = lazyregexp.New("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// checkURL checks a provider's endpoint. It rejects a user and password in the URL, since every
// error would show them.
func (c *Config) checkURL(p *Provider) error {
	if p.BaseURL == "" {
		return nil
	}
	wrong := func(detail, hint string) error {
		if f, ok := c.file.Providers[p.Name]; ok && f.BaseURL != "" {
			return c.file.wrong([]string{"providers", p.Name, "base_url"}, hint, "%s", detail)
		}
		where := kinds[p.Type].baseEnv
		if p.Name == ollama {
			where = "OLLAMA_HOST"
		}
		return &Error{Where: where, Detail: detail, Hint: hint}
	}
	u, err := url.Parse(p.BaseURL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return wrong("it is not an http or https URL", "as in https://api.openai.com/v1")
	case u.User != nil:
		password, _ := u.User.Password()
		c.Secrets.add(secret.New(password), secret.New(u.User.Username()))
		return wrong("it contains a user name or a password", "send them with headers_env: {Authorization: VARIABLE}")
	case u.RawQuery != "" || u.Fragment != "":
		return wrong("it contains a query or a fragment", "keep the part before the ? or #")
	}
	p.BaseURL = strings.TrimRight(p.BaseURL, "/")
	if u.Scheme == "http" && (!p.Key.Empty() || p.command != "") && !isLoopback(u.Hostname()) {
		c.Warnings = append(c.Warnings, fmt.Sprintf("%s is called over plain HTTP at %s: anyone on the network can read the key, the questions and the documents", p.Name, u.Host))
	}
	return nil
}

// isAzure reports whether an endpoint is an Azure resource.
func isAzure(base string) bool {
	u, err := url.Parse(base)
	return err == nil && (strings.HasSuffix(u.Hostname(), ".azure.com") || strings.HasSuffix(u.Hostname(), ".azure.us"))
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// models reads the section models.
func (c *Config) models() error {
	for _, name := range slices.Sorted(maps.Keys(c.file.Models)) {
		in, path := c.file.Models[name], []string{"models", name}
		provider, model, ok := strings.Cut(name, "/")
		if !ok || model == "" || c.Providers[provider] == nil {
			return c.file.wrong(path, "as in openai/gpt-6-luna", "want PROVIDER/MODEL")
		}
		f := modelFacts{Facts: facts[model], Dimensions: in.Dimensions, MaxTokens: in.MaxTokens, QueryPrefix: in.QueryPrefix, PassagePrefix: in.PassagePrefix}
		if in.Window < 0 || in.MaxOutput < 0 || in.Dimensions < 0 || in.MaxTokens < 0 {
			return c.file.wrong(path, "", "a size must not be negative")
		}
		if in.Window > 0 {
			f.Window = in.Window
		}
		if in.MaxOutput > 0 {
			f.MaxOutput = in.MaxOutput
		}
		if (in.InputPrice == nil) != (in.OutputPrice == nil) {
			return c.file.wrong(path, "set both; 0 if it is free", "one of input_price and output_price is missing")
		}
		if in.CachedPrice != nil && (in.InputPrice == nil || !(0 <= *in.CachedPrice && *in.CachedPrice <= *in.InputPrice)) {
			return c.file.wrong(path, "as in input_price: 0.25, cached_price: 0.025", "cached_price, for input read from the provider's cache, must be between 0 and input_price")
		}
		if in.InputPrice != nil {
			f.Priced = true
			if in.CachedPrice != nil {
				f.Cached = max(1, int64(math.Ceil(*in.CachedPrice*1e6))) // 0 would mean unknown
			}
			for _, x := range []struct {
				price float64
				into  *int64
			}{{*in.InputPrice, &f.Input}, {*in.OutputPrice, &f.Output}} {
				if !(x.price >= 0 && x.price <= 1e6) {
					return c.file.wrong(path, "as in input_price: 0.25", "a price, in your currency per million tokens, must be between 0 and 1000000")
				}
				*x.into = int64(math.Ceil(x.price * 1e6))
			}
		}
		c.facts[name] = f
	}
	return nil
}

// Facts returns the known properties of a provider's model.
func (c *Config) Facts(provider, model string) llm.Facts { return c.factsOf(provider, model).Facts }

func (c *Config) factsOf(provider, model string) modelFacts {
	if f, ok := c.facts[provider+"/"+model]; ok {
		return f
	}
	return modelFacts{Facts: facts[model]}
}
