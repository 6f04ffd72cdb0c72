package mcpserver

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/identity"
)

var update = flag.Bool("update", false, "write the table of tools to docs/mcp.md")

// TestDocsTools checks that the table of tools in docs/mcp.md is that of their schemas; -update writes
// it.
func TestDocsTools(t *testing.T) {
	const file, begin, end = "../docs/mcp.md", "<!-- tools -->\n", "<!-- end of tools -->"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), begin)
	table, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s: no %s", file, begin)
	}
	want := toolTable()
	if table == want {
		return
	}
	if !*update {
		t.Fatalf("%s has\n%s\nwant, written by -update,\n%s", file, table, want)
	}
	if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

func toolTable() string {
	var b strings.Builder
	b.WriteString("| tool | scope | takes | returns |\n| --- | --- | --- | --- |\n")
	for _, tool := range tools {
		d := tool.definition()
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s |\n", tool.name, scopeOf(tool.needs), fields(d.InputSchema.(*jsonschema.Schema)), fields(d.OutputSchema.(*jsonschema.Schema)))
	}
	return b.String()
}

// fields lists the properties of a schema. Those that may be absent are in brackets.
func fields(s *jsonschema.Schema) string {
	var names []string
	for _, name := range s.PropertyOrder {
		text := "`" + name + "`"
		p := s.Properties[name]
		if p.Type == "array" && p.Items != nil && p.Items.Type == "object" {
			text += " (each " + fields(p.Items) + ")"
		}
		if p.Type == "object" && len(p.Properties) > 0 {
			text += " (" + fields(p) + ")"
		}
		if !slices.Contains(s.Required, name) {
			text = "[" + text + "]"
		}
		names = append(names, text)
	}
	return strings.Join(names, ", ")
}

// scopeOf returns the scope of a method of engine.Session.
func scopeOf(method string) identity.Scope {
	for _, m := range engine.SessionMethods {
		if m.Name == method {
			return m.Scope
		}
	}
	return ""
}
