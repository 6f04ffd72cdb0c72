package local

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay/role"
)

func TestAnswerGrader(t *testing.T) {
	tests := []struct {
		name, question, says, under string
		least, most                 float64
		lacks                       []string
		beside, untold              bool
	}{
		{"all of it", "How many days of leave may I carry over?", "You may carry over five days of leave.", "", 0.9, 1, []string{}, false, false},
		{"by its heading", "When does the kiosk open?", "It opens at nine.", "Kiosk", 0.9, 1, []string{}, false, false},
		{"no number", "How many days of leave may I carry over?", "You may carry over some days of leave.", "", 0.4, 0.6, []string{"a number"}, false, false},
		{"nobody", "Who approves travel to a customer?", "Travel to a customer is approved.", "", 0.4, 0.6, []string{"a name"}, false, false},
		{"something else", "How long is the notice period?", "The canteen serves soup.", "", 0, 0, []string{"a number"}, true, false},
		{"of another", "What does Heron cost?", "Falcon is sold in Rome.", "", 0, 0, []string{"Heron"}, true, false},
		{"in another language", "Wie lange ist die Frist, wenn man die Wohnung kündigen will?", "You have to give notice three months ahead, in writing, and to the landlord.", "", 0, 0, []string{}, false, true},
		{"of a question without words", "And?", "The canteen serves soup.", "", 0, 0, []string{}, false, true},
	}
	for _, tt := range tests {
		in := role.AnswerInput{Question: tt.question, Statements: []role.ShownStatement{{Text: tt.says}}, Quoted: true}
		if tt.under != "" {
			in.Statements[0].Under = []string{tt.under}
		}
		out, err := AnswerGrader{}.GradeAnswer(t.Context(), nil, in)
		if err != nil || (out.Relevance == nil) != tt.untold || out.Beside != tt.beside {
			t.Errorf("%s: %+v, %v", tt.name, out, err)
			continue
		}
		if diff := cmp.Diff(tt.lacks, out.Lacks); diff != "" {
			t.Errorf("%s: lacks (-want +got):\n%s", tt.name, diff)
		}
		if out.Relevance != nil && (*out.Relevance < tt.least || *out.Relevance > tt.most) {
			t.Errorf("%s: relevance %v, want [%v, %v]", tt.name, *out.Relevance, tt.least, tt.most)
		}
		in.Quoted = false // other words can say it
		if out, err := (AnswerGrader{}).GradeAnswer(t.Context(), nil, in); err != nil || out.Beside {
			t.Errorf("%s, in other words: %+v, %v", tt.name, out, err)
		}
	}
}
