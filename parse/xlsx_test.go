package parse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/xuri/excelize/v2"
)

// book returns a workbook that f fills by another implementation.
func book(t testing.TB, f func(*excelize.File)) []byte {
	t.Helper()
	x := excelize.NewFile()
	defer x.Close()
	f(x)
	var buf bytes.Buffer
	if err := x.Write(&buf); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// fill sets the cells of Sheet1.
func fill(t testing.TB, x *excelize.File, cells map[string]any) {
	t.Helper()
	for at, v := range cells {
		if err := x.SetCellValue("Sheet1", at, v); err != nil {
			t.Fatal(err)
		}
	}
}

func TestXLSX(t *testing.T) {
	tests := []struct {
		name  string
		cells map[string]any
		more  func(*excelize.File) error
		want  string
	}{
		{"a table", map[string]any{"A1": "Name", "B1": "Age", "A2": "Ann", "B2": 5, "A3": "Bob", "B3": 7.25}, nil,
			"heading 1: Sheet1\ntable_head: Name | Age\ntable_row: Ann | 5\ntable_row: Bob | 7.25\n"},
		{"no header", map[string]any{"A1": 1, "B1": 2, "A2": 3, "B2": 4}, nil, "heading 1: Sheet1\ntable_row: 1 | 2\ntable_row: 3 | 4\n"},
		{"regions far apart", map[string]any{"A1": "a", "XFD1048576": "z", "M500000": true}, nil,
			"heading 1: Sheet1\nparagraph: a\nparagraph: TRUE\nparagraph: z\n"},
		{"a diagonal is not connected", map[string]any{"A1": 1, "A2": 2, "B3": 3, "B4": 4}, nil,
			"heading 1: Sheet1\ntable_row: 1\ntable_row: 2\ntable_row: 3\ntable_row: 4\n"},
		{"a caption", map[string]any{"A1": "Ducks", "A2": "Year", "B2": "Count", "A3": 2019, "B3": 4}, nil,
			"heading 1: Sheet1\ncaption: Ducks\ntable_head: Year | Count\ntable_row: 2019 | 4\n"},
		{"gaps in a table", map[string]any{"A1": "a", "B1": "b", "C1": "c", "A2": 1, "C2": 3}, nil, "heading 1: Sheet1\ntable_head: a | b | c\ntable_row: 1 |  | 3\n"},
		{"merged", map[string]any{"A1": "both", "C1": "c", "A2": "x", "B2": "y", "C2": "z", "A3": 1, "B3": 2, "C3": 3},
			func(x *excelize.File) error { return x.MergeCell("Sheet1", "A1", "B1") },
			"heading 1: Sheet1\ntable_head: both | c\ntable_row: x | y | z\ntable_row: 1 | 2 | 3\n"},
		{"formulas", map[string]any{"A1": 1}, func(x *excelize.File) error { return x.SetCellFormula("Sheet1", "A3", "SUM(A1:A2)") },
			"heading 1: Sheet1\nparagraph: 1\nparagraph: =SUM(A1:A2)\n"},
		{"comments", map[string]any{"A1": "x"}, func(x *excelize.File) error {
			return x.AddComment("Sheet1", excelize.Comment{Cell: "A1", Author: "Ann", Text: "why?"})
		}, "heading 1: Sheet1\nparagraph: x\nfootnote: [author: Ann, cell: A1]: why?\n"},
		{"empty sheets", map[string]any{"A1": "x"}, func(x *excelize.File) error { _, err := x.NewSheet("Empty"); return err }, "heading 1: Sheet1\nparagraph: x\n"},
		{"a chart", map[string]any{"A1": "x"}, func(x *excelize.File) error {
			return x.AddChart("Sheet1", "C3", &excelize.Chart{Type: excelize.Pie, Title: excelize.ChartTitle{Paragraph: []excelize.RichTextRun{{Text: "Shares"}}}})
		}, "heading 1: Sheet1\nparagraph: x\ncaption: Shares (pie chart)\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			data := book(t, func(x *excelize.File) {
				fill(t, x, tt.cells)
				if tt.more != nil {
					if err := tt.more(x); err != nil {
						t.Fatal(err)
					}
				}
			})
			if diff := cmp.Diff(tt.want, blockLines(parseOffice(t, "a.xlsx", data))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestXLSXHiddenSheet(t *testing.T) {
	data := book(t, func(x *excelize.File) {
		fill(t, x, map[string]any{"A1": "x"})
		if _, err := x.NewSheet("Secret"); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(x.SetCellValue("Secret", "A1", "y"), x.SetSheetVisible("Secret", false)); err != nil {
			t.Fatal(err)
		}
	})
	doc := parseOffice(t, "a.xlsx", data)
	if !strings.Contains(doc.Text, "y") || fmt.Sprint(doc.Metadata["hidden_sheets"].List) != "[Secret]" {
		t.Errorf("%q %v", doc.Text, doc.Metadata)
	}
}

func TestNumberFormats(t *testing.T) {
	tests := []struct {
		code  string
		value string
		want  string
	}{
		{"", "0.30000000000000004", "0.3"}, {"General", "1234567890123", "1234567890123"}, {"", "1E-12", "1E-12"}, {"", "-0", "0"}, {"@", "5", "5"},
		{"0", "2.5", "3"}, {"0.00", "1.005", "1.01"}, {"#,##0", "1234567.2", "1,234,567"}, {"#,##0.00", "-1234.5", "-1,234.50"}, {"0%", "0.125", "13%"}, {"0.0%", "0.1256", "12.6%"},
		{"yyyy-mm-dd", "45292", "2024-01-01"}, {"d.m.yyyy h:mm", "45292.75", "2024-01-01 18:00:00"}, {"mm-dd-yy", "59", "1900-02-28"}, {"mm-dd-yy", "61", "1900-03-01"},
		{"h:mm", "0.5", "12:00:00"}, {"[h]:mm", "1.5", "36:00:00"}, {"mmm-yy", "45292", "2024-01-01"}, {"yyyy", "-1", "-1"}, {"yyyy", "99999999", "99999999"},
		{`"day "0`, "3", "day 3"}, {`0.00" kg"`, "1.5", "1.50 kg"}, {`[Red]0.0;[Blue]-0.0`, "-2", "-2.0"}, {`0.0E+00`, "12345", "1.2E+04"}, {`"m"0`, "7", "m7"},
	}
	for _, tt := range tests {
		f := &numberFormats{ids: map[string]int{}, styles: []numberFormat{readFormat(tt.code)}}
		if got := f.display(tt.value, 0); got != tt.want {
			t.Errorf("%s in %q is %q, want %q", tt.value, tt.code, got, tt.want)
		}
		f.close()
	}
	f := &numberFormats{date1904: true, styles: []numberFormat{readFormat("yyyy-mm-dd")}}
	if got := f.display("0", 0); got != "1904-01-01" {
		t.Errorf("1904: %s", got)
	}
}

// TestXLSXAgainstExcelize compares the values of cells with those of the library.
func TestXLSXAgainstExcelize(t *testing.T) {
	data := book(t, func(x *excelize.File) {
		for i := range 200 {
			at, _ := excelize.CoordinatesToCellName(i%7+1, i/7+1)
			fill(t, x, map[string]any{at: fmt.Sprintf("v%d", i*i)})
		}
	})
	x, err := excelize.OpenReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	rows, err := x.GetRows("Sheet1")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, row := range rows {
		want.WriteString("\n" + strings.Join(row, " | "))
	}
	doc := parseOffice(t, "a.xlsx", data)
	if got := strings.TrimPrefix(doc.Text, "Sheet1\n"); got != want.String() {
		t.Error(cmp.Diff(want.String(), got))
	}
}

func TestEncrypted(t *testing.T) {
	plain := book(t, func(x *excelize.File) { fill(t, x, map[string]any{"A1": "secret"}) })
	filler := make([]byte, 8000) // the library cannot encrypt small files
	for i, random := 0, rand.New(rand.NewPCG(1, 2)); i < len(filler); i++ {
		filler[i] = byte(random.Uint32())
	}
	word := docx(t, wordPara("", wordRun("secret")), testPackage{"word/media/filler": string(filler)})
	for name, data := range map[string][]byte{"a.xlsx": plain, "a.docx": word} {
		locked, err := excelize.Encrypt(data, &excelize.Options{Password: "pass"})
		if err != nil {
			t.Fatal(err)
		}
		for _, passwords := range [][]string{nil, {"wrong", "no"}} {
			_, err = Parse(context.Background(), Input{Name: name, Data: locked, Passwords: passwords})
			if !errors.Is(err, ErrPassword) {
				t.Errorf("%s with %q: %v", name, passwords, err)
			}
		}
		doc, err := Parse(context.Background(), Input{Name: name, Data: locked, Passwords: []string{"wrong", "pass"}})
		if err != nil || !strings.Contains(doc.Text, "secret") || doc.Type != name[2:] {
			t.Errorf("%s: %q %q %v", name, doc.Type, doc.Text, err)
		}
	}
}

func TestXLSXCanceled(t *testing.T) {
	data := book(t, func(x *excelize.File) {
		fill(t, x, map[string]any{"A1": time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)})
	})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Parse(ctx, Input{Name: "a.xlsx", Data: data}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
