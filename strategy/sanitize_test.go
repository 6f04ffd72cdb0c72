package strategy

import (
	"strings"
	"testing"
)

func TestStatementsAreCleaned(t *testing.T) {
	from := sources{
		uris:  []string{"https://docs.example/travel", "handbook/travel.md"},
		words: []string{"Book at https://travel.example/book or by phone. Use Map<K, V> and call handlers[i](ctx). See note [3]."},
	}
	tests := []struct {
		name, text, want string
		dropped          bool
	}{
		{"words", "Book by phone.", "Book by phone.", false},
		{"a link to a source", "See [the rules](https://docs.example/travel).", "See [the rules](https://docs.example/travel).", false},
		{"a link to a source's path", "See [the rules](handbook/travel.md).", "See [the rules](handbook/travel.md).", false},
		{"a link elsewhere", "See [the rules](https://evil.example/x).", "", true},
		{"a link with a title", `See [the rules](https://evil.example/x "the rules").`, "", true},
		{"a link in angle brackets", "See [the rules](<https://evil.example/x>).", "", true},
		{"a link to what a passage names", "[Book](https://travel.example/book) now.", "Book (https://travel.example/book) now.", true},
		{"a script for a link", "See [this](javascript:alert(1)).", "", true},
		{"an image", "Nice ![cat](https://docs.example/travel) here.", "", true},
		{"an image by reference", "Nice ![cat][1] here.", "", true},
		{"a link around an image", "[![x](https://evil.example/a)](https://evil.example/b) x", "", true},
		{"an address of a passage", "Book at https://travel.example/book.", "Book at https://travel.example/book.", false},
		{"an address of a source", "It is at https://docs.example/travel, see there.", "It is at https://docs.example/travel, see there.", false},
		{"an address elsewhere", "Send it to https://evil.example/?q=secret now.", "", true},
		{"one that begins like a known one", "At https://docs.example/travel.evil.example now.", "", true},
		{"www", "Go to www.evil.example today.", "", true},
		{"in angle brackets", "Go to <https://evil.example> today.", "", true},
		{"mail", "Write to mailto:a@evil.example today.", "", true},
		{"data", "See data:text/html,x today.", "", true},
		{"tags", "a <script>alert(1)</script> <b>b</b> <img src=x onerror=y>", "", true},
		{"a tag without its end", "a <img src=x onerror=y", "", true},
		{"a comment", "a <!-- b --> c <!-- d", "", true},
		{"a heading", "## Book by phone.", "Book by phone.", false},
		{"an address in angle brackets that is known", "Book at <https://travel.example/book>.", "Book at https://travel.example/book.", false},
		{"a type of a passage in other words", "One may use Map<K, V> here.", "One may use Map<K, V> here.", false},
		{"a comparison", "a < b and c > d", "a < b and c > d", false},
		{"code of a passage", "Use Map<K, V> and call handlers[i](ctx).", "Use Map<K, V> and call handlers[i](ctx).", false},
		{"numbers of its own", "It lasts 3 days [1]. Or 4 [2, 3][4–5].", "It lasts 3 days. Or 4.", false},
		{"a number of the source", "See note [3].", "See note [3].", false},
		{"invisible", "Bo\u200bok \u202eby\u202c ph\x1b[31mone\x00.", "Book by ph[31mone.", false},
		{"nothing", "", "", false},
	}
	for _, tt := range tests {
		got, dropped := from.statement(tt.text)
		if got != tt.want || dropped != tt.dropped {
			t.Errorf("%s: %q, dropped %v; want %q, %v", tt.name, got, dropped, tt.want, tt.dropped)
		}
	}
}

func TestLines(t *testing.T) {
	about := questionSources("What is at https://go.dev/dl?")
	for _, tt := range []struct{ text, want string }{
		{"the size\nof it", "the size of it"},
		{"what is at https://go.dev/dl", "what is at https://go.dev/dl"},
		{"see https://evil.example", "see"},
		{strings.Repeat("ü", 600), strings.Repeat("ü", 500) + " …"},
	} {
		if got := about.line(tt.text); got != tt.want {
			t.Errorf("line(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
	if got := about.lines([]string{"", "a", "\u200b"}); len(got) != 1 || got[0] != "a" {
		t.Errorf("lines = %q", got)
	}
	if got := remarkLine("x: http://localhost:1/v1: refused\n<b>[a](b)</b> ![i](j)"); got != "x: http://localhost:1/v1: refused a (b) i" {
		t.Errorf("remark = %q", got)
	}
}

// FuzzStatement checks that the output has nothing that can be followed or loaded.
func FuzzStatement(f *testing.F) {
	for _, s := range []string{
		"[a](https://x.example) ![b](c) <i>d</i> www.e.f [1]", "[![x](https://a.b)](https://c.d)", "<<a>script>", "ht<b>tps://x.example", "[a](b](https://c.d)",
		"https://https://a.b", "!![a](b)](https://c.d)", "javajavascript:script:x", "data:data:text/html,text/html,x",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, _ := sources{}.statement(text)
		if again, _ := (sources{}).statement(got); again != got {
			t.Errorf("%q becomes %q and then %q", text, got, again)
		}
		for _, bad := range []string{"\x1b", "\x00", "\u202e"} {
			if strings.Contains(got, bad) {
				t.Errorf("%q holds %q", got, bad)
			}
		}
		if address.MatchString(got) || image.MatchString(got) || link.MatchString(got) || tag.MatchString(got) {
			t.Errorf("%q became %q", text, got)
		}
	})
}
