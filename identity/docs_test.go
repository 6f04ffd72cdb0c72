package identity

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
)

var update = flag.Bool("update", false, "write the tables of docs/identity.md anew")

// TestDocs compares the tables of docs/identity.md with the program's own.
func TestDocs(t *testing.T) {
	path := filepath.Join("..", "docs", "identity.md")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for name, table := range map[string]string{"reasons": reasonTable(), "roles": roleTable()} {
		_, rest, found := strings.Cut(text, "<!-- "+name+" -->\n")
		documented, _, ends := strings.Cut(rest, "<!-- end -->")
		if !found || !ends {
			t.Fatalf("docs/identity.md has no table of %s", name)
		}
		if *update {
			begin := len(text) - len(rest)
			text = text[:begin] + table + text[begin+len(documented):]
			continue
		}
		if diff := cmp.Diff(documented, table); diff != "" {
			t.Errorf("table of %s; write it anew with -update (-documented +made):\n%s", name, diff)
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// roleTable is the table of roles by scope.
func roleTable() string {
	means := map[Scope]string{
		ScopeAsk:    "ask questions; see, resume, replay and delete one's own runs",
		ScopeSearch: "search, and read documents that the user may see",
		ScopeIngest: "add, change and remove documents, collections and sources",
		ScopeReview: "see and decide answers that wait for a person",
		ScopeAudit:  "read the audit log, proofs, reports and runs of others, without their documents",
		ScopeAdmin:  "keys, policies, limits, canaries, stops, retention, backups",
	}
	var b strings.Builder
	b.WriteString("| scope | allows |")
	for _, r := range Roles {
		fmt.Fprintf(&b, " %s |", r.Role)
	}
	b.WriteString("\n| --- | --- |" + strings.Repeat(" --- |", len(Roles)) + "\n")
	all, _ := scopesOf(Admin)
	for _, scope := range all {
		fmt.Fprintf(&b, "| `%s` | %s |", scope, means[scope])
		for _, r := range Roles {
			mark := " "
			if slices.Contains(r.Scopes, scope) {
				mark = " yes "
			}
			b.WriteString(mark + "|")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// reasonTable is the table of reasons by status.
func reasonTable() string {
	var b strings.Builder
	b.WriteString("| reason | status | means |\n| --- | --- | --- |\n")
	for _, r := range Reasons {
		fmt.Fprintf(&b, "| `%s` | %d | %s |\n", r.Reason, assay.StatusCode(r.Kind), r.Means)
	}
	return b.String()
}
