package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/doc"
	"go/format"
	"go/parser"
	"go/token"
	"hash/fnv"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/assay-rag/assay/eval/testset"
)

// bounds limit a set.
type bounds struct {
	passages, queries int // at most
	half              int // 0 or 1: which half of the tree's packages
}

// Limits on a declaration, in bytes of its source without comments. Shorter declarations have no
// searchable content, and longer ones would be several passages in any real collection.
const (
	minBytes = 80
	maxBytes = 4000
	minWords = 5 // of a query
)

// A declaration is a function or type with its doc comment.
type declaration struct {
	id, text, query string
}

// readGo reads the non-test files of a tree of Go packages.
func readGo(name string, root fs.FS, b bounds) (testset.Set, error) {
	var all []declaration
	err := fs.WalkDir(root, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if skipped(d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") || hash(path.Dir(file))%2 != uint64(b.half) {
			return nil
		}
		source, err := fs.ReadFile(root, file)
		if err != nil {
			return err
		}
		declared, err := declarations(file, source)
		all = append(all, declared...)
		return err
	})
	if err != nil {
		return testset.Set{}, fmt.Errorf("read Go packages: %w", err)
	}
	return newSet(name, all, b), nil
}

func skipped(dir string) bool {
	return dir == "testdata" || dir == "vendor" || dir != "." && strings.HasPrefix(dir, ".")
}

// declarations returns the functions and types of one file whose doc comment yields a query.
func declarations(file string, source []byte) ([]declaration, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, source, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	if ast.IsGenerated(f) {
		return nil, nil
	}
	var all []declaration
	for _, d := range f.Decls {
		name, comment := documented(d)
		query := queryOf(comment, name)
		if query == "" {
			continue
		}
		text, err := bare(fset, d, source)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", file, name, err)
		}
		if len(text) < minBytes || len(text) > maxBytes {
			continue
		}
		all = append(all, declaration{id: file + ":" + name, text: text, query: query})
	}
	return all, nil
}

// documented returns the name and doc comment of a function, or of a declaration of one type. For
// other declarations the comment is empty.
func documented(d ast.Decl) (name, comment string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		return d.Name.Name, d.Doc.Text()
	case *ast.GenDecl:
		if d.Tok == token.TYPE && len(d.Specs) == 1 {
			return d.Specs[0].(*ast.TypeSpec).Name.Name, d.Doc.Text()
		}
	}
	return "", ""
}

// queryOf returns the first sentence of a doc comment without the declared name. It returns "" if
// the sentence has too few words or marks a deprecation.
func queryOf(comment, name string) string {
	sentence := new(doc.Package).Synopsis(comment)
	if strings.HasPrefix(sentence, "Deprecated:") {
		return ""
	}
	words := slices.DeleteFunc(strings.Fields(sentence), func(w string) bool {
		return strings.EqualFold(strings.Trim(w, ".,:;()[]'\""), name)
	})
	if len(words) < minWords {
		return ""
	}
	return strings.Join(words, " ")
}

// bare returns a declaration's formatted source without its comments.
func bare(fset *token.FileSet, d ast.Decl, source []byte) (string, error) {
	file := fset.File(d.Pos())
	start, end := file.Offset(declStart(d)), file.Offset(d.End())
	// Parse the text without comments, so that none is printed.
	text := append([]byte("package p\n"), source[start:end]...)
	again := token.NewFileSet()
	f, err := parser.ParseFile(again, "", text, parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	if err := format.Node(&b, again, f.Decls[0]); err != nil {
		return "", err
	}
	return b.String(), nil
}

// declStart returns the position of a declaration after its doc comment.
func declStart(d ast.Decl) token.Pos {
	switch d := d.(type) {
	case *ast.FuncDecl:
		return d.Type.Pos()
	case *ast.GenDecl:
		return d.TokPos
	}
	return d.Pos()
}

func hash(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}

// newSet selects the passages and the queries by the hashes of their IDs, so that the same tree
// gives the same set.
func newSet(name string, all []declaration, b bounds) testset.Set {
	all = distinct(all)
	slices.SortFunc(all, func(x, y declaration) int {
		return cmp.Or(cmp.Compare(hash(x.id), hash(y.id)), cmp.Compare(x.id, y.id))
	})
	all = all[:min(len(all), b.passages)]
	set := testset.Set{Name: name}
	for i, d := range all {
		set.Passages = append(set.Passages, testset.Passage{ID: d.id, Text: d.text})
		if i < b.queries {
			set.Queries = append(set.Queries, testset.Query{ID: d.id, Text: d.query, Relevant: map[string]int{d.id: 1}})
		}
	}
	return set
}

// distinct keeps the first of the declarations that share an ID, text or query, since judgements
// could not distinguish them.
func distinct(all []declaration) []declaration {
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(d declaration) bool {
		keys := []string{"id " + d.id, "text " + d.text, "query " + strings.ToLower(d.query)}
		again := slices.ContainsFunc(keys, func(k string) bool { return seen[k] })
		for _, k := range keys {
			seen[k] = true
		}
		return again
	})
}
