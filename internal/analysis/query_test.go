package analysis_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay/internal/analysis"
)

func TestQueryTerms(t *testing.T) {
	tests := []struct {
		text      string
		languages string
		want      string
	}{
		{"", "", ""},
		{"the servers and the Server", "", "servers=server"},
		{"os.Open file_name", "en", "os.Open=os.open os=os Open=open file_name=file_name file=file name=name"},
		{"Wo stehen die Häuser?", "de", "stehen=steh Häuser=haus"},
		{"running Häuser", "de en", "running=run|running Häuser=hauser|haus"},
		{"running Häuser", "de", "running=running Häuser=haus"},
		{"running", "xx ja en-GB en de", "running=run|running"},

		// A word that shares a form with an earlier one belongs to the same term. Its remaining
		// forms are kept.
		{"runs running run", "en de", "runs=run running=running"},

		// Stop words of one language are words of another, unless the query is evidently written in
		// the first.
		{"die hard", "en de", "die=die hard=hard"},
		{"What is Go?", "de en", "What=what Go=go"},
		{"What is Go?", "ja en", "What=what Go=go"},
		{"Hauptstadt von Polen", "de en", "Hauptstadt=hauptstadt von=von Polen=polen|pol"},
		{"not a number", "en de", "number=number|numb"},
		{"Wer hat die Mauer gebaut?", "en de", "Mauer=mauer|mau gebaut=gebaut"},
		{"Where has he been?", "en es", "Where=where|wher has=has he=he been=been"},
		{"What is the capital of France?", "en de fr", "What=what capital=capit|capital France=franc"},

		{"l'homme", "en fr", "l'homme=lhomm homme=homm"},
		{"東京 tower", "ja en", "東京=東京 tower=tower"},
		{"税", "", "税=税"},
		{"消費税とは", "ja", "消費=消費 費税=費税 税と=税と とは=とは"},
	}
	for _, tt := range tests {
		var got []string
		for _, q := range analysis.QueryTerms(tt.text, strings.Fields(tt.languages)) {
			got = append(got, fmt.Sprintf("%s=%s", q.Text, strings.Join(q.Forms, "|")))
		}
		if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("QueryTerms(%q, %q): -want +got\n%s", tt.text, tt.languages, diff)
		}
	}
}

// TestQueryTermsQuestions checks that question words are not terms.
func TestQueryTermsQuestions(t *testing.T) {
	tests := []struct{ language, question, want string }{
		{"de", "Bis wann kann ich Urlaub übertragen?", "Urlaub übertragen"},
		{"de", "Wie viele Urlaubstage habe ich?", "Urlaubstage"},
		{"de", "Wem muss ich eine Krankheit melden, und warum?", "Krankheit melden"},
		{"de", "Gibt es einen Zuschuss, und wen darf ich fragen?", "Zuschuss fragen"},
		{"de", "Woher weiss ich, wofür unsere Abteilung haftet?", "weiss Abteilung haftet"},
		{"de", "Koennen wir Muell trennen?", "Muell trennen"},
		{"ca", "Quants dies de vacances tinc?", "dies vacances"},
		{"da", "Hvor mange feriedage har jeg, og hvornår skal jeg søge?", "feriedage søge"},
		{"es", "¿Cuántos días de vacaciones tengo?", "días vacaciones"},
		{"es", "¿Cómo puedo pedirlas y cuándo?", "pedirlas"},
		{"fi", "Kuinka monta lomapäivää minulla on?", "monta lomapäivää"},
		{"fi", "Miksi lento voidaan perua ja saanko rahat?", "lento voidaan perua rahat"},
		{"fr", "Combien de jours de congé peut-on reporter et jusqu'à quand ?", "jours congé reporter"},
		{"fr", "Pourquoi dois-je prévenir ?", "prévenir"},
		{"hu", "Hány nap szabadság van, és mikor kell kérni?", "nap szabadság kérni"},
		{"it", "Quanti giorni di ferie ho e quando posso prenderli?", "giorni ferie prenderli"},
		{"it", "Perché dov'è la mensa?", "mensa"},
		{"nl", "Hoeveel vakantiedagen heb ik en wanneer moet ik ze opnemen?", "vakantiedagen opnemen"},
		{"nb", "Hvor mange feriedager har jeg, og hvorfor må jeg søke?", "feriedager søke"},
		{"nn", "Kvifor kan eg ikkje søkje?", "søkje"},
		{"pt", "Quantos dias de férias tenho e quando posso usá-los?", "dias férias usá los"},
		{"ro", "Câte zile de concediu pot lua și când trebuie cerute?", "zile concediu lua cerute"},
		{"ru", "Сколько дней отпуска можно перенести и почему?", "дней отпуска перенести"},
		{"sv", "Hur många semesterdagar har jag och när måste jag söka?", "semesterdagar söka"},
		{"tr", "Kaç gün izin var ve nereye başvurmak gerekir?", "gün izin var başvurmak gerekir"},

		// English keeps its question words; they are handled when questions are rated.
		{"en", "How many days do I have, and when can I take them?", "How many days do I have when can take them"},
	}
	for _, tt := range tests {
		var got []string
		for _, q := range analysis.QueryTerms(tt.question, []string{tt.language}) {
			got = append(got, q.Text)
		}
		if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s: QueryTerms(%q): -want +got\n%s", tt.language, tt.question, diff)
		}
	}
}

// FuzzQueryTerms checks that for one language the terms are those of Tokens, and that for several
// languages no two terms share a form.
func FuzzQueryTerms(f *testing.F) {
	for _, s := range []string{"Wer hat die Mauer gebaut?", "os.Open l'homme running runs", "東京 ｱ C++ 1,000", "a\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, language := range allLanguages {
			var want, got []string
			known := map[string]bool{}
			for _, tok := range analysis.Tokens(text, language) {
				if !known[tok.Term] && !tok.Character {
					known[tok.Term] = true
					want = append(want, tok.Term)
				}
			}
			for _, q := range analysis.QueryTerms(text, []string{language}) {
				got = append(got, q.Forms...)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s: -tokens +terms\n%s", language, diff)
			}
		}
		known := map[string]bool{}
		for _, q := range analysis.QueryTerms(text, allLanguages) {
			if q.Text == "" || len(q.Forms) == 0 || !strings.Contains(text, q.Text) {
				t.Fatalf("%+v is no term of the query", q)
			}
			for _, form := range q.Forms {
				if known[form] {
					t.Fatalf("form %q belongs to two terms", form)
				}
				known[form] = true
			}
		}
	})
}
