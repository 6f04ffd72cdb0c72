package ground

import (
	"strings"
)

// sameWord reports whether two words are forms of one.
func sameWord(a, b token) bool {
	return a.stem == b.stem || a.kind == plain && b.kind == plain && lemma(a.lower) == lemma(b.lower)
}

// lemma is the form of a verb without what its tense adds.
func lemma(lower string) string {
	if base := irregular[lower]; base != "" {
		return base
	}
	return stemOf(lower)
}

// irregular are past forms that no ending tells.
var irregular = func() map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(`take took taken
give gave given
write wrote written
know knew known
show shown
see saw seen
do did done
go went gone
break broke broken
choose chose chosen
drive drove driven
eat ate eaten
fall fell fallen
forget forgot forgotten
grow grew grown
hide hid hidden
speak spoke spoken
steal stole stolen
wear wore worn
make made
pay paid
keep kept
hold held
send sent
leave left
lose lost
buy bought
bring brought
tell told
sell sold
run ran
begin began begun
become became
come came
get got gotten
lead led
meet met
rise rose risen
say said
stand stood
win won
beat beaten
lend lent
spend spent
build built
draw drew drawn
throw threw thrown
teach taught
catch caught
feel felt
sit sat
swim swam swum
sing sang sung
drink drank drunk
`) {
		forms := strings.Fields(line)
		for _, f := range forms {
			m[f] = stemOf(forms[0])
		}
	}
	return m
}()
