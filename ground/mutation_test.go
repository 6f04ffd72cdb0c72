package ground_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/internal/surface"
)

// A mutation makes of a sentence, and the one beside it in its passage, one that says
// something else; empty where it cannot.
type mutation struct {
	name string
	make func(s, beside string) string
}

var (
	helper   = regexp.MustCompile(`\b(is|are|was|were|may|must|can|cannot|should|will|has|have)\b`)
	digits   = regexp.MustCompile(`\b\d+(?:[.,]\d+)*\b`)
	unit     = regexp.MustCompile(`\b(days?|weeks?|hours?|minutes?|seconds?|euros|bytes|MB|GB|KB|characters|night|year|month)\b`)
	called   = regexp.MustCompile("`[^`]+`" + `|\b[a-z]+ ([A-Z][a-z]+)\b`)
	numeral  = regexp.MustCompile(`\b(two|three|four|five|six|seven|eight|nine|ten)\b`)
	byWhom   = regexp.MustCompile(`^(.+?) (is|are|was|were) (\w+ed) by ([^,.;]+)\.?$`)
	articles = regexp.MustCompile(`^(?:The|A|An|Every|Each|All) `)
)

// instead replaces the first match of old by new, where that changes anything.
func instead(old *regexp.Regexp, with string) func(s, _ string) string {
	return func(s, _ string) string { return replaced(s, old, with) }
}

func replaced(s string, old *regexp.Regexp, with string) string {
	at := old.FindStringSubmatchIndex(s)
	if at == nil {
		return ""
	}
	return s[:at[0]] + string(old.ExpandString(nil, with, s, at)) + s[at[1]:]
}

// swapped puts into s what beside has where both match.
func swapped(what *regexp.Regexp) func(s, beside string) string {
	return func(s, beside string) string {
		mine := what.FindString(s)
		for _, other := range what.FindAllString(beside, -1) {
			if mine != "" && !strings.Contains(s, other) {
				return strings.Replace(s, mine, other, 1)
			}
		}
		return ""
	}
}

func subject(s string) (subject, rest string) {
	at := helper.FindStringIndex(s)
	if at == nil || at[0] < 4 || at[0] > 60 {
		return "", ""
	}
	return s[:at[0]], s[at[0]:]
}

var mutations = []mutation{
	{"number of the neighbour", swapped(digits)},
	{"numeral of the neighbour", swapped(numeral)},
	{"another number", instead(digits, "7${0}")},
	{"another numeral", instead(numeral, "eleven")},
	{"unit of the neighbour", swapped(unit)},
	{"another unit", instead(unit, "decades")},
	{"name of the neighbour", swapped(called)},
	{"denied", instead(helper, "$1 not")},
	{"denied no more", func(s, _ string) string {
		return replaced(s, regexp.MustCompile(`\b(?:not|never) `), "")
	}},
	{"may for must", instead(regexp.MustCompile(`\bmust\b`), "may")},
	{"must for may", instead(regexp.MustCompile(`\b(?:may|can)\b`), "must")},
	{"may be for is", instead(regexp.MustCompile(`\b(?:is|are)\b`), "may be")},
	{"should be for is", instead(regexp.MustCompile(`\b(?:is|are)\b`), "should be")},
	{"at least for at most", instead(regexp.MustCompile(`\b(?:up to|at most)\b`), "at least")},
	{"at most for at least", instead(regexp.MustCompile(`\bat least\b`), "at most")},
	{"more than", instead(digits, "more than ${0}")},
	{"up to", instead(regexp.MustCompile(`\b(?:within )?(\d+)\b`), "up to $1")},
	{"before for after", instead(regexp.MustCompile(`\b(?:after|until)\b`), "before")},
	{"after for before", instead(regexp.MustCompile(`\b(?:before|within|until)\b`), "after")},
	{"never", instead(helper, "$1 never")},
	{"usually", instead(helper, "$1 usually")},
	{"only", func(s, _ string) string { return "Only " + strings.ToLower(s[:1]) + s[1:] }},
	{"only, in the middle", instead(helper, "$1 only")},
	{"some for every", instead(regexp.MustCompile(`\b(?:[Ee]very|[Ee]ach|[Aa]ll)\b`), "some")},
	{"most", func(s, _ string) string {
		if !articles.MatchString(s) {
			return ""
		}
		return articles.ReplaceAllString(s, "Most ")
	}},
	{"doer for deed", func(s, _ string) string {
		m := byWhom.FindStringSubmatch(s)
		if m == nil {
			return ""
		}
		return m[4] + " " + m[2] + " " + m[3] + " by " + m[1] + "."
	}},
	{"subject of the neighbour", func(s, beside string) string {
		mine, rest := subject(s)
		theirs, _ := subject(beside)
		if mine == "" || theirs == "" || pronoun(mine) || pronoun(theirs) {
			return ""
		}
		return theirs + rest
	}},
	{"subject in the middle", func(s, beside string) string {
		mine, rest := subject(s)
		theirs, _ := subject(beside)
		if mine == "" || theirs == "" || pronoun(mine) || pronoun(theirs) {
			return ""
		}
		return mine + "and " + strings.ToLower(theirs[:1]) + theirs[1:] + rest
	}},
	{"a word of the neighbour", func(s, beside string) string {
		mine, theirs := lastWord(s), lastWord(beside)
		if mine == "" || theirs == "" || strings.Contains(strings.ToLower(s), strings.ToLower(theirs)) {
			return ""
		}
		i := strings.LastIndex(s, mine)
		return s[:i] + theirs + s[i+len(mine):]
	}},
	{"two words turned", func(s, _ string) string {
		words := slices.DeleteFunc(surface.Words(s), func(w string) bool { return len(w) < 4 || surface.Function(strings.ToLower(w)) })
		if len(words) < 3 {
			return ""
		}
		a, b := words[0], words[len(words)-1]
		if strings.EqualFold(a, b) || strings.Count(s, a) != 1 || strings.Count(s, b) != 1 {
			return ""
		}
		return strings.NewReplacer(a, b, b, a).Replace(s)
	}},
	{"without its condition", func(s, _ string) string {
		return replaced(s, regexp.MustCompile(`,? (?:if|unless|when|except|until|only|without|longer than|shorter than) [^,.;]+`), "")
	}},
}

func pronoun(subject string) bool {
	first, _, _ := strings.Cut(strings.ToLower(subject), " ")
	return slices.Contains([]string{"it", "they", "this", "that", "these", "those", "he", "she", "what", "who", "which", "there"}, first)
}

func lastWord(s string) string {
	words := surface.Words(s)
	for _, w := range slices.Backward(words) {
		if len(w) > 3 && !surface.Function(strings.ToLower(w)) {
			return w
		}
	}
	return ""
}

// A said is a sentence with its passage.
type said struct {
	text, beside, passage string
	heading               []string
}

// documents returns the sentences of prose of some documents: of the handbook that the
// engine is tested with, and of this project's own.
func documents(t *testing.T) []said {
	t.Helper()
	var files []string
	for _, pattern := range []string{"../engine/testdata/handbook/*.md", "../docs/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		files = append(files, found...)
	}
	var out []said
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		heading := []string{filepath.Base(file)}
		for block := range strings.SplitSeq(string(data), "\n\n") {
			if strings.HasPrefix(block, "#") {
				heading = []string{heading[0], strings.Trim(block, "# \n")}
				continue
			}
			spans := sentence.Spans(block)
			if strings.ContainsAny(block, "|$=<>{}") || len(spans) < 2 || surface.Code(block) {
				continue
			}
			for i, sp := range spans {
				beside := spans[(i+1)%len(spans)]
				s := strings.Join(strings.Fields(block[sp.Start:sp.End]), " ")
				if len(s) < 25 || len(s) > 250 || !strings.HasSuffix(s, ".") || strings.ContainsAny(s[:1], "-0123456789") {
					continue
				}
				out = append(out, said{s, strings.Join(strings.Fields(block[beside.Start:beside.End]), " "), block, heading})
			}
		}
	}
	return out
}

// TestMutations changes what the sentences of documents say: by something from the
// sentence beside, a negation, a bound, a modal verb. The verifier has to see it. What
// is left as it is, or is only led in to, it has to let through.
func TestMutations(t *testing.T) {
	sentences := documents(t)
	var made, caught int
	for _, m := range mutations {
		n, seen := 0, 0
		for _, s := range sentences {
			claim := m.make(s.text, s.beside)
			if claim == "" || claim == s.text || strings.Contains(strings.Join(strings.Fields(s.passage), " "), claim) {
				continue
			}
			n++
			if j := verdict(t, claim, s.passage, s.heading); j.Verdict != assay.Supported {
				seen++
			} else if testing.Verbose() {
				t.Logf("%s: %q passes for %q", m.name, claim, s.text)
			}
		}
		t.Logf("%-25s %4d of %4d caught", m.name, seen, n)
		made, caught = made+n, caught+seen
	}
	t.Logf("%d sentences, %d mutations, %d caught (%.1f%%)", len(sentences), made, caught, 100*float64(caught)/float64(made))
	if made < 1000 || float64(caught) < 0.98*float64(made) {
		t.Errorf("%d of %d mutations are caught", caught, made)
	}
	for name, harmless := range map[string]func(string) string{
		"verbatim":     func(s string) string { return s },
		"without stop": func(s string) string { return strings.TrimSuffix(s, ".") },
		"lead-in":      func(s string) string { return "According to the document, " + strings.ToLower(s[:1]) + s[1:] },
		"in short":     func(s string) string { return "In short, " + strings.ToLower(s[:1]) + s[1:] },
		"cannot":       func(s string) string { return strings.Replace(s, "cannot", "can not", 1) },
		"numerals": func(s string) string {
			return numeral.ReplaceAllStringFunc(s, func(w string) string {
				return fmt.Sprint(slices.Index(strings.Fields("zero one two three four five six seven eight nine ten"), w))
			})
		},
	} {
		refused := 0
		for _, s := range sentences {
			if j := verdict(t, harmless(s.text), s.passage, s.heading); j.Verdict != assay.Supported {
				refused++
				if refused < 6 {
					t.Logf("%s: %q is refused: %s", name, harmless(s.text), j.Reason)
				}
			}
		}
		t.Logf("%s: %d of %d refused", name, refused, len(sentences))
		if name == "verbatim" && refused > 0 || refused*20 > len(sentences) {
			t.Errorf("%s: %d of %d refused", name, refused, len(sentences))
		}
	}
}
