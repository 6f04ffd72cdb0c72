package server

import (
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/store"
)

// apiDocs is the page about the interface.
var apiDocs = filepath.Join("..", "docs", "api.md")

// TestDocTables checks that docs/api.md has a row for each kind of problem and for each route.
func TestDocTables(t *testing.T) {
	t.Parallel()
	problems := "| type | status | title | what to do |\n| --- | --- | --- | --- |\n"
	for _, k := range ProblemKinds() {
		problems += fmt.Sprintf("| `/problems/%s` | %d | %s | %s |\n", k.Name, k.Status, k.Title, k.Means)
	}
	operations := "| route | what it does |\n| --- | --- |\n"
	for _, r := range Routes() {
		operations += fmt.Sprintf("| `%s %s` | %s |\n", r.Method, r.Path, r.Summary)
	}
	data, err := os.ReadFile(apiDocs)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for name, table := range map[string]string{"problems": problems, "operations": operations} {
		begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->\n"
		before, rest, ok := strings.Cut(text, begin)
		old, after, ended := strings.Cut(rest, end)
		if !ok || !ended {
			t.Fatalf("docs/api.md has no table of %s", name)
		}
		if diff := cmp.Diff(old, table); diff != "" && !*update {
			t.Errorf("docs/api.md, %s; run go test ./server -run TestDocTables -update (-docs +routes):\n%s", name, diff)
		}
		text = before + begin + table + end + after
	}
	if *update {
		if err := os.WriteFile(apiDocs, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDocCommands runs the commands of docs/api.md with curl against a server that needs no credential.
func TestDocCommands(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	host, err := engine.OpenHost(t.Context(), engine.HostConfig{Config: engine.Config{Dir: t.TempDir(), NoBackground: true}, AllowLocal: true})
	if err != nil {
		t.Fatal(err)
	}
	defer closeTest(t, host)
	handler, err := New(Config{Host: host, Local: identity.Local(store.DefaultTenant), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	folder := t.TempDir()
	for name, text := range map[string]string{"leave.md": leaveText, "travel.md": "# Travel\n\nThe manager approves travel.\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(apiDocs)
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for line := range strings.Lines(string(data)) {
		if !strings.HasPrefix(line, "curl ") {
			continue
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(line, "http://127.0.0.1:8484", server.URL))
		cmd.Dir = folder
		if out, err := cmd.CombinedOutput(); err != nil || len(out) == 0 {
			t.Errorf("%s%v: %s", line, err, out)
		}
		ran++
	}
	if ran < 8 {
		t.Errorf("docs/api.md has %d commands, want 8 or more", ran)
	}
}
