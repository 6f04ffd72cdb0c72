package client_test

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

const module = "github.com/assay-rag/assay"

// types are the types that the client declares: those of the module outside of package assay.
type types struct {
	names map[reflect.Type]string // "" until name is called
	taken map[string]bool         // names of types and constants
}

func newTypes() *types { return &types{names: map[reflect.Type]string{}} }

// fieldsOf yields the exported fields of a struct.
func fieldsOf(t reflect.Type) iter.Seq[reflect.StructField] {
	return func(yield func(reflect.StructField) bool) {
		if t == nil || t.Kind() != reflect.Struct {
			return
		}
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && f.Tag.Get("json") != "-" && !yield(f) {
				return
			}
		}
	}
}

// ours reports whether the client declares a type with a name.
func ours(t reflect.Type) bool {
	return t.Name() != "" && strings.HasPrefix(t.PkgPath(), module+"/")
}

// opaque reports whether the JSON form of a type outside of Go and package assay is its own.
func opaque(t reflect.Type) bool {
	domain, _, _ := strings.Cut(t.PkgPath(), "/")
	outside := strings.Contains(domain, ".") && t.PkgPath() != module
	return outside && t.Name() != "" && implements[json.Marshaler](t)
}

// opaqueSource returns how Go writes a type whose JSON form is its own: as a string if its zero value
// is one.
func opaqueSource(t reflect.Type) string {
	data, err := json.Marshal(reflect.New(t).Interface())
	if err == nil && len(data) > 0 && data[0] == '"' {
		return "string"
	}
	return "json.RawMessage"
}

func implements[I any](t reflect.Type) bool {
	i := reflect.TypeFor[I]()
	return t.Implements(i) || reflect.PointerTo(t).Implements(i)
}

// use adds a type and those that it consists of.
func (s *types) use(t reflect.Type) {
	if _, known := s.names[t]; known || opaque(t) {
		return
	}
	if ours(t) {
		s.names[t] = ""
		if implements[encoding.TextMarshaler](t) {
			return
		}
	} else if t.Name() != "" {
		return // of Go or of package assay
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		s.use(t.Elem())
	case reflect.Map:
		s.use(t.Key())
		s.use(t.Elem())
	case reflect.Struct:
		for f := range fieldsOf(t) {
			s.use(f.Type)
		}
	}
}

// name gives each type its name. Types of the same name, and those that are called like something
// written by hand, have their package's before it.
func (s *types) name() error {
	taken, err := handwritten()
	if err != nil {
		return err
	}
	s.taken = taken
	for t := range s.names {
		s.names[t] = plainName(t)
	}
	for {
		users := map[string][]reflect.Type{}
		for t, name := range s.names {
			users[name] = append(users[name], t)
		}
		changed := 0
		for name, list := range users {
			if len(list) == 1 && !taken[name] {
				continue
			}
			for _, t := range list {
				if s.names[t] == plainName(t) {
					s.names[t] = packagePrefix(t) + name
					changed++
				}
			}
		}
		if changed == 0 {
			return s.take(users)
		}
	}
}

// take marks the names of types as taken.
func (s *types) take(users map[string][]reflect.Type) error {
	for name, list := range users {
		if len(list) > 1 || s.taken[name] {
			return fmt.Errorf("%d types %s", len(list), name)
		}
		s.taken[name] = true
	}
	return nil
}

// packagePrefix returns the name of a type's package with a capital letter.
func packagePrefix(t reflect.Type) string {
	pkg := t.PkgPath()[strings.LastIndexByte(t.PkgPath(), '/')+1:]
	return strings.ToUpper(pkg[:1]) + pkg[1:]
}

// plainName returns the name of a type without its package: ListOfRun for list[engine.Run].
func plainName(t reflect.Type) string {
	base, argument, generic := strings.Cut(t.Name(), "[")
	name := strings.ToUpper(base[:1]) + base[1:]
	if !generic {
		return name
	}
	argument = strings.TrimSuffix(argument, "]")
	argument = argument[strings.LastIndexAny(argument, "./]*")+1:]
	return name + "Of" + strings.ToUpper(argument[:1]) + argument[1:]
}

// handwritten returns the names that the files written by hand declare.
func handwritten() (map[string]bool, error) {
	names := map[string]bool{}
	files, err := filepath.Glob("*.go")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if file == methodsFile || file == typesFile || strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range f.Decls {
			declared(d, names)
		}
	}
	return names, nil
}

// declared adds the names that a declaration of a package declares.
func declared(d ast.Decl, names map[string]bool) {
	if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
		names[f.Name.Name] = true
	}
	g, ok := d.(*ast.GenDecl)
	if !ok {
		return
	}
	for _, spec := range g.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			names[spec.Name.Name] = true
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				names[name.Name] = true
			}
		}
	}
}

// source returns how Go writes a type in the client.
func (s *types) source(t reflect.Type) string {
	if opaque(t) {
		return opaqueSource(t)
	}
	if name, ok := s.names[t]; ok {
		return name
	}
	switch {
	case t.PkgPath() == module:
		return "assay." + t.Name()
	case t.Name() != "" && t.PkgPath() == "":
		return t.Name()
	case t.Name() != "":
		return t.String()
	}
	return s.composite(t)
}

// composite returns how Go writes a type without a name.
func (s *types) composite(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		if opaque(t.Elem()) && opaqueSource(t.Elem()) != "string" {
			return s.source(t.Elem()) // null is a value of it
		}
		return "*" + s.source(t.Elem())
	case reflect.Slice:
		return "[]" + s.source(t.Elem())
	case reflect.Array:
		return fmt.Sprintf("[%d]%s", t.Len(), s.source(t.Elem()))
	case reflect.Map:
		return "map[" + s.source(t.Key()) + "]" + s.source(t.Elem())
	case reflect.Struct:
		var out bytes.Buffer
		s.writeStruct(&out, t)
		return out.String()
	}
	return "any"
}

// write writes the declarations, sorted by name.
func (s *types) write(out *bytes.Buffer) {
	sorted := slices.SortedFunc(maps.Keys(s.names), func(a, b reflect.Type) int { return strings.Compare(s.names[a], s.names[b]) })
	for _, t := range sorted {
		name, docs := s.names[t], docsOf(t)
		writeComment(out, renamed(docs.text, t, name))
		fmt.Fprintf(out, "type %s ", name)
		switch {
		case implements[encoding.TextMarshaler](t):
			out.WriteString("string")
		case t.Kind() == reflect.Struct:
			s.writeStruct(out, t)
		case t.Kind() == reflect.Interface || t.Kind() == reflect.Func:
			out.WriteString("any")
		case t.Kind() == reflect.Slice || t.Kind() == reflect.Map || t.Kind() == reflect.Array:
			out.WriteString(s.composite(t))
		default:
			out.WriteString(t.Kind().String())
		}
		out.WriteString("\n\n")
		s.writeConstants(out, name, docs.constants)
	}
}

// renamed returns a comment about a type with its name in the client.
func renamed(doc string, t reflect.Type, name string) string {
	base, _, _ := strings.Cut(t.Name(), "[")
	for _, article := range []string{"", "A ", "An ", "The "} {
		if rest, ok := strings.CutPrefix(doc, article+base+" "); ok {
			return article + name + " " + rest
		}
	}
	return doc
}

func (s *types) writeStruct(out *bytes.Buffer, t reflect.Type) {
	docs := docsOf(t)
	out.WriteString("struct {\n")
	for f := range fieldsOf(t) {
		tag := ""
		if text, ok := f.Tag.Lookup("json"); ok {
			tag = fmt.Sprintf("`json:%q`", text)
		}
		name := f.Name
		if f.Anonymous {
			name = ""
		}
		writeField(out, name, s.source(f.Type), tag, docs.fields[f.Name])
	}
	out.WriteString("}")
}

// writeField writes a field with its comments.
func writeField(out *bytes.Buffer, name, source, tag string, doc fieldDoc) {
	if doc.before != "" {
		out.WriteString("\n")
		writeComment(out, doc.before)
	}
	if doc.after != "" {
		tag += " // " + strings.ReplaceAll(doc.after, "\n", " ")
	}
	fmt.Fprintf(out, "%s %s %s\n", name, source, tag)
}

func writeComment(out *bytes.Buffer, doc string) {
	for line := range strings.Lines(doc) {
		out.WriteString(strings.TrimRight("// "+strings.TrimRight(line, "\n"), " ") + "\n")
	}
}

// A constant is one value of a type.
type constant struct {
	name, value string
	doc         fieldDoc
}

// writeConstants writes the values of a type. One that is called like something else has the name of
// the type before it.
func (s *types) writeConstants(out *bytes.Buffer, name string, constants []constant) {
	if len(constants) == 0 {
		return
	}
	fmt.Fprintf(out, "// Values of %s.\nconst (\n", name)
	for _, c := range constants {
		if s.taken[c.name] {
			c.name = name + c.name
		}
		s.taken[c.name] = true
		writeField(out, c.name, name, "= "+c.value, c.doc)
	}
	out.WriteString(")\n\n")
}

// A fieldDoc has the comments before a field or a constant, and after it.
type fieldDoc struct{ before, after string }

// A typeDoc is what the source of a type says about it.
type typeDoc struct {
	text      string
	fields    map[string]fieldDoc
	constants []constant
}

// docsOf returns the comments on a type of the module and on its fields; empty for others.
func docsOf(t reflect.Type) typeDoc {
	base, _, _ := strings.Cut(t.Name(), "[")
	if base == "" || !strings.HasPrefix(t.PkgPath(), module+"/") {
		return typeDoc{}
	}
	d := typeDoc{fields: map[string]fieldDoc{}}
	for _, f := range parsed(filepath.Join("..", filepath.FromSlash(strings.TrimPrefix(t.PkgPath(), module+"/")))) {
		for _, decl := range f.Decls {
			if g, ok := decl.(*ast.GenDecl); ok {
				d.read(g, base)
			}
		}
	}
	return d
}

// read reads a declaration, which may be about the type.
func (d *typeDoc) read(g *ast.GenDecl, name string) {
	for _, spec := range g.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Name.Name == name {
				d.text = commentOf(spec.Doc, g.Doc)
				d.readFields(spec)
			}
		case *ast.ValueSpec:
			id, typed := spec.Type.(*ast.Ident)
			if g.Tok != token.CONST || !typed || id.Name != name || len(spec.Values) != 1 {
				continue
			}
			if value, ok := spec.Values[0].(*ast.BasicLit); ok && spec.Names[0].IsExported() {
				d.constants = append(d.constants, constant{spec.Names[0].Name, value.Value, fieldDoc{commentOf(spec.Doc), commentOf(spec.Comment)}})
			}
		}
	}
}

func (d *typeDoc) readFields(spec *ast.TypeSpec) {
	s, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, f := range s.Fields.List {
		for _, name := range f.Names {
			d.fields[name.Name] = fieldDoc{commentOf(f.Doc), commentOf(f.Comment)}
		}
	}
}

func commentOf(groups ...*ast.CommentGroup) string {
	for _, g := range groups {
		if text := strings.TrimSpace(g.Text()); text != "" {
			return text
		}
	}
	return ""
}

var parsedFolders = map[string][]*ast.File{}

// parsed returns the files of a package's folder without tests.
func parsed(dir string) []*ast.File {
	if files, ok := parsedFolders[dir]; ok {
		return files
	}
	entries, err := fs.ReadDir(os.DirFS(dir), ".")
	if err != nil {
		panic(err) // the package is part of this test
	}
	var files []*ast.File
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, e.Name()), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			panic(err)
		}
		files = append(files, f)
	}
	parsedFolders[dir] = files
	return files
}
