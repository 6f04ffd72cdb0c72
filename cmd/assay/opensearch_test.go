//go:build unix

package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// searchNodes returns the value of ASSAY_INDEX_URL for the cluster that scripts/opensearch started, with
// names of indexes of this test alone, which are removed when the test ends. The test is skipped if there
// is no cluster.
func searchNodes(t *testing.T) (address, prefix string) {
	t.Helper()
	nodes := os.Getenv("ASSAY_TEST_OPENSEARCH")
	if nodes == "" {
		t.Skip("ASSAY_TEST_OPENSEARCH is not set; run the test by scripts/opensearch")
	}
	prefix = "assay-" + strings.ToLower(rand.Text()[:8])
	t.Cleanup(func() {
		for name := range indexesOf(t, prefix) {
			call(t, http.MethodDelete, first(nodes)+"/"+name, nil)
		}
	})
	return nodes + "?shards=2&prefix=" + prefix, prefix
}

func first(nodes string) string {
	node, _, _ := strings.Cut(nodes, ",")
	return node
}

// indexesOf returns the indexes in the cluster whose names begin with a prefix, with their aliases.
func indexesOf(t *testing.T, prefix string) map[string]any {
	var found map[string]any
	call(t, http.MethodGet, first(os.Getenv("ASSAY_TEST_OPENSEARCH"))+"/"+prefix+"-*/_alias", &found)
	return found
}

// call sends a request to the cluster and decodes the answer into out, which may be nil.
func call(t *testing.T, method, url string, out any) {
	t.Helper()
	req, err := http.NewRequest(method, url, nil) // also after the end of the test's context
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err == nil && out != nil {
		err = json.Unmarshal(data, out)
	}
	if err != nil || resp.StatusCode >= 300 {
		t.Fatalf("%s %s: %s, %v", method, url, resp.Status, err)
	}
}

// TestOpenSearchServers runs two servers and commands on a database and an OpenSearch cluster. A document
// that one server stores is found by the other, tenants see their own documents alone, and a deleted
// tenant leaves no index.
func TestOpenSearchServers(t *testing.T) {
	nodes, prefix := searchNodes(t)
	c := newCluster(t)
	t.Setenv("ASSAY_INDEX", "opensearch")
	t.Setenv("ASSAY_INDEX_URL", nodes)
	c.output("ingest", "handbook")
	for _, x := range []struct{ words, line string }{
		{"Approval", "search|approves travel"},
		{"head of the department", "ask|--local|Who approves travel to a customer?"},
		{"opensearch: OpenSearch 2.", "doctor|--offline"},
		{"holds all changes", "doctor|--offline"},
		{"tenant acme created", "tenant|create|acme"},
	} {
		if out := c.output(strings.Split(x.line, "|")...); !strings.Contains(out, x.words) {
			t.Errorf("assay %s prints %q, want %q", x.line, out, x.words)
		}
	}
	a, b := c.server("a"), c.server("b")
	for i, p := range []*clusterProcess{a, b, a} {
		name := string(rune('p' + i))
		if status, body := c.put(p, name+".txt", "The locker of pangolin "+name+" is green.\n"); status >= 300 {
			t.Fatalf("upload: %d %s", status, body)
		}
	}
	for _, p := range []*clusterProcess{a, b} {
		c.await(func() bool { return c.finds(p, "pangolin") == 3 })
	}
	c.output("ingest", "handbook", "--tenant", "acme")
	if out, _ := c.assay("admin", "search", "--tenant", "acme", "pangolin").CombinedOutput(); strings.Contains(string(out), "locker") {
		t.Errorf("tenant acme finds a document of another: %s", out)
	}
	if n := len(indexesOf(t, prefix)); n != 2 {
		t.Errorf("%d indexes, want one for each of the two tenants", n)
	}
	if out := c.output("tenant", "delete", "acme", "--yes"); !strings.Contains(out, "tenant acme deleted") {
		t.Errorf("delete prints %q", out)
	}
	if n := len(indexesOf(t, prefix)); n != 1 {
		t.Errorf("%d indexes after a tenant was deleted, want 1", n)
	}
	c.output("tenant", "create", "acme")
	if out, _ := c.assay("admin", "search", "--tenant", "acme", "approves travel").CombinedOutput(); strings.Contains(string(out), "Approval") {
		t.Errorf("the new tenant finds a document of the deleted one: %s", out)
	}
	c.end(a)
	c.end(b)
}

// finds returns the number of hits of a search on a server.
func (c *cluster) finds(p *clusterProcess, text string) int {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), "POST", p.url+"/api/v1/search", strings.NewReader(`{"text": "`+text+`", "mode": "text"}`))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	var found struct {
		Hits []json.RawMessage `json:"hits"`
	}
	data, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(data, &found)
	}
	if err != nil || resp.StatusCode != http.StatusOK {
		c.t.Fatalf("search: %s %s, %v", resp.Status, data, err)
	}
	return len(found.Hits)
}

// TestOpenSearchDirectory runs commands on a data directory with an index in an OpenSearch cluster.
func TestOpenSearchDirectory(t *testing.T) {
	nodes, _ := searchNodes(t)
	s := newSandbox(t)
	t.Setenv("ASSAY_INDEX", "opensearch")
	t.Setenv("ASSAY_INDEX_URL", nodes)
	s.want(0, "2 added", "ingest", "handbook")
	s.want(0, "Approval", "search", "approves travel")
	if _, err := os.Stat(filepath.Join(s.dir, ".assay", "index")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is an index in the directory: %v", err)
	}
}

// TestOpenSearchUnreachable checks that commands tell of a cluster that cannot be reached, without its
// password, and that a tenant can be deleted before its index.
func TestOpenSearchUnreachable(t *testing.T) {
	s := newSandbox(t)
	const down = "http://assay:hunter2hunter2@127.0.0.1:1"
	s.want(0, "tenant acme created", "tenant", "create", "acme")
	for _, x := range []struct{ line, words string }{
		{"ingest handbook", "reach OpenSearch"},
		{"search leave", "reach OpenSearch"},
		{"doctor --offline", "shared index"},
		{"tenant delete acme --yes", "is not removed yet"},
	} {
		cmd := s.command(strings.Fields(x.line)...)
		cmd.Env = append(cmd.Env, "ASSAY_INDEX=opensearch", "ASSAY_INDEX_URL="+down)
		out, err := cmd.CombinedOutput()
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != exitError || !strings.Contains(string(out), x.words) || strings.Contains(string(out), "hunter2") {
			t.Errorf("assay %s: %v, want %q and exit code %d\n%s", x.line, err, x.words, exitError, out)
		}
	}
	s.want(0, "tenant acme created", "tenant", "create", "acme")
}

// TestDeleteTenantPGVector checks that a deleted tenant leaves no schema of its index.
func TestDeleteTenantPGVector(t *testing.T) {
	c := newCluster(t)
	t.Setenv("ASSAY_INDEX", "pgvector")
	c.output("tenant", "create", "acme")
	c.output("ingest", "handbook", "--tenant", "acme")
	conn, err := pgx.Connect(t.Context(), c.database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // it was only read
	schemas := func() (n int) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'assay\_index\_%'`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := schemas(); n != 1 {
		t.Errorf("%d schemas of indexes, want 1", n)
	}
	c.output("tenant", "delete", "acme", "--yes")
	if n := schemas(); n != 0 {
		t.Errorf("%d schemas of indexes after the tenant was deleted, want none", n)
	}
}
