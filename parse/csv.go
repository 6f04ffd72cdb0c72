package parse

import (
	"encoding/csv"
	"errors"
	"io"
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
	rows, err := readRecords(b, src.text, comma, true)
	if err != nil || swallowed(rows) {
		if rows, err = readRecords(b, src.text, comma, false); err != nil {
			return false
		}
	}
	if len(rows) == 0 {
		return false
	}
	var names []string
	if hasNames(rows) {
		b.begin(TableHead)
		putCells(b, rows[0], nil)
		b.end()
		for _, c := range rows[0] {
			names = append(names, strings.Join(strings.Fields(c.text), " "))
		}
		rows = rows[1:]
	}
	for i, r := range rows {
		if i == 0 && len(names) == 0 {
			b.begin(TableRow)
		} else {
			b.beginTight(TableRow)
		}
		putCells(b, r, names)
		b.end()
	}
	return true
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

// readRecords reads all records. If quotes is false, a quotation mark is an ordinary character.
func readRecords(b *builder, text string, comma rune, quotes bool) ([][]cell, error) {
	if !quotes {
		return splitRecords(text, comma), nil
	}
	r := csv.NewReader(strings.NewReader(text))
	r.Comma, r.FieldsPerRecord, r.LazyQuotes, r.ReuseRecord = comma, -1, true, true
	var rows [][]cell
	for !b.canceled() {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		row := make([]cell, len(record))
		for i, s := range record {
			line, _ := r.FieldPos(i)
			row[i] = cell{s, line}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func splitRecords(text string, comma rune) [][]cell {
	var rows [][]cell
	line := 0
	for l := range strings.SplitSeq(text, "\n") {
		line++
		if isBlank(l) {
			continue
		}
		var row []cell
		for s := range strings.SplitSeq(l, string(comma)) {
			row = append(row, cell{s, line})
		}
		rows = append(rows, row)
	}
	return rows
}

// swallowed reports whether a cell has so many lines that a stray quotation mark must have opened
// it.
func swallowed(rows [][]cell) bool {
	const most = 100
	for _, r := range rows {
		for _, c := range r {
			if len(c.text) > 4096 && strings.Count(c.text, "\n") > most {
				return true
			}
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
	case !named && (rows < 3 || share < 0.95 || longest > 200 || columns < 3 && comma == ','):
		return 0
	case share < 0.5, share == 0.5 && rows < 4:
		return 0
	}
	return float64(columns) * share * share
}

// hasNames reports whether the first row contains column names.
func hasNames(rows [][]cell) bool {
	if len(rows) < 2 {
		return false
	}
	seen := map[string]bool{}
	for _, c := range rows[0] {
		s := strings.TrimSpace(c.text)
		if s == "" || len(s) > 80 || seen[s] || strings.Trim(s, "0123456789.,-+%/: ") == "" {
			return false
		}
		seen[s] = true
	}
	return len(rows[0]) > 0
}
