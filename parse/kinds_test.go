package parse

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// TestKinds checks that Kinds lists all exported errors.
func TestKinds(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "parse.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	ast.Inspect(f, func(node ast.Node) bool {
		if spec, ok := node.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Err") {
			n++
		}
		return true
	})
	if len(Kinds()) != n {
		t.Errorf("Kinds has %d errors, parse.go declares %d", len(Kinds()), n)
	}
}

func TestCrash(t *testing.T) {
	part := Part{Name: "a", Read: nil}
	if _, err := readSafely(t.Context(), part, 10); err == nil || !strings.Contains(err.Error(), "nil pointer") {
		t.Errorf("a part whose Read panics: %v", err)
	}
}
