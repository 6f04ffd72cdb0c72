package parse

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// A testPackage is the parts of a package by name. Content types and relationships are made from the
// names: each part is related to the main part, with its name without the extension as the ID, unless
// the map has the relationships.
type testPackage map[string]string

var testKinds = map[string]string{
	"word/document.xml":    "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml",
	"ppt/presentation.xml": "application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml",
	"xl/workbook.xml":      "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml",
}

// bytes returns the package as a ZIP file.
func (p testPackage) bytes(t testing.TB) []byte {
	t.Helper()
	var main string
	for name := range testKinds {
		if _, ok := p[name]; ok {
			main = name
		}
	}
	folder, file, _ := strings.Cut(main, "/")
	parts := map[string]string{
		"[Content_Types].xml": `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="xml" ContentType="application/xml"/>` +
			`<Override PartName="/` + main + `" ContentType="` + testKinds[main] + `"/></Types>`,
		"_rels/.rels": relationships(map[string]string{"officeDocument": main, "core-properties": "docProps/core.xml"}, ""),
	}
	related := map[string]string{}
	for name := range p {
		if name != main && strings.HasPrefix(name, folder+"/") && strings.Count(name, "/") == 1 {
			related[strings.TrimSuffix(strings.TrimPrefix(name, folder+"/"), ".xml")] = "/" + name
		}
	}
	parts[folder+"/_rels/"+file+".rels"] = relationships(related, "")
	for name, text := range p {
		parts[name] = text
	}
	return zipped(t, parts)
}

// relationships returns a part of relationships whose IDs are their types, without digits at the end.
func relationships(targets map[string]string, more string) string {
	var out strings.Builder
	out.WriteString(`<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">`)
	ids := []string{}
	for id := range targets {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		fmt.Fprintf(&out, `<Relationship Id="%s" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/%s" Target="%s"/>`,
			id, strings.TrimRight(id, "0123456789"), targets[id])
	}
	return out.String() + more + `</Relationships>`
}

// zipped returns a ZIP file.
func zipped(t testing.TB, parts map[string]string) []byte {
	t.Helper()
	names := []string{}
	for name := range parts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { // the content types first
		return cmp.Or(cmp.Compare(strings.Count(b, "["), strings.Count(a, "[")), cmp.Compare(a, b))
	})
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for _, name := range names {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: time.Time{}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(parts[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

const testSpaces = ` xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"` +
	` xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"` +
	` xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"` +
	` xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing" xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"` +
	` xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" xmlns:w14="http://schemas.microsoft.com/office/word/2010/wordml"` +
	` xmlns:v="urn:schemas-microsoft-com:vml" xmlns:o="urn:schemas-microsoft-com:office:office" xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram"` +
	` xmlns:xdr="http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing"`

// element returns an element with the usual namespaces.
func element(name, inner string) string {
	return "<" + name + testSpaces + ">" + inner + "</" + name + ">"
}

// docx returns a document with a body, and other parts.
func docx(t testing.TB, body string, parts testPackage) []byte {
	t.Helper()
	all := testPackage{"word/document.xml": element("w:document", "<w:body>"+body+"</w:body>")}
	for name, text := range parts {
		all[name] = text
	}
	return all.bytes(t)
}

// blockLines returns the blocks of a document, a line for each: the kind, the level and the text.
func blockLines(doc Document) string {
	var out strings.Builder
	for _, b := range doc.Blocks {
		fmt.Fprintf(&out, "%s", b.Kind)
		if b.Level > 0 {
			fmt.Fprintf(&out, " %d", b.Level)
		}
		fmt.Fprintf(&out, ": %s\n", strings.ReplaceAll(doc.Text[b.Start:b.End], "\n", "⏎"))
	}
	return out.String()
}

func parseOffice(t testing.TB, name string, data []byte) Document {
	t.Helper()
	doc, err := Parse(context.Background(), Input{Name: name, Data: data})
	if err != nil {
		t.Fatal(err)
	}
	checkOffice(t, doc)
	return doc
}
