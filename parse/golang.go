package parse

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// parseGo parses a Go file. The package and each declaration get a heading; the section contains
// the doc comment as prose, followed by the code. Doc comments inside exported types and inside
// groups of constants and variables are prose too, each before the lines that it documents.
func parseGo(src *source, b *builder) bool {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, src.name, src.text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return false
	}
	g := &goFile{src: src, b: b, file: fset.File(f.FileStart), comments: f.Comments, label: "package " + f.Name.Name}
	b.title = g.label
	if src.name != "" {
		b.title += " (" + src.name + ")"
	}
	g.packageClause(f)
	for _, d := range f.Decls {
		if !g.isImport(d) {
			g.decl(d)
		}
	}
	g.floating(f.FileEnd)
	return true
}

// A goFile writes the parts of one file in order.
type goFile struct {
	src      *source
	b        *builder
	file     *token.File
	comments []*ast.CommentGroup // not yet processed
	label    string              // "package http"
}

func (g *goFile) offset(p token.Pos) int { return g.file.Offset(p) }
func (g *goFile) line(p token.Pos) int   { return g.src.line(g.offset(p)) }

func (g *goFile) isImport(d ast.Decl) bool {
	gen, ok := d.(*ast.GenDecl)
	return ok && gen.Tok == token.IMPORT
}

// packageClause writes the package's doc comment and the package clause with the imports. The text
// above them, such as a licence and build constraints, follows as code.
func (g *goFile) packageClause(f *ast.File) {
	g.b.heading(1, g.label, g.line(f.Package))
	g.doc(f.Doc)
	end := f.Name.End()
	for _, d := range f.Decls {
		if g.isImport(d) {
			end = d.End()
		}
	}
	g.code(f.Package, end)
	for len(g.comments) > 0 && g.comments[0].Pos() < end {
		if c := g.comments[0]; c.Pos() < f.Package && c != f.Doc {
			g.code(c.Pos(), c.End())
		}
		g.comments = g.comments[1:]
	}
}

// decl writes one declaration, preceded by the free-standing comments before it.
func (g *goFile) decl(d ast.Decl) {
	var doc *ast.CommentGroup
	switch d := d.(type) {
	case *ast.FuncDecl:
		doc = d.Doc
	case *ast.GenDecl:
		doc = d.Doc
	}
	from := d.Pos()
	if doc != nil {
		from = doc.Pos()
	}
	g.floating(from)
	switch d := d.(type) {
	case *ast.FuncDecl:
		g.b.heading(1, funcLabel(d), g.line(d.Name.Pos()))
		g.function(d)
	case *ast.GenDecl:
		g.b.heading(1, genLabel(d), g.line(d.Pos()))
		g.general(d)
	default: // ParseFile returns no BadDecl without an error
		g.code(d.Pos(), d.End())
	}
	end := g.lineEnd(g.offset(d.End()))
	for len(g.comments) > 0 && g.offset(g.comments[0].Pos()) < end {
		g.comments = g.comments[1:]
	}
}

// floating writes the comments before pos that belong to no declaration as prose under the
// package's heading.
func (g *goFile) floating(pos token.Pos) {
	for len(g.comments) > 0 && g.comments[0].Pos() < pos {
		c := g.comments[0]
		g.comments = g.comments[1:]
		g.b.heading(1, g.label, g.line(c.Pos()))
		g.doc(c)
	}
}

// funcLabel returns the heading of a function or method: "func (*Server) Shutdown".
func funcLabel(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return "func " + d.Name.Name
	}
	return "func (" + receiver(d.Recv.List[0].Type) + ") " + d.Name.Name
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return "*" + receiver(e.X)
	case *ast.ParenExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X) + "[" + receiver(e.Index) + "]"
	case *ast.IndexListExpr:
		args := make([]string, len(e.Indices))
		for i, x := range e.Indices {
			args[i] = receiver(x)
		}
		return receiver(e.X) + "[" + strings.Join(args, ", ") + "]"
	case *ast.Ident:
		return e.Name
	}
	return "…"
}

// genLabel returns the heading of a declaration, for example "type Server", or of a group, for
// example "const MethodGet, MethodHead, MethodPost, …".
func genLabel(d *ast.GenDecl) string {
	const most = 3
	var names []string
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			names = append(names, s.Name.Name)
		case *ast.ValueSpec:
			for _, n := range s.Names {
				names = append(names, n.Name)
			}
		}
	}
	label := d.Tok.String()
	if len(names) > most {
		names = append(names[:most], "…")
	}
	if len(names) > 0 {
		label += " " + strings.Join(names, ", ")
	}
	return label
}

// longBody is the most lines of a function body that is kept in one block with its signature. The
// signature of a longer function is a separate block, so that it forms a chunk with the doc
// comment.
const longBody = 12

func (g *goFile) function(d *ast.FuncDecl) {
	from := g.docAndDirectives(d.Doc, d.Pos())
	open := 0 // end of the signature's line
	if d.Body != nil && g.line(d.Body.Rbrace)-g.line(d.Body.Lbrace) > longBody {
		open = g.lineEnd(g.offset(d.Body.Lbrace))
	}
	if open == 0 || open == g.offset(d.Body.Lbrace) {
		g.code(from, d.End())
		return
	}
	g.codeBytes(g.offset(from), open)
	g.b.beginTight(Code)
	g.putLines(open+1, g.lineEnd(g.offset(d.End())))
	g.b.end()
}

// general writes a type, const or var declaration. The doc comments of its members precede them as
// prose.
func (g *goFile) general(d *ast.GenDecl) {
	from := g.offset(g.docAndDirectives(d.Doc, d.Pos()))
	for _, doc := range memberDocs(d) {
		start := g.lineStart(g.offset(doc.Pos()))
		if start < from || !isBlank(g.src.text[start:g.offset(doc.Pos())]) {
			continue
		}
		g.codeBytes(from, start)
		g.doc(doc)
		from = g.lineEnd(g.offset(doc.End()))
	}
	g.codeBytes(from, g.lineEnd(g.offset(d.End())))
}

// memberDocs returns the doc comments in d that become prose: those of exported constants,
// variables and types in a group, and those of exported fields and methods of exported types.
func memberDocs(d *ast.GenDecl) []*ast.CommentGroup {
	var docs []*ast.CommentGroup
	add := func(doc *ast.CommentGroup, exported bool) {
		if doc != nil && exported {
			docs = append(docs, doc)
		}
	}
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.ValueSpec:
			add(s.Doc, ast.IsExported(s.Names[0].Name))
		case *ast.TypeSpec:
			add(s.Doc, true)
			if !ast.IsExported(s.Name.Name) {
				continue
			}
			var fields *ast.FieldList
			switch t := s.Type.(type) {
			case *ast.StructType:
				fields = t.Fields
			case *ast.InterfaceType:
				fields = t.Methods
			}
			if fields == nil {
				continue
			}
			for _, f := range fields.List {
				add(f.Doc, len(f.Names) == 0 || ast.IsExported(f.Names[0].Name))
			}
		}
	}
	return docs
}

// docAndDirectives writes a doc comment and returns the start of the code, which is decl or the
// directives ("//go:build …") at the end of the comment.
func (g *goFile) docAndDirectives(doc *ast.CommentGroup, decl token.Pos) token.Pos {
	if doc == nil {
		return decl
	}
	g.doc(doc)
	from := decl
	for i := len(doc.List) - 1; i >= 0 && isDirective(doc.List[i].Text); i-- {
		from = doc.List[i].Pos()
	}
	return from
}

// doc writes a comment as prose.
func (g *goFile) doc(c *ast.CommentGroup) {
	if c != nil {
		writeDoc(g.b, g.commentLines(c), 2)
	}
}

// commentLines returns the lines of a comment without markers and directives.
func (g *goFile) commentLines(group *ast.CommentGroup) []docLine {
	var lines []docLine
	for _, c := range group.List {
		line := g.line(c.Pos())
		if text, ok := strings.CutPrefix(c.Text, "//"); ok {
			if !isDirective(c.Text) {
				lines = append(lines, docLine{strings.TrimPrefix(text, " "), line})
			}
			continue
		}
		text := strings.TrimSuffix(strings.TrimPrefix(c.Text, "/*"), "*/")
		for i, s := range strings.Split(starless(text), "\n") {
			if i == 0 {
				s = strings.TrimLeft(s, " \t")
			}
			lines = append(lines, docLine{s, line + i})
		}
	}
	return lines
}

// starless removes the leading " * " of a comment's lines if all of them have it.
func starless(text string) string {
	lines := strings.Split(text, "\n")
	for _, l := range lines[1:] {
		if t := strings.TrimSpace(l); t != "" && t[0] != '*' {
			return text
		}
	}
	for i, l := range lines[1:] {
		l = strings.TrimPrefix(strings.TrimSpace(l), "*")
		lines[i+1] = strings.TrimPrefix(l, " ")
	}
	return strings.Join(lines, "\n")
}

// isDirective reports whether a comment is a directive for tools: "//go:embed", "//export",
// "//nolint:x".
func isDirective(comment string) bool {
	text, ok := strings.CutPrefix(comment, "//")
	if !ok || text == "" {
		return false
	}
	if strings.HasPrefix(text, "line ") || strings.HasPrefix(text, "export ") || strings.HasPrefix(text, "extern ") {
		return true
	}
	name, rest, ok := strings.Cut(text, ":")
	if !ok || name == "" || rest == "" || rest[0] == ' ' || rest[0] == '/' {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// code writes the source from one position to the end of the line of another.
func (g *goFile) code(from, to token.Pos) {
	g.codeBytes(g.offset(from), g.lineEnd(g.offset(to)))
}

// codeBytes writes the source in [from, to) without leading blank lines.
func (g *goFile) codeBytes(from, to int) {
	if from >= to {
		return
	}
	g.b.begin(Code)
	g.putLines(from, to)
	g.b.end()
}

// putLines puts the source in [from, to) without leading blank lines.
func (g *goFile) putLines(from, to int) {
	text := g.src.text[from:to]
	body := strings.TrimLeft(text, " \t\n")
	cut := strings.LastIndexByte(text[:len(text)-len(body)], '\n') + 1
	g.b.put(text[cut:], g.src.line(from+cut))
}

// lineStart returns the start of the source line that contains offset.
func (g *goFile) lineStart(offset int) int { return int(g.src.at[g.src.line(offset)-1]) }

// lineEnd returns the end of the source line that contains offset if only punctuation of the
// statement and a comment follow on it, and otherwise offset.
func (g *goFile) lineEnd(offset int) int {
	const near = 200 // bytes examined
	end := len(g.src.text)
	if line := g.src.line(offset); line < len(g.src.at) {
		end = int(g.src.at[line]) - 1
	}
	rest := strings.TrimLeft(g.src.text[offset:min(end, offset+near)], " \t;,)}{")
	if strings.HasPrefix(rest, "//") {
		return end
	}
	if end-offset <= near && (rest == "" || strings.HasPrefix(rest, "/*") && strings.Index(rest, "*/") == len(rest)-2) {
		return end
	}
	return offset
}
