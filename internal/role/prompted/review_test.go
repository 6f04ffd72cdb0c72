package prompted_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay/internal/role/prompted"
	"github.com/assay-rag/assay/role"
)

func TestReflect(t *testing.T) {
	known := role.ReflectInput{Question: "q", Known: []string{"a"}, Rounds: 1}
	strict := known
	strict.Threshold = 0.95
	tests := []struct {
		name  string
		in    role.ReflectInput
		reply string
		want  role.ReflectionStatus
	}{
		{"complete", known, `{"justification":"all","coverage":0.9,"status":"completed"}`, role.CompletedStatus},
		{"complete under the threshold", strict, `{"justification":"all","coverage":0.9,"status":"COMPLETED"}`, role.IncompleteStatus},
		{"incomplete", known, `{"justification":"some","coverage":1,"status":"INCOMPLETE"}`, role.IncompleteStatus},
		{"complete with nothing known", role.ReflectInput{Question: "q"}, `{"justification":"all","coverage":1,"status":"COMPLETED"}`, role.IncompleteStatus},
		{"more than all", known, `{"justification":"all","coverage":7,"status":"COMPLETED"}`, role.IncompleteStatus},
		{"another status", known, `{"justification":"all","coverage":1,"status":"DONE"}`, role.IncompleteStatus},
	}
	for _, tt := range tests {
		got, err := prompted.Judge{Config: config()}.Reflect(t.Context(), replies(t, tt.reply), tt.in)
		if err != nil || got.Status != tt.want || got.Justification == "" || got.Threshold == 0 {
			t.Errorf("%s: %+v, %v", tt.name, got, err)
		}
	}
}

func TestJudge(t *testing.T) {
	empty := drafted
	empty.Draft = role.Draft{}
	tests := []struct {
		name  string
		in    role.DraftInput
		reply string
		want  role.JudgeVerdict
	}{
		{"accept", drafted, `{"reason":"fine","revise":[],"verdict":"Accept"}`, role.Accept},
		{"accept with something to revise", drafted, `{"reason":"fine","revise":["say when"],"verdict":"ACCEPT"}`, role.Revise},
		{"revise", drafted, `{"reason":"no","revise":["say when"],"verdict":"REVISE"}`, role.Revise},
		{"revise without saying what", drafted, `{"reason":"no","revise":[],"verdict":"REVISE"}`, role.Revise},
		{"accept a draft that says nothing", empty, `{"reason":"fine","revise":[],"verdict":"ACCEPT"}`, role.Revise},
	}
	for _, tt := range tests {
		got, err := prompted.Judge{Config: config()}.JudgeDraft(t.Context(), replies(t, tt.reply), tt.in)
		if err != nil || got.Verdict != tt.want || (got.Verdict == role.Revise) != (len(got.Revise) > 0) {
			t.Errorf("%s: %+v, %v", tt.name, got, err)
		}
	}
}

func TestCriticise(t *testing.T) {
	got, err := prompted.Judge{Config: config()}.Criticise(t.Context(), replies(t,
		`{"remarks":[{"statement":0,"flaw":"missing","advice":"say when"},{"statement":2,"flaw":"unclear","advice":"x"},{"statement":3,"flaw":"unclear","advice":"y"}],"grounded":"good","complete":"poor","relevant":"good","clear":"fair"}`,
	), drafted)
	want := []role.Remark{{Statement: -1, Flaw: role.FlawMissing, Advice: "say when"}, {Statement: 1, Flaw: role.FlawUnclear, Advice: "x"}}
	if diff := cmp.Diff(want, got.Remarks); err != nil || diff != "" || got.Complete != role.Poor || len(got.Notes) != 1 {
		t.Errorf("%+v, %v (-want +got):\n%s", got, err, diff)
	}
}

func TestGradeSupport(t *testing.T) {
	in := drafted
	in.Draft.Statements = append(in.Draft.Statements, role.Statement{Text: "It is so."})
	got, err := prompted.Judge{Config: config()}.GradeSupport(t.Context(), replies(t,
		`{"grades":[{"statement":1,"grade":"supported"},{"statement":3,"grade":"supported"},{"statement":4,"grade":"supported"}]}`), in)
	want := []role.Support{role.FullySupported, role.PartlySupported, role.NotSupported}
	if diff := cmp.Diff(want, got.Grades); err != nil || diff != "" || len(got.Notes) != 1 {
		t.Errorf("%+v, %v (-want +got):\n%s", got, err, diff)
	}
}

// TestAnalyse checks that a statement must cite a source that contains the names in it.
func TestAnalyse(t *testing.T) {
	in := role.Reading{Question: "What do Acme Housing and Bolt GmbH ask of tenants?", Evidence: evidence(
		"Tenants of Acme Housing give notice three months ahead. The form is E1042.",
		"At Bolt GmbH, tenants give notice two months ahead. Ibuprofen is not kept there.",
	)}
	tests := []struct {
		text    string
		sources string
		kept    bool
	}{
		{"Tenants of Acme Housing give notice three months ahead.", "[1]", true},
		{"Acme Housing's tenants give notice three months ahead.", "[1]", true},
		{"Tenants of Bolt GmbH give notice two months ahead.", "[2]", true},
		{"Tenants of Bolt GmbH give notice three months ahead.", "[1]", false},
		{"Acme Housing asks for two months.", "[2]", false},
		{"Acme Housing asks for three months.", "[2,1]", true},
		{"Bolt GmbH asks for three months.", "[1]", false},
		{"Tenants of acme housing give notice three months ahead, says Evilcorp.", "[1]", false},
		{"Acme Housing's E1042 is the form.", "[1]", true},
		{"Bolt GmbH's E1042 is the form.", "[1]", false},
		{"The form is E1042.", "[1]", true},
		{"The form is E1043.", "[1]", false},
		{"Ibuprofen is not kept at all.", "[2]", true},
		{"Ibuprofen is not kept at all.", "[1]", false},
		{"Zyrtec is not kept at all.", "[2]", false},
		{"Renters wait for three months.", "[1]", true},
		{"Additionally tenants wait.", "[1]", true},
		{"The notice period is 90 days.", "[1]", false},
		{"It is called “a lease for ever”.", "[1]", false},
	}
	for _, tt := range tests {
		reply := `{"categories":[{"name":"c","statements":[{"text":"` + tt.text + `","sources":` + tt.sources + `}]}],"answered":["it"],"open":[]}`
		got, err := prompted.Judge{Config: config()}.Analyse(t.Context(), replies(t, reply), in)
		if err != nil {
			t.Fatal(err)
		}
		if kept := len(got.Categories) == 1; kept != tt.kept || kept == (len(got.Dropped) == 1) || kept == (len(got.Notes) == 1) {
			t.Errorf("%q from %s: %+v", tt.text, tt.sources, got)
		}
	}
}

// TestAnalyseGerman checks that in German capitalised nouns are not names, but identifiers are.
func TestAnalyseGerman(t *testing.T) {
	in := role.Reading{Question: "Was müssen die Mieter tun?", Evidence: evidence("Die Mieter kündigen drei Monate vorher mit dem Formular E1042.")}
	reply := `{"categories":[{"name":"Frist","statements":[
		{"text":"Die Mieter müssen die Kündigung drei Monate vorher mit dem Formular E1042 einreichen.","sources":[1]},
		{"text":"Für die Kündigung ist das Formular E1043 nicht zu nehmen, wenn sie schon da ist.","sources":[1]},
		{"text":"Evilcorp verlangt drei Monate.","sources":[1]},
		{"text":"Frau Müller leitet die Mieter.","sources":[1]}]}]}`
	got, err := prompted.Judge{Config: config()}.Analyse(t.Context(), replies(t, reply), in)
	if err != nil || len(got.Categories) != 1 || len(got.Categories[0].Statements) != 1 || len(got.Dropped) != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	for i, name := range []string{"E1043", "Evilcorp", "Müller"} {
		if !strings.Contains(got.Dropped[i].Reason, name) {
			t.Errorf("dropped for %q, want one for %s", got.Dropped[i].Reason, name)
		}
	}
}

// TestAnalyseTranslated checks that German nouns are not taken for names if the sources are in
// another language.
func TestAnalyseTranslated(t *testing.T) {
	in := role.Reading{Question: "Was müssen die Mieter tun?", Evidence: evidence("Tenants of the house give notice three months before they leave, and they use the form E1042 for that.")}
	reply := `{"categories":[{"name":"Frist","statements":[{"text":"Die Mieter müssen die Kündigung drei Monate vor dem Auszug mit E1042 einreichen.","sources":[1]}]}]}`
	got, err := prompted.Judge{Config: config()}.Analyse(t.Context(), replies(t, reply), in)
	if err != nil || len(got.Categories) != 1 || len(got.Dropped) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestAnalyseNames checks that a statement of mostly names is checked too: its many capitals do not
// make it German.
func TestAnalyseNames(t *testing.T) {
	in := role.Reading{Question: "Who works at Acme Housing?", Evidence: evidence("Alice Brown and Bob Smith work at Acme Housing, and so does the caretaker of the house.")}
	reply := `{"categories":[{"name":"People","statements":[{"text":"Chair Alice Brown; Auditor Bob Smith; Founder Carol Jones; Counsel David Lee; Head Erin Gray; Clerk Frank Moore; Owner Grace Hall; Porter Henry Ford.","sources":[1]}]}]}`
	got, err := prompted.Judge{Config: config()}.Analyse(t.Context(), replies(t, reply), in)
	if err != nil || len(got.Categories) != 0 || len(got.Dropped) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestTools(t *testing.T) {
	x, err := prompted.Actor{Config: config()}.Extract(t.Context(), replies(t,
		`{"entities":[{"name":"Acme Housing","kind":"landlord","sources":[2,1]},{"name":"Evilcorp","kind":"?","sources":[1]}],"facts":[{"text":"Evilcorp takes 900 euros.","sources":[1]},{"text":"The deposit is 900 euros.","sources":[1]}]}`), role.ExtractInput{Reading: reading, EntityType: "landlord"})
	if err != nil || len(x.Entities) != 1 || len(x.Entities[0].Evidence) != 1 || len(x.Facts) != 1 || len(x.Dropped) != 2 {
		t.Errorf("extraction %+v, %v", x, err)
	}
	s, err := prompted.Actor{Config: config()}.Summarise(t.Context(), replies(t, `{"statements":[{"text":"The deposit is 950 euros.","sources":[1]},{"text":"Landlords wait six months.","sources":[2]}]}`), reading)
	if err != nil || len(s.Statements) != 1 || len(s.Dropped) != 1 {
		t.Errorf("summary %+v, %v", s, err)
	}
	m, err := prompted.Actor{Config: config()}.Compare(t.Context(), replies(t,
		`{"points":[{"aspect":"who","sides":[{"text":"Tenants wait.","sources":[1]},{"text":"Evilcorp waits.","sources":[2]}],"relation":"differ"}]}`), reading)
	if err != nil || len(m.Points) != 0 || len(m.Dropped) != 2 {
		t.Errorf("comparison %+v, %v", m, err)
	}
}
