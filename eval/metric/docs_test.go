package metric_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay/eval/metric"
)

var update = flag.Bool("update", false, "write the table of docs/measures.md anew")

// TestDocs checks the table in docs/measures.md against the one in this package.
func TestDocs(t *testing.T) {
	const file, begin, end = "../../docs/measures.md", "-update -->\n", "<!-- end of table -->"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), begin)
	got, after, ends := strings.Cut(rest, end)
	if !ok || !ends {
		t.Fatalf("%s has no place for the table", file)
	}
	want := docsTable()
	if *update {
		if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got; -update writes it anew):\n%s", file, diff)
	}
}

// docsTable returns the measures as a table for each group.
func docsTable() string {
	var b strings.Builder
	group := ""
	for _, m := range metric.All() {
		if m.Group != group {
			group = m.Group
			fmt.Fprintf(&b, "\n| of %s | what | source |\n| --- | --- | --- |\n", group)
		}
		name, doc := "`"+m.Name+"`", m.Doc
		if m.Less {
			name += " ↓"
		}
		if m.Unit != "" {
			doc += " (" + m.Unit + ")"
		}
		if m.Judged {
			doc = "*judged*; " + doc
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, doc, m.Source)
	}
	return b.String() + "\n"
}
