package entity

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// keys returns the keys of entities, with a star after titles.
func keys(list []Entity) []string {
	var keys []string
	for _, e := range list {
		if e.Title {
			e.Key += "*"
		}
		keys = append(keys, e.Key)
	}
	return keys
}

func TestPassage(t *testing.T) {
	for _, test := range []struct {
		name     string
		title    string
		headings []string
		text     string
		language string
		want     []string
	}{
		{
			name: "people and works", title: "Lilu (mythology)",
			text: `The spirit was named by Stephen Herbert Langdon and J. R. R. Tolkien in "The Lord of the Rings", not in "a small book".`,
			want: []string{"lilu mythology*", "lilu*", "lord of the rings", "stephen herbert langdon", "j r r tolkien", "rings"},
		},
		{
			name: "the start of a sentence says nothing of one word",
			text: "Records were kept. Hamburg is a city. During World War II many left Hamburg for New York.",
			want: []string{"world war ii", "hamburg", "new york"},
		},
		{
			name: "of, and, possessives, titles of people", text: "He met President Barack Obama's wife at the University of Cambridge & King's College.",
			want: []string{"president barack obama", "barack obama", "university of cambridge king college", "cambridge king college"},
		},
		{
			name: "abbreviations", text: "It moved from St. Louis to Washington, D.C., in the U.S. Then Dr. Dre left. It cost 5 USD.",
			want: []string{"st louis", "washington", "dc", "us", "dre", "usd"},
		},
		{
			name: "numbers belong to names, months are none", text: "At Super Bowl 50 in February 2016, on Monday, the 19th of May, after the 1990s.",
			want: []string{"super bowl 50"},
		},
		{
			name: "code", text: "Call os.Open, set Server.ReadHeaderTimeout or MAX_SIZE; std::vector and file_name fail with E1042 in utf8 and `gofmt`, e.g. 3.5 times.",
			want: []string{"gofmt", "os.open", "open", "server.readheadertimeout", "readheadertimeout", "max_size", "std::vector", "vector", "file_name", "e1042"},
		},
		{
			name: "variables", text: "if t.Fatalf(c.buf, err.Error) or x.y.",
			want: []string{"fatalf", "err.error", "error"},
		},
		{
			name: "declarations", title: "server.go", headings: []string{"net/http", "func (*Server) Shutdown"}, text: "stops it",
			want: []string{"server.go*", "server.shutdown*", "shutdown*"},
		},
		{name: "type", headings: []string{"type Server"}, want: []string{"server*"}},
		{
			name: "a title's parts", title: "Johnnycake, West Virginia", text: "It lies in McDowell County.",
			want: []string{"johnnycake west virginia*", "johnnycake*", "west virginia", "mcdowell county"},
		},
		{name: "title as in a URL", title: "Super_Bowl_50", want: []string{"super_bowl_50*", "super bowl 50*"}},
		{
			name: "accents", text: "Near Zürich and Besançon Łódź and Ærø lie, Café Müller too.",
			want: []string{"zurich", "besancon lodz", "aero", "cafe muller"},
		},
		{
			name: "hyphens", text: "The Coca-Cola and the Grammy-winning Jean-Luc Godard in anti-American COVID-19 films.",
			want: []string{"coca cola", "grammy", "jean luc godard", "american covid 19"},
		},
		{
			name: "German nouns", language: "de-AT",
			text: "Die Verteidigung der Panthers gab nur 308 Punkte ab. Gegen Angela Merkel sprach das große Haus in Wien, und die NATO.",
			want: []string{"verteidigung der panthers", "punkte", "angela merkel", "wien", "nato"},
		},
		{name: "scripts without capitals", title: "日本語", text: "東京は日本の首都です。Tokyo Tower は港区にある。", want: []string{"日本語*", "tokyo tower"}},
		{
			name: "ordinary words within a name", text: "They saw Gone With the Wind and In the Heat of the Night in May.",
			want: []string{"gone with the wind", "wind", "heat of the night", "night"},
		},
		{name: "nothing", text: "this is plain text, with nothing in it."},
		{name: "a lone letter", text: "There I saw Plan B and the letter Q in it.", want: []string{"plan b"}},
		{name: "unclosed quotes", text: "He said \"Nothing Ever\nand `left", want: []string{"nothing"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var f Finder
			got := keys(f.Passage(test.title, test.headings, test.text, test.language))
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty(), cmpopts.SortSlices(strings.Compare)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestQuestion(t *testing.T) {
	for question, want := range map[string][]string{
		"Are Christopher Nolan and Sathish Kalathil both film directors?":      {"christopher nolan", "sathish kalathil"},
		"What language was used in the era of Haymo of Faversham?":             {"haymo of faversham", "faversham"},
		"Gallu is a demon, Lilu is what?":                                      {"gallu", "lilu"},
		"What is the name of the waterfall in the country of the Bubye River?": {"bubye river"},
		"How does os.Open differ from ReadFile?":                               {"os.open", "open", "readfile"},
		"Wie viele Sacks erzielte Jared Allen?":                                {"wie", "sacks", "jared allen"},
		"who is he":                                                            nil,
		"":                                                                     nil,
	} {
		var f Finder
		if diff := cmp.Diff(want, f.Question(question, ""), cmpopts.EquateEmpty(), cmpopts.SortSlices(strings.Compare)); diff != "" {
			t.Errorf("%s: -want +got\n%s", question, diff)
		}
	}
}

// TestKeys checks that the spellings of a name share a key.
func TestKeys(t *testing.T) {
	for _, wordings := range [][]string{
		{"It is by The Beatles.", "It is the Beatles' song.", "for \"The Beatles\" then", "of Beatles music"},
		{"near São Paulo there", "near Sao Paulo there", "near São Paulo’s there"},
		{"call os.Open now", "call `os.Open` now", "(os.Open)", "os.Open."},
		{"of Jean-Luc Picard here", "of Jean Luc Picard here"},
		{"in the U.S. there", "in the US there"},
	} {
		var f Finder
		first := keys(f.Passage("", nil, wordings[0], ""))[0]
		for _, text := range wordings[1:] {
			if got := keys(f.Passage("", nil, text, "")); !slices.Contains(got, first) {
				t.Errorf("%q names %q, want %q as in %q", text, got, first, wordings[0])
			}
		}
	}
}

// TestMany checks the limit on the entities of a passage, and that those of the title come first.
func TestMany(t *testing.T) {
	var b strings.Builder
	for i := range 1000 {
		b.WriteString("and E")
		b.WriteString(strings.Repeat("1", i%30+1))
		b.WriteString(strings.Repeat("2", i/30+1))
		b.WriteString(", ")
	}
	var f Finder
	got := f.Passage("Codes", nil, b.String(), "")
	if len(got) != maxEntities || got[0] != (Entity{"codes", true}) {
		t.Errorf("%d entities, the first %+v", len(got), got[0])
	}
	if got := f.Passage("", nil, "The "+strings.Repeat("X", 100)+" and "+strings.Repeat("Long Name ", 40), ""); len(got) != 1 || got[0].Key != strings.TrimSpace(strings.Repeat("long name ", 4)) {
		t.Errorf("long names give %q", keys(got))
	}
}

// TestHostile checks that the time is linear for hostile texts.
func TestHostile(t *testing.T) {
	for _, piece := range []string{"A", "A ", "a", "\"", "\"A", "A_", "A.", "A of ", "é", "“", "Ab-", "::a", "U.S.", "\n", "1 ", "The ", "`a`", "der A"} {
		var f Finder
		text := strings.Repeat(piece, 1<<18/len(piece))
		f.Passage(text, []string{"func " + text}, text, "de")
	}
}

func FuzzPassage(f *testing.F) {
	f.Add("Lilu (mythology)", "func (*Server) Shutdown", `"The Lord of the Rings" by J. R. R. Tolkien, os.Open(x) & Co.`, "de")
	f.Add("a_b", "type", "U.S.A.'s “Straße”-Film, 3D, `a`, ʼn Ǆ İ \xff\x00", "")
	f.Add("", "func (", "–'’:: A.B c.D ..E", "en-GB")
	var reused Finder
	f.Fuzz(func(t *testing.T, title, heading, text, language string) {
		got := slices.Clone(reused.Passage(title, []string{"First", heading}, text, language))
		if len(got) > maxEntities {
			t.Errorf("%d entities", len(got))
		}
		seen := make(map[string]bool)
		valid := utf8.ValidString(title + heading + text)
		for _, e := range got {
			if len(e.Key) < 2 || len(e.Key) > maxKeyBytes || seen[e.Key] || valid && !utf8.ValidString(e.Key) {
				t.Errorf("key %q among %v", e.Key, got)
			}
			seen[e.Key] = true
		}
		again := reused.Passage(title, []string{"First", heading}, text, language)
		if diff := cmp.Diff(got, again, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("another result the second time:\n%s", diff)
		}
		var fresh Finder
		if diff := cmp.Diff(got, fresh.Passage(title, []string{"First", heading}, text, language), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("a fresh Finder finds otherwise:\n%s", diff)
		}
		fresh.Question(text, language)
	})
}
