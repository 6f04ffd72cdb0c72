package parseworker

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay/parse"
)

// bounds are inputs that need much memory or time in careless parsers: a unit that is repeated,
// between a head and a tail.
var bounds = []struct {
	name, file       string
	head, unit, tail string
	heavy            bool // its largest size needs more than the limit
}{
	{"markdown table", "a.md", "# T\n\n| a | b | c | d |\n| - | - | - | - |\n", "| 1024 | some words | 3.5 | x |\n", "", false},
	{"markdown table of small cells", "a.md", "# T\n\n| a | b | c | d |\n| - | - | - | - |\n", "|1|2|3|4|\n", "", true},
	{"markdown prose", "a.md", "# T\n\n", "Some *words* of a [sentence](http://example.com/a) with `code`, and more of them.\n\n", "", false},
	{"markdown lines", "a.md", "# T\n\n", "a\n", "", false},
	{"markdown items", "a.md", "# T\n\n", "- a\n", "", true},
	{"markdown emphasis", "a.md", "# T\n\n", "*a* _b_ ", "", false},
	{"html table", "a.html", "<html><body><table>", "<tr><td>1024</td><td>some words</td><td>3.5</td><td>x</td></tr>\n", "</table></body></html>", true},
	{"html table of small cells", "a.html", "<html><body><table>", "<tr><td>1<td>2<td>3<td>4\n", "</table></body></html>", true},
	{"html prose", "a.html", "<html><body>", "<p>Some <em>words</em> of a <a href='http://example.com/a'>sentence</a> with <code>code</code>.</p>\n", "</body></html>", true},
	{"html breaks", "a.html", "<html><body><p>", "a<br>", "</body></html>", true},
	{"html elements", "a.html", "<html><body><p>", "<b>a</b>", "</body></html>", true},
	{"csv", "a.csv", "id,name,value,note\n", "1024,some words,3.5,x\n", "", false},
	{"csv of small cells", "a.csv", "a,b,c,d\n", "1,2,3,4\n", "", true},
	{"csv of one column", "a.csv", "number\n", "1\n", "", true},
	{"csv of one row", "a.csv", "a,b\n", "1,", "\n1,2\n", false},
	{"json numbers", "a.json", `{"a": [`, "3.14159265, ", "1]}", true},
	{"json records", "a.json", "[", `{"id": 1024, "name": "some words", "value": 3.5},` + "\n", "{}]", false},
	{"json texts", "a.json", "[", `{"id": 1024, "title": "some words", "text": "a sentence with some words"},` + "\n", "{}]", false},
	{"json lines", "a.jsonl", "", `{"id": 1024, "name": "some words", "value": 3.5}` + "\n", "", false},
	{"text lines", "a.txt", "", "a\n", "", false},
	{"text prose", "a.txt", "", "Some words of a sentence, and some more of them.\n\n", "", false},
	{"rst", "a.rst", "A\n=\n\n", "Some ``words`` of a `sentence`_ here.\n\n- a\n- b\n\n", "", true},
	{"ordinary html", "a.html", "<html><body>", "<h2>The pump</h2>\n<p>The pressure of the <em>valve</em> is set before the first start and checked after each service, by an <a href='http://example.com/a'>engineer</a> who signs the sheet. It is not changed while the pump runs.</p>\n<ul><li>the sheet of the engineer</li><li>a second sheet for the office</li></ul>\n", "</body></html>", false},
	{"ordinary html table", "a.html", "<html><body><table>", "<tr><td>17/03/2024</td><td>Main street 12</td><td>Valve pressure</td><td>1024.50 EUR</td></tr>\n", "</table></body></html>", true},
	{"ordinary csv", "a.csv", "id,name,date,place,value\n", "A-000017,Some person,2024-03-17,Main street 12,1024.50 EUR\n", "", false},
	{"ordinary json", "a.json", "[", `{"id": "A-000017", "name": "Some person", "date": "2024-03-17", "tags": ["valve", "pressure"], "value": 1024.5},` + "\n", "{}]", false},
	{"ordinary markdown", "a.md", "# T\n\n", "## The pump\n\nThe pressure of the *valve* is set before the first start and checked after each service.\n\n- the sheet of the engineer\n- a second sheet for the office\n\n", "", false},
	{"ordinary go", "a.go", "package a\n\n", "// Read returns the pressure of the valve.\nfunc (v *valve) Read(ctx context.Context) (float64, error) {\n\tif err := ctx.Err(); err != nil {\n\t\treturn 0, err\n\t}\n\treturn v.sensor.value * v.scale, nil\n}\n\n", "", true},
	{"go", "a.go", "package a\n\n", "// F does a thing.\nfunc F(a int) int { return a }\n\n", "", true},
	{"python", "a.py", "#!/usr/bin/python\n", "def f(a):\n    \"\"\"Does a thing.\"\"\"\n    return a\n\n", "", true},
}

// TestBounds parses large inputs in a worker with the default memory limit and prints the peak memory
// of each. With ASSAY_LONG=1 the inputs are as large as ingest allows; text in very small cells,
// items or elements is then over the limit.
func TestBounds(t *testing.T) {
	t.Parallel()
	if raceEnabled {
		t.Skip("the race detector multiplies the memory")
	}
	size := 6 << 20
	long := os.Getenv("ASSAY_LONG") != ""
	if long {
		size = 31 << 20
	}
	if testing.Short() {
		size = 2 << 20
	}
	for _, tt := range bounds {
		t.Run(tt.name, func(t *testing.T) {
			p := testPool(t, "parse")
			p.Timeout = 5 * time.Minute // not under test, on a busy machine
			text := tt.head + strings.Repeat(tt.unit, size/len(tt.unit)) + tt.tail
			began := time.Now()
			var d parse.Document
			err := p.Walk(t.Context(), parse.Input{Name: tt.file, Data: []byte(text)}, func(p parse.Parsed) error {
				d = p.Document
				return p.Err
			})
			t.Logf("%-32s %3d MiB %6.1fs %6d MiB %5.1f× %s %d blocks %v", tt.name, len(text)>>20, time.Since(began).Seconds(), p.Peak()>>20, float64(p.Peak())/float64(len(text)), d.Type, len(d.Blocks), err)
			if err != nil && !(tt.heavy && long && errors.Is(err, parse.ErrLimit)) {
				t.Error(err)
			}
			if p.Peak() > DefaultMemory {
				t.Errorf("the worker had %d MiB in memory", p.Peak()>>20)
			}
		})
	}
}
