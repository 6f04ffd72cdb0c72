package parse

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/xuri/excelize/v2"

	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/ooxml"
)

// numberFormats writes numbers as their cells display them (ECMA-376 part 1, 18.8.30).
type numberFormats struct {
	date1904 bool
	styles   []numberFormat // by the index of the cell's style
	scratch  *excelize.File // formats numbers in other formats than the usual; nil until needed
	ids      map[string]int // of the styles of scratch
}

// A numberFormat is a format of numbers.
type numberFormat struct {
	code       string // empty: general
	date, time bool   // it shows a date, a time of day
	elapsed    bool   // it shows a duration
	plain      bool   // decimals, grouping and percent alone
	decimals   int
	grouped    bool
	percent    bool
}

// builtinFormats are the formats with fixed numbers that are not general or text.
var builtinFormats = map[int]string{
	1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00", 12: "# ?/?", 13: "# ??/??", 14: "yyyy-mm-dd", 15: "d-mmm-yy", 16: "d-mmm",
	17: "mmm-yy", 18: "h:mm", 19: "h:mm:ss", 20: "h:mm", 21: "h:mm:ss", 22: "yyyy-mm-dd h:mm", 37: "#,##0 ;(#,##0)", 38: "#,##0 ;(#,##0)",
	39: "#,##0.00;(#,##0.00)", 40: "#,##0.00;(#,##0.00)", 45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0", 48: "##0.0E+0",
}

// newNumberFormats reads the formats of a styleSheet element, which may be nil.
func newNumberFormats(root *ooxml.Node, date1904 bool) *numberFormats {
	f := &numberFormats{date1904: date1904, ids: map[string]int{}}
	custom := map[int]string{}
	for _, n := range root.Child("numFmts").All("numFmt") {
		if id, err := strconv.Atoi(n.Attr("numFmtId")); err == nil {
			custom[id] = n.Attr("formatCode")
		}
	}
	for _, xf := range root.Child("cellXfs").All("xf") {
		id, err := strconv.Atoi(xf.Attr("numFmtId"))
		if err != nil {
			id = 0
		}
		code, ok := custom[id]
		if !ok {
			code = builtinFormats[id]
			if isLocalDate(id) {
				code = "yyyy-mm-dd"
			}
		}
		f.styles = append(f.styles, readFormat(code))
	}
	return f
}

// isLocalDate reports whether a format has a fixed number whose dates depend on the language.
func isLocalDate(id int) bool { return id >= 27 && id <= 36 || id >= 50 && id <= 58 }

var plainFormat = lazyregexp.New(`^(#,##)?0(\.(0+))?(%?)(_\)|;.*)?$`)

func readFormat(code string) numberFormat {
	f := numberFormat{code: code}
	if strings.EqualFold(code, "general") || code == "@" {
		f.code = ""
		return f
	}
	f.readDate()
	m := plainFormat.FindStringSubmatch(code)
	if m != nil && !strings.Contains(code, ";") {
		f.plain, f.grouped, f.decimals, f.percent = true, m[1] != "", len(m[3]), m[4] != ""
	}
	return f
}

// readDate sets whether a format shows a date or time, by the letters outside quotes, brackets and
// escapes of its first section.
func (f *numberFormat) readDate() {
	minutes, digits := false, false
	for i := 0; i < len(f.code); i++ {
		switch c := f.code[i]; c {
		case '"':
			end := strings.IndexByte(f.code[i+1:], '"')
			if end < 0 {
				return
			}
			i += end + 1
		case '\\', '_', '*':
			i++
		case '[':
			end := strings.IndexByte(f.code[i:], ']')
			if end < 0 {
				return
			}
			inner := strings.ToLower(f.code[i+1 : i+end])
			f.elapsed = f.elapsed || inner != "" && strings.Trim(inner, "hms") == ""
			i += end
		case 'y', 'Y', 'd', 'D':
			f.date = true
		case 'h', 'H', 's', 'S':
			f.time = true
		case 'm', 'M':
			minutes = true
		case '0', '#', '?':
			digits = true
		case 'G', 'g', 'E':
			if strings.HasPrefix(strings.ToLower(f.code[i:]), "general") {
				f.date, f.time = false, false
				return
			}
		case ';':
			i = len(f.code)
		}
	}
	if minutes && !f.time && !f.date && !digits {
		f.date = true // a month alone
	}
}

// display returns the text of a number in a style.
func (f *numberFormats) display(v string, style int) string {
	v = strings.TrimSpace(v)
	x, err := strconv.ParseFloat(v, 64)
	if err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
		return v
	}
	var format numberFormat
	if style >= 0 && style < len(f.styles) {
		format = f.styles[style]
	}
	switch {
	case format.code == "":
		return generalNumber(x)
	case format.elapsed:
		return duration(x)
	case format.date || format.time:
		if s := f.isoTime(x, format); s != "" {
			return s
		}
		return generalNumber(x)
	case format.plain:
		return plainDecimal(x, format)
	}
	return f.other(x, format.code)
}

// generalNumber returns a number with at most 15 significant digits.
func generalNumber(x float64) string {
	x = significant(x)
	if size := math.Abs(x); size != 0 && (size < 1e-9 || size >= 1e15) {
		return strconv.FormatFloat(x, 'E', -1, 64)
	}
	if x == 0 {
		return "0"
	}
	return strconv.FormatFloat(x, 'f', -1, 64)
}

// significant returns x with 15 significant digits.
func significant(x float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'e', 14, 64), 64)
	if err != nil {
		return x
	}
	return rounded
}

// plainDecimal returns a number with fixed decimals.
func plainDecimal(x float64, f numberFormat) string {
	if f.percent {
		x *= 100
	}
	// Office rounds halves of the 15 digits that it keeps away from zero.
	if scale := math.Pow10(f.decimals); math.Abs(x)*scale < 1e15 {
		x = math.Round(significant(x*scale)) / scale
	}
	s := strconv.FormatFloat(math.Abs(x), 'f', f.decimals, 64)
	if f.grouped {
		s = group(s)
	}
	if x < 0 {
		s = "-" + s
	}
	if f.percent {
		s += "%"
	}
	return s
}

// group puts commas between the thousands.
func group(s string) string {
	end := strings.IndexByte(s, '.')
	if end < 0 {
		end = len(s)
	}
	for i := end - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// duration returns days as hours, minutes and seconds.
func duration(days float64) string {
	if math.Abs(days) > 1e6 {
		return generalNumber(days)
	}
	seconds := int64(math.Round(math.Abs(days) * 24 * 3600))
	sign := ""
	if days < 0 {
		sign = "-"
	}
	return fmt.Sprintf("%s%d:%02d:%02d", sign, seconds/3600, seconds/60%60, seconds%60)
}

// isoTime returns a serial date as a date, a time or both, or "" if it is out of range.
func (f *numberFormats) isoTime(x float64, format numberFormat) string {
	const last = 2958466 // the day after 9999-12-31
	if x < 0 || x >= last {
		return ""
	}
	base := time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)
	switch {
	case f.date1904:
		base = time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)
	case x < 60: // the system has a 29 February 1900
		base = base.AddDate(0, 0, 1)
	}
	days := math.Floor(x)
	t := base.AddDate(0, 0, int(days)).Add(time.Duration(math.Round((x-days)*24*3600)) * time.Second)
	switch {
	case !format.date:
		return t.Format("15:04:05")
	case format.time:
		return t.Format("2006-01-02 15:04:05")
	}
	return t.Format("2006-01-02")
}

// other formats a number by the library, which knows conditions, colours, fractions and exponents.
func (f *numberFormats) other(x float64, code string) (s string) {
	// The library parses untrusted bytes. A panic in it must affect only this number.
	defer func() {
		if p := recover(); p != nil {
			s = generalNumber(x)
		}
	}()
	const longest, most = 255, 1000 // of a code; of codes
	if len(code) > longest {
		return generalNumber(x)
	}
	if f.scratch == nil {
		f.scratch = excelize.NewFile()
	}
	id, ok := f.ids[code]
	if !ok {
		if len(f.ids) >= most {
			return generalNumber(x)
		}
		var err error
		if id, err = f.scratch.NewStyle(&excelize.Style{CustomNumFmt: &code}); err != nil {
			id = -1
		}
		f.ids[code] = id
	}
	if id < 0 {
		return generalNumber(x)
	}
	const sheet, at = "Sheet1", "A1"
	if f.scratch.SetCellFloat(sheet, at, x, -1, 64) != nil || f.scratch.SetCellStyle(sheet, at, at, id) != nil {
		return generalNumber(x)
	}
	s, err := f.scratch.GetCellValue(sheet, at)
	if err != nil || isBlank(s) {
		return generalNumber(x)
	}
	return s
}

func (f *numberFormats) close() {
	if f.scratch != nil {
		_ = f.scratch.Close() // in memory alone
	}
}
