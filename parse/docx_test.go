package parse

import (
	"bytes"
	"context"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const testStyles = `<w:style w:type="paragraph" w:styleId="Kop1"><w:name w:val="heading 1"/></w:style>` +
	`<w:style w:type="paragraph" w:styleId="Own"><w:name w:val="Chapter"/><w:basedOn w:val="Kop1"/></w:style>` +
	`<w:style w:type="paragraph" w:styleId="Out"><w:name w:val="Outlined"/><w:pPr><w:outlineLvl w:val="2"/></w:pPr></w:style>` +
	`<w:style w:type="paragraph" w:styleId="Flat"><w:name w:val="Flat"/><w:basedOn w:val="Out"/><w:pPr><w:outlineLvl w:val="9"/></w:pPr></w:style>` +
	`<w:style w:type="paragraph" w:styleId="Loop"><w:name w:val="Loop"/><w:basedOn w:val="Loop"/></w:style>` +
	`<w:style w:type="paragraph" w:styleId="T"><w:name w:val="Title"/></w:style>` +
	`<w:style w:type="paragraph" w:styleId="Cap"><w:name w:val="caption"/></w:style>` +
	`<w:style w:type="paragraph" w:styleId="Src"><w:name w:val="Source Code"/></w:style>` +
	`<w:style w:type="paragraph" w:styleId="L"><w:name w:val="List Number"/><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style>` +
	`<w:style w:type="character" w:styleId="Hid"><w:name w:val="Hidden"/><w:rPr><w:vanish/></w:rPr></w:style>`

const testNumbering = `<w:abstractNum w:abstractNumId="0">` +
	`<w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>` +
	`<w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="%1.%2)"/></w:lvl></w:abstractNum>` +
	`<w:abstractNum w:abstractNumId="1"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/><w:lvlText w:val="•"/></w:lvl></w:abstractNum>` +
	`<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num>` +
	`<w:num w:numId="3"><w:abstractNumId w:val="0"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="5"/></w:lvlOverride></w:num>`

// wordPara returns a paragraph in a style.
func wordPara(style, runs string) string {
	if style != "" {
		style = `<w:pPr><w:pStyle w:val="` + style + `"/></w:pPr>`
	}
	return "<w:p>" + style + runs + "</w:p>"
}

// wordRun returns a run of text.
func wordRun(text string) string { return `<w:r><w:t xml:space="preserve">` + text + `</w:t></w:r>` }

// wordItem returns a paragraph in a list.
func wordItem(num, level, text string) string {
	return `<w:p><w:pPr><w:numPr><w:ilvl w:val="` + level + `"/><w:numId w:val="` + num + `"/></w:numPr></w:pPr>` + wordRun(text) + `</w:p>`
}

func TestDOCX(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{"styles", wordPara("Kop1", wordRun("One")) + wordPara("Own", wordRun("Two")) + wordPara("Out", wordRun("Three")) + wordPara("Flat", wordRun("four")) + wordPara("Loop", wordRun("five")) + wordPara("Missing", wordRun("six")),
			"heading 1: One\nheading 1: Two\nheading 3: Three\nparagraph: four\nparagraph: five\nparagraph: six\n"},
		{"title", wordPara("T", wordRun("Title")) + wordPara("Kop1", wordRun("One")), "heading 1: Title\nheading 2: One\n"},
		{"captions and code", wordPara("Cap", wordRun("Figure 1")) + wordPara("Src", wordRun("if x:")) + wordPara("Src", wordRun("  return")) + wordPara("", wordRun("end")),
			"caption: Figure 1\ncode: if x:⏎  return\nparagraph: end\n"},
		{"lists", wordItem("1", "0", "a") + wordItem("1", "1", "b") + wordItem("1", "1", "c") + wordItem("1", "0", "d") + wordItem("2", "0", "e") + wordItem("1", "1", "f") + wordItem("3", "0", "g") + wordPara("L", wordRun("h")),
			"list_item 1: 1. a\nlist_item 2:   1.a) b\nlist_item 2:   1.b) c\nlist_item 1: 2. d\nlist_item 1: - e\nlist_item 2:   2.a) f\nlist_item 1: 5. g\nlist_item 1: 6. h\n"},
		{"tracked changes", wordPara("", `<w:ins>`+wordRun("new ")+`</w:ins><w:del><w:r><w:delText>old </w:delText></w:r></w:del><w:moveFrom>`+wordRun("from ")+`</w:moveFrom><w:moveTo>`+wordRun("to")+`</w:moveTo>`),
			"paragraph: new to\n"},
		{"hidden", wordPara("", wordRun("seen")+`<w:r><w:rPr><w:vanish/></w:rPr><w:t> hidden</w:t></w:r><w:r><w:rPr><w:rStyle w:val="Hid"/></w:rPr><w:t> too</w:t></w:r>`), "paragraph: seen\n"},
		{"fields", wordPara("", `<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>PAGE</w:instrText></w:r>`+wordRun("instruction")+
			`<w:r><w:fldChar w:fldCharType="separate"/></w:r>`+wordRun("result")+`<w:r><w:fldChar w:fldCharType="end"/></w:r><w:fldSimple w:instr="DATE">`+wordRun(" today")+`</w:fldSimple>`),
			"paragraph: result today\n"},
		{"a field without an end", wordPara("", `<w:r><w:fldChar w:fldCharType="begin"/></w:r>`) + wordPara("", wordRun("after")), "paragraph: after\n"},
		{"form fields", wordPara("", `<w:r><w:fldChar w:fldCharType="begin"><w:ffData><w:checkBox><w:default w:val="0"/><w:checked/></w:checkBox></w:ffData></w:fldChar></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r>`+wordRun("yes")),
			"paragraph: [x] yes\n"},
		{"check boxes", wordPara("", `<w:sdt><w:sdtPr><w14:checkbox><w14:checked w14:val="1"/></w14:checkbox></w:sdtPr><w:sdtContent>`+wordRun("☒")+`</w:sdtContent></w:sdt>`+wordRun("tea")) +
			wordPara("", `<w:sdt><w:sdtPr><w14:checkbox><w14:checked w14:val="0"/></w14:checkbox></w:sdtPr><w:sdtContent>`+wordRun("☐")+`</w:sdtContent></w:sdt>`+wordRun("milk")),
			"paragraph: [x] tea\nparagraph: [ ] milk\n"},
		{"wrappers", `<w:sdt><w:sdtContent>` + wordPara("", `<w:hyperlink r:id="x">`+wordRun("link")+`</w:hyperlink><w:smartTag>`+wordRun(" tag")+`</w:smartTag>`) + `</w:sdtContent></w:sdt>`, "paragraph: link tag\n"},
		{"breaks and signs", wordPara("", `<w:r><w:t>a</w:t><w:br/><w:t>b</w:t><w:tab/><w:t>c</w:t><w:noBreakHyphen/><w:t>d</w:t><w:sym w:font="Symbol" w:char="F061"/></w:r>`), "paragraph: a⏎b c-dα\n"},
		{"ruby", wordPara("", `<w:r><w:ruby><w:rt>`+wordRun("かん")+`</w:rt><w:rubyBase>`+wordRun("漢")+`</w:rubyBase></w:ruby></w:r>`), "paragraph: 漢(かん)\n"},
		{"notes", wordPara("", wordRun("text")+`<w:r><w:footnoteReference w:id="1"/></w:r>`+wordRun(" more")+`<w:r><w:endnoteReference w:id="1"/><w:commentReference w:id="0"/></w:r>`) + wordPara("", wordRun("next")),
			"paragraph: text[1] more[i]\nfootnote: [1] the note\nfootnote: [i] at the end\nfootnote: [author: Ann (A), time: 2026-01-02T03:04:05Z]: really?\nparagraph: next\n"},
		{"text boxes once", wordPara("", wordRun("before")+`<w:r><mc:AlternateContent><mc:Choice Requires="wps"><w:drawing><wp:docPr id="1" name="Box 1" descr="A cat."/><wps:txbx><w:txbxContent>`+wordPara("", wordRun("inside"))+
			`</w:txbxContent></wps:txbx></w:drawing></mc:Choice><mc:Fallback><w:pict><v:textbox><w:txbxContent>`+wordPara("", wordRun("inside"))+`</w:txbxContent></v:textbox></w:pict></mc:Fallback></mc:AlternateContent></w:r>`),
			"paragraph: before\nfigure: A cat.\nparagraph: inside\n"},
		{"an unknown alternative", wordPara("", `<w:r><mc:AlternateContent><mc:Choice Requires="future"><w:t>new</w:t></mc:Choice><mc:Fallback><w:t>old</w:t></mc:Fallback></mc:AlternateContent></w:r>`), "paragraph: old\n"},
		{"formulas", wordPara("", `<m:oMath><m:r><m:t>a=b</m:t></m:r></m:oMath><m:oMath><m:r><m:t>c</m:t></m:r></m:oMath>`) + wordPara("", wordRun("where ")+`<m:oMath><m:r><m:t>π</m:t></m:r></m:oMath>`+wordRun(" is")),
			"formula: a=b\nformula: c\nparagraph: where \\pi is\n"},
		{"chart", wordPara("", `<w:r><w:drawing><a:graphic><a:graphicData><c:chart r:id="chart1"/></a:graphicData></a:graphic></w:drawing></w:r>`),
			"caption: Sales (bar chart: Year)\ntable_head: North | South\ntable_row: 2019 | 1.5 | 2\ntable_row: 2020 | 0.3\n"},
		{"a frame", `<w:tbl><w:tr><w:tc>` + wordPara("Kop1", wordRun("In a box")) + wordPara("", wordRun("text")) + `</w:tc></w:tr></w:tbl>`, "heading 1: In a box\nparagraph: text\n"},
	}
	parts := testPackage{
		"word/styles.xml":    element("w:styles", testStyles),
		"word/numbering.xml": element("w:numbering", testNumbering),
		"word/footnotes.xml": element("w:footnotes", `<w:footnote w:id="1">`+wordPara("", wordRun("the note"))+`</w:footnote>`),
		"word/endnotes.xml":  element("w:endnotes", `<w:endnote w:id="1">`+wordPara("", wordRun("at the end"))+`</w:endnote>`),
		"word/chart1.xml":    testChart,
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			all := testPackage{}
			for name, text := range parts {
				all[name] = text
			}
			if tt.name == "notes" {
				all["word/comments.xml"] = element("w:comments", `<w:comment w:id="0" w:author="Ann" w:initials="A" w:date="2026-01-02T03:04:05Z">`+wordPara("", wordRun("really?"))+`</w:comment>`)
			}
			doc := parseOffice(t, "a.docx", docx(t, tt.body, all))
			if diff := cmp.Diff(tt.want, blockLines(doc)); diff != "" {
				t.Error(diff)
			}
			if doc.Type != "docx" {
				t.Errorf("type %q", doc.Type)
			}
		})
	}
}

var testChart = element("c:chartSpace", `<c:chart><c:title><c:tx><c:rich><a:p><a:r><a:t>Sales</a:t></a:r></a:p></c:rich></c:tx></c:title><c:plotArea><c:barChart>`+
	`<c:ser><c:tx><c:strRef><c:strCache><c:pt idx="0"><c:v>North</c:v></c:pt></c:strCache></c:strRef></c:tx>`+
	`<c:cat><c:strRef><c:strCache><c:pt idx="0"><c:v>2019</c:v></c:pt><c:pt idx="1"><c:v>2020</c:v></c:pt></c:strCache></c:strRef></c:cat>`+
	`<c:val><c:numRef><c:numCache><c:pt idx="0"><c:v>1.5</c:v></c:pt><c:pt idx="1"><c:v>0.30000000000000004</c:v></c:pt></c:numCache></c:numRef></c:val></c:ser>`+
	`<c:ser><c:tx><c:v>South</c:v></c:tx><c:val><c:numLit><c:pt idx="0"><c:v>2</c:v></c:pt></c:numLit></c:val></c:ser></c:barChart>`+
	`<c:catAx><c:title><c:tx><c:rich><a:p><a:r><a:t>Year</a:t></a:r></a:p></c:rich></c:tx></c:title></c:catAx></c:plotArea></c:chart>`)

func TestDOCXTable(t *testing.T) {
	tc := func(props, text string) string {
		return "<w:tc><w:tcPr>" + props + "</w:tcPr>" + wordPara("", wordRun(text)) + "</w:tc>"
	}
	body := `<w:tbl><w:tr><w:trPr><w:tblHeader/></w:trPr>` + tc("", "a") + tc(`<w:gridSpan w:val="2"/>`, "b") + `</w:tr>` +
		`<w:tr>` + tc(`<w:vMerge w:val="restart"/>`, "c") + tc("", "d") + tc("", "") + `</w:tr>` +
		`<w:tr>` + tc(`<w:vMerge/>`, "") + `<w:tc><w:tbl><w:tr>` + tc("", "x") + tc("", "y") + `</w:tr></w:tbl>` + wordPara("", "") + `</w:tc>` + tc("", "e") + `</w:tr>` +
		`<w:tr><w:trPr><w:del/></w:trPr>` + tc("", "deleted") + `</w:tr>` +
		`<w:tr><w:trPr><w:gridBefore w:val="2"/></w:trPr>` + tc("", "late") + `</w:tr></w:tbl>`
	doc := parseOffice(t, "a.docx", docx(t, body, nil))
	if want := "table_head: a | b\ntable_row: c | d\ntable_row: x, y | e\ntable_row: late\n"; blockLines(doc) != want {
		t.Error(cmp.Diff(want, blockLines(doc)))
	}
	type cell struct {
		Text                       string
		Row, Col, RowSpan, ColSpan int
		Header                     bool
	}
	var got []cell
	for _, c := range doc.Tables[0].Cells {
		got = append(got, cell{doc.Text[c.Start:c.End], c.Row, c.Col, c.RowSpan, c.ColSpan, c.Header})
	}
	want := []cell{{"a", 0, 0, 0, 0, true}, {"b", 0, 1, 0, 2, true}, {"c", 1, 0, 2, 0, false}, {"d", 1, 1, 0, 0, false}, {"", 1, 2, 0, 0, false},
		{"x, y", 2, 1, 0, 0, false}, {"e", 2, 2, 0, 0, false}, {"late", 3, 2, 0, 0, false}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestDOCXStrict reads the strict form, whose namespaces differ.
func TestDOCXStrict(t *testing.T) {
	data := testPackage{"word/document.xml": `<x:document xmlns:x="http://purl.oclc.org/ooxml/wordprocessingml/main"><x:body><x:p><x:r><x:t>strict</x:t></x:r></x:p></x:body></x:document>`}.bytes(t)
	if doc := parseOffice(t, "a", data); doc.Text != "strict" {
		t.Errorf("%q", doc.Text)
	}
}

// TestDOCXFurniture keeps headers out of the text unless there is no other.
func TestDOCXFurniture(t *testing.T) {
	header := testPackage{"word/header1.xml": element("w:hdr", wordPara("", wordRun("letterhead")))}
	if doc := parseOffice(t, "a.docx", docx(t, wordPara("", wordRun("body")), header)); doc.Text != "body" {
		t.Errorf("%q", doc.Text)
	}
	if doc := parseOffice(t, "a.docx", docx(t, wordPara("", ""), header)); doc.Text != "letterhead" {
		t.Errorf("%q", doc.Text)
	}
}

func TestDOCXProperties(t *testing.T) {
	core := `<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/">` +
		`<dc:title>The Title</dc:title><dc:creator>Ann</dc:creator><cp:keywords>a, b</cp:keywords><dc:language>en-US</dc:language><dcterms:created>2026-01-02T03:04:05Z</dcterms:created></cp:coreProperties>`
	doc := parseOffice(t, "a.docx", docx(t, wordPara("", wordRun("x")), testPackage{"docProps/core.xml": core}))
	got := []string{doc.Title, doc.Metadata["author"].String, doc.Metadata["keywords"].String, doc.Metadata["language"].String, doc.Metadata["created"].Time.Format("2006-01-02")}
	if diff := cmp.Diff([]string{"The Title", "Ann", "a, b", "en", "2026-01-02"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestDOCXHeadingTitle(t *testing.T) {
	for body, want := range map[string]string{
		wordPara("Kop1", wordRun("Leave")) + wordPara("", wordRun("Five days.")):                                         "Leave",
		wordPara("Kop1", wordRun("Leave")) + wordPara("", wordRun("Five days.")) + wordPara("Kop1", wordRun("Sickness")): "",
	} {
		if doc := parseOffice(t, "a.docx", docx(t, body, testPackage{"word/styles.xml": element("w:styles", testStyles)})); doc.Title != want {
			t.Errorf("title %q of %q, want %q", doc.Title, blockLines(doc), want)
		}
	}
}

// TestChartDates checks that a chart's dates are read as dates, in both systems.
func TestChartDates(t *testing.T) {
	chart := func(more string) string {
		return element("c:chartSpace", more+`<c:chart><c:plotArea><c:lineChart><c:ser>`+
			`<c:cat><c:numRef><c:numCache><c:formatCode>m/d/yy</c:formatCode><c:pt idx="0"><c:v>45292</c:v></c:pt></c:numCache></c:numRef></c:cat>`+
			`<c:val><c:numRef><c:numCache><c:formatCode>General</c:formatCode><c:pt idx="0"><c:v>4.5</c:v></c:pt></c:numCache></c:numRef></c:val></c:ser></c:lineChart></c:plotArea></c:chart>`)
	}
	body := wordPara("", `<w:r><w:drawing><a:graphic><a:graphicData><c:chart r:id="chart1"/></a:graphicData></a:graphic></w:drawing></w:r>`)
	for more, want := range map[string]string{"": "2024-01-01 | 4.5", `<c:date1904 val="1"/>`: "2028-01-02 | 4.5"} {
		doc := parseOffice(t, "a.docx", docx(t, body, testPackage{"word/chart1.xml": chart(more)}))
		if !strings.Contains(doc.Text, want) {
			t.Errorf("%q, want %q", doc.Text, want)
		}
	}
}

func TestDOCXEmbedded(t *testing.T) {
	rels := relationships(nil, `<Relationship Id="e1" Type="x/package" Target="embeddings/book.xlsx"/>`)
	data := docx(t, wordPara("", wordRun("x")+`<w:r><w:object><o:OLEObject r:id="e1"/></w:object></w:r>`), testPackage{"word/_rels/document.xml.rels": rels, "word/embeddings/book.xlsx": "bytes"})
	doc := parseOffice(t, "a.docx", data)
	if len(doc.Parts) != 1 || doc.Parts[0].Name != "book.xlsx" {
		t.Fatalf("%+v", doc.Parts)
	}
	if got, err := doc.Parts[0].Read(context.Background(), 100); err != nil || string(got) != "bytes" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := doc.Parts[0].Read(context.Background(), 2); err == nil {
		t.Error("a part over the limit is read")
	}
}

func TestMath(t *testing.T) {
	run := func(s string) string { return "<m:r><m:t>" + s + "</m:t></m:r>" }
	e := func(s string) string { return "<m:e>" + run(s) + "</m:e>" }
	tests := []struct{ in, want string }{
		{`<m:sSup>` + e("x") + `<m:sup>` + run("2") + `</m:sup></m:sSup>`, `x^{2}`},
		{`<m:f><m:num>` + run("1") + `</m:num><m:den>` + run("x") + `</m:den></m:f>`, `\frac{1}{x}`},
		{`<m:f><m:fPr><m:type m:val="noBar"/></m:fPr><m:num>` + run("n") + `</m:num><m:den>` + run("k") + `</m:den></m:f>`, `\genfrac{}{}{0pt}{}{n}{k}`},
		{`<m:rad><m:deg>` + run("3") + `</m:deg>` + e("x") + `</m:rad>`, `\sqrt[3]{x}`},
		{`<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr><m:sub>` + run("i=1") + `</m:sub><m:sup>` + run("∞") + `</m:sup>` + e("i") + `</m:nary>`, `\sum_{i=1}^{\infty} i`},
		{`<m:d><m:dPr><m:begChr m:val="["/><m:endChr m:val=""/></m:dPr>` + e("x") + e("y") + `</m:d>`, `\left[x|y\right.`},
		{`<m:func><m:fName>` + run("sin") + `</m:fName>` + e("x") + `</m:func>`, `\sin(x)`},
		{`<m:m><m:mr>` + e("a") + e("b") + `</m:mr><m:mr>` + e("c") + e("d") + `</m:mr></m:m>`, `\begin{matrix} a & b \\ c & d \end{matrix}`},
		{`<m:acc>` + e("x") + `</m:acc>`, `\hat{x}`},
		{run("α ≤ 𝑥"), `\alpha \leq x`},
	}
	for _, tt := range tests {
		doc := parseOffice(t, "a.docx", docx(t, wordPara("", "<m:oMath>"+tt.in+"</m:oMath>"), nil))
		if got := strings.ReplaceAll(doc.Text, "{ \\infty }", "{\\infty}"); got != tt.want {
			t.Errorf("%s is %q, want %q", tt.in, got, tt.want)
		}
	}
}

// TestDOCXDamagedChart reads the text around a chart that is no XML, and notes it.
func TestDOCXDamagedChart(t *testing.T) {
	body := wordPara("", wordRun("text")+`<w:r><w:drawing><c:chart r:id="chart1"/></w:drawing></w:r>`)
	doc := parseOffice(t, "a.docx", docx(t, body, testPackage{"word/chart1.xml": "<c"}))
	if doc.Text != "text" || len(doc.Notes) != 1 || !strings.Contains(doc.Notes[0], "a chart cannot be read") {
		t.Errorf("%q %q", doc.Text, doc.Notes)
	}
}

// TestOfficePicture keeps the pictures of documents for a model.
func TestOfficePicture(t *testing.T) {
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 100, 100))); err != nil {
		t.Fatal(err)
	}
	rels := relationships(nil, `<Relationship Id="i1" Type="x/image" Target="media/image1.png"/>`)
	blip := `<a:blip r:embed="i1"/>`
	files := map[string][]byte{
		"a.docx": docx(t, wordPara("", `<w:r><w:drawing><wp:inline><wp:docPr descr="A grey square."/>`+blip+`</wp:inline></w:drawing></w:r>`),
			testPackage{"word/_rels/document.xml.rels": rels, "word/media/image1.png": picture.String()}),
		"a.pptx": slides(t, []string{`<p:pic><p:nvPicPr><p:cNvPr descr="A grey square."/></p:nvPicPr><p:blipFill>` + blip + `</p:blipFill></p:pic>`},
			testPackage{"ppt/_rels/slide1.xml.rels": rels, "ppt/media/image1.png": picture.String()}),
	}
	for name, data := range files {
		doc, err := Parse(context.Background(), Input{Name: name, Data: data, Images: true})
		if err != nil || blockLines(doc) != "figure: A grey square.\n" || len(doc.Images) != 1 || doc.Images[0].Caption != "A grey square." {
			t.Errorf("%s: %v %q %+v", name, err, blockLines(doc), doc.Images)
		}
	}
}
