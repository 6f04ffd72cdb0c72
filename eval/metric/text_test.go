package metric_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay/eval/metric"
)

func TestText(t *testing.T) {
	tests := []struct {
		said    string
		answers []string
		exact   float64
		f1      float64
		holds   float64
	}{
		{"The  Hague!", []string{"hague"}, 1, 1, 1},
		// "first president was g stanley hall" has 3 of 3 of its words in 6: 2·3/(6+3)
		{"The first president was G. Stanley Hall.", []string{"G. Stanley Hall"}, 0, 0.6667, 1},
		// "he was born in hague": 2·1/(5+1)
		{"He was born in the Hague", []string{"The Hague"}, 0, 0.3333, 1},
		// The best reference answer counts: "10 percent" and "10%" without the sign, 2·1/(2+1).
		{"10 percent", []string{"a tenth", "10%"}, 0, 0.6667, 1},
		{"It has 1,350 rooms.", []string{"1350"}, 0, 0.4, 1}, // "it has 1350 rooms": 2·1/(4+1)
		{"He worked in Londonderry.", []string{"London"}, 0, 0, 0},
		// "cat sat" and "cat mat": 2·1/(2+2)
		{"the cat sat", []string{"cat the mat"}, 0, 0.5, 0},
		// as bags, each word as often as both have it: 2·2/(2+3)
		{"na na", []string{"na na na"}, 0, 0.8, 0},
		{"", []string{"x"}, 0, 0, 0},
		{"the", []string{"a"}, 1, 1, 0}, // neither has words
		{"something", nil, 0, 0, 0},
		{"U.S.A.", []string{"USA"}, 1, 1, 1},
		{"„Kanzler“ – Merkel…", []string{"kanzler merkel"}, 1, 1, 1}, // MLQA: punctuation outside ASCII
		// Chinese characters are words: "北 京" in "他 在 北 京": 2·2/(4+2)
		{"他在北京。", []string{"北京"}, 0, 0.6667, 1},
	}
	for _, tt := range tests {
		exact, f1, holds := metric.ExactMatch(tt.said, tt.answers), metric.F1(tt.said, tt.answers), metric.Contains(tt.said, tt.answers)
		if exact != tt.exact || !near(f1, tt.f1) || holds != tt.holds {
			t.Errorf("%q against %q: exact match %v, F1 %.4f, contains %v; want %v, %.4f, %v", tt.said, tt.answers, exact, f1, holds, tt.exact, tt.f1, tt.holds)
		}
	}
}

// TestPublishedSQuAD compares with the examples on the cards of the metric in Hugging Face's
// library and in TorchMetrics.
func TestPublishedSQuAD(t *testing.T) {
	questions := []struct {
		said    string
		answers []string
		exact   float64
		f1      float64
	}{
		{"1976", []string{"1976"}, 1, 1},
		{"1999", []string{"1976"}, 0, 0},
		{"Beyonce", []string{"Beyoncé and Bruno Mars"}, 0, 0},
		{"climate change", []string{"climate change"}, 1, 1},
	}
	for _, q := range questions {
		if exact, f1 := metric.ExactMatch(q.said, q.answers), metric.F1(q.said, q.answers); exact != q.exact || f1 != q.f1 {
			t.Errorf("%q against %q: %v and %v, want %v and %v", q.said, q.answers, exact, f1, q.exact, q.f1)
		}
	}
}

func TestWords(t *testing.T) {
	tests := map[string]string{
		"A cat, an owl & the dog_s":  "cat owl dogs",
		"don't-stop":                 "dontstop",
		"Die Übermacht":              "die übermacht",
		"5 € / 3°":                   "5 € 3°", // symbols outside ASCII are not punctuation
		"the\u00a0theatre\tA\nthe a": "theatre",
		"カタ1":                        "カ タ 1",
	}
	for text, want := range tests {
		if diff := cmp.Diff(want, strings.Join(metric.Words(text), " ")); diff != "" {
			t.Errorf("Words(%q): (-want +got)\n%s", text, diff)
		}
	}
}
