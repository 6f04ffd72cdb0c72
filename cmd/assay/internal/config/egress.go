package config

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/assay-rag/assay/internal/egress"
)

// fileEgress is the section egress. Instead of keys it may be the word off.
type fileEgress struct {
	Offline bool     `yaml:"offline"`
	Allow   []string `yaml:"allow"`
	Also    []string `yaml:"also"`
}

// UnmarshalYAML implements yaml.InterfaceUnmarshaler.
func (f *fileEgress) UnmarshalYAML(decode func(any) error) error {
	var on bool
	if decode(&on) == nil {
		f.Offline = !on
		return nil
	}
	var word string
	if decode(&word) == nil && word == "off" {
		f.Offline = true
		return nil
	}
	type keys fileEgress
	return decode((*keys)(f))
}

// offlineVariable is the environment variable for Sources.Offline.
const offlineVariable = "ASSAY_OFFLINE"

// egress reads the section egress, --offline and ASSAY_OFFLINE.
func (c *Config) egress() error {
	rules := egress.Config{}
	switch value := c.getenv(offlineVariable); {
	case c.offline:
		rules.Offline, rules.Why = true, "--offline"
	case value != "" && value != "0" && value != "false":
		rules.Offline, rules.Why = true, offlineVariable+"="+value
	}
	if in := c.file.Egress; in != nil {
		if in.Offline && !rules.Offline {
			rules.Offline, rules.Why = true, fmt.Sprintf("egress in %s:%d", c.Path, c.file.line("egress"))
		}
		var err error
		for _, list := range []struct {
			key  string
			from []string
			into *egress.List
		}{{"allow", in.Allow, &rules.Allow}, {"also", in.Also, &rules.Also}} {
			if list.from == nil {
				continue
			}
			if *list.into, err = egress.ParseRules(list.from); err != nil {
				return c.file.wrong([]string{"egress", list.key}, "as in "+list.key+": [api.openai.com, \"*.example.com\", 10.0.0.0/8, \"localhost:11434\"]", "%s", withoutKind(err))
			}
		}
	}
	c.Egress = egress.New(rules)
	return nil
}

// base returns the address of a provider; empty: it depends on the region.
func (p *Provider) base() string {
	if p.BaseURL != "" {
		return p.BaseURL
	}
	return kinds[p.Type].url
}

// client returns the HTTP client of a provider, which reaches its host alone.
func (p *Provider) client(guard *egress.Guard) *http.Client {
	c := clientOf(guard, egress.Provider, p.base())
	if p.outgoing != nil {
		c.Transport = p.outgoing(c.Transport)
	}
	return c
}

func clientOf(guard *egress.Guard, purpose, base string) *http.Client {
	return scopeOf(guard, purpose, base).Client(0)
}

// scopeOf returns the right to connect to the host of an address that the configuration names.
func scopeOf(guard *egress.Guard, purpose, base string) *egress.Scope {
	hosts := egress.List{}
	if r, ok := egress.HostOf(base); ok {
		hosts = append(hosts, r)
	}
	return guard.Scope(egress.Scope{Purpose: purpose, Hosts: hosts, Private: true, Proxy: true})
}

// IdentityClient returns the HTTP client for the configuration and keys of the issuers. An issuer's
// configuration may name keys at another host of the public internet.
func (c *Config) IdentityClient() *http.Client { return c.identityScope().Client(0) }

func (c *Config) identityScope() *egress.Scope {
	hosts := egress.List{}
	for _, issuer := range c.Identity.Issuers {
		for _, address := range []string{issuer.URL, issuer.JWKS} {
			if r, ok := egress.HostOf(address); ok {
				hosts = append(hosts, r)
			}
		}
	}
	return c.Egress.Scope(egress.Scope{Purpose: egress.Identity, Hosts: hosts, Private: true, Public: true, Proxy: true})
}

// WebhookClient returns the HTTP client for webhooks.
func (c *Config) WebhookClient() *http.Client { return c.each(egress.Webhook).EachClient(0) }

// HealthClient returns the HTTP client for the check of a server.
func (c *Config) HealthClient(base string) *http.Client {
	return clientOf(c.Egress, egress.Health, base)
}

// WitnessClient returns the HTTP client for witnesses of checkpoints.
func (c *Config) WitnessClient() *http.Client { return c.each(egress.Witness).EachClient(0) }

func (c *Config) each(purpose string) *egress.Scope {
	return c.Egress.Scope(egress.Scope{Purpose: purpose, Private: true, Proxy: true})
}

// Downloads returns the right to download models from a base URL. Mirrors redirect to other hosts of
// the public internet.
func (c *Config) Downloads(base string) *egress.Scope {
	s := scopeOf(c.Egress, egress.Models, base)
	s.Public = true
	return s
}

// A Destination is a host that the configuration connects to.
type Destination struct {
	Purpose string // of package egress
	Name    string // of the provider, search engine or issuer
	Address string
	Scope   *egress.Scope
}

// Destinations returns the hosts of the providers that are configured, of the web search and of the
// issuers of identities.
func (c *Config) Destinations() []Destination {
	var out []Destination
	used := map[string]bool{c.Verifier.Provider: true, c.Embedding.Provider: true, c.Rerank.Provider: true}
	for _, choice := range c.Roles {
		used[choice.Provider] = true
	}
	for _, name := range append(slices.Clone(types), ollama) {
		if p := c.Providers[name]; p != nil && (p.given || used[name]) {
			out = append(out, c.destination(p))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.file.Providers)) {
		if p := c.Providers[name]; p != nil && !known(name) {
			out = append(out, c.destination(p))
		}
	}
	if w := c.Web; w != nil {
		out = append(out, Destination{egress.Search, w.Provider, w.base(), scopeOf(c.Egress, egress.Search, w.base())})
	}
	for _, s := range c.Services {
		if address := s.in.baseURL(); address != "" {
			out = append(out, Destination{egress.Provider, s.Name, address, c.serviceScope(s.in)})
		}
	}
	for _, issuer := range c.Identity.Issuers {
		out = append(out, Destination{egress.Identity, issuer.Name, cmp.Or(issuer.JWKS, issuer.URL), c.identityScope()})
	}
	for _, t := range []struct{ name, address string }{{"traces", c.Telemetry.Traces}, {"metrics", c.Telemetry.Metrics}} {
		if t.address != "" {
			out = append(out, Destination{egress.Telemetry, t.name, t.address, scopeOf(c.Egress, egress.Telemetry, t.address)})
		}
	}
	return out
}

func known(name string) bool {
	_, isType := kinds[name]
	return isType || name == ollama
}

func (c *Config) destination(p *Provider) Destination {
	d := Destination{egress.Provider, p.Name, p.base(), scopeOf(c.Egress, egress.Provider, p.base())}
	if p.Type == Bedrock {
		if d.Address == "" {
			d.Address = fmt.Sprintf("https://bedrock-runtime.%s.amazonaws.com", p.region(c.getenv))
		}
		d.Scope.Fixed = egress.AWSFixed()
	}
	return d
}

// region returns the configured AWS region, or us-east-1 if only AWS's own files name it.
func (p *Provider) region(getenv func(string) string) string {
	for _, r := range []string{p.AWS.Region, getenv("AWS_REGION"), getenv("AWS_DEFAULT_REGION")} {
		if r != "" {
			return r
		}
	}
	return "us-east-1"
}
