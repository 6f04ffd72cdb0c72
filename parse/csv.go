package parse

import (
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strings"
)

// parseCSV parses delimited records. If the first record has column names, each row becomes
// "column: value; column: value", so that it can be understood by itself, and empty cells are
// omitted. Otherwise cells are separated by " | ".
func parseCSV(src *source, b *builder) bool {
	comma, ok := delimiter(src)
	if !ok {
		return false
	}
	var first []cell
	rows, stray := 0, false
	err := eachRecord(b, src.text, comma, true, func(row []cell) {
		if rows == 0 {
			first = slices.Clone(row)
		}
		rows++
		stray = stray || swallowed(row)
	})
	quotes := err == nil && !stray
	if !quotes {
		rows = 0
		err = eachRecord(b, src.text, comma, false, func(row []cell) {
			if rows == 0 {
				first = slices.Clone(row)
			}
			rows++
		})
	}
	if err != nil || rows == 0 {
		return false
	}
	b.reserveBlocks(rows)
	w := recordWriter{b: b, named: rows > 1 && hasNames(first)}
	return eachRecord(b, src.text, comma, quotes, w.write) == nil
}

// A recordWriter writes records as rows of one table.
type recordWriter struct {
	b     *builder
	named bool // the first record has column names
	names []string
	rows  int
}

func (w *recordWriter) write(row []cell) {
	b := w.b
	switch {
	case w.rows == 0 && w.named:
		b.begin(TableHead)
	case w.rows == 0:
		b.begin(TableRow)
	default:
		b.beginTight(TableRow)
	}
	putCells(b, row, w.names)
	b.end()
	if w.rows == 0 && w.named {
		for _, c := range row {
			w.names = append(w.names, strings.Join(strings.Fields(c.text), " "))
		}
	}
	w.rows++
}

// A cell is one field of a record and the source line on which it starts.
type cell struct {
	text string
	line int
}

// putCells writes one record, in the form "name: value" if there are names.
func putCells(b *builder, row []cell, names []string) {
	first := true
	for i, c := range row {
		text := strings.TrimSpace(c.text)
		if names != nil && text == "" {
			continue
		}
		label, separator := "", " | "
		if names != nil {
			separator = "; "
			label = "…: " // beyond the named columns
			if i < len(names) {
				label = names[i] + ": "
			}
		}
		if !first {
			b.glue(separator)
		}
		first = false
		b.put(label, c.line)
		line := c.line + strings.Count(c.text[:strings.Index(c.text, text)], "\n")
		for k, s := range strings.Split(text, "\n") {
			if k > 0 {
				b.glue(" ")
			}
			b.put(strings.TrimSpace(s), line+k)
		}
	}
}

// eachRecord calls fn with each record, whose cells are valid until fn returns. If quotes is false,
// a quotation mark is an ordinary character.
func eachRecord(b *builder, text string, comma rune, quotes bool, fn func([]cell)) error {
	if !quotes {
		return splitRecords(b, text, comma, fn)
	}
	r := csv.NewReader(strings.NewReader(text))
	r.Comma, r.FieldsPerRecord, r.LazyQuotes, r.ReuseRecord = comma, -1, true, true
	var row []cell
	for !b.canceled() {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		row = row[:0]
		for i, s := range record {
			line, _ := r.FieldPos(i)
			row = append(row, cell{s, line})
		}
		fn(row)
	}
	return b.ctx.Err()
}

func splitRecords(b *builder, text string, comma rune, fn func([]cell)) error {
	var row []cell
	line := 0
	for l := range strings.SplitSeq(text, "\n") {
		line++
		if isBlank(l) {
			continue
		}
		if b.canceled() {
			return b.ctx.Err()
		}
		row = row[:0]
		for s := range strings.SplitSeq(l, string(comma)) {
			row = append(row, cell{s, line})
		}
		fn(row)
	}
	return nil
}

// swallowed reports whether a cell has so many lines that a stray quotation mark must have opened
// it.
func swallowed(row []cell) bool {
	const most = 100
	for _, c := range row {
		if len(c.text) > 4096 && strings.Count(c.text, "\n") > most {
			return true
		}
	}
	return false
}

// delimiter returns the delimiter that splits src's first lines into the most uniform records. A
// file with a CSV extension may have a single column.
func delimiter(src *source) (rune, bool) {
	start := head(src.text)
	if len(start) < len(src.text) {
		if end := strings.LastIndexByte(start, '\n'); end > 0 {
			start = start[:end]
		}
	}
	named := src.ext == ".csv" || src.ext == ".tsv" || src.ext == ".tab" || src.ext == ".psv"
	best, bestScore := ',', 0.0
	for _, comma := range []rune{',', '\t', ';', '|'} {
		if s := delimiterScore(start, comma, named); s > bestScore {
			best, bestScore = comma, s
		}
	}
	if bestScore > 0 {
		return best, true
	}
	// One column: short lines and no blank lines.
	return ',', named && strings.Count(start, "\n") > 0 && len(start)/(1+strings.Count(start, "\n")) < 80 && !strings.Contains(start, "\n\n")
}

// delimiterScore returns the number of columns that comma yields, weighted by the share of rows
// with that number. It is 0 if comma does not split the text into records.
func delimiterScore(text string, comma rune, named bool) float64 {
	r := csv.NewReader(strings.NewReader(text))
	r.Comma, r.FieldsPerRecord, r.LazyQuotes, r.ReuseRecord = comma, -1, true, true
	counts := map[int]int{}
	rows, longest := 0, 0
	for rows < 200 {
		record, err := r.Read()
		if err != nil {
			break
		}
		rows++
		counts[len(record)]++
		for _, f := range record {
			longest = max(longest, len(f))
		}
	}
	columns, most := 0, 0
	for n, k := range counts {
		if k > most || k == most && n > columns {
			columns, most = n, k
		}
	}
	share := float64(most) / float64(max(rows, 1))
	switch {
	case columns < 2 || rows < 2:
		return 0
	case !named && (rows < 3 || share < 0.95 || longest > 200 || columns < 3 && comma != '\t'):
		return 0
	case share < 0.5, share == 0.5 && rows < 4:
		return 0
	}
	return float64(columns) * share * share
}

// hasNames reports whether the first of several rows contains column names.
func hasNames(row []cell) bool {
	seen := map[string]bool{}
	for _, c := range row {
		s := strings.TrimSpace(c.text)
		if s == "" || len(s) > 80 || seen[s] || strings.Trim(s, "0123456789.,-+%/: ") == "" {
			return false
		}
		seen[s] = true
	}
	return len(row) > 0
}
