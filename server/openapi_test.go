package server

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"
)

var (
	update   = flag.Bool("update", false, "write testdata and the tables in docs")
	breaking = flag.Bool("breaking", false, "with -update: allow a change of testdata/openapi.json that breaks clients")
)

const modulePath = "github.com/assay-rag/assay"

// TestTypeDocs checks that testdata/types.json has the documentation in the sources of the types of
// routes.
func TestTypeDocs(t *testing.T) {
	t.Parallel()
	want := documentationOf(t, Routes())
	const file = "testdata/types.json"
	if *update {
		writeJSON(t, file, want)
		return
	}
	docs, err := readTypeDocs()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, docs); diff != "" {
		t.Errorf("%s differs; run go test ./server -run TestTypeDocs -update (-want +got):\n%.3000s", file, diff)
	}
}

func writeJSON(t *testing.T, file string, v any) {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// documentationOf reads the documentation of the types that routes use.
func documentationOf(t *testing.T, routes []Route) map[string]typeDoc {
	t.Helper()
	sources := map[string]map[string]typeDoc{} // by import path and type
	docs := map[string]typeDoc{}
	seen := map[reflect.Type]bool{}
	var visit func(reflect.Type)
	visit = func(of reflect.Type) {
		if of == nil || seen[of] {
			return
		}
		seen[of] = true
		if strings.HasPrefix(of.PkgPath(), modulePath) && of.Name() != "" {
			if sources[of.PkgPath()] == nil {
				sources[of.PkgPath()] = readPackage(t, of.PkgPath())
			}
			if doc := sources[of.PkgPath()][of.Name()]; !reflect.ValueOf(doc).IsZero() {
				docs[docName(of)] = doc
			}
		}
		switch of.Kind() {
		case reflect.Struct:
			if _, ok := known()[of]; ok {
				return
			}
			for i := range of.NumField() {
				visit(of.Field(i).Type)
			}
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			visit(of.Elem())
		}
	}
	visit(reflect.TypeFor[Problem]())
	visit(reflect.TypeFor[Accepted]())
	for _, r := range routes {
		visit(r.In)
		visit(r.Out)
		for _, event := range eventTypes(r) {
			visit(event)
		}
	}
	addForeignValues(t, docs)
	return docs
}

// addForeignValues adds the constants of string types that other packages declare.
func addForeignValues(t *testing.T, docs map[string]typeDoc) {
	t.Helper()
	err := filepath.WalkDir("..", func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil || !foreignConstant.Match(data) {
			return err
		}
		for _, m := range foreignConstant.FindAllStringSubmatch(string(data), -1) {
			for of, doc := range docs {
				if len(doc.Values) > 0 && strings.HasSuffix(of, "/"+m[1]) && !slices.Contains(doc.Values, m[2]) {
					doc.Values = append(doc.Values, m[2])
					docs[of] = doc
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// foreignConstant matches the declaration of a constant of another package's type.
var foreignConstant = regexp.MustCompile(`(?m)^(?:\t|const )[A-Za-z]\w* +([a-z]\w*\.[A-Z]\w*) += "([^"]*)"`)

// readPackage reads the documentation of the types of a package of the module.
func readPackage(t *testing.T, pkgPath string) map[string]typeDoc {
	t.Helper()
	dir := filepath.Join("..", strings.TrimPrefix(strings.TrimPrefix(pkgPath, modulePath), "/"))
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	docs := map[string]typeDoc{}
	files := token.NewFileSet()
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(files, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range f.Decls {
			if d, ok := decl.(*ast.GenDecl); ok {
				readDeclaration(d, docs)
			}
		}
	}
	return docs
}

// readDeclaration adds the types and constants of a declaration.
func readDeclaration(d *ast.GenDecl, docs map[string]typeDoc) {
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			doc := docs[s.Name.Name]
			doc.Text = plainDoc(s.Doc, s.Comment)
			if !d.Lparen.IsValid() {
				doc.Text = plainDoc(d.Doc, s.Doc, s.Comment)
			}
			if st, ok := s.Type.(*ast.StructType); ok {
				doc.Fields = fieldDocs(st)
			}
			docs[s.Name.Name] = doc
		case *ast.ValueSpec:
			of, named := s.Type.(*ast.Ident)
			if d.Tok != token.CONST || !named || !ast.IsExported(of.Name) {
				continue
			}
			for _, value := range s.Values {
				if literal, ok := value.(*ast.BasicLit); ok && literal.Kind == token.STRING {
					doc := docs[of.Name]
					doc.Values = append(doc.Values, strings.Trim(literal.Value, "`\""))
					docs[of.Name] = doc
				}
			}
		}
	}
}

func fieldDocs(st *ast.StructType) map[string]string {
	fields := map[string]string{}
	for _, f := range st.Fields.List {
		text := plainDoc(f.Doc, f.Comment)
		for _, name := range f.Names {
			if name.IsExported() && text != "" {
				fields[name.Name] = text
			}
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return fields
}

// plainDoc joins comments to one line of text.
func plainDoc(groups ...*ast.CommentGroup) string {
	var parts []string
	for _, g := range groups {
		if text := strings.Join(strings.Fields(g.Text()), " "); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, " ")
}

// loadDocument loads a document with kin-openapi and validates it.
func loadDocument(t testing.TB, closed bool) *openapi3.T {
	t.Helper()
	d, err := describe(Routes(), closed)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := openapi3.NewLoader().LoadFromData(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := loaded.Validate(t.Context()); err != nil {
		t.Fatalf("the document is invalid: %v", err)
	}
	return loaded
}

// TestOpenAPI validates the document and compares it with the committed one.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	d := loadDocument(t, false)
	if d.OpenAPI != "3.1.1" {
		t.Errorf("version %s", d.OpenAPI)
	}
	for _, r := range Routes() {
		item := d.Paths.Value(plainPath(r.Path))
		if item == nil || item.GetOperation(r.Method) == nil {
			t.Errorf("%s %s is not in the document", r.Method, r.Path)
		}
	}
	checkReferences(t, d)
	document, err := describe(Routes(), false)
	if err != nil {
		t.Fatal(err)
	}
	checkCommitted(t, document)
}

// checkReferences checks that each component is used.
func checkReferences(t *testing.T, d *openapi3.T) {
	t.Helper()
	data, err := d.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		if !bytes.Contains(data, []byte(`"#/components/schemas/`+name+`"`)) {
			t.Errorf("nothing refers to the component %s", name)
		}
	}
}

// TestRedocly lints the document with the tool of npm, if it can be had.
func TestRedocly(t *testing.T) {
	if testing.Short() {
		t.Skip("lints with npm: not in -short")
	}
	t.Parallel()
	data, err := os.ReadFile("testdata/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "openapi.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "../scripts/redocly", file).CombinedOutput()
	if exit, ok := err.(*exec.ExitError); ok && exit.ExitCode() == 3 {
		t.Skipf("Redocly cannot be had: %s", out)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
