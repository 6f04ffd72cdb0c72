package lexical_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay/internal/lexical"
)

func TestNumbers(t *testing.T) {
	tests := []struct {
		text string
		want []string
	}{
		{"", nil},
		{"no numbers", nil},
		{"It takes 5 minutes.", []string{"5"}},
		{"1,000 rows, 3.50 each, 007", []string{"1000", "3.5", "7"}},
		{"four balls and Twelve men", []string{"4", "12"}},
		{"in the 1990s, on the 3rd, 50%", []string{"1990", "3", "50"}},
		{"utf8 E1042 go1.22 x2", nil},
		{"version 1.22.3", nil},
		{"0.0", []string{"0"}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, lexical.Numbers(tt.text)); diff != "" {
			t.Errorf("Numbers(%q) (-want +got):\n%s", tt.text, diff)
		}
	}
}

func TestLabels(t *testing.T) {
	tests := []struct {
		text string
		want []string
	}{
		{"How many pages does chapter 3 have?", []string{"3"}},
		{"Is the timeout 30 seconds?", nil},
		{"What changed in version 2?", []string{"2"}},
		{"What are two ways to do it?", nil},
		{"", nil},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, lexical.Labels(tt.text)); diff != "" {
			t.Errorf("Labels(%q) (-want +got):\n%s", tt.text, diff)
		}
	}
}

func TestContrasts(t *testing.T) {
	tests := []struct {
		text, one, other string
		ok               bool
	}{
		{"ParseInLocation is like Parse but differs in two ways.", "ParseInLocation is like Parse but ", " in two ways.", true},
		{"A slice grows, whereas an array does not.", "A slice grows, ", " an array does not.", true},
		{"Arrays and slices differ.", "Arrays", "slices ", true},
		{"The difference between new and make is small.", " between new", "make is small.", true},
		{"Unlike arrays, slices grow.", " arrays", " slices grow.", true},
		{"Bananas are yellow.", "", "", false},
	}
	for _, tt := range tests {
		one, other, ok := lexical.Contrasts(tt.text)
		if one != tt.one || other != tt.other || ok != tt.ok {
			t.Errorf("Contrasts(%q) = %q, %q, %v; want %q, %q, %v", tt.text, one, other, ok, tt.one, tt.other, tt.ok)
		}
	}
}

func TestNames(t *testing.T) {
	tests := []struct {
		text string
		want []string
	}{
		{"", nil},
		{"How do I stop it?", nil},
		{"Who wrote Hamlet?", []string{"Hamlet"}},
		{"What is the capital of France?", []string{"France"}},
		{"Was it G. Stanley Hall?", []string{"G. Stanley Hall"}},
		{"What does os.Open return?", []string{"os.Open"}},
		{"why does ReadHeaderTimeout matter with HTTP/2", []string{"ReadHeaderTimeout", "HTTP"}},
		{"what is error E1042", []string{"E1042"}},
		{"what does `make` do with \"cap\"?", []string{"make", "cap"}},
		{"Does Christopher Nolan know Sathish Kalathil?", []string{"Christopher Nolan", "Sathish Kalathil"}},
		{"set file_name first", []string{"file_name"}},
		{"It takes 5 minutes, 1,000 times", nil},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, lexical.Names(tt.text)); diff != "" {
			t.Errorf("Names(%q) (-want +got):\n%s", tt.text, diff)
		}
	}
}

func TestFunction(t *testing.T) {
	for _, w := range []string{"the", "what", "does", "without", "please"} {
		if !lexical.Function(w) {
			t.Errorf("Function(%q) = false", w)
		}
	}
	for _, w := range []string{"", "server", "The", "400", "two"} {
		if lexical.Function(w) {
			t.Errorf("Function(%q) = true", w)
		}
	}
}

func TestAsking(t *testing.T) {
	tests := []struct {
		question string
		want     map[string]bool
	}{
		{"How long is the lease?", map[string]bool{"long": true}},
		{"how FAST, and how often?", map[string]bool{"fast": true, "often": true}},
		{"How many long leases are there?", map[string]bool{}},
		{"The long lease is how", map[string]bool{}},
		{"How leases end", map[string]bool{}},
		{"", map[string]bool{}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, lexical.Asking(tt.question)); diff != "" {
			t.Errorf("Asking(%q) (-want +got):\n%s", tt.question, diff)
		}
	}
}

func TestFocus(t *testing.T) {
	tests := []struct {
		heading string
		held    []string // stems
		want    float64
	}{
		{"Notice period", []string{"notic", "period"}, 1},
		{"Notice period", []string{"notic"}, 0.5},
		{"The period of notice", []string{"period"}, 0.5},
		{"Notice period", nil, 0},
		{"func ListenAndServe", []string{"listen", "serv"}, 1},
		{"func ListenAndServe", []string{"listenandserv"}, 0}, // its parts count
		{"type Server", []string{"server"}, 1},
		{"The", []string{"the"}, 0},
		{"", nil, 0},
	}
	for _, tt := range tests {
		got := lexical.Focus(tt.heading, "", func(stem string) bool { return slices.Contains(tt.held, stem) })
		if got != tt.want {
			t.Errorf("Focus(%q, %q) = %v, want %v", tt.heading, tt.held, got, tt.want)
		}
	}
}

func TestNegations(t *testing.T) {
	tests := []struct {
		text string
		want int
	}{
		{"It is closed.", 0},
		{"It is not closed.", 1},
		{"It isn't closed, never was.", 2},
		{"It isn’t closed.", 1},
		{"Notable knots.", 0},
	}
	for _, tt := range tests {
		if got := lexical.Negations(tt.text); got != tt.want {
			t.Errorf("Negations(%q) = %d, want %d", tt.text, got, tt.want)
		}
	}
}

func FuzzSurface(f *testing.F) {
	for _, s := range []string{"", "Who wrote Hamlet in 1601?", "os.Open(\"x\")", "a.\xff,1", "“q”", "É. B. C", "1,2,3-4_"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		lexical.Words(text)
		lexical.Negations(text)
		lexical.Code(text)
		lexical.Contrasts(text)
		lexical.Labels(text)
		if share := lexical.Focus(text, "de", func(string) bool { return len(text)%2 == 0 }); share < 0 || share > 1 {
			t.Errorf("Focus(%q) = %v", text, share)
		}
		for _, n := range append(lexical.Names(text), lexical.Numbers(text)...) {
			if n == "" {
				t.Errorf("an empty name or number in %q", text)
			}
		}
	})
}

func TestCode(t *testing.T) {
	code := []string{
		"type credentials struct {\n\tusername, password string\n}",
		"func (s *Server) timeout() time.Duration {\n\tif s.Timeout != 0 {",
		"x := f(y)",
		"Path string // optional\nDomain string // optional",
		"// a comment\nreturn x",
		"for (int i = 0; i < n; i++) sum += a[i];",
		"<div class=\"a\"><p>",
	}
	prose := []string{
		"Shutdown gracefully shuts down the server without interrupting any active connections.",
		"The comparison operators == and != apply to operands that are comparable.",
		"If x is nil (see above), os.Open returns an error; otherwise it opens the file.",
		"It costs 5 € (about 4.50 £) per month.",
		"The airport is the second-busiest of the country by passengers (see the list below); it is also near the coast.",
		"A send on a nil channel blocks forever",
		"Die Straße ist gesperrt.",
	}
	for _, text := range code {
		if !lexical.Code(text) {
			t.Errorf("Code(%q) = false", text)
		}
	}
	for _, text := range prose {
		if lexical.Code(text) {
			t.Errorf("Code(%q) = true", text)
		}
	}
	const body = "func open(path string) error {\n\tif path == \"\" {\n\t\treturn errEmpty\n\t}"
	for text, want := range map[string]bool{
		"":   false,
		body: true,
		body + "\n\n\tname string\n\n\treturn nil\n}":                                                                          true, // a line of it looks like prose
		"Open opens a file.\n\n" + body:                                                                                        true,
		"Open opens the file that path names and returns an error where there is none.\n\nx := f(y)":                           false,
		"To close it call this.\n\n" + body + body:                                                                             false,
		"def fromkeys(cls, iterable):\n    self = cls()\n    for key in iterable:\n        self[key] = value\n    return self": true,
		"- red\n- green\n- blue":                                                                                               false,
		"14 22 18 9":                                                                                                           false,
		"你好，世界。这是一个测试。":                                                                                                        false,
	} {
		if got := lexical.MostlyCode(text); got != want {
			t.Errorf("MostlyCode(%q) = %v", text, got)
		}
	}
}

func TestRephrases(t *testing.T) {
	content := func(text string) map[string]bool {
		set := map[string]bool{}
		for _, stem := range lexical.Content(text) {
			set[stem] = true
		}
		return set
	}
	tests := []struct {
		query, earlier string
		want           bool
	}{
		{"servers shut down", "How do I shut down the server?", true},
		{"search for information about servers", "server", true},
		{"server timeout", "server", false},
		{"", "server", false},
		{"the", "server", true}, // adds nothing
		{"E1042 cause of the error in module", "E1043 cause of the error in module", false},
		{"population of Springfield in 1990 by district and age", "population of Springfield in 1990 by district and sex", false},
		{"alpha beta gamma delta epsilon zeta eta theta iota lambda", "alpha beta gamma delta epsilon zeta eta theta kappa iota", true},
	}
	for _, tt := range tests {
		if got := lexical.Rephrases(tt.query, tt.earlier, content); got != tt.want {
			t.Errorf("Rephrases(%q, %q) = %v, want %v", tt.query, tt.earlier, got, tt.want)
		}
	}
}
