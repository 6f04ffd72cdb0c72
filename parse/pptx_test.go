package parse

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
)

// slides returns a presentation of slides, given the content of their shape trees.
func slides(t testing.TB, trees []string, parts testPackage) []byte {
	t.Helper()
	all := testPackage{}
	var ids strings.Builder
	for i, tree := range trees {
		n := i + 1
		show := ""
		if rest, hidden := strings.CutPrefix(tree, "HIDDEN"); hidden {
			tree, show = rest, ` show="0"`
		}
		fmt.Fprintf(&ids, `<p:sldId r:id="slide%d"/>`, n)
		all[fmt.Sprintf("ppt/slide%d.xml", n)] = "<p:sld" + testSpaces + show + "><p:cSld><p:spTree>" + tree + "</p:spTree></p:cSld></p:sld>"
	}
	all["ppt/presentation.xml"] = element("p:presentation", `<p:sldIdLst>`+ids.String()+`</p:sldIdLst><p:sldSz cx="12700000" cy="6350000"/>`)
	for name, text := range parts {
		all[name] = text
	}
	return all.bytes(t)
}

// sp returns a shape of a kind of placeholder at a place in points.
func sp(kind string, x, y int, paras string) string {
	ph := ""
	if kind != "" {
		ph = `<p:ph type="` + kind + `" idx="1"/>`
	}
	return fmt.Sprintf(`<p:sp><p:nvSpPr><p:cNvPr id="1" name="x"/><p:nvPr>%s</p:nvPr></p:nvSpPr><p:spPr><a:xfrm><a:off x="%d" y="%d"/><a:ext cx="1270000" cy="127000"/></a:xfrm></p:spPr><p:txBody>%s</p:txBody></p:sp>`,
		ph, x*emu, y*emu, paras)
}

// ap returns a paragraph with properties.
func ap(props, text string) string {
	return "<a:p>" + props + "<a:r><a:t>" + text + "</a:t></a:r></a:p>"
}

func TestPPTX(t *testing.T) {
	numbered := `<a:pPr><a:buAutoNum type="arabicPeriod"/></a:pPr>`
	frame := func(inner string) string {
		return `<p:graphicFrame><p:nvGraphicFramePr><p:cNvPr id="3" name="t"/></p:nvGraphicFramePr><p:xfrm><a:off x="0" y="2540000"/><a:ext cx="127000" cy="127000"/></p:xfrm><a:graphic><a:graphicData>` + inner + `</a:graphicData></a:graphic></p:graphicFrame>`
	}
	trees := []string{
		sp("", 300, 200, ap("", "right")) + sp("", 0, 205, ap("", "left")) + sp("", 0, 100, ap("", "above")) + sp("title", 0, 400, ap("", "Title")) + sp("sldNum", 0, 0, ap("", "1")),
		sp("", 0, 0, ap(numbered, "one")+ap(numbered, "two")+ap(`<a:pPr lvl="1"><a:buChar char="•"/></a:pPr>`, "below")+ap(numbered, "three")+ap("", "plain")),
		frame(`<a:tbl><a:tblPr firstRow="1"/><a:tr><a:tc gridSpan="2"><a:txBody>` + ap("", "h") + `</a:txBody></a:tc><a:tc hMerge="1"/></a:tr><a:tr><a:tc><a:txBody>` + ap("", "a") + `</a:txBody></a:tc><a:tc><a:txBody>` + ap("", "b") + `</a:txBody></a:tc></a:tr></a:tbl>`),
		"HIDDEN" + `<p:grpSp><p:grpSpPr><a:xfrm><a:off x="1270000" y="0"/><a:ext cx="1270000" cy="1270000"/><a:chOff x="0" y="0"/><a:chExt cx="2540000" cy="2540000"/></a:xfrm></p:grpSpPr>` + sp("", 100, 100, ap("", "grouped")) + `</p:grpSp>`,
		`<p:pic><p:nvPicPr><p:cNvPr id="2" name="Picture 1"/></p:nvPicPr></p:pic>`,
	}
	notes := element("p:notes", `<p:cSld><p:spTree>`+sp("body", 0, 0, ap("", "say this"))+sp("sldNum", 0, 0, ap("", "2"))+`</p:spTree></p:cSld>`)
	data := slides(t, trees, testPackage{
		"ppt/_rels/slide2.xml.rels": relationships(map[string]string{"notesSlide": "/ppt/notes/n.xml", "comments": "/ppt/comments/c.xml"}, ""),
		"ppt/notes/n.xml":           notes,
		"ppt/comments/c.xml":        element("p:cmLst", `<p:cm authorId="7" dt="2026-01-01"><p:text>why?</p:text></p:cm>`),
		"ppt/commentAuthors.xml":    element("p:cmAuthorLst", `<p:cmAuthor id="7" name="Ann" initials="A"/>`),
	})
	doc := parseOffice(t, "a.pptx", data)
	want := "heading 1: Title\nparagraph: above\nparagraph: left\nparagraph: right\n" +
		"list_item 1: 1. one\nlist_item 1: 2. two\nlist_item 2:   - below\nlist_item 1: 3. three\nparagraph: plain\nparagraph: Notes: say this\nfootnote: [author: Ann (A), time: 2026-01-01]: why?\n" +
		"table_head: h\ntable_row: a | b\nparagraph: grouped\n"
	if diff := cmp.Diff(want, blockLines(doc)); diff != "" {
		t.Error(diff)
	}
	var outcomes []assay.PageOutcome
	for _, page := range doc.Pages {
		outcomes = append(outcomes, page.Outcome)
	}
	if diff := cmp.Diff([]assay.PageOutcome{"text", "text", "text", "text", "no_text"}, outcomes); diff != "" {
		t.Error(diff)
	}
	last := doc.Boxes[len(doc.Boxes)-1]
	if diff := cmp.Diff(assay.Box{Block: len(doc.Blocks) - 1, Page: 4, X0: 150, Y0: 50, X1: 200, Y1: 55}, last); diff != "" {
		t.Error(diff)
	}
	if got := doc.Metadata["hidden_slides"].List; len(got) != 1 || got[0] != "4" {
		t.Errorf("hidden slides %v", got)
	}
	if page := pageOf(doc, "plain"); page != 2 {
		t.Errorf("page %d", page)
	}
}

func pageOf(doc Document, text string) int {
	full := assay.Document{Text: doc.Text, Anchors: doc.Anchors}
	_, page := full.Position(strings.Index(doc.Text, text))
	return page
}

// TestPPTXInherited reads the place and bullets of a placeholder from its layout and master.
func TestPPTXInherited(t *testing.T) {
	bare := `<p:sp><p:nvSpPr><p:nvPr><p:ph idx="1"/></p:nvPr></p:nvSpPr><p:spPr/><p:txBody>` + ap("", "item") + `</p:txBody></p:sp>`
	data := slides(t, []string{bare}, testPackage{
		"ppt/_rels/slide1.xml.rels":    relationships(map[string]string{"slideLayout": "/ppt/layouts/l.xml"}, ""),
		"ppt/layouts/l.xml":            element("p:sldLayout", `<p:cSld><p:spTree>`+sp("body", 10, 20, ap("", "prompt"))+`</p:spTree></p:cSld>`),
		"ppt/layouts/_rels/l.xml.rels": relationships(map[string]string{"slideMaster": "/ppt/masters/m.xml"}, ""),
		"ppt/masters/m.xml":            element("p:sldMaster", `<p:txStyles><p:bodyStyle><a:lvl1pPr><a:buChar char="•"/></a:lvl1pPr></p:bodyStyle></p:txStyles>`),
	})
	doc := parseOffice(t, "a.pptx", data)
	if want := "list_item 1: - item\n"; blockLines(doc) != want {
		t.Errorf("%q", blockLines(doc))
	}
	if len(doc.Boxes) != 1 || doc.Boxes[0].X0 != 10 || doc.Boxes[0].Y0 != 20 {
		t.Errorf("%+v", doc.Boxes)
	}
}

// TestPPTXDamagedSlide reads the other slides.
func TestPPTXDamagedSlide(t *testing.T) {
	data := slides(t, []string{sp("", 0, 0, ap("", "good")), "<p:sp>"}, nil)
	doc := parseOffice(t, "a.pptx", data)
	if doc.Text != "good" || doc.Pages[1].Outcome != assay.PageFailed || doc.Pages[1].Detail == "" {
		t.Errorf("%q %+v", doc.Text, doc.Pages)
	}
}

func TestDiagram(t *testing.T) {
	dgm := func(id, kind, text string) string {
		return `<dgm:pt modelId="` + id + `" type="` + kind + `"><dgm:t>` + ap("", text) + `</dgm:t></dgm:pt>`
	}
	data := slides(t, []string{`<p:graphicFrame><a:graphic><a:graphicData><dgm:relIds r:dm="data1"/></a:graphicData></a:graphic></p:graphicFrame>`}, testPackage{
		"ppt/_rels/slide1.xml.rels": relationships(map[string]string{"data1": "/ppt/diagrams/d.xml"}, ""),
		"ppt/diagrams/d.xml": element("dgm:dataModel", `<dgm:ptLst>`+dgm("0", "doc", "")+dgm("1", "node", "top")+dgm("2", "node", "under")+dgm("3", "pres", "look")+
			`</dgm:ptLst><dgm:cxnLst><dgm:cxn srcId="0" destId="1"/><dgm:cxn srcId="1" destId="2"/><dgm:cxn srcId="2" destId="1"/></dgm:cxnLst>`),
	})
	if got, want := blockLines(parseOffice(t, "a.pptx", data)), "list_item 1: - top\nlist_item 2:   - under\n"; got != want {
		t.Errorf("%q", got)
	}
}
