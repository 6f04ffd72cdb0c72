package lexical

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOutOf(t *testing.T) {
	tests := []struct {
		text, name string
		place      bool
		want       string
	}{
		{"How is the server configured in orion?", "orion", true, "How is the server configured?"},
		{"What is the port of Vega?", "vega", true, "What is the port?"},
		{"In orion, how is the server configured?", "orion", true, "How is the server configured?"},
		{"How is the server in orion configured?", "orion", true, "How is the server configured?"},
		{"How is the server in orion set up, and why?", "orion", false, ""},
		{"What is orion's port?", "orion", true, "What is the port?"},
		{"What is the port in the collection orion?", "orion", true, "What is the port?"},
		{"What is the port in the orion collection?", "orion", true, "What is the port?"},
		{"What does the HR handbook in hr-handbook say about leave?", "hr-handbook", true, "What does the HR handbook say about leave?"},
		{"How long is leave in the HR handbook?", "hr-handbook", true, "How long is leave?"},
		{"How is the server configured (Getting started (lyra))?", "lyra", true, "How is the server configured?"},
		{"How is the server configured (Getting started (lyra))? and the port?", "lyra", true, "How is the server configured? and the port?"},
		{"How do I configure Getting started (vega)?", "vega", true, "How do I configure Getting started?"},
		{"What is the port in nova, and in orion?", "orion", true, "What is the port in nova?"},
		{"What is in orion?", "orion", true, "What is in orion?"},
		{"How many security groups are there?", "security", false, ""},
		{"What is the limit of security groups?", "security", false, ""},
		{"How do I configure orion?", "orion", false, ""},
		{"How do orion and nova differ?", "orion", false, ""},
		{"Is it in it?", "it", false, ""},
		{"", "orion", false, ""},
		{"in", "", false, ""},
	}
	for _, test := range tests {
		if got := Place(test.text, test.name); got != test.place {
			t.Errorf("Place(%q, %q) = %v", test.text, test.name, got)
		}
		if got := OutOf(test.text, test.name); test.place && got != test.want {
			t.Errorf("OutOf(%q, %q) = %q, want %q", test.text, test.name, got, test.want)
		}
	}
}

func TestPlaces(t *testing.T) {
	tests := []struct {
		text string
		want []string
	}{
		{"How is the server configured in orion?", []string{"orion"}},
		{"How long is leave in the HR handbook?", []string{"the HR handbook", "HR handbook"}},
		{"What is meant: Start (vega) or Start (lyra)?", []string{"vega", "lyra"}},
		{"How does it work?", nil},
	}
	for _, test := range tests {
		if got := Places(test.text); !cmp.Equal(got, test.want) {
			t.Errorf("Places(%q) = %q, want %q", test.text, got, test.want)
		}
	}
}

// TestPlacesLong looks for places in a text whose words are many, which must not take the square of its
// length: a text eight times as long takes about eight times as long, and not 64 times. A machine that
// is busy with something else during the longer one gets more tries.
func TestPlacesLong(t *testing.T) {
	places := func(sentences int) time.Duration {
		text := strings.Repeat("How long is leave, and who approves it? ", sentences) + "Is that so in orion?"
		begin := time.Now()
		if got := Places(text); !cmp.Equal(got, []string{"orion"}) {
			t.Errorf("Places(%d sentences) = %q", sentences, got)
		}
		return time.Since(begin)
	}
	const tries = 10
	for try := 1; ; try++ {
		short, long := places(250), places(2000)
		if long < 24*short {
			break
		}
		if try == tries {
			t.Fatalf("a text takes %v, and one eight times as long %v", short, long)
		}
	}
}
