package sentence

import (
	"os"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// cases are texts with "‖" between sentences.
var cases = []string{
	"",
	" \n\n\t ",
	"One.",
	"No stop at all",
	"One. ‖Two! ‖Three? ‖Four",
	"Use a buffer, e.g. a ring, i.e. one that wraps. ‖Then stop.",
	"Some sorts (e.g. Quicksort) are fast. ‖Others are not.",
	"Dr. Smith met Prof. Jones vs. Mr. Brown. ‖They talked.",
	"It logs, retries, etc. ‖The next call succeeds.",
	"It logs, retries, etc. and goes on.",
	"See Fig. 2 and Sec. 3.1 for details. ‖No. 5 is alive.",
	"See Fig. B for details. ‖Next.",
	"Is it safe? ‖No. ‖It is not.",
	"Go 1.22.3 was released. ‖It has 3.5 times the speed.",
	"It was fixed in Go 1.21. ‖The bug is gone.",
	"It was fixed in version 2. ‖5 bugs remain.",
	"Call os.Open first. ‖os.Open returns an error.",
	"Edit foo.go and bar.go. ‖Then run go vet ./... on it.",
	"Run go test ./... ‖Then commit.",
	"The file is closed. ‖net/http does that.",
	"The file is closed. ‖closeNotify does that.",
	"the file is closed. ‖there is no more to do.",
	"Wait... and see. ‖Wait... ‖Then see.",
	"Wait… and see. ‖Wait… ‖Then see.",
	"A gap . . . in the text. ‖Next.",
	`He said "Stop." ‖Then he left.`,
	`He said "Stop!" and left. ‖Good.`,
	"He said “Stop.” ‖Then he left.",
	"(This is one.) ‖This is two.",
	"It works (see foo.go). ‖Next.",
	"It works (see above.) and more. ‖Next.",
	"A sentence.[12] ‖Another one.[3][4] ‖Third.",
	"It is **bold.** ‖Next is _slanted._ ‖Done.",
	"G. Stanley Hall was born in 1846. ‖He died in 1924.",
	"A book by J. R. R. Tolkien. ‖It is long.",
	"It is written in C. ‖The compiler is small.",
	"He lives in the U.S. Government house. ‖She lives in the U.S. ‖They meet.",
	"It starts at 5 p.m. on Monday. ‖It ends at 6 p.m. ‖The day is over.",
	"Acme Inc. was sold. ‖It belongs to Foo Ltd. ‖That is all.",
	"See https://example.com/a.b?c=d. ‖Then go to http://x.org/. ‖Done.",
	"See https://example.com/x.html for more. ‖Next.",
	"First part.\n‖Second line goes\non here.",
	"A wrapped\nline ends. ‖Another\nstarts.",
	"A title\n\n‖A paragraph without stop\n \t\n‖another",
	"Items:\n‖- one\n‖- two\n‖- three",
	"Items:\n‖* one thing\n  goes on\n‖* two",
	"Steps:\n‖1. Do this. ‖Then that.\n‖2. Stop.",
	"Steps:\n‖1) do this\n‖2) stop",
	"1. First of all, begin.",
	"a. First of all, begin.",
	"2.3. Scope. ‖This part says more.",
	"It happened in\n1984. ‖Then it ended.",
	"Die Datei wird z.B. beim Start gelesen. ‖Danach nicht mehr.",
	"Ca. 5 Dateien usw. werden gelesen. ‖Der Rest, d.h. alles, nicht.",
	"これは文です。‖次の文です。‖「はい。」‖終わり",
	"这是一个句子。‖这是另一个！‖真的吗？‖是的",
	"What?! ‖Really!! ‖Yes.",
	"Yahoo! announced it. ‖Nobody cared.",
	"Use `a. B` here. ‖Use `.` there. ‖Done.",
	"The tick ` is alone. ‖Next one.",
	"The value is -1. ‖The other is 2.",
	"Set x = 5. ‖Set y = 6.",
	"¿Qué es? ‖Es algo. ‖¡Sí! ‖Claro.",
	"It ends. – But not here. ‖So.",
	"Et al. is Latin. ‖Smith et al. found it. ‖This is known.",
	"The T.J. Hooper case. ‖It is old.",
	"Shutdown works by first closing all open listeners, then closing all idle connections. ‖" +
		"When Shutdown is called, Serve, ListenAndServe, and\nListenAndServeTLS immediately return ErrServerClosed. ‖Make sure the\nprogram doesn't exit.",
	"Approx. 5 items. ‖The rest.",
	"Jan. 5 was cold. ‖It was in Jan. ‖Then came Feb. 3.",
	"Read Vol. II of it. ‖Then p. 7.",
	"Bytes used.......... 6539.10 of all\nEntries.......... 3",
	"Line one.\r\n‖Line two.\r\n\r\n‖Line three.",
	// German ordinals.
	"Übertragener Urlaub verfällt am 31. März. ‖Danach ist er fort.",
	"Vom 1. Januar bis zum 5. Mai 2024 gilt das. ‖Sonst nicht.",
	"Das Haus ist aus dem 19. Jahrhundert. ‖Der 3. Absatz gilt.",
	"Fällig am 1. September oder am 15. November.",
	"Die Frist endet am 31. ‖Danach ist Schluss.",
	"Das Limit ist 31. ‖September ist frei.",
	"Stichtag ist der 15. ‖Er gilt für alle.",
	"The limit is 12. ‖September was quiet.",
	"I am 31. ‖She is 30.",
}

func TestSpans(t *testing.T) {
	for _, c := range cases {
		want := make([]string, 0)
		for part := range strings.SplitSeq(c, "‖") {
			if p := strings.TrimSpace(part); p != "" {
				want = append(want, p)
			}
		}
		text := strings.ReplaceAll(c, "‖", "")
		got := make([]string, 0)
		for _, s := range Spans(text) {
			got = append(got, text[s.Start:s.End])
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Spans(%q): (-want +got)\n%s", text, diff)
		}
	}
}

// checkSpans checks spans against the contract of Spans.
func checkSpans(t *testing.T, text string, spans []Span) {
	t.Helper()
	end, valid := 0, utf8.ValidString(text)
	blank := func(s string) bool { return strings.TrimFunc(s, unicode.IsSpace) == "" }
	for i, s := range spans {
		if s.Start < end || s.End <= s.Start || s.End > len(text) {
			t.Fatalf("span %d is [%d, %d) after %d in %d bytes", i, s.Start, s.End, end, len(text))
		}
		if !blank(text[end:s.Start]) {
			t.Fatalf("text before span %d is lost: %q", i, text[end:s.Start])
		}
		if got := text[s.Start:s.End]; strings.TrimFunc(got, unicode.IsSpace) != got {
			t.Fatalf("span %d is not trimmed: %q", i, got)
		}
		if valid && !utf8.ValidString(text[s.Start:s.End]) {
			t.Fatalf("span %d cuts a rune: %q", i, text[s.Start:s.End])
		}
		end = s.End
	}
	if !blank(text[end:]) {
		t.Fatalf("text after the last span is lost: %q", text[end:])
	}
}

func FuzzSpans(f *testing.F) {
	for _, c := range cases {
		f.Add(strings.ReplaceAll(c, "‖", ""))
	}
	f.Add("\xff.\xfe \x80! a")
	f.Add("a.\u2028b\u2029c\u00a0.\u3000d")
	f.Fuzz(func(t *testing.T, text string) {
		checkSpans(t, text, Spans(text))
	})
}

// TestSpansLinear reads megabytes of text that could make a scanner look back or ahead too far. It
// passes if it terminates in time.
func TestSpansLinear(t *testing.T) {
	for _, unit := range []string{".", ". ", "`", "a`.", "(", "[1", "\n", "\n ", "x", "1. ", "- \n", "\n1. "} {
		text := strings.Repeat(unit, 1<<20/len(unit))
		checkSpans(t, text, Spans(text))
	}
}

func BenchmarkSpans(b *testing.B) {
	data, err := os.ReadFile("sentence_test.go")
	if err != nil {
		b.Fatal(err)
	}
	text := string(data)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Spans(text)
	}
}
