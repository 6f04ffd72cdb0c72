package parse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// isOfficeError reports whether an error is of a kind that Parse may return for a damaged document.
func isOfficeError(err error) bool {
	for _, kind := range []error{ErrDamaged, ErrLimit, ErrEmpty, ErrBinary, ErrEncoding, ErrPassword, ErrNeedsProgram} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// tryOffice parses data and fails the test if it gives neither a good document nor an error of a kind.
func tryOffice(t testing.TB, name string, data []byte) error {
	t.Helper()
	doc, err := Parse(context.Background(), Input{Name: name, Data: data})
	if err == nil {
		if doc.Type == kindDOCX || doc.Type == kindPPTX || doc.Type == kindXLSX {
			checkOffice(t, doc)
		}
		return nil
	}
	if !isOfficeError(err) {
		t.Errorf("%s: error of no kind: %v", name, err)
	}
	return err
}

// sheet returns a workbook with the XML of its one sheet.
func sheet(t testing.TB, data string, parts testPackage) []byte {
	t.Helper()
	all := testPackage{
		"xl/workbook.xml":   `<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"` + testSpaces + `><sheets><sheet name="S" r:id="worksheet1"/></sheets></workbook>`,
		"xl/worksheet1.xml": `<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">` + data + `</worksheet>`,
	}
	for name, text := range parts {
		all[name] = text
	}
	return all.bytes(t)
}

func TestOfficeBombs(t *testing.T) {
	nested := strings.Repeat("<w:smartTag>", 1_000_000)
	entities := `<!DOCTYPE w:document [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>&b;</w:t></w:r></w:p></w:body></w:document>`
	unknown := element("w:document", "<w:body>"+wordPara("", wordRun("&b;"))+"</w:body>")
	tests := []struct {
		name string
		data []byte
		kind error
	}{
		{"zeros.docx", docx(t, wordPara("", wordRun(strings.Repeat("a", 70<<20))), nil), ErrLimit},
		{"nested.docx", docx(t, nested, nil), ErrLimit},
		{"siblings.docx", docx(t, "<w:p>"+strings.Repeat("<w:r/>", 1_700_000)+"</w:p>", nil), ErrLimit},
		{"tables.docx", docx(t, strings.Repeat("<w:tbl><w:tr><w:tc>", 100)+wordPara("", wordRun("x"))+strings.Repeat("</w:tc></w:tr></w:tbl>", 100), nil), ErrLimit},
		{"attributes.docx", docx(t, "<w:p "+strings.Repeat(`a=">" `, 1_000_000)+"/>", nil), ErrLimit},
		{"entities.docx", testPackage{"word/document.xml": entities}.bytes(t), ErrDamaged},
		{"unknown entity.docx", testPackage{"word/document.xml": unknown}.bytes(t), ErrDamaged},
		{"columns.docx", docx(t, "<w:tbl><w:tr>"+strings.Repeat("<w:tc>"+wordPara("", wordRun("x"))+"</w:tc>", 2000)+"</w:tr><w:tr/></w:tbl>", nil), ErrLimit},
		{"other main part.docx", testPackage{"word/document.xml": "<html/>"}.bytes(t), ErrDamaged},
		{"no main part.docx", zipped(t, map[string]string{"[Content_Types].xml": "<Types/>"}), ErrDamaged},
		{"empty cells.xlsx", sheet(t, "<sheetData>"+strings.Repeat(`<row><c s="1"/><c s="1"/></row>`, 100_000)+"</sheetData>", nil), ErrEmpty},
		{"cells.xlsx", sheet(t, "<sheetData>"+strings.Repeat(`<row><c><v>1</v></c></row>`, maxRow)+"</sheetData>", nil), ErrLimit},
		{"rows.xlsx", sheet(t, "<sheetData>"+strings.Repeat(`<row/>`, maxRow)+"<row><c><v>1</v></c></row></sheetData>", nil), ErrDamaged},
		{"one string.xlsx", sheet(t, "<sheetData>"+strings.Repeat(`<row><c t="s"><v>0</v></c></row>`, 1000)+"</sheetData>",
			testPackage{"xl/sharedStrings.xml": "<sst><si><t>" + strings.Repeat("ab ", 100_000) + "</t></si></sst>"}), ErrLimit},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := tryOffice(t, tt.name, tt.data); !errors.Is(err, tt.kind) {
				t.Errorf("%v, want %v", err, tt.kind)
			}
		})
	}
}

// TestXLSXMergedAll reads a sheet in which one merged cell claims all cells.
func TestXLSXMergedAll(t *testing.T) {
	merges := `<mergeCells><mergeCell ref="A1:XFD1048576"/><mergeCell ref="B2:A1"/><mergeCell ref="x"/></mergeCells>`
	doc := parseOffice(t, "a.xlsx", sheet(t, `<sheetData><row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>2</v></c></row></sheetData>`+merges, nil))
	if got := blockLines(doc); got != "heading 1: S\nparagraph: 1\nparagraph: 2\n" {
		t.Errorf("%q", got)
	}
}

// TestOfficeDamage truncates real files, or made ones, and changes their bytes: the result is a
// document or an error, the same at each try.
func TestOfficeDamage(t *testing.T) {
	files := map[string][]byte{
		"a.docx": docx(t, wordPara("", wordRun("text"))+"<w:tbl><w:tr><w:tc>"+wordPara("", wordRun("cell"))+"</w:tc></w:tr></w:tbl>", testPackage{"word/styles.xml": element("w:styles", testStyles)}),
		"a.pptx": slides(t, []string{sp("title", 0, 0, ap("", "title"))}, nil),
		"a.xlsx": sheet(t, `<sheetData><row><c><v>1</v></c></row></sheetData>`, nil),
	}
	if root := os.Getenv("ASSAY_TESTDATA"); root != "" && !testing.Short() {
		for _, name := range []string{"docx/sources/drawingml.docx", "docx/sources/equations.docx", "pptx/sources/powerpoint_comments.pptx", "xlsx/sources/xlsx_comments.xlsx"} {
			if data, err := os.ReadFile(filepath.Join(root, "data", "parsing", filepath.FromSlash(name))); err == nil {
				files[filepath.Base(name)] = data
			}
		}
	}
	for name, data := range files {
		for i := range 40 {
			_ = tryOffice(t, name, data[:len(data)*i/40])
		}
		for i := range 200 {
			changed := bytes.Clone(data)
			changed[(i*7919+13)%len(data)] ^= byte(1 + i*37%255)
			_ = tryOffice(t, name, changed)
		}
	}
}

func TestOfficeDeterministic(t *testing.T) {
	data := docx(t, wordPara("Kop1", wordRun("One"))+wordItem("1", "0", "a"), testPackage{"word/styles.xml": element("w:styles", testStyles), "word/numbering.xml": element("w:numbering", testNumbering)})
	first := parseOffice(t, "a.docx", data)
	for range 20 {
		if again := parseOffice(t, "a.docx", data); !reflect.DeepEqual(first, again) {
			t.Fatal("the same bytes give another document")
		}
	}
}

// TestOfficeCanceled ends a large document soon after its context.
func TestOfficeCanceled(t *testing.T) {
	files := map[string][]byte{
		"a.docx": docx(t, strings.Repeat(wordPara("", wordRun("text")), 200_000), nil),
		"a.xlsx": sheet(t, "<sheetData>"+strings.Repeat(`<row><c><v>1</v></c></row>`, 400_000)+"</sheetData>", nil),
	}
	for name, data := range files {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		if _, err := Parse(ctx, Input{Name: name, Data: data}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// fuzzPart fuzzes the XML of one part of a document.
func fuzzPart(f *testing.F, name string, pack func(testing.TB, string) []byte, seeds ...string) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, xml string) {
		data := pack(t, xml)
		_ = tryOffice(t, name, data)
		one, err1 := Parse(context.Background(), Input{Name: name, Data: data})
		two, err2 := Parse(context.Background(), Input{Name: name, Data: data})
		one.Parts, two.Parts = nil, nil // functions
		if !reflect.DeepEqual(one, two) || fmt.Sprint(err1) != fmt.Sprint(err2) {
			t.Fatal("the same bytes give another document")
		}
	})
}

func FuzzDOCX(f *testing.F) {
	fuzzPart(f, "a.docx", func(t testing.TB, body string) []byte {
		return docx(t, body, testPackage{"word/styles.xml": element("w:styles", testStyles), "word/numbering.xml": element("w:numbering", testNumbering), "word/chart1.xml": testChart,
			"word/footnotes.xml": element("w:footnotes", `<w:footnote w:id="1">`+wordPara("", wordRun("note")+`<w:r><w:footnoteReference w:id="1"/></w:r>`)+`</w:footnote>`)})
	}, wordPara("Kop1", wordRun("One"))+wordItem("1", "1", "a"), wordPara("", `<w:r><w:footnoteReference w:id="1"/><w:fldChar w:fldCharType="begin"/><w:drawing><c:chart r:id="chart1"/></w:drawing></w:r>`),
		`<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val="2"/><w:vMerge/></w:tcPr><w:p/></w:tc></w:tr></w:tbl>`, `<w:p><m:oMath><m:nary><m:e/></m:nary></m:oMath></w:p>`)
}

func FuzzPPTX(f *testing.F) {
	fuzzPart(f, "a.pptx", func(t testing.TB, tree string) []byte { return slides(t, []string{tree}, nil) },
		sp("title", 1, 2, ap("", "title")), sp("", 1, 2, ap(`<a:pPr lvl="8"><a:buAutoNum type="romanUcParenBoth" startAt="5000"/></a:pPr>`, "x")),
		`<p:graphicFrame><a:graphic><a:graphicData><a:tbl><a:tr><a:tc gridSpan="-1" rowSpan="9"/></a:tr></a:tbl></a:graphicData></a:graphic></p:graphicFrame>`)
}

func FuzzXLSX(f *testing.F) {
	fuzzPart(f, "a.xlsx", func(t testing.TB, data string) []byte {
		return sheet(t, data, testPackage{"xl/sharedStrings.xml": "<sst><si><t>a_x000D_b</t></si></sst>", "xl/styles.xml": `<styleSheet><numFmts><numFmt numFmtId="170" formatCode="[$-F800]dddd\,\ mmmm"/><numFmt numFmtId="171" formatCode="# ?/?"/></numFmts><cellXfs><xf numFmtId="170"/><xf numFmtId="171"/></cellXfs></styleSheet>`})
	}, `<sheetData><row r="2"><c r="B2" t="s"><v>0</v></c><c s="1"><v>1.5</v></c></row></sheetData><mergeCells><mergeCell ref="B2:D9"/></mergeCells>`, `<sheetData><row><c t="inlineStr"><is><r><t>x</t></r></is></c><c><f>A1</f></c></row></sheetData>`)
}

// FuzzNumberFormat displays a number in a format.
func FuzzNumberFormat(f *testing.F) {
	f.Add("[Red]#,##0.00;\"x\"0", "12.5")
	f.Add("yyyy-mm-dd", "45000.5")
	f.Add("[h]:mm:ss", "1e300")
	f.Fuzz(func(t *testing.T, code, value string) {
		formats := &numberFormats{ids: map[string]int{}, styles: []numberFormat{readFormat(code)}}
		defer formats.close()
		_ = formats.display(value, 0)
	})
}

// FuzzOffice parses changed packages and compound files.
func FuzzOffice(f *testing.F) {
	f.Add(docx(f, wordPara("", wordRun("text")), nil))
	f.Add(sheet(f, `<sheetData><row><c><v>1</v></c></row></sheetData>`, nil))
	f.Add([]byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		t.Setenv("PATH", "")
		_ = tryOffice(t, "a.docx", data)
	})
}
