package report

import (
	"bytes"
	"encoding/csv"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/answers"
	"github.com/assay-rag/assay/eval/stat"
	"github.com/assay-rag/assay/eval/testset"
)

var keep = flag.String("keep", "", "write the sample pages into this `folder`, to look at them")

func write(t *testing.T, r answers.Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// safe fails a test if a page has a foreign script or style, an attribute that runs script, a link
// to another page, or a table cell outside a table.
func safe(t *testing.T, page string) {
	t.Helper()
	scripts, styles := 0, 0
	z := html.NewTokenizer(strings.NewReader(page))
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			if err := z.Err(); !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			break
		}
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		token := z.Token()
		switch token.Data {
		case "script":
			scripts++
		case "style":
			styles++
		case "img", "iframe", "object", "embed", "base", "video", "audio", "source", "use", "image", "foreignobject":
			t.Errorf("the page has a <%s>", token.Data)
		}
		for _, a := range token.Attr {
			switch {
			case strings.HasPrefix(a.Key, "on"), a.Key == "style", a.Key == "src", a.Key == "srcset", a.Key == "action", a.Key == "xlink:href":
				t.Errorf("<%s %s=%q>", token.Data, a.Key, a.Val)
			case a.Key == "href" && !strings.HasPrefix(a.Val, "#") && a.Val != "data:,":
				t.Errorf("<%s href=%q> leads out of the page", token.Data, a.Val)
			}
		}
	}
	if scripts != 1 || styles != 1 {
		t.Errorf("%d scripts and %d styles, want one of each", scripts, styles)
	}
	if i := strings.IndexFunc(page, hides); i >= 0 {
		t.Errorf("the page holds %q", page[i:i+4])
	}
}

func TestPages(t *testing.T) {
	for name, r := range map[string]answers.Report{
		"empty":    {Set: "nothing"},
		"none":     sample(0, "static"),
		"one":      sample(1, "static"),
		"thousand": sample(1000, "auto"),
		"compared": sample(300, "static", "corrective", "auto"),
	} {
		page := write(t, r)
		safe(t, page)
		if *keep != "" {
			if err := os.WriteFile(filepath.Join(*keep, name+".html"), []byte(page), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if again := write(t, r); again != page {
			t.Errorf("%s: two pages of one report differ", name)
		}
		rows := 0
		for _, s := range r.Systems {
			rows += len(s.Outcomes)
		}
		if got := strings.Count(page, "data-right="); got != rows {
			t.Errorf("%s: %d rows for %d outcomes", name, got, rows)
		}
	}
}

// hostileReport returns a report with the given text in all its text fields.
func hostileReport(text string) answers.Report {
	o := answers.Outcome{System: text, Run: text, Error: text, Lost: answers.Stage(text), Metrics: map[string]float64{text: 0.5, "x" + text: math.NaN()}, Judges: map[string]string{text: text}}
	o.ID, o.Question, o.Answers, o.Tenant, o.Slices = text, text, []string{text}, text, map[string]string{text: text}
	o.Gold = []testset.Gold{{Document: text, Section: text, Quote: text}}
	o.Answer = assay.Answer{Status: assay.Status(text), Stop: assay.Stop(text), Text: text}
	o.Answer.Claims = []assay.Claim{{End: len(text), Verdict: assay.Verdict(text)}, {Start: -1, End: 1 << 40}, {Start: 5, End: 2}}
	o.Answer.Citations = []assay.Citation{{URI: text, Quote: text}}
	f := []answers.Figure{{Name: text, Unit: text, By: text, Mean: math.Inf(1)}, {Name: text, Low: math.NaN()}}
	s := answers.System{
		Name: text, Figures: f, Slices: []answers.Slice{{By: text, Value: text, Figures: f}, {By: text, Value: "b", Figures: f}}, Lost: map[answers.Stage]int{answers.Stage(text): 3},
		Statuses: map[string]int{text: 1}, Calibration: []stat.Bin{{Cases: 2, Score: math.NaN(), Right: 2}}, Worst: []answers.Worst{{ID: text, Question: text, Run: text, Lost: answers.Stage(text), Why: text}},
		Against: []answers.Paired{{Other: text, Figure: text, Cases: 1, Mean: math.NaN()}}, Remedies: []string{text}, Outcomes: []answers.Outcome{o}, Notes: map[string]string{text: text, "slices": text},
		NotJudged: map[string]int{text: 1},
	}
	return answers.Report{Set: text, Version: text, Index: text, Systems: []answers.System{s, s}}
}

func TestHostileText(t *testing.T) {
	for _, text := range append(slices.Clone(hostile), strings.Repeat("long ", 200_000), "") {
		page := write(t, hostileReport(text))
		safe(t, page)
		if len(page) > 3<<20 {
			t.Errorf("a page of %d bytes for a text of %d", len(page), len(text))
		}
	}
}

func FuzzHTML(f *testing.F) {
	for _, text := range hostile {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { safe(t, write(t, hostileReport(text))) })
}

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain\nlines\t":          "plain\nlines\t",
		"a\x00b":                  "a⟨U+0000⟩b",
		"\u202egnp":               "⟨U+202E⟩gnp",
		"\xff":                    "\ufffd",
		"👨\u200d👩":                "👨\u200d👩",
		strings.Repeat("ü", 4000): strings.Repeat("ü", 4000),
		strings.Repeat("ü", 5234): strings.Repeat("ü", 4000) + " … (1,234 more characters)",
	} {
		if got := visible(in); got != want {
			t.Errorf("visible(%.20q) = %.60q, want %.60q", in, got, want)
		}
	}
}

func TestCSVIsDefused(t *testing.T) {
	for in, want := range map[string]string{
		"=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@SUM(A1)": "'@SUM(A1)", "\t=1": "'\t=1", "\r=1": "'\r=1", "\n=1": "'\n=1", "  =1": "'  =1", "＝1": "'＝1",
		"a=b": "a=b", "1-2": "1-2", "": "", "'=1": "'=1", "a\x00b": "a⟨U+0000⟩b", "\u202e=1": "⟨U+202E⟩=1",
	} {
		if got := text(in); got != want {
			t.Errorf("text(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestCSV(t *testing.T) {
	r := sample(40, "static", "auto")
	r.Systems[0].Outcomes[0].Question = "=cmd|' /C calc'!A0"
	r.Systems[0].Outcomes[0].Metrics["=custom"] = -0.25
	var b bytes.Buffer
	if err := CSV(&b, r); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 81 {
		t.Fatalf("%d rows, want 81", len(rows))
	}
	want := []string{"system", "id", "question", "right", "lost", "status", "stop", "answer", "expected", "error", "run", "slice:document", "slice:type", "'=custom"}
	if diff := cmp.Diff(want, rows[0][:len(want)]); diff != "" {
		t.Errorf("head (-want +got):\n%s", diff)
	}
	if got := rows[1][2]; got != "'=cmd|' /C calc'!A0" {
		t.Errorf("the question is %q", got)
	}
	if got := rows[1][13]; got != "-0.25" {
		t.Errorf("a measure is %q", got)
	}
	if got := rows[2][13]; got != "" {
		t.Errorf("a measure that does not apply is %q", got)
	}

	b.Reset()
	if err := FiguresCSV(&b, r); err != nil {
		t.Fatal(err)
	}
	if rows, err = csv.NewReader(&b).ReadAll(); err != nil || len(rows) < 10 {
		t.Errorf("%d figures, %v", len(rows), err)
	}
}

func TestErrorsOfTheWriter(t *testing.T) {
	r := sample(200, "static")
	for name, f := range map[string]func(io.Writer, answers.Report) error{"HTML": HTML, "CSV": CSV, "FiguresCSV": FiguresCSV} {
		if err := f(full{}, r); !errors.Is(err, errFull) {
			t.Errorf("%s to a full disk: %v", name, err)
		}
	}
}

var errFull = errors.New("no space left")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

// TestRemarks checks that a measure that was not judged has no figure and a remark instead.
func TestRemarks(t *testing.T) {
	s := answers.System{Name: "auto", NotJudged: map[string]int{"correctness": 2}, Notes: map[string]string{"correctness": "not judged for 2 of the questions: no reply", "slices": "team: more than 20 values, so no table"}}
	page := write(t, answers.Report{Set: "s", Systems: []answers.System{s}})
	for _, want := range []string{"correctness: not judged for 2 of the questions: no reply", "not sliced by team"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}
