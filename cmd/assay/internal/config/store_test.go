package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
)

// loadStore reads the sections store, index and queue of a file with this text.
func loadStore(t *testing.T, text string, e env, offline bool, flags StoreFlags) (Store, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return LoadStore(Sources{File: path, Getenv: e.get, Offline: offline}, flags)
}

const cluster = `
index:
  kind: opensearch
  addresses: ["https://a:9200", "https://b:9200"]
  username: assay
  password: !env OPENSEARCH_PASSWORD
  ca: ca.pem
  prefix: assay-2
  shards: 3
  replicas: 0
`

func TestIndex(t *testing.T) {
	t.Parallel()
	password := env{"OPENSEARCH_PASSWORD": "hunter2hunter2"}
	s, err := loadStore(t, cluster, password, false, StoreFlags{})
	if err != nil {
		t.Fatal(err)
	}
	c := s.Cluster
	if s.Index != OpenSearch || len(c.Addresses) != 2 || c.Username != "assay" || c.Password.Reveal() != "hunter2hunter2" || !filepath.IsAbs(c.CA) ||
		c.Prefix != "assay-2" || c.Shards != 3 || c.Replicas == nil || *c.Replicas != 0 {
		t.Errorf("%s %+v", s.Index, c)
	}
	if strings.Contains(s.Secrets.Scrub("it is hunter2hunter2"), "hunter2") {
		t.Error("the password is not removed from output")
	}
	if s, err := loadStore(t, cluster, password, false, StoreFlags{Index: "own"}); err != nil || s.Index != OwnIndex || len(s.Cluster.Addresses) > 0 {
		t.Errorf("--index own: %s %+v, %v", s.Index, s.Cluster, err)
	}
	byEnv := env{"ASSAY_INDEX": "opensearch", "ASSAY_INDEX_URL": "https://u:hunter2hunter2@c:9200?shards=2"}
	if s, err = loadStore(t, "", byEnv, false, StoreFlags{}); err != nil || s.Cluster.Addresses[0] != "https://c:9200" || s.Cluster.Shards != 2 {
		t.Errorf("by the environment: %+v, %v", s.Cluster, err)
	}
	if s, err = loadStore(t, "index: {kind: opensearch, addresses: ['https://a'], aws: {region: eu-central-1, service: es}}", nil, false, StoreFlags{}); err != nil || s.Cluster.AWS == nil {
		t.Errorf("a domain of Amazon: %+v, %v", s.Cluster, err)
	}
	if _, err := load(t, cluster, password); err != nil {
		t.Errorf("the whole configuration: %v", err)
	}
}

func TestIndexErrors(t *testing.T) {
	t.Parallel()
	for want, x := range map[string]struct {
		text string
		env  env
	}{
		"want one of own, pgvector, opensearch": {text: "index: {kind: none}"},
		"ASSAY_INDEX: want one of":              {env: env{"ASSAY_INDEX": "none"}},
		"no node of the OpenSearch":             {text: "index: {kind: opensearch}"},
		"a credential must not be in the file":  {text: strings.Replace(cluster, "!env OPENSEARCH_PASSWORD", "hunter2hunter2", 1)},
		"index.password: it is empty":           {text: cluster},
		":4: index.addresses":                   {text: strings.Replace(cluster, "https://b:9200", "b:9200", 1), env: env{"OPENSEARCH_PASSWORD": "hunter2hunter2"}},
		"index.aws.service: a collection":       {text: "index: {kind: opensearch, addresses: ['https://a'], aws: {service: aoss}}"},
		"index.aws.service: want es":            {text: "index: {kind: opensearch, addresses: ['https://a'], aws: {service: ec2}}"},
		"ASSAY_INDEX_URL: addresses":            {env: env{"ASSAY_INDEX": "opensearch", "ASSAY_INDEX_URL": "hunter2hunter2"}},
		"which is a data directory":             {text: "index: {kind: pgvector}"},
	} {
		_, err := loadStore(t, x.text, x.env, false, StoreFlags{})
		if !errors.Is(err, assay.ErrInvalid) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %q without the password", x.text, err, want)
		}
	}
}

// TestOfflineStore checks that offline refuses a store, an index and a queue that are not on this machine.
func TestOfflineStore(t *testing.T) {
	t.Parallel()
	const remote, local = "postgres://assay@db.example.com/assay", "postgres://assay@127.0.0.1/assay"
	search := func(address string) string {
		return "index: {kind: opensearch, addresses: ['" + address + "']}"
	}
	for _, x := range []struct {
		text  string
		env   env
		flags StoreFlags
		ok    bool
	}{
		{flags: StoreFlags{Store: remote}},
		{env: env{"ASSAY_STORE": remote}},
		{text: "store: {url: '" + remote + "'}"},
		{text: "store: {url: '" + remote + "'}", flags: StoreFlags{Store: Local}, ok: true},
		{flags: StoreFlags{Store: local, Queue: remote}},
		{flags: StoreFlags{Store: local, Queue: StoreQueue}, ok: true},
		{flags: StoreFlags{Store: local, Index: PGVector}, ok: true},
		{flags: StoreFlags{Store: "postgres://assay@localhost/assay"}, ok: true},
		{flags: StoreFlags{Store: "postgres://assay@[::1]:5433/assay"}, ok: true},
		{flags: StoreFlags{Store: "postgres://assay@localhost/assay?host=/var/run/postgresql"}, ok: true},
		{flags: StoreFlags{Store: "postgres://assay@localhost/assay?host=db.example.com"}},
		{flags: StoreFlags{Store: "postgres://assay@localhost,db.example.com/assay"}},
		{flags: StoreFlags{Store: "postgres://assay@10.0.0.1/assay"}},
		{text: search("https://search.example.com")},
		{text: search("http://127.0.0.1:9200"), ok: true},
		{env: env{"ASSAY_INDEX": "opensearch", "ASSAY_INDEX_URL": "http://10.0.0.1:9200"}},
	} {
		for name, offline := range map[string]func() (Store, error){
			"--offline":     func() (Store, error) { return loadStore(t, x.text, x.env, true, x.flags) },
			"egress: off":   func() (Store, error) { return loadStore(t, x.text+"\negress: off", x.env, false, x.flags) },
			"ASSAY_OFFLINE": func() (Store, error) { return loadStore(t, x.text, x.env.with("ASSAY_OFFLINE", "1"), false, x.flags) },
		} {
			_, err := offline()
			if (err == nil) != x.ok || err != nil && !(errors.Is(err, assay.ErrInvalid) && strings.Contains(err.Error(), "not on this machine")) {
				t.Errorf("%s, %+v: %v, want success %v", name, x, err, x.ok)
			}
		}
		if _, err := loadStore(t, x.text, x.env, false, x.flags); err != nil {
			t.Errorf("%+v without offline: %v", x, err)
		}
	}
}

// with returns a copy with another variable.
func (e env) with(name, value string) env {
	all := env{name: value}
	for n, v := range e {
		all[n] = v
	}
	return all
}

// TestScaleExamples checks that the examples of docs/scale.md are configurations.
func TestScaleExamples(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "scale.md"))
	if err != nil {
		t.Fatal(err)
	}
	e := env{"OPENSEARCH_PASSWORD": "hunter2hunter2", "AZURE_SEARCH_KEY": "k", "GEMINI_API_KEY": "k"}
	found := 0
	for _, block := range strings.Split(string(data), "\n```yaml\n")[1:] {
		text, _, _ := strings.Cut(block, "\n```")
		if _, err := load(t, text+"\n", e); err != nil {
			t.Errorf("%v in\n%s", err, text)
		}
		found++
	}
	for _, key := range append(keys(reflect.TypeFor[fileIndex]()), keys(reflect.TypeFor[fileGraph]())...) {
		if !regexp.MustCompile("(^|[\\s{`])" + key + ":").Match(data) {
			t.Errorf("docs/scale.md does not have the key %s", key)
		}
	}
	if found < 2 {
		t.Errorf("docs/scale.md has %d examples, want those of services and index", found)
	}
}
