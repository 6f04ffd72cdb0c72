package ground

import (
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func quoted(cited []Passage, spans []Span) []string {
	var out []string
	for _, sp := range spans {
		out = append(out, cited[sp.Passage].Context[sp.Start:sp.End])
	}
	return out
}

func TestLeastSpans(t *testing.T) {
	const pro = "The Pro plan costs 30 euros a month. It includes 100 GB of storage. Support is given by telephone around the clock."
	const table = "Prices of the plans:\n\n| Plan | Price | Storage |\n| --- | --- | --- |\n| Basic | 12 euros | 5 GB |\n| Pro | 30 euros | 100 GB |"
	const leave = "Every employee has 28 days of annual leave. Days that are carried over expire on 31 March."
	tests := []struct {
		claim string
		cited []string
		want  []string
	}{
		{"The Pro plan costs 30 euros a month.", []string{pro}, []string{"The Pro plan costs 30 euros a month."}},
		{"For 30 euros a month, the Pro plan has 100 GB of storage.", []string{pro}, []string{"The Pro plan costs 30 euros a month.", "It includes 100 GB of storage."}},
		{"Telephone support is available around the clock.", []string{leave, pro}, []string{"Support is given by telephone around the clock."}},
		{"Employees have 28 days of leave, and the Pro plan costs 30 euros.", []string{leave, pro}, []string{"Every employee has 28 days of annual leave.", "The Pro plan costs 30 euros a month."}},
		{"The Basic plan costs 12 euros.", []string{table}, []string{"| Basic | 12 euros | 5 GB |"}},
		{"Leave that was carried over is lost after March 31.", []string{leave}, []string{"Days that are carried over expire on 31 March."}},
		{"The Pro plan costs\n30 euros a month.", []string{pro}, []string{"The Pro plan costs 30 euros a month."}},
		{"MaxBytesReader is much like io.LimitReader.", []string{"MaxBytesReader is similar to io.LimitReader. It closes.\n\nfunc MaxBytesReader(w io.Writer) {\n\tif n < 0 {\n\t\tn = 0\n\t}\n}"}, []string{"MaxBytesReader is similar to io.LimitReader."}},
		{"Bananas are yellow.", []string{pro}, nil},
		{"Anything", nil, nil},
		{"", []string{pro}, nil},
	}
	for _, tt := range tests {
		var cited []Passage
		for _, c := range tt.cited {
			cited = append(cited, Passage{Quote: c, Context: c})
		}
		if diff := cmp.Diff(tt.want, quoted(cited, leastSpans(tt.claim, cited))); diff != "" {
			t.Errorf("leastSpans(%q) (-want +got):\n%s", tt.claim, diff)
		}
	}
}

func FuzzLeastSpans(f *testing.F) {
	f.Add("The Pro plan costs 30 euros.", "The Pro plan. | a | b |\nIt costs 30 euros für alle.")
	f.Add("\xff 3", "# 3\n\n\xff 3 a.")
	f.Fuzz(func(t *testing.T, claim, text string) {
		spans := leastSpans(claim, []Passage{{Context: text}, {Context: claim + " " + text}})
		at := [2]int{}
		for _, sp := range spans {
			context := []string{text, claim + " " + text}[sp.Passage]
			if sp.Start < at[sp.Passage] || sp.End <= sp.Start || sp.End > len(context) || utf8.ValidString(context) && !utf8.ValidString(context[sp.Start:sp.End]) {
				t.Fatalf("leastSpans(%q, %q) = %v", claim, text, spans)
			}
			at[sp.Passage] = sp.End
		}
	})
}
