package ground_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay/ground"
)

// alone is what the claims of a statement say, each by itself.
func alone(statement string) []string {
	var out []string
	for _, c := range ground.Claims(statement, nil) {
		out = append(out, c.Alone())
	}
	return out
}

func TestClaims(t *testing.T) {
	tests := []struct {
		statement string
		want      []string
	}{
		// A sentence with two facts is two claims.
		{"The Pro plan costs 30 euros a month and includes 100 GB of storage.", []string{"The Pro plan costs 30 euros a month.", "The Pro plan includes 100 GB of storage."}},
		{"Ada Lovelace was born in London in 1815 and died in 1852.", []string{"Ada Lovelace was born in London in 1815.", "Ada Lovelace died in 1852."}},
		{"Trains are booked in second class, and flights are booked in economy class.", []string{"Trains are booked in second class.", "Flights are booked in economy class."}},
		{"The Basic plan costs 12 euros; the Pro plan costs 30 euros.", []string{"The Basic plan costs 12 euros.", "The Pro plan costs 30 euros."}},
		{"The museum is open on Sundays, but the café closes at noon.", []string{"The museum is open on Sundays.", "The café closes at noon."}},
		{"Sick leave needs a note, while annual leave needs the approval of the team.", []string{"Sick leave needs a note.", "Annual leave needs the approval of the team."}},
		{"The hall has 812 seats and was opened in 1912.", []string{"The hall has 812 seats.", "The hall was opened in 1912."}},
		{"A hotel may cost up to 140 euros a night and meals are paid at a flat rate of 40 euros a day.", []string{"A hotel may cost up to 140 euros a night.", "Meals are paid at a flat rate of 40 euros a day."}},
		{"Up to 500 devices can be connected at once, and the warranty lasts two years.", []string{"Up to 500 devices can be connected at once.", "The warranty lasts two years."}},
		{"The gateway listens on port 8080, and up to 500 devices can be connected.", []string{"The gateway listens on port 8080.", "Up to 500 devices can be connected."}},
		{"A ticket can be used once, and the seat is not reserved.", []string{"A ticket can be used once.", "The seat is not reserved."}},
		{"Once the door is shut the alarm is on, and the light is off.", []string{"Once the door is shut the alarm is on, and the light is off."}},
		{"The rooms with beds and chairs are cheap.", []string{"The rooms with beds and chairs are cheap."}},
		{"It has 812 seats and was opened in 1912. Nobody sits there.", []string{"It has 812 seats.", "It was opened in 1912.", "Nobody sits there."}},
		{"Tickets can be exchanged until noon and must be paid in cash.", []string{"Tickets can be exchanged until noon and must be paid in cash."}},
		{"Tickets can be exchanged online and must be paid in cash.", []string{"Tickets can be exchanged online.", "Tickets must be paid in cash."}},
		{"Shutdown closes all listeners, and then it waits for connections.", []string{"Shutdown closes all listeners.", "It waits for connections."}},
		{"The gateway was built in 1998 and has also been used since as a store.", []string{"The gateway was built in 1998.", "The gateway has also been used since as a store."}},
		{"Visitors sign in and wear a badge.", []string{"Visitors sign in and wear a badge."}},

		// What cannot be told apart for sure stays whole.
		{"If the door is open, the alarm is off and the light is on.", []string{"If the door is open, the alarm is off and the light is on."}},
		{"In 2006, Bayern won the cup and Bremen won the league.", []string{"In 2006, Bayern won the cup and Bremen won the league."}},
		{"No plan costs 5 euros and includes 10 GB.", []string{"No plan costs 5 euros and includes 10 GB."}},
		{"The door is locked and closed at night.", []string{"The door is locked and closed at night."}},
		{"Users can send and receive mail.", []string{"Users can send and receive mail."}},
		{"Go has maps and slices.", []string{"Go has maps and slices."}},
		{"The manual says that the pump is loud and the valve is hot.", []string{"The manual says that the pump is loud and the valve is hot."}},
		{"Either the pump is loud, or the valve is hot.", []string{"Either the pump is loud, or the valve is hot."}},
		{"It is charged between 0 and 40 °C.", []string{"It is charged between 0 and 40 °C."}},
		{"Berlin and Paris are capitals.", []string{"Berlin and Paris are capitals."}},
		{"Call `x.Close` and it is done; the rest is automatic.", []string{"Call `x.Close` and it is done; the rest is automatic."}},
		{"The valve is closed; otherwise the pump stops.", []string{"The valve is closed; otherwise the pump stops."}},
		{"Das Haus ist alt und der Garten ist groß.", []string{"Das Haus ist alt und der Garten ist groß."}},
		{"The firm (which was small and had debts) was sold.", []string{"The firm (which was small and had debts) was sold."}},

		// Headings, questions and hedges are no claims.
		{"How long is parental leave? It lasts up to 26 weeks.", []string{"It lasts up to 26 weeks."}},
		{"## Leave\n\nParental leave lasts 26 weeks.", []string{"Parental leave lasts 26 weeks."}},
		{"**Parental leave**\nIt lasts 26 weeks.", []string{"It lasts 26 weeks."}},
		{"Parental leave:", nil},
		{"# Leave", nil},
		{"I hope this helps! Let me know if you have any questions.", nil},
		{"I am not sure. The limit is 5.", []string{"The limit is 5."}},
		{"It may be helpful to consult the manual.", nil},
		{"Please consult the documentation for details.", nil},
		{"Sure! The limit is 5.", []string{"The limit is 5."}},
		{"Here is a summary of what I found: ", nil},
		{"I could not find anything about dogs.", nil},
		{"We recommend version 2.", []string{"We recommend version 2."}},
		{"I think the limit is 5.", []string{"I think the limit is 5."}},
		{"— … —", nil},
		{"", nil},

		// A row of a table is one claim, code is one, and lists are cut into their items.
		{"| Plan | Price |\n| --- | --- |\n| Basic | 12 |\n| Pro | 30 and is good |", []string{"| Plan | Price |", "| Basic | 12 |", "| Pro | 30 and is good |"}},
		{"if x {\n\treturn 1. \n}", []string{"if x {\n\treturn 1. \n}"}},
		{"```\na is b. c is d.\n```", []string{"```\na is b. c is d.\n```"}},
		{"The plans:\n- Basic costs 12 euros.\n- Pro costs 30 euros.", []string{"- Basic costs 12 euros.", "- Pro costs 30 euros."}},
		{"Travel outside\nEurope is approved by finance.", []string{"Travel outside\nEurope is approved by finance."}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, alone(tt.statement)); diff != "" {
			t.Errorf("Claims(%q), each by itself (-want +got):\n%s", tt.statement, diff)
		}
		holdsSpans(t, tt.statement)
	}
}

// holdsSpans checks what is promised of the spans of claims.
func holdsSpans(t *testing.T, statement string) {
	t.Helper()
	at := 0
	for _, c := range ground.Claims(statement, []int{1}) {
		if c.Start < at || c.End < c.Start || c.End > len(statement) || statement[c.Start:c.End] != c.Text {
			t.Fatalf("Claims(%q) has %+v after %d", statement, c, at)
		}
		if c.From > c.Start || c.To < c.End || c.To > len(statement) {
			t.Fatalf("Claims(%q) has %+v outside of its sentence", statement, c)
		}
		if utf8.ValidString(statement) && !utf8.ValidString(c.Text) {
			t.Fatalf("Claims(%q) cuts a letter: %q", statement, c.Text)
		}
		if c.Lead != "" && !strings.Contains(statement[c.From:c.Start], c.Lead) {
			t.Fatalf("Claims(%q): %q leads %q and does not stand before it", statement, c.Lead, c.Text)
		}
		at = c.End
	}
}

func FuzzClaims(f *testing.F) {
	f.Add("The Pro plan costs 30 euros, and it includes “100 GB”; it is für alle.")
	f.Add("A is b and has c\nand is d. | x | y |\n# z\n\xff is \xc3 and was \xbc")
	f.Add("Ça is and has and was and had and must, and İt is")
	f.Fuzz(func(t *testing.T, statement string) {
		holdsSpans(t, statement)
		for _, c := range ground.Claims(statement, nil) {
			c.Alone()
		}
		at := 0
		for _, c := range ground.Cut(statement, nil) {
			if c.Start < at || statement[c.Start:c.End] != c.Text {
				t.Fatalf("Cut(%q) has %+v after %d", statement, c, at)
			}
			at = c.End
		}
	})
}
