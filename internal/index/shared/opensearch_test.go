package shared

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index/indextest"
	"github.com/assay-rag/assay/internal/secret"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	no, many := -1, 101
	password := secret.New("hunter2hunter2")
	for want, c := range map[string]Cluster{
		"addresses: name":   {},
		"addresses: want":   {Addresses: []string{"search.example.com:9200"}},
		"want URLs":         {Addresses: []string{"https://a", "ftp://b"}},
		"user or":           {Addresses: []string{"https://me:hunter2hunter2@a"}},
		"in the clear":      {Addresses: []string{"http://search.example.com"}, Username: "u", Password: password},
		"without a user":    {Addresses: []string{"https://a"}, Password: password},
		"without a passw":   {Addresses: []string{"https://a"}, Username: "u"},
		"not both":          {Addresses: []string{"https://a"}, Username: "u", Password: password, AWS: &AWS{}},
		"shards":            {Addresses: []string{"https://a"}, Shards: -1},
		"replicas":          {Addresses: []string{"https://a"}, Replicas: &no},
		"replicas: want 0":  {Addresses: []string{"https://a"}, Replicas: &many},
		"prefix":            {Addresses: []string{"https://a"}, Prefix: "*"},
		"prefix: want":      {Addresses: []string{"https://a"}, Prefix: "-a"},
		"addresses: want U": {Addresses: []string{"https://a?x=y"}},
	} {
		err := c.Check()
		if !errors.Is(err, assay.ErrInvalid) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%+v: %v, want %q without the password", c, err, want)
		}
	}
	for _, c := range []Cluster{
		{Addresses: []string{"http://127.0.0.1:9200", "http://localhost", "http://[::1]:9200"}, Username: "u", Password: password},
		{Addresses: []string{"https://a", "https://b:9200/"}, AWS: &AWS{}, Shards: 3, Prefix: "assay-2"},
	} {
		if err := c.Check(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestParseCluster(t *testing.T) {
	t.Parallel()
	c, err := ParseCluster("https://u:p%40ss@a:9200,https://b:9200?shards=3&replicas=0&prefix=x")
	if err != nil || strings.Join(c.Addresses, " ") != "https://a:9200 https://b:9200" || c.Username != "u" || c.Password.Reveal() != "p@ss" ||
		c.Shards != 3 || c.Replicas == nil || *c.Replicas != 0 || c.Prefix != "x" || c.AWS != nil {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err = ParseCluster("https://a?aws=eu-central-1"); err != nil || c.AWS == nil || c.AWS.Region != "eu-central-1" {
		t.Errorf("%+v, %v", c, err)
	}
	for _, text := range []string{"", "hunter2", "https://u:hunter2@a,https://u:hunter2@b", "https://a?password=hunter2", "https://a?shards=hunter2", "https://a?%zz", "https://u:hunter2@a:hunter2", "https://u:hunter2@a?aws=true"} {
		if _, err := ParseCluster(text); !errors.Is(err, assay.ErrInvalid) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v, want ErrInvalid without the password", text, err)
		}
	}
}

const (
	opensearchRoot = `{"version": {"distribution": "opensearch", "number": "2.19.1"}}`
	knnPlugin      = `[{"name": "n1", "component": "opensearch-knn"}]`
)

// A hostile is a server that is not what it should be. The paths of its answers are / and those of the
// plugins, with a status.
type hostile struct {
	root, plugins string
	status        int
	want          string
}

// TestHostileServers checks the errors for servers that are no OpenSearch, or none that can be used. No
// error has the password, even if the server sends it back.
func TestHostileServers(t *testing.T) {
	t.Parallel()
	const password = "hunter2hunter2"
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	defer elsewhere.Close()
	for name, h := range map[string]hostile{
		"wrong password": {`{"error": {"type": "security", "reason": "u:` + password + `"}}`, "", 401, "refuses the user or the password"},
		"plain 401":      {"Unauthorized " + password, "", 401, "refuses the user or the password"},
		"no right":       {`{"error": {"type": "security", "reason": "u"}}`, "", 403, "does not give its user this right"},
		"no such page":   {"<html>", "", 404, "is no OpenSearch"},
		"a web page":     {"<html>" + password, "", 200, "is no OpenSearch"},
		"redirect":       {elsewhere.URL, "", 302, "a redirect, which is not followed"},
		"Elasticsearch":  {`{"version": {"number": "8.15.0"}, "tagline": "You Know, for Search"}`, "", 200, "is no OpenSearch"},
		"too old":        {`{"version": {"distribution": "opensearch", "number": "1.3.2"}}`, knnPlugin, 200, "want 2.19.0 or later"},
		"no version":     {`{"version": {"distribution": "opensearch"}}`, knnPlugin, 200, "want 2.19.0 or later"},
		"no plugin":      {opensearchRoot, `[]`, 200, "has no plugin opensearch-knn"},
		"one without":    {opensearchRoot, `[{"name": "n1", "component": "opensearch-knn"}, {"name": "n2", "component": "other"}]`, 200, "opensearch-knn on node n2"},
		"cut":            {opensearchRoot, knnPlugin[:9], 200, "read the answer of OpenSearch"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/_cat/plugins" {
					fmt.Fprint(w, h.plugins)
					return
				}
				if h.status == http.StatusFound {
					w.Header().Set("Location", h.root)
				}
				w.WriteHeader(h.status)
				fmt.Fprint(w, h.root)
			}))
			defer server.Close()
			x, err := OpenSearch(t.Context(), Cluster{Addresses: []string{server.URL}, Username: "u", Password: secret.New(password)})
			if err != nil {
				t.Fatal(err)
			}
			defer x.Close()
			_, openErr := x.Open(t.Context(), indextest.NewSource("a"))
			_, describeErr := x.Describe(t.Context())
			for _, err := range []error{openErr, describeErr} {
				if err == nil || !strings.Contains(err.Error(), h.want) || strings.Contains(err.Error(), password) {
					t.Errorf("error %v, want %q without the password", err, h.want)
				}
				if !errors.Is(err, assay.ErrInvalid) && !errors.Is(err, assay.ErrUnavailable) {
					t.Errorf("error %v, want ErrInvalid or ErrUnavailable", err)
				}
			}
		})
	}
}

// TestUnreachable checks the error for an address at which nothing listens.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(nil)
	server.Close()
	x, err := OpenSearch(t.Context(), Cluster{Addresses: []string{server.URL}})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if _, err := x.Open(t.Context(), indextest.NewSource("a")); !errors.Is(err, assay.ErrUnavailable) || !strings.Contains(err.Error(), "reach OpenSearch") {
		t.Errorf("error %v, want ErrUnavailable", err)
	}
}

// TestOffline checks that offline only nodes on this machine are reached.
func TestOffline(t *testing.T) {
	t.Parallel()
	for address, ok := range map[string]bool{
		"http://127.0.0.1:9200": true, "http://localhost:9200": true, "http://[::1]:9200": true,
		"https://search.example.com": false, "http://10.0.0.1:9200": false, "https://localhost.example.com": false,
	} {
		c := Cluster{Addresses: []string{"http://127.0.0.1:1", address}, Offline: true}
		x, err := OpenSearch(t.Context(), c)
		if (err == nil) != ok || c.OnThisMachine() != ok {
			t.Errorf("%s: %v, on this machine %v, want %v", address, err, c.OnThisMachine(), ok)
		}
		if err == nil {
			_ = x.Close()
		}
	}
}

// TestCA checks the file of certificates.
func TestCA(t *testing.T) {
	t.Parallel()
	for _, ca := range []string{"none.pem", "opensearch_test.go"} {
		if _, err := OpenSearch(t.Context(), Cluster{Addresses: []string{"https://a"}, CA: ca}); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", ca, err)
		}
	}
}
