package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/egress"
	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/resilient"
	"github.com/assay-rag/assay/provider/brave"
	"github.com/assay-rag/assay/provider/searxng"
	"github.com/assay-rag/assay/provider/tavily"
)

// fileWeb is the section web, which configures the web search.
type fileWeb struct {
	Provider string `yaml:"provider"`
	BaseURL  string `yaml:"base_url"`
	Key      string `yaml:"key"`
	KeyEnv   string `yaml:"key_env"`
	KeyFile  string `yaml:"key_file"`
	Timeout  string `yaml:"timeout"`

	Price *float64 `yaml:"price"`
}

// A Web configures the web search for questions that allow it.
type Web struct {
	Provider string // one of webProviders
	BaseURL  string // empty: the vendor's
	Key      Key
	Timeout  time.Duration // of an attempt; 0: the default
	Why      string        // source of the configuration

	Price  int64 // of a search, in millionths of the currency
	Priced bool  // Price is known
}

// The providers of web search.
const (
	webSearXNG = "searxng"
	webBrave   = "brave"
	webTavily  = "tavily"
)

// webProviders lists the providers of web search in the order in which they are looked for. SearXNG
// comes first, because the user's own server costs nothing.
var webProviders = []string{webSearXNG, webBrave, webTavily}

// webEnv holds the variables that configure them: a URL for SearXNG, keys for the others.
var webEnv = map[string]string{webSearXNG: "SEARXNG_URL", webBrave: "BRAVE_API_KEY", webTavily: "TAVILY_API_KEY"}

// webTimeout is the default time limit of a search.
const webTimeout = 15 * time.Second

// web chooses the provider of web search: the one in the file, or else the first that a variable
// configures. Each question must still allow the search.
func (c *Config) web() error {
	in := c.file.Web
	for _, name := range webProviders { // hide all keys, also those of unused providers
		if name != webSearXNG {
			c.Secrets.add(secret.New(strings.TrimSpace(c.getenv(webEnv[name]))))
		}
	}
	if in == nil {
		for _, name := range webProviders {
			if value := strings.TrimSpace(c.getenv(webEnv[name])); value != "" {
				c.Web = &Web{Provider: name, Why: webEnv[name] + " is set", Priced: name == webSearXNG}
				if name == webSearXNG {
					c.Web.BaseURL = value
				} else {
					c.Web.Key = newKey(value, webEnv[name])
				}
				return c.checkWeb(webEnv[name])
			}
		}
		return nil
	}
	at := func(key string) []string { return []string{"web", key} }
	if !slices.Contains(webProviders, in.Provider) {
		if in.Provider == "" {
			return c.file.wrong([]string{"web"}, "as in provider: searxng", "the provider is missing; want one of %s", strings.Join(webProviders, ", "))
		}
		return c.file.wrong(at("provider"), "want one of "+strings.Join(webProviders, ", "), "%s is not a web search provider", shown(in.Provider))
	}
	w := &Web{Provider: in.Provider, BaseURL: in.BaseURL, Why: fmt.Sprintf("web in %s:%d", c.Path, c.file.line("web"))}
	var err error
	if w.Timeout, err = c.file.duration(in.Timeout, at("timeout")...); err != nil {
		return err
	}
	if w.Key, err = c.webKey(*in); err != nil {
		return err
	}
	w.Priced = w.Provider == webSearXNG || in.Price != nil // the user's own server costs nothing
	if in.Price != nil {
		if !(*in.Price >= 0 && *in.Price <= 1000) {
			return c.file.wrong(at("price"), "as in price: 0.005", "a price, in your currency per search, must be between 0 and 1000")
		}
		w.Price = int64(math.Ceil(*in.Price * 1e6))
	}
	if w.Provider == webSearXNG && w.BaseURL == "" {
		if w.BaseURL = strings.TrimSpace(c.getenv(webEnv[webSearXNG])); w.BaseURL == "" {
			return c.file.wrong([]string{"web"}, "as in base_url: http://127.0.0.1:8080", "the base_url of the SearXNG server is missing")
		}
	}
	c.Secrets.add(w.Key.Secret)
	c.Web = w
	return c.checkWeb("")
}

// webKey reads the key from the place that the file names, or else from the provider's variable.
// The key of the vendor's endpoint is sent to another one only if the file configures that.
func (c *Config) webKey(in fileWeb) (Key, error) {
	given := 0
	for _, v := range []string{in.Key, in.KeyEnv, in.KeyFile} {
		if v != "" {
			given++
		}
	}
	if given > 1 {
		return Key{}, c.file.wrong([]string{"web"}, "keep one of key_env, key_file and key", "the key is given more than once")
	}
	switch {
	case in.KeyEnv != "":
		if likeKey(in.KeyEnv) || strings.ContainsAny(in.KeyEnv, " =") {
			return Key{}, c.file.wrong([]string{"web", "key_env"}, "write the name, as in key_env: BRAVE_API_KEY", "want the name of an environment variable, not a key")
		}
		return newKey(strings.TrimSpace(c.getenv(in.KeyEnv)), in.KeyEnv), nil
	case in.KeyFile != "":
		return c.fromKeyFile(in.KeyFile, "web", "key_file")
	case in.Key != "":
		var k Key
		var err error
		k, c.webCommand, err = c.credential(in.Key, "web", "key")
		return k, err
	case in.BaseURL == "" && in.Provider != webSearXNG:
		return newKey(strings.TrimSpace(c.getenv(webEnv[in.Provider])), webEnv[in.Provider]), nil
	}
	return Key{}, nil
}

// checkWeb checks the URL. Variable is where it was read, or empty if it is from the file.
func (c *Config) checkWeb(variable string) error {
	w := c.Web
	if w.BaseURL == "" {
		return nil
	}
	wrong := func(detail, hint string) error {
		if variable == "" {
			return c.file.wrong([]string{"web", "base_url"}, hint, "%s", detail)
		}
		return &Error{Where: variable, Detail: detail, Hint: hint}
	}
	u, err := url.Parse(w.BaseURL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return wrong("it is not an http or https URL", "as in http://127.0.0.1:8080")
	case u.User != nil:
		password, _ := u.User.Password()
		c.Secrets.add(secret.New(password), secret.New(u.User.Username()))
		return wrong("it contains a user name or a password", "set a key with key_env or key_file under web")
	case u.RawQuery != "" || u.Fragment != "":
		return wrong("it contains a query or a fragment", "keep the part before the ? or #")
	}
	w.BaseURL = strings.TrimRight(w.BaseURL, "/")
	if u.Scheme == "http" && !isLoopback(u.Hostname()) {
		c.Warnings = append(c.Warnings, fmt.Sprintf("%s is called over plain HTTP at %s: anyone on the network can read the questions", w.Provider, u.Host))
	}
	return nil
}

// Web opens the web search, or returns nil if none is configured. A misconfigured search fails when
// it is called, so that it does not affect questions that do not use the web.
func (s *Set) Web() assay.WebSearcher {
	w := s.c.Web
	if w == nil {
		return nil
	}
	if err := s.c.runWebCommand(); err != nil {
		return unusable{w.Provider, err}
	}
	searcher, err := w.open(s.c.Egress)
	if err == nil && w.Key.Empty() && w.Provider != webSearXNG {
		err = &Error{Where: s.c.where(), Detail: w.Provider + " has no key", Hint: fmt.Sprintf("set %s, or key_env or key_file under web", webEnv[w.Provider])}
	}
	if err != nil {
		return unusable{w.Provider, s.c.Secrets.scrubError(err)}
	}
	guard := resilient.New(resilient.Config{ReadTimeout: cmp.Or(w.Timeout, webTimeout), Attempts: 2, Concurrency: 2})
	return guardedSearcher{searcher, w, guard, &s.c.Secrets}
}

func (w *Web) open(guard *egress.Guard) (assay.WebSearcher, error) {
	client := clientOf(guard, egress.Search, w.base())
	switch w.Provider {
	case webBrave:
		return brave.New(brave.Config{BaseURL: w.BaseURL, Key: w.Key.Secret, HTTP: client})
	case webTavily:
		return tavily.New(tavily.Config{BaseURL: w.BaseURL, Key: w.Key.Secret, HTTP: client})
	}
	return searxng.New(searxng.Config{BaseURL: w.BaseURL, Key: w.Key.Secret, HTTP: client})
}

// base returns the address of the search engine.
func (w *Web) base() string {
	return cmp.Or(w.BaseURL, map[string]string{webBrave: brave.DefaultURL, webTavily: tavily.DefaultURL}[w.Provider])
}

// An unusable web search fails every call with the reason.
type unusable struct {
	name string
	err  error
}

func (u unusable) Name() string { return u.name }

func (u unusable) SearchWeb(context.Context, string, int) ([]assay.WebResult, error) {
	text := u.err.Error()
	if e, ok := errors.AsType[*Error](u.err); ok && e.Hint != "" {
		text += "; " + e.Hint
	}
	return nil, fmt.Errorf("%s: %s: %w", u.name, text, assay.ErrUnavailable)
}

// A guardedSearcher searches through a guard and removes credentials from results and errors.
type guardedSearcher struct {
	assay.WebSearcher
	web     *Web
	guard   *resilient.Guard
	secrets *Secrets
}

// SearchPrice implements assay.PricedSearcher.
func (g guardedSearcher) SearchPrice() (micros int64, known bool) { return g.web.Price, g.web.Priced }

// SearchWeb implements assay.WebSearcher. It does not retry paid searches.
func (g guardedSearcher) SearchWeb(ctx context.Context, query string, n int) ([]assay.WebResult, error) {
	results, _, err := resilient.Do(ctx, g.guard, resilient.Read{Name: g.Name(), Once: g.web.Provider != webSearXNG}, func(ctx context.Context) ([]assay.WebResult, error) {
		return g.WebSearcher.SearchWeb(ctx, query, n)
	})
	for i := range results {
		r := &results[i]
		r.URL, r.Title, r.Snippet = g.secrets.Scrub(r.URL), g.secrets.Scrub(r.Title), g.secrets.Scrub(r.Snippet)
	}
	return results, g.secrets.scrubError(err)
}

// web tries the web search with one query.
func (x *examination) web() Check {
	w := x.s.c.Web
	c := Check{Name: "web", OK: true}
	if w == nil {
		c.Detail = "no web search is configured; questions never go to the web"
		return c
	}
	c.Model = w.Provider
	if x.offline {
		c.Detail = fmt.Sprintf("not tried (%s); used only for questions with --web", w.Why)
		return c
	}
	ctx, cancel := context.WithTimeout(x.ctx, tryTimeout)
	defer cancel()
	found, err := x.s.Web().SearchWeb(ctx, "test", 1)
	if err != nil {
		c.OK, c.Err, c.Detail = false, err, err.Error()
		if u, ok := x.s.Web().(unusable); ok {
			if e, ok := errors.AsType[*Error](u.err); ok {
				c.Detail, c.Hint = e.Error(), e.Hint
			}
		}
		if failed, ok := errors.AsType[*llm.Error](err); ok {
			c.Hint = map[llm.ErrorKind]string{
				llm.Unreachable: "check that its server is running, the network, and base_url under web",
				llm.BadKey:      "check that the key is complete, valid and of this service",
				llm.NoQuota:     "check the service's billing page",
				llm.RateLimited: "wait and try again",
			}[failed.Kind]
		}
		return c
	}
	c.Detail = fmt.Sprintf("a test search returned %d of 1 results (%s); used only for questions with --web", len(found), w.Why)
	return c
}
