package ground_test

import (
	"strings"
	"testing"

	"github.com/assay-rag/assay/ground"
)

// A checkCase is a claim with its source. Wrongly marks claims that the source supports but the
// check refuses, which is the cost of the check.
type checkCase struct {
	source, claim string
	refused       string // contained in the reason; empty: not refused
	wrongly       bool
}

func runChecks(t *testing.T, cases []checkCase) {
	t.Helper()
	for _, c := range cases {
		heading, text, found := strings.Cut(c.source, " | ")
		if !found {
			heading, text = "", c.source
		}
		reason := ground.Check(c.claim, []ground.Passage{{Quote: text, Context: text, Heading: []string{heading}}})
		if (reason == "") != (c.refused == "") || !strings.Contains(reason, c.refused) {
			t.Errorf("%q from %q: refused for %q, want %q", c.claim, c.source, reason, c.refused)
		}
	}
}

func TestCheckNumbers(t *testing.T) {
	runChecks(t, []checkCase{
		{"The notice period is 6 weeks.", "There is a 6-week notice period.", "", false},
		{"The notice period is 6 weeks.", "There is an 8-week notice period.", "8 week", false},
		{"A shift has 32 hours.", "It is a 32-hour shift.", "", false},
		{"A shift has 32 hours.", "It is a 36-hour shift.", "36 hour", false},
		{"The fee is 1,000 euros.", "The fee is 1000 €.", "", false},
		{"The fee is 1,000 euros.", "The fee is $1000.", "another unit", false},
		{"The fee is €8.2 million.", "It costs €8.2m.", "", false},
		{"Five people came.", "5 people came.", "", false},
		{"Five people came.", "Fifteen people came.", "Fifteen", false},
		{"Twenty-five people came.", "25 people came.", "", false},
		{"It takes 60 minutes.", "It takes one hour.", "", false},
		{"It takes 2 weeks.", "It takes 14 days.", "", false},
		{"It takes 30 minutes.", "It takes 30 hours.", "another unit", false},
		{"The rate is 4.5 %.", "The rate is 4.5 percent.", "", false},
		{"The rate is 4.5 %.", "The rate is 5.4 percent.", "5.4", false},
		{"It grew by 17.3 %.", "It grew by about 17 %.", "", false},
		{"The meeting is on 5 May 2021.", "The meeting is on the 5th of May 2021.", "", false},
		{"The meeting is on 5 May 2021.", "The meeting is on 5 May 2022.", "2022", false},
		{"The third quarter was good.", "The 3rd quarter was good.", "", false},
		{"The third quarter was good.", "The fourth quarter was good.", "fourth", false},
		{"It opens at 3 p.m.", "It opens at 15:00.", "", false},
		{"It opens at 15:00.", "It opens at 3 pm.", "", false},
		{"It opens at 15:00.", "It opens at 4 pm.", "4", false},
		{"Take four and a half hours.", "Take 4.5 hours.", "", false},
		{"It happens twice a year.", "It happens two times a year.", "", false},
		{"Plan v3 | It is free.", "Version 3 is free.", "", false},
		{"It is free.", "What did it cost in 2019? It is free.", "", false},

		{"Keys last a day.", "Keys last 24 hours.", "", false},
		{"Half of them came.", "50 % of them came.", "", false},
		{"A third of them came.", "33 % of them came.", "", false},
		{"It lasts a quarter of an hour.", "It lasts 15 minutes.", "", false},
		{"It lasts half an hour.", "It lasts 20 minutes.", "20 minutes", false},
		{"It lasts three quarters of a minute.", "It lasts 45 seconds.", "", false},
		{"The third quarter was good.", "The 3rd quarter was bad.", "", false},

		{"Members pay half if they book early.", "Members who book early pay 50 %.", "", false},
		{"Members pay half if they book early.", "Members who book early pay 40 %.", "40", false},
		{"You may have read less than a tenth of it.", "At most 10 % of it may have been read.", "", false},
		{"The desk is open from 10:00 to 18:30.", "The desk is open until half past six.", "", false},
		{"The office is open until 17:00.", "The office closes at five.", "", false},
		{"The office is open until 17:00.", "The office closes at 4.", "4", false},

		// Numbers in other forms.
		{"Two thirds of the votes are needed.", "2/3 of the votes are needed.", "", false},
		{"Two thirds of the votes are needed.", "3/4 of the votes are needed.", "3/4", false},
		{"It takes 1/2 hour.", "It takes 30 minutes.", "", false},
		{"It was on 12/31/2021.", "It was in 2021.", "", false},
		{"There are 28 of them.", "There are twenty-eight of them.", "", false},
		{"There are 425 seats.", "There are four hundred and twenty-five seats.", "", false},
		{"There are 425 seats.", "There are four hundred and fifty-two seats.", "four", false},
		{"It seats 2,500.", "It seats two thousand five hundred.", "", false},
		{"It takes 90 minutes.", "It takes an hour and a half.", "", false},
		{"It takes 90 minutes.", "It takes 1 hour and 30 minutes.", "", false},
		{"It takes 90 minutes.", "It takes 1½ hours.", "", false},
		{"It takes 90 days.", "It takes three months.", "", false},
		{"It takes 90 days.", "It takes two months.", "two months", false},
		{"It starts at 15:30.", "It starts at 3:30 pm.", "", false},
		{"It starts at 15:30.", "It starts at 15:50.", "15:50", false},
		{"About 90 came.", "89 came.", "", false},
		{"89 came.", "Nearly 90 came.", "", false},
		{"89 came.", "Nearly 70 came.", "70", false},

		// Numbers that follow from others.
		{"It rose from 10 to 15.", "It rose by 5.", "", false},
		{"It is open from 8:00 to 16:30.", "It is open for eight and a half hours.", "", false},
		{"12 men and 16 women came.", "Twenty-eight people came.", "", false},
		{"20 of 60 came.", "A third came.", "", false},
		{"Signed in 1990 by 3 states, it came into force in 2004.", "It came into force 14 years after it was signed.", "", false},

		// Counts of what the source lists.
		{"Apples and pears are sold.", "Two kinds of fruit are sold.", "", false},
		{"Two kinds of fruit are sold.", "Three kinds of fruit are sold.", "Three", false},
		{"It is closed on Mondays.", "It is closed on Tuesdays.", "Tuesdays", false},
		{"It is closed at weekends.", "It is closed on Sunday.", "", false},
		{"It opened on 4 May.", "It opened on 4 June.", "June", false},
		{"It opened on 2021-05-04.", "It opened on 4 May 2021.", "", false},

		{"3 men, 4 women and 5 children came.", "12 people came.", "12", true},
		{"It was founded in 1994.", "It was founded in the 1990s.", "1990", true},
		{"A bus runs four times an hour.", "A bus runs every 15 minutes.", "15 minutes", true},
		{"It opens at a quarter to ten.", "It opens at 9:45.", "9:45", true},
		{"It costs 10k euros.", "It costs 10,000 euros.", "10,000", true},
	})
}

func TestCheckNames(t *testing.T) {
	runChecks(t, []checkCase{
		{"Ms Weber approves trips.", "Trips are approved by Weber.", "", false},
		{"Ms Weber approves trips.", "Trips are approved by Miller.", `"Miller"`, false},
		{"Acme Handbook | Trips are approved.", "At Acme trips are approved.", "", false},
		{"Call os.Open to read.", "To read, call os.Open.", "", false},
		{"Call os.Open to read.", "To read, call os.Create.", "os.Create", false},
		{"Set max_conns to limit it.", "To limit it set min_conns.", "min_conns", false},
		{"The United Nations met.", "Then the UN met.", "", false},
		{"The Swedish army won.", "So Sweden won.", "", false},
		{"Folic acid helps.", "Often folic acid (FA) helps.", "", false},
		{"Die Miete zahlt der Mieter.", "Die Zahlung der Miete ist Sache des Mieters im Haus.", "", false},
		{"The fourth quarter was good.", "In all Q4 was good.", "", false},
		{"The U.K. left.", "After all the UK left.", "", false},
		{"Set the URL.", "Here the URL's form matters.", "", false},
		{"Two URLs are set.", "Here a URL is set.", "", false},
		{"The office is closed on weekends.", "You find it closed on Saturday.", "", false},

		{"The Danish king won.", "So Denmark won.", `"Denmark"`, true},
		{"The French won.", "So the army of France won.", `"France"`, true},
		{"The capital is large.", "All of Paris is large.", `"Paris"`, true},
	})
}

func TestCheckNegation(t *testing.T) {
	runChecks(t, []checkCase{
		{"Interns may work overtime.", "Interns may not work overtime.", "negation", false},
		{"Interns may not work overtime.", "Interns may work overtime.", "negation", false},
		{"Interns may not work overtime.", "Interns must not work overtime.", "", false},
		{"Interns never work overtime.", "Interns do not work overtime.", "", false},
		{"It is not true that pigs do not fly.", "It is true that pigs fly.", "", false},
		{"Dogs are allowed. Cats are not allowed.", "Cats are not allowed.", "", false},
		{"Overtime is unpaid.", "Overtime is not paid.", "", false},
		{"Complain within 26 days after the incident.", "Complain no later than 26 days after the incident.", "", false},
		{"The file is kept if the flag is not set.", "The file is kept unless the flag is set.", "", false},

		{"A member may borrow at most 5 books.", "A member must not borrow more than 5 books.", "", false},
		{"Residents pay 20 euros but students pay nothing.", "Unlike students, residents pay 20 euros.", "", false},

		{"Never open the housing when it is not cold.", "Never open the housing when it is cold.", "negation", false},
		{"Pass nil only if the function does not allow it.", "Do not pass nil only if the function allows it not.", "negation", true},
	})
}

func FuzzCheck(f *testing.F) {
	f.Add("It costs 1,000.50 €.", "It costs $5m, twenty-five or half a million.")
	f.Add("a | b\n- | -\n5th | 3 pm", "U.S. 6-week 1.2.3 99999999999999999999999999")
	f.Fuzz(func(t *testing.T, source, claim string) {
		p := []ground.Passage{{Quote: source, Context: source}}
		if first, second := ground.Check(claim, p), ground.Check(claim, p); first != second {
			t.Errorf("the reason is %q, then %q", first, second)
		}
		if reason := ground.Check(source, p); reason != "" {
			t.Errorf("a text is refused for itself: %s", reason)
		}
	})
}
