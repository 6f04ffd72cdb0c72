package mutate_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/assay-rag/assay/eval/mutate"
)

func TestOf(t *testing.T) {
	const source = "Travel outside Europe is approved by Ines Calloway and Tom Reed. The monthly rent was 1,150 euros from 14 May 1868 to 1912; no more than 30 days late. " +
		"Mutex.TryLock returns ErrBusy at 10:00 on Monday. Tools such as http2client and http2server run on uint8."
	tests := []struct {
		claim string
		kind  mutate.Kind
		old   string // "": none
	}{
		{"Rent of 1,150 euros was due.", mutate.Number, "1,150"},
		{"Two weeks are enough.", mutate.Number, "Two"},
		{"It runs on uint8.", mutate.Number, ""},
		{"AES-256 is used.", mutate.Number, ""},
		{"It began on 14 May.", mutate.Number, ""},
		{"It began in 1912.", mutate.Number, ""},
		{"It began on 14 May 1868.", mutate.Date, "May"},
		{"It began in 1912.", mutate.Date, "1912"},
		{"You may go.", mutate.Date, ""},
		{"It opens at 10:00.", mutate.Date, "10"},
		{"It opens on Mondays.", mutate.Date, "Monday"},
		{"Ask Ines Calloway.", mutate.Name, "Ines Calloway"},
		{"Outside Europe, ask the boss.", mutate.Name, "Europe"},
		{"The setting http2client stays.", mutate.Name, "http2client"}, // not to http2server, which is also true
		{"The rent was 1,150 euros.", mutate.Unit, "euros"},
		{"It takes half an hour.", mutate.Unit, "hour"},
		{"The hour hand is gone.", mutate.Unit, ""},
		{"Travel is approved.", mutate.Negation, "is"},
		{"You cannot travel.", mutate.Negation, "cannot"},
		{"It has been there since May 1912.", mutate.Negation, "has been"},
		{"At most 30 days are allowed.", mutate.Comparison, "At most"},
		{"No more than 30 days are allowed.", mutate.Comparison, "No more than"},
		{"It is unique up to ordering.", mutate.Comparison, ""},
	}
	for _, tt := range tests {
		got := ""
		for _, m := range mutate.Of(tt.claim, source) {
			if m.Kind == tt.kind && (got == "" || m.Old == tt.old) {
				got = strings.TrimSpace(m.Old)
			}
			if m.Claim == tt.claim || !strings.Contains(m.Claim, strings.TrimSpace(m.New)[1:]) {
				t.Errorf("Of(%q) = %+v", tt.claim, m)
			}
		}
		if got != tt.old && !(tt.old == "hour" && strings.HasSuffix(got, "hour")) {
			t.Errorf("Of(%q) changes %q as %s, want %q", tt.claim, got, tt.kind, tt.old)
		}
	}
}

// TestOfLeavesWhatIsSo checks that a statement that the source contains verbatim is not a mutation.
func TestOfLeavesWhatIsSo(t *testing.T) {
	const source = "Cats may enter. Cats may not enter the kitchen."
	for _, m := range mutate.Of("Cats may enter the kitchen", source) {
		if strings.Contains(source, m.Claim) {
			t.Errorf("Of makes %q, which its source says", m.Claim)
		}
	}
}

func FuzzOf(f *testing.F) {
	f.Add("On 5 April 1754 Contrecœur left with 500 men.", "Trent had 40 men in May, from 10:00.")
	f.Add("It is not “free” — 4 °C.", "\xff 0")
	f.Fuzz(func(t *testing.T, claim, source string) {
		for _, m := range mutate.Of(claim, source) {
			if m.Claim == claim || utf8.ValidString(claim+source) && !utf8.ValidString(m.Claim) {
				t.Errorf("Of(%q, %q) = %+v", claim, source, m)
			}
		}
	})
}
