package analysis_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay/internal/analysis"
)

// show renders tokens as term@position, parts in parentheses.
func show(tokens []analysis.Token) string {
	var out []string
	for _, t := range tokens {
		s := fmt.Sprintf("%s@%d", t.Term, t.Position)
		if t.Part {
			s = "(" + s + ")"
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func TestTokens(t *testing.T) {
	tests := []struct{ text, want string }{
		{"", ""},
		{" \n\t.,;-_", ""},
		{"The quick brown foxes are running", "quick@1 brown@2 fox@3 run@5"},
		{"Déjà vu in Zürich, Łódź and Straße", "deja@0 vu@1 zurich@3 lodz@4 strass@6"},
		{"naïve ﬁle ①", "naiv@0 file@1 1@2"},

		// Identifiers.
		{"os.Open", "os.open@0 (os@0) (open@1)"},
		{"see os.Open.", "see@0 os.open@1 (os@1) (open@2)"},
		{"file_name", "file_name@0 (file@0) (name@1)"},
		{"__init__ _x foo_", "init@0 x@1 foo@2"},
		{"ReadHeaderTimeout", "readheadertimeout@0 (read@0) (header@1) (timeout@2)"},
		{"JavaScript javascript", "javascript@0 (java@0) (script@1) javascript@2"},
		{"http.ListenAndServe(addr)", "http.listenandserve@0 (http@0) (listenandserv@1) (listen@1) (serv@3) addr@4"},
		{"HTTPServer", "httpserver@0 (http@0) (server@1)"},
		{"URLs IDs iPhone", "url@0 id@1 iphon@2 (i@2) (phone@3)"},
		{"sha256Sum H2O E1042 IL2R", "sha256sum@0 (sha256@0) (sum@1) h2o@2 e1042@3 il2r@4"},
		{"std::vector<int>", "std::vector@0 (std@0) (vector@1) int@2"},
		{"C++ c# C++17 i++; F#4", "c++@0 (c@0) c#@1 (c@1) c++@2 (c@2) 17@3 i++@4 (i@4) f@5 4@6"},
		{"a.b c:d", "ab@0 c@1 d@2"},
		{"self._x", "self@0 x@1"},

		// Numbers, versions, units.
		{"go1.22 v1.2.3 3.14", "go1.22@0 (go@0) (1.22@1) v1.2.3@2 (v@2) (1.2.3@3) 3.14@4"},
		{"1,000 and 12,345,678.", "1000@0 (1@0) (000@1) 12345678@3 (12@3) (345@4) (678@5)"},
		{"1,000.50 1,2 100,2000", "1000.50@0 (1@0) (000.50@1) 1@2 2@3 100@4 2000@5"},
		{"HTTP/2 I/O km/h and/or a/very/long/path", "http/2@0 (http@0) (2@1) i/o@2 (i@2) (o@3) km/h@4 (km@4) (h@5) a/very@8 (veri@9) long@10 path@11"},
		{"10:30 2024-01-31", "10@0 30@1 2024@2 01@3 31@4"},

		// Words with signs.
		{"state-of-the-art e-mail", "state@0 art@3 e@4 mail@5"},
		{"Go's don't O'Brien's dogs' l’homme", "go@0 dont@1 obrien@2 dog@3 lhomm@4"},
		{"U.S. e.g. U.S.A", "us@0 eg@1 usa@2"},
		{"end.Next server.go", "end.next@0 (end@0) (next@1) server.go@2 (server@2) (go@3)"},

		// Other scripts.
		{"日本語", "日本@0 (日@0) 本語@1 (本@1) (語@1)"},
		{"Go言語x 中 ｱｲ", "go@0 言語@1 (言@1) (語@1) x@2 中@3 アイ@4"},
		{"한국어 ラーメン", "한국@0 (한@0) 국어@1 (국@1) (어@1) ラー@2 ーメ@3 メン@4"},
		{"ｶﾞｲﾄﾞ ガイド", "ガイ@0 イド@1 ガイ@2 イド@3"},
		{"ｶﾞ が か\u3099", "ガ@0 が@1 が@2"},
		{"\u1112\u1161\u11ab\u1100\u116e\u11a8", "한국@0 (한@0) (국@0)"}, // 한국 in letters
		{"葛\U000e0100城 人々 あゝ 〇", "葛城@0 (葛@0) (城@0) 人々@1 (人@1) (々@1) あゝ@2 〇@3"},
		{"ＡＢＣ１２３ Ｔシャツ 第3章", "abc123@0 t@1 シャ@2 ャツ@3 第@4 3@5 章@6"},
		{"Москва Ёлка", "москва@0 елка@1"},
		{"हिन्दी", "हिन्दी@0"},
		{"x\xffy", "x@0 y@1"},
	}
	for _, tt := range tests {
		got := analysis.Tokens(tt.text, "")
		if diff := cmp.Diff(tt.want, show(got)); diff != "" {
			t.Errorf("Tokens(%q): -want +got\n%s", tt.text, diff)
		}
	}
}

func TestTokensLanguage(t *testing.T) {
	tests := []struct{ text, language, want string }{
		{"running", "en-GB", "run@0"},
		{"l'homme et les élèves", "fr", "homm@1 elev@4"},
		{"работает", "ru", "работа@0"},
		{"die Häuser und", "de", "haus@1"},
		{"Haeuser fuer Mueller, AES256 und neue Quellen", "de", "haus@0 mull@2 aes256@3 neu@5 quell@6"},
		{"aujourd'hui l’école qu'on", "fr", "aujourd@0 hui@1 ecol@3"},
		{"dell'anno po' c'è", "it", "anno@1 po@2"},
		{"Țările și ţările", "ro", "tar@0 tar@2"},
		{"IŞIK İstanbul'da", "tr", "isik@0 istanbul@1"},
		{"الكتاب الكِتاب", "ar", "كتاب@0 كتاب@1"},
		{"taloissa ja", "fi", "talo@0"},
		{"Ἡ ὁδός ΟΔΟΣ", "el", "η@0 οδοσ@1 οδοσ@2"},
		{"Łódź dzień", "pl", "lodz@0 dzien@1"},
		{"the cats", "xx", "the@0 cats@1"},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, show(analysis.Tokens(tt.text, tt.language))); diff != "" {
			t.Errorf("Tokens(%q, %q): -want +got\n%s", tt.text, tt.language, diff)
		}
	}
}

func TestTokensOffsets(t *testing.T) {
	text := "Über os.Open: don't. 日本語"
	want := []string{"Über", "os.Open", "os", "Open", "don't", "日本", "日", "本語", "本", "語"}
	var got []string
	for _, tok := range analysis.Tokens(text, "") {
		got = append(got, text[tok.Start:tok.End])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestTokensLong checks that a word longer than a compound is cut, and that each token matches
// itself.
func TestTokensLong(t *testing.T) {
	text := strings.Repeat("a", 1000) + " " + strings.Repeat("seg.", 200) + "end " + strings.Repeat("é", 300)
	for _, tok := range analysis.Tokens(text, "") {
		if tok.End-tok.Start > 256 {
			t.Errorf("token of %d bytes", tok.End-tok.Start)
		}
		if !utf8.ValidString(tok.Term) {
			t.Errorf("term %q is not UTF-8", tok.Term)
		}
	}
}

// TestTokensLongJoined checks that a cut does not separate what a joiner joins.
func TestTokensLongJoined(t *testing.T) {
	for n := 240; n < 260; n++ {
		for _, end := range []string{".5", "'t", "'é", "+", "::x"} {
			for _, digit := range []string{"1", "a"} {
				text := strings.Repeat(digit, n) + end + " and more"
				if tokens := analysis.Tokens(text, ""); len(tokens) < 2 {
					t.Errorf("Tokens of %d × %s and %q: %v", n, digit, end, tokens)
				}
			}
		}
	}
}

func TestStop(t *testing.T) {
	for word, want := range map[string]bool{"the": true, "The": true, "THESE": true, "us": false, "": false, "when": false} {
		if got := analysis.Stop(word); got != want {
			t.Errorf("Stop(%q) = %v, want %v", word, got, want)
		}
	}
}

func TestStem(t *testing.T) {
	for _, tt := range []struct{ word, language, want string }{
		{"Running", "", "run"},
		{"Café's", "en", "cafe"},
		{"E1042", "en", "e1042"},
		{"casas", "es", "cas"},
		{"Häuser", "de", "haus"},
	} {
		if got := analysis.Stem(tt.word, tt.language); got != tt.want {
			t.Errorf("Stem(%q, %q) = %q, want %q", tt.word, tt.language, got, tt.want)
		}
	}
}

// allLanguages lists the languages with rules, and one without.
var allLanguages = strings.Fields("en ar ca da de es fi fr ga hu it nl no pt ro ru sv ta tr ja")

func FuzzTokens(f *testing.F) {
	for _, s := range []string{
		"os.Open file_name ReadHeaderTimeout E1042", "go1.22 HTTP/2 C++ C# 1,000.5", "U.S. don't l’homme",
		"日本語 ｱｲﾞ 한국 葛\U000e0100", "\u1112\u1161\u11ab\u3099 ﾞ", "a\xff\xc3", "é\u0301\u0301x_.y", strings.Repeat("x.", 300), "1,000,", "İ ﬁ ½",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, language := range allLanguages {
			checkTokens(t, text, language)
		}
	})
}

func checkTokens(t *testing.T, text, language string) {
	t.Helper()
	tokens := analysis.Tokens(text, language)
	previous := analysis.Token{}
	for _, tok := range tokens {
		if tok.Start < 0 || tok.Start >= tok.End || tok.End > len(text) {
			t.Fatalf("%+v is outside the text of %d bytes", tok, len(text))
		}
		if tok.Term == "" {
			t.Fatalf("%+v: empty term", tok)
		}
		if utf8.ValidString(text) && (!utf8.ValidString(tok.Term) || !utf8.ValidString(text[tok.Start:tok.End])) {
			t.Fatalf("%+v cuts a character", tok)
		}
		if tok.Position < previous.Position || tok.Start < previous.Start {
			t.Fatalf("%+v comes after %+v", tok, previous)
		}
		previous = tok
	}
	fresh := []analysis.Token(nil)
	analysis.NewAnalyzer(language).Each(text, func(tok analysis.Token) { fresh = append(fresh, tok) })
	if diff := cmp.Diff(tokens, fresh); diff != "" {
		t.Fatalf("a fresh Analyzer finds other tokens: %s", diff)
	}
}

// prose returns some megabytes of English with code in it: Go's own documentation.
func prose(b *testing.B) string {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Skipf("go env GOROOT: %v", err)
	}
	root := strings.TrimSpace(string(out))
	files, _ := filepath.Glob(filepath.Join(root, "doc", "*.html"))
	more, _ := filepath.Glob(filepath.Join(root, "src", "net", "http", "*.go"))
	var text strings.Builder
	for _, f := range append(files, more...) {
		data, err := os.ReadFile(f)
		if err != nil {
			b.Fatal(err)
		}
		text.Write(data)
	}
	if text.Len() == 0 {
		b.Skip("this Go installation has no doc folder")
	}
	return text.String()
}

func BenchmarkEach(b *testing.B) {
	text := prose(b)
	a := analysis.NewAnalyzer("")
	b.SetBytes(int64(len(text)))
	n := 0
	for b.Loop() {
		a.Each(text, func(analysis.Token) { n++ })
	}
}

// BenchmarkEachCold measures the first pass over a text, with an empty cache.
func BenchmarkEachCold(b *testing.B) {
	text := prose(b)
	b.SetBytes(int64(len(text)))
	n := 0
	for b.Loop() {
		analysis.NewAnalyzer("").Each(text, func(analysis.Token) { n++ })
	}
}

func TestApart(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "",
		"ReadHeaderTimeout":               "Read Header Timeout",
		"func (s *HTTPServer) tls.newURL": "func (s *HTTP Server) tls.new URL",
		"sha256Sum of IDs":                "sha256 Sum of IDs",
		"a\xffB Straße":                   "a\xffB Straße",
	} {
		if got := analysis.Apart(text); got != want {
			t.Errorf("Apart(%q) = %q, want %q", text, got, want)
		}
	}
}
