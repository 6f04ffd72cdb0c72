package retrieve

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
)

func TestMarks(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text, language string
		terms          []assay.Term
		matched        []string
		want           []string
	}{
		{text: "Days of leave: leaving early, 28 days.", terms: []assay.Term{{Stem: "leav"}, {Stem: "day"}}, want: []string{"Days", "leave", "leaving", "days"}},
		{text: "Der Urlaub dauert 30 Tage.", language: "de", terms: []assay.Term{{Stem: "holiday", Forms: []string{"urlaub"}}}, want: []string{"Urlaub"}},
		{text: "the server_name of nginx", matched: []string{"server_name"}, want: []string{"server_name"}},
		{text: "nothing here", terms: []assay.Term{{Stem: "leav"}}},
		{},
	} {
		var got []string
		for _, m := range Marks(test.terms, assay.Hit{Text: test.text, Language: test.language, Matched: test.matched}) {
			got = append(got, test.text[m.Start:m.End])
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", test.text, diff)
		}
	}
}
