package assay_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// actKind matches a kind of act, as in "run.begun".
var actKind = regexp.MustCompile(`^[a-z]+\.[a-z_]+$`)

// notActs are literals that look like a kind of act.
var notActs = []string{"content.db", "evaluation.json", "content.xml", "webhook.test"}

// TestActKinds checks that docs/audit.md lists the kinds of acts of the program: all literals that
// are the Kind of a value, and those that begin like a kind of the list.
func TestActKinds(t *testing.T) {
	t.Parallel()
	listed := listedKinds(t)
	objects := map[string]bool{}
	for kind := range listed {
		object, _, _ := strings.Cut(kind, ".")
		objects[object] = true
	}
	found := map[string]bool{}
	for path, file := range programFiles(t) {
		door, _, _ := strings.Cut(filepath.ToSlash(path), "/")
		if door == "server" || door == "ui" { // which name their operations and templates in this form
			continue
		}
		note := func(e ast.Expr, certain bool) {
			literal, ok := e.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return
			}
			kind, err := strconv.Unquote(literal.Value)
			object, _, _ := strings.Cut(kind, ".")
			if err != nil || !actKind.MatchString(kind) || slices.Contains(notActs, kind) || !certain && !objects[object] {
				return
			}
			found[kind] = true
			if !listed[kind] {
				t.Errorf("%s: docs/audit.md does not list the kind of act %s", path, kind)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Kind" {
					note(n.Value, true)
				}
			case ast.Expr:
				note(n, false)
			}
			return true
		})
	}
	for kind := range listed {
		if !found[kind] {
			t.Errorf("docs/audit.md lists %s, which the program does not append", kind)
		}
	}
}

// listedKinds reads the table of docs/audit.md.
func listedKinds(t *testing.T) map[string]bool {
	t.Helper()
	data, err := os.ReadFile("docs/audit.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "<!-- acts -->")
	table, _, _ := strings.Cut(rest, "<!-- end -->")
	listed := map[string]bool{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for i, part := range strings.Split(cells[1], "`") {
			if i%2 == 0 {
				continue
			}
			if listed[part] {
				t.Errorf("docs/audit.md lists %s twice", part)
			}
			listed[part] = true
		}
	}
	if len(listed) == 0 {
		t.Fatal("docs/audit.md has no table of acts")
	}
	return listed
}

// programFiles parses the files of the program. Package governance only reads acts, and
// store/storetest makes some of its own.
func programFiles(t *testing.T) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{"governance", "store/storetest", "bench", "testdata"}, filepath.ToSlash(path)) {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		files[path], err = parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
