package assay_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/assay-rag/assay"

// allowed lists the packages of the module that each folder may import, besides the root and
// internal. Imports point one way: a package may import those listed above it. Test files are
// exempt, because they test packages together.
var allowed = map[string][]string{
	"":                  {}, // the vocabulary imports nothing
	"internal":          {},
	"llm":               {},
	"internal/index":    {},
	"store":             {},
	"run":               {},
	"internal/stats":    {},
	"ground":            {"llm"}, // llm.Reader
	"source":            {},
	"parse":             {},
	"internal/chunk":    {"parse"},
	"internal/ingest":   {"source", "parse", "internal/chunk", "internal/index", "store", "llm"},
	"internal/graph":    {"internal/index"},
	"internal/rerank":   {"llm"},
	"internal/retrieve": {"internal/index", "llm", "internal/graph"},
	"role":              {"ground", "llm"},
	"internal/role":     {"role", "ground", "llm"},
	"internal/tool":     {"llm", "role"},
	"strategy":          {"role", "internal/role", "ground", "llm", "internal/retrieve", "run", "internal/tool"},
	"engine":            {"llm", "internal/ingest", "source", "parse", "internal/chunk", "internal/index", "store", "internal/retrieve", "internal/graph", "internal/rerank", "role", "internal/role", "ground", "run", "strategy", "internal/tool", "internal/stats"},
	"eval":              {"llm", "internal/graph", "internal/rerank", "engine", "internal/retrieve", "internal/index", "strategy", "run", "ground", "role", "internal/role", "store"},
	"eval/handwritten":  {"eval", "engine", "llm", "ground", "role", "store", "provider"},                     // a program
	"train/fit":         {"eval", "internal/retrieve", "internal/rerank", "internal/role", "llm", "provider"}, // a program
	"provider":          {"llm", "ground"},                                                                    // provider/embedded also provider/local
	"internal/models":   {},
	"scripts":           {},
	"cmd/assay":         {"llm", "ground", "internal/models", "provider", "internal/retrieve", "engine", "eval", "internal/ingest", "source", "store", "strategy", "run", "role", "internal/role", "internal/stats"},
}

func TestImports(t *testing.T) {
	seen := map[string]bool{}
	err := eachSource(func(file string) error {
		file = filepath.ToSlash(file)
		folder := owner(path.Dir(file))
		want, known := allowed[folder]
		if !known {
			t.Errorf("%s: the folder has no row in the import table", file)
			return nil
		}
		seen[folder] = true
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, imp := range f.Imports {
			p, _ := strconv.Unquote(imp.Path.Value)
			rest, ours := strings.CutPrefix(p, module)
			if !ours {
				continue
			}
			target := owner(strings.TrimPrefix(rest, "/"))
			free := target == folder || target == "" && folder != "" || target == "internal"
			if !free && !slices.Contains(want, target) {
				t.Errorf("%s imports %s; %q may import the root, internal and %q", file, p, folder, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for folder := range allowed {
		if !seen[folder] {
			t.Errorf("the import table has a row for %q, which holds no package", folder)
		}
	}
}

// eachSource calls fn with the path of each Go file of the module that is not a test.
func eachSource(fn func(file string) error) error {
	return filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && file != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || isModule(file)) {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		return fn(file)
	})
}

// owner returns the row of the import table for a folder: that of its longest prefix.
func owner(folder string) string {
	if folder == "." {
		return ""
	}
	for f := folder; f != "."; f = path.Dir(f) {
		if _, ok := allowed[f]; ok {
			return f
		}
	}
	return folder
}

func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil && dir != "."
}

// TestDocsNamePackages checks the docs against the existing folders.
func TestDocsNamePackages(t *testing.T) {
	data, err := os.ReadFile("docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z/]+)/` ").FindAllStringSubmatch(string(data), -1) {
		if info, err := os.Stat(m[1]); err != nil || !info.IsDir() {
			t.Errorf("docs/design.md names the folder %s/, which does not exist", m[1])
		}
	}
}

// TestNoRegexpAtStart reports regular expressions that are compiled at program start. Package
// internal/lazyregexp compiles them at first use.
func TestNoRegexpAtStart(t *testing.T) {
	err := eachSource(func(file string) error {
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, file, nil, 0)
		if err != nil {
			return err
		}
		for _, decl := range f.Decls {
			ast.Inspect(decl, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncDecl:
					return n.Recv == nil && n.Name.Name == "init"
				case *ast.FuncLit:
					return false
				case *ast.SelectorExpr:
					if pkg, ok := n.X.(*ast.Ident); ok && pkg.Name == "regexp" && strings.Contains(n.Sel.Name, "Compile") {
						t.Errorf("%s: regexp.%s runs when the program starts, want lazyregexp.New", files.Position(n.Pos()), n.Sel.Name)
					}
				}
				return true
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
