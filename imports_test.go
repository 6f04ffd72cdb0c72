package assay_test

import (
	"go/ast"
	"go/doc"
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
	"":                     {}, // the vocabulary imports nothing
	"internal":             {},
	"llm":                  {},
	"internal/index":       {},
	"limit":                {},
	"store":                {"limit"},
	"run":                  {},
	"audit":                {"store"},
	"store/move":           {"store", "audit", "internal/index"},
	"identity":             {"store"},
	"backup":               {"store"},
	"webhook":              {"store"},
	"governance":           {"store", "internal/stats"},
	"internal/stats":       {},
	"review":               {"llm"}, // llm.Reader
	"ground":               {"llm"}, // llm.Reader
	"source":               {},
	"parse":                {},
	"internal/parseworker": {"parse"},
	"internal/chunk":       {"parse"},
	"internal/ingest":      {"source", "parse", "internal/chunk", "internal/index", "store", "llm"},
	"internal/graph":       {"internal/index"},
	"internal/rerank":      {"llm"},
	"internal/retrieve":    {"internal/index", "llm", "internal/graph"},
	"role":                 {"ground", "llm"},
	"internal/role":        {"role", "ground", "llm"},
	"internal/tool":        {"llm", "role"},
	"strategy":             {"role", "internal/role", "ground", "llm", "internal/retrieve", "run", "internal/tool"},
	"engine":               {"identity", "llm", "internal/ingest", "source", "parse", "internal/chunk", "internal/index", "store", "internal/retrieve", "internal/graph", "internal/rerank", "role", "internal/role", "ground", "run", "strategy", "internal/tool", "internal/stats", "audit", "limit", "review", "webhook", "governance"},
	"internal/queue":       {"engine", "store"},
	"stepfn":               {"engine", "identity", "role", "strategy"},
	"cmd/assay-lambda":     {"standalone", "engine", "store", "stepfn", "strategy", "internal/index"},
	"server":               {"engine", "identity", "limit", "run", "strategy", "store", "audit", "source", "eval", "llm", "governance", "review", "webhook", "internal/stats", "ground"},
	"mcpserver":            {"engine", "identity", "strategy"},
	"ui":                   {"server", "engine", "identity", "limit", "run", "strategy", "store", "audit", "source", "eval", "governance", "review", "webhook", "ground", "role"},
	"telemetry":            {"llm", "role", "internal/tool", "run", "strategy", "engine"},
	"client":               {},
	"eval":                 {"llm", "parse", "internal/chunk", "internal/graph", "internal/rerank", "engine", "internal/retrieve", "internal/index", "strategy", "run", "ground", "role", "internal/role", "store"},
	"eval/handwritten":     {"eval", "engine", "llm", "ground", "role", "store", "provider"},                     // a program
	"train/fit":            {"eval", "internal/retrieve", "internal/rerank", "internal/role", "llm", "provider"}, // a program
	"provider":             {"llm", "ground"},                                                                    // provider/embedded also provider/local
	"provider/redis":       {"llm", "limit"},
	"internal/models":      {},
	"scripts":              {},
	"scripts/joint":        {"audit", "internal/queue", "limit", "store"}, // a program
	"scripts/load":         {"engine", "identity", "server"},              // a program
	"scripts/scale":        {"engine", "store"},                           // a program
	"standalone":           {"engine", "parse", "provider"},
	"cmd/assay":            {"standalone", "parse", "internal/chunk", "llm", "ground", "internal/models", "provider", "provider/redis", "internal/retrieve", "engine", "internal/queue", "internal/index", "eval", "internal/ingest", "internal/parseworker", "source", "store", "strategy", "run", "role", "internal/role", "internal/stats", "identity", "audit", "backup", "store/move", "limit", "review", "webhook", "governance", "server", "mcpserver", "ui", "telemetry", "client"},
	"eval/parsing":         {"parse"}, // a program

	"internal/index/indextest/quality": {"internal/index", "internal/retrieve", "eval", "llm", "provider"}, // for tests
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

// nameable lists the packages whose exported declarations users can write down in full.
var nameable = []string{".", "audit", "client", "engine", "governance", "identity", "llm", "parse", "run", "source", "standalone", "store", "store/postgres", "store/sqlite", "strategy", "telemetry", "webhook"}

// TestExportedTypes checks that no exported declaration of these packages mentions a type of an
// internal package. Aliases of such types are allowed.
func TestExportedTypes(t *testing.T) {
	err := eachSource(func(file string) error {
		if !slices.Contains(nameable, filepath.ToSlash(filepath.Dir(file))) {
			return nil
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, file, nil, 0)
		if err != nil {
			return err
		}
		hidden := map[string]bool{} // names of imported internal packages
		for _, imp := range f.Imports {
			p, _ := strconv.Unquote(imp.Path.Value)
			if strings.Contains(p, "/internal/") {
				hidden[importName(imp, p)] = true
			}
		}
		for _, decl := range f.Decls {
			for _, exported := range exportedTypes(decl) {
				ast.Inspect(exported, func(n ast.Node) bool {
					s, ok := n.(*ast.SelectorExpr)
					if !ok {
						return true
					}
					if pkg, ok := s.X.(*ast.Ident); ok && hidden[pkg.Name] {
						t.Errorf("%s: %s.%s cannot be named by users", files.Position(s.Pos()), pkg.Name, s.Sel.Name)
					}
					return false
				})
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func importName(imp *ast.ImportSpec, importPath string) string {
	if imp.Name != nil {
		return imp.Name.Name
	}
	return path.Base(importPath)
}

// exportedTypes returns the types that an exported declaration shows: parameters and results,
// exported fields, methods of interfaces, and the declared types of variables.
func exportedTypes(decl ast.Decl) (types []ast.Node) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && (d.Recv == nil || exportedReceiver(d.Recv)) {
			types = append(types, d.Type)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() && !s.Assign.IsValid() {
					types = append(types, shownType(s.Type)...)
				}
			case *ast.ValueSpec:
				if s.Names[0].IsExported() && s.Type != nil {
					types = append(types, s.Type)
				}
			}
		}
	}
	return types
}

func exportedReceiver(recv *ast.FieldList) bool {
	t := recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if generic, ok := t.(*ast.IndexExpr); ok {
		t = generic.X
	}
	name, ok := t.(*ast.Ident)
	return ok && name.IsExported()
}

// shownType returns the parts of a type that documentation shows.
func shownType(t ast.Expr) []ast.Node {
	s, ok := t.(*ast.StructType)
	if !ok {
		return []ast.Node{t}
	}
	var shown []ast.Node
	for _, f := range s.Fields.List {
		embedded := len(f.Names) == 0
		if embedded || slices.ContainsFunc(f.Names, (*ast.Ident).IsExported) {
			shown = append(shown, f.Type)
		}
	}
	return shown
}

// TestExamples checks that each public package has an example whose output is checked.
func TestExamples(t *testing.T) {
	for _, dir := range []string{".", "audit", "client", "engine", "eval", "governance", "ground", "identity", "llm", "parse", "provider/local", "role", "run", "source", "standalone", "store", "strategy", "webhook"} {
		files, err := filepath.Glob(filepath.Join(dir, "example*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		checked := 0
		for _, file := range files {
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range doc.Examples(f) {
				if e.Output == "" {
					t.Errorf("%s: Example%s has no output", file, e.Name)
					continue
				}
				checked++
			}
		}
		if checked == 0 {
			t.Errorf("package %s has no example", dir)
		}
	}
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
