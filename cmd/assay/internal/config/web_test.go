package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/searxng/searxngtest"
)

// TestWebChoice checks which provider searches the web, by file and environment.
func TestWebChoice(t *testing.T) {
	tests := []struct {
		name, file string
		env        env
		provider   string // empty: none
		base, key  string // key: its source
	}{
		{"nothing", "", nil, "", "", ""},
		{"SearXNG", "", env{"SEARXNG_URL": "http://127.0.0.1:8080/"}, "searxng", "http://127.0.0.1:8080", ""},
		{"Brave", "", env{"BRAVE_API_KEY": " k \n"}, "brave", "", "BRAVE_API_KEY"},
		{"Tavily", "", env{"TAVILY_API_KEY": "k"}, "tavily", "", "TAVILY_API_KEY"},
		{"one's own first", "", env{"SEARXNG_URL": "http://h", "BRAVE_API_KEY": "k", "TAVILY_API_KEY": "k"}, "searxng", "http://h", ""},
		{"the file goes before", "web:\n  provider: tavily\n", env{"SEARXNG_URL": "http://h", "TAVILY_API_KEY": "k"}, "tavily", "", "TAVILY_API_KEY"},
		{"the file and a variable", "web:\n  provider: searxng\n", env{"SEARXNG_URL": "http://h"}, "searxng", "http://h", ""},
		{"a key of another name", "web:\n  provider: brave\n  key_env: MINE\n", env{"MINE": "k", "BRAVE_API_KEY": "other"}, "brave", "", "MINE"},
		{"a vendor's key goes nowhere else", "web:\n  provider: brave\n  base_url: https://gateway.example\n", env{"BRAVE_API_KEY": "k"}, "brave", "https://gateway.example", ""},
	}
	for _, test := range tests {
		c := mustLoad(t, test.file, test.env)
		if c.Web == nil {
			if test.provider != "" || c.Open().Web() != nil {
				t.Errorf("%s: nobody searches", test.name)
			}
			continue
		}
		if c.Web.Provider != test.provider || c.Web.BaseURL != test.base || c.Web.Key.From != test.key || c.Web.Why == "" {
			t.Errorf("%s: %+v", test.name, c.Web)
		}
		if s := c.Open().Web(); s == nil || s.Name() != test.provider {
			t.Errorf("%s: opened as %v", test.name, s)
		}
	}
}

func TestWebErrors(t *testing.T) {
	for file, want := range map[string]string{
		"web: {}\n": "the provider is missing", "web:\n  provider: altavista\n": "is not a web search provider", "web:\n  provider: searxng\n": "the SearXNG server is missing",
		"web:\n  provider: searxng\n  base_url: ftp://h\n": "not an http or https URL", "web:\n  provider: searxng\n  base_url: http://u:hunter2hunter2@h\n": "a user name or a password",
		"web:\n  provider: searxng\n  base_url: http://h/?q=x\n": "a query or a fragment", "web:\n  provider: brave\n  key_env: A\n  key_file: b\n": "given more than once",
		"web:\n  provider: brave\n  key_env: BSA-hunter2hunter2hunter2\n": "name of an environment variable", "web:\n  provider: brave\n  key_file: nowhere\n": "cannot read",
		"web:\n  provider: brave\n  timeout: 5\n": "want a duration", "web:\n  provider: brave\n  price: -1\n": "between 0 and 1000",
	} {
		_, err := load(t, file, nil)
		e, ok := errors.AsType[*Error](err)
		if !ok || !strings.Contains(e.Error(), want) || strings.Contains(e.Error()+e.Hint, "hunter2") {
			t.Errorf("%q: %v, want %q", file, err, want)
		}
	}
}

// TestUnusableWeb checks that a web search without a key fails when it is called and not before.
func TestUnusableWeb(t *testing.T) {
	s := mustLoad(t, "web:\n  provider: brave\n  key_env: MINE\n", nil).Open()
	_, err := s.Web().SearchWeb(t.Context(), "leave", 5)
	if !errors.Is(err, assay.ErrUnavailable) || !strings.Contains(err.Error(), "brave has no key") || !strings.Contains(err.Error(), "BRAVE_API_KEY") {
		t.Errorf("%v", err)
	}
	if c := (&examination{s: s, ctx: t.Context()}).web(); c.OK || c.Hint == "" {
		t.Errorf("doctor: %+v", c)
	}
}

// TestWebKeepsSecrets checks that credentials that a server echoes are not passed on.
func TestWebKeepsSecrets(t *testing.T) {
	const key = "a-key-of-another-provider"
	h := &llmtest.Canned{Type: "application/json", Replies: []string{string(searxngtest.Reply([]assay.WebResult{
		{URL: "https://example.com/" + key, Title: key, Snippet: "It is " + key + "."},
	}).Bytes())}}
	c := mustLoad(t, "", env{"SEARXNG_URL": h.Start(t), "OPENAI_API_KEY": key})
	found, err := c.Open().Web().SearchWeb(t.Context(), "leave", 5)
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	if r := found[0]; strings.Contains(r.URL+r.Title+r.Snippet, key) || !strings.HasPrefix(r.Snippet, "It is ") {
		t.Errorf("%+v", r)
	}
	if got := (&examination{s: c.Open(), ctx: t.Context(), offline: true}).web(); !got.OK || got.Model != "searxng" {
		t.Errorf("doctor: %+v", got)
	}
}

// TestWebPrice checks the price of a search. The user's own server is free, and a price that is not
// configured is unknown.
func TestWebPrice(t *testing.T) {
	for file, want := range map[string]struct {
		micros int64
		known  bool
	}{
		"web: {provider: brave, key_env: K}\n":                           {0, false},
		"web: {provider: brave, key_env: K, price: 0.005}\n":             {5000, true},
		"web: {provider: tavily, key_env: K, price: 0}\n":                {0, true},
		"web: {provider: searxng, base_url: 'http://h'}\n":               {0, true},
		"web: {provider: searxng, base_url: 'http://h', price: 0.001}\n": {1000, true},
	} {
		p, ok := mustLoad(t, file, env{"K": "k"}).Open().Web().(assay.PricedSearcher)
		if !ok {
			t.Errorf("%s: no price", file)
			continue
		}
		if micros, known := p.SearchPrice(); micros != want.micros || known != want.known {
			t.Errorf("%s: %d, %v", file, micros, known)
		}
	}
}
