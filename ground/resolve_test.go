package ground_test

import (
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay/ground"
)

func TestResolve(t *testing.T) {
	pro := "The Pro plan costs 30 euros a month."
	tests := []struct {
		question string
		heading  string
		claims   []string
		want     []string // nil: as they are
	}{
		// Pronouns, from the claim before.
		{"", "", []string{pro, "It includes 100 GB of storage."}, []string{pro, "The Pro plan includes 100 GB of storage."}},
		{"", "", []string{pro, "It also includes support."}, []string{pro, "The Pro plan also includes support."}},
		{"", "", []string{"Visitors sign in at the reception.", "They are accompanied at all times."}, nil}, // "sign" may be a noun: not sure
		{"", "", []string{"Visitors are registered at the reception.", "They are accompanied at all times."}, []string{"Visitors are registered at the reception.", "Visitors are accompanied at all times."}},
		{"", "", []string{"Ada Lovelace was born in 1815.", "She died in 1852."}, []string{"Ada Lovelace was born in 1815.", "Ada Lovelace died in 1852."}},
		{"", "", []string{"Ada Lovelace was born in 1815.", "She died in 1852.", "Her father was Lord Byron."}, []string{"Ada Lovelace was born in 1815.", "Ada Lovelace died in 1852.", "Ada Lovelace's father was Lord Byron."}},
		{"", "", []string{"The hall has 812 seats.", "Its acoustics are famous."}, []string{"The hall has 812 seats.", "The hall's acoustics are famous."}},
		{"", "", []string{"Employees have 28 days of leave.", "Their leave expires in March."}, []string{"Employees have 28 days of leave.", "Employees' leave expires in March."}},
		{"", "", []string{pro, "This plan includes support."}, []string{pro, "The Pro plan includes support."}},
		{"", "", []string{pro, "This is expensive."}, []string{pro, "The Pro plan is expensive."}},
		{"", "", []string{"Trains are booked in second class.", "These are cheaper."}, []string{"Trains are booked in second class.", "Trains are cheaper."}},
		{"", "", []string{"Shutdown closes all listeners.", "It then closes all idle connections."}, []string{"Shutdown closes all listeners.", "Shutdown then closes all idle connections."}},
		{"", "", []string{pro, "- It includes support."}, []string{pro, "The Pro plan includes support."}},

		// From the question, and the heading.
		{"How long is parental leave?", "", []string{"It lasts up to 26 weeks."}, []string{"Parental leave lasts up to 26 weeks."}},
		{"What does the Pro plan cost?", "", []string{"It costs 30 euros."}, []string{"The Pro plan costs 30 euros."}},
		{"When was the museum opened?", "", []string{"It was opened in 1956."}, []string{"The museum was opened in 1956."}},
		{"", "Parental leave", []string{"It must be announced eight weeks ahead."}, []string{"Parental leave must be announced eight weeks ahead."}},
		{"Tell me everything", "Parental leave", []string{"It lasts 26 weeks."}, []string{"Parental leave lasts 26 weeks."}},
		{"Where are the backups kept?", "", []string{"They are kept in Dublin."}, []string{"The backups are kept in Dublin."}},

		// Answers that are no sentence.
		{"How long is parental leave?", "", []string{"30 days."}, []string{"Parental leave is 30 days."}},
		{"How long does parental leave last?", "", []string{"Up to 26 weeks."}, []string{"Parental leave lasts up to 26 weeks."}},
		{"How long are full backups kept?", "", []string{"90 days"}, []string{"Full backups are kept 90 days."}},
		{"How much does the Pro plan cost?", "", []string{"30 euros a month."}, []string{"The Pro plan costs 30 euros a month."}},
		{"How many days of leave do employees have?", "", []string{"28."}, []string{"Employees have 28 days of leave."}},
		{"How many days of leave do employees have?", "", []string{"28 days."}, []string{"Employees have 28 days of leave."}},
		{"How many seats does the hall have?", "", []string{"About 812."}, []string{"The hall has about 812 seats."}},
		{"How many days may we work from home?", "", []string{"Up to three."}, []string{"You may work from home up to three days."}},
		{"When was the museum opened?", "", []string{"In 1956."}, []string{"The museum was opened in 1956."}},
		{"When was the museum opened?", "", []string{"1956."}, []string{"The museum was opened in 1956."}},
		{"When did the railway open?", "", []string{"14 May 1868"}, []string{"The railway opened on 14 May 1868."}},
		{"Where is the note sent?", "", []string{"To the people team."}, []string{"The note is sent to the people team."}},
		{"Where was the engine made?", "", []string{"Leeds."}, []string{"The engine was made in Leeds."}},
		{"Who approves travel outside Europe?", "", []string{"The finance team."}, []string{"The finance team approves travel outside Europe."}},
		{"Who built the railway?", "", []string{"Thomas Averill."}, []string{"Thomas Averill built the railway."}},
		{"Who is the author of the lyrics?", "", []string{"Wally Gold."}, []string{"The author of the lyrics is Wally Gold."}},
		{"Who must approve a deployment?", "", []string{"Two engineers."}, []string{"Two engineers must approve a deployment."}},
		{"Which plan includes telephone support?", "", []string{"The Pro plan."}, []string{"The Pro plan includes telephone support."}},
		{"What is the target range of the INR for most patients?", "", []string{"2.0 to 3.0."}, []string{"The target range of the INR for most patients is 2.0 to 3.0."}},
		{"What does ReadFile return?", "", []string{"The contents of the file."}, []string{"ReadFile returns the contents of the file."}},
		{"How often must the shower be tested?", "", []string{"Once a month."}, []string{"The shower must be tested once a month."}},
		{"By when do I have to hand in receipts?", "", []string{"Within 30 days."}, []string{"You have to hand in receipts within 30 days."}},
		{"How many people live in Velden?", "", []string{"About 4,000."}, nil}, // "live" is not known as a verb with a subject before it
		{"Why was the rehearsal repeated?", "", []string{"Because the key had expired."}, []string{"The rehearsal was repeated because the key had expired."}},

		// Yes and no.
		{"Can the Pro plan be cancelled?", "", []string{"Yes."}, []string{"The Pro plan can be cancelled."}},
		{"Can the Pro plan be cancelled?", "", []string{"No."}, []string{"The Pro plan can not be cancelled."}},
		{"Is a hotel covered?", "", []string{"Yes, it is."}, []string{"A hotel is covered."}},
		{"Are dogs allowed in the hall?", "", []string{"No, they are not."}, []string{"Dogs are not allowed in the hall."}},
		{"Does parental leave last 26 weeks?", "", []string{"Yes."}, []string{"Parental leave lasts 26 weeks."}},
		{"Does parental leave last 26 weeks?", "", []string{"No."}, []string{"Parental leave does not last 26 weeks."}},
		{"Do I have to hand in receipts?", "", []string{"Yes, within 30 days."}, []string{"You have to hand in receipts within 30 days."}},
		{"May I work from home?", "", []string{"Yes."}, []string{"You may work from home."}},
		{"Is there a password manager?", "", []string{"Yes."}, []string{"There is a password manager."}},
		{"Did the museum open in 1956?", "", []string{"Yes."}, []string{"The museum opened in 1956."}},

		// What a claim leaves to the one before it.
		{"", "", []string{"The Basic plan includes support.", "The Pro plan does too."}, []string{"The Basic plan includes support.", "The Pro plan includes support."}},
		{"", "", []string{"The Basic plan includes support.", "So does the Pro plan."}, []string{"The Basic plan includes support.", "The Pro plan includes support."}},
		{"", "", []string{"The Basic plan includes support.", "The Free plan does not."}, []string{"The Basic plan includes support.", "The Free plan does not include support."}},
		{"", "", []string{"Trains are booked in second class.", "Buses are as well."}, []string{"Trains are booked in second class.", "Buses are booked in second class."}},
		{"", "", []string{"Cats can enter the hall.", "Dogs cannot."}, nil}, // not sure
		{"", "", []string{"Cats can enter the hall.", "Dogs can not."}, []string{"Cats can enter the hall.", "Dogs can not enter the hall."}},
		{"", "", []string{"The hall is closed in May.", "The same applies to the museum."}, []string{"The hall is closed in May.", "The museum is closed in May."}},
		{"", "", []string{"The hall is not heated.", "Neither is the museum."}, []string{"The hall is not heated.", "The museum is not heated."}},
		{"", "", []string{"Basic and Pro are the two plans.", "The latter costs 30 euros."}, []string{"Basic and Pro are the two plans.", "Pro costs 30 euros."}},
		{"", "", []string{"Basic and Pro are the two plans.", "The former costs 12 euros."}, []string{"Basic and Pro are the two plans.", "Basic costs 12 euros."}},
		{"", "", []string{"The small hall has 240 seats.", "The large one has 812."}, []string{"The small hall has 240 seats.", "The large hall has 812."}},

		// How sure the writer is claims nothing.
		{"", "", []string{"I think the limit is 5."}, []string{"The limit is 5."}},
		{"", "", []string{"Note that cats may enter."}, []string{"Cats may enter."}},
		{"", "", []string{"It should be noted that it is closed."}, []string{"It is closed."}},

		// As they are, where it is not sure.
		{"", "", []string{"It is closed."}, nil},
		{"", "", []string{"The hall and the museum are old.", "It is closed."}, nil},
		{"", "", []string{"The hall is old.", "They are closed."}, nil},
		{"", "", []string{"The hall is old.", "She died in 1852."}, nil},
		{"", "", []string{"The hall is old.", "It is forbidden to smoke."}, nil},
		{"", "", []string{"The hall is old.", "This means that it is cold."}, nil},
		{"", "", []string{"The hall is old.", "There is a café."}, nil},
		{"What is it?", "", []string{"It is closed."}, nil},
		{"How long is parental leave?", "", []string{"Parental leave lasts 26 weeks."}, nil},
		{"Tell me about leave.", "", []string{"30 days."}, nil},
		{"", "How do I get leave?", []string{"It is granted."}, nil},
		{"", "Overview", []string{"It is granted."}, nil},
		{"Wie lange dauert die Elternzeit?", "Elternzeit", []string{"26 Wochen.", "Sie wird acht Wochen vorher angekündigt."}, nil},
		{"¿Cuánto cuesta?", "", []string{"30 euros."}, nil},
		{"How much?", "", []string{"30 euros."}, nil},
		{"What language were books being translated into during the era of Haymo of Faversham?", "", []string{"Haymo of Faversham, O.F.M. ( c."}, nil},
		{"Who was Haymo of Faversham?", "", []string{"Haymo of Faversham, O.F.M. ( c."}, nil},
		{"Why should two times not be compared with ==?", "", []string{"The Time.Sub method subtracts two instants, producing a Duration."}, nil},
		{"What is the difference between Exec and Query?", "", []string{"Query the database and prints the results."}, nil},
		{"Why was the rehearsal repeated?", "", []string{"The key."}, nil},
	}
	for _, tt := range tests {
		var heading []string
		if tt.heading != "" {
			heading = []string{"Handbook", tt.heading}
		}
		want := tt.want
		if want == nil {
			want = tt.claims
		}
		if diff := cmp.Diff(want, ground.Resolve(tt.question, heading, tt.claims)); diff != "" {
			t.Errorf("Resolve(%q, %q, %q) (-want +got):\n%s", tt.question, tt.heading, tt.claims, diff)
		}
	}
}

func FuzzResolve(f *testing.F) {
	f.Add("How long is it?", "Leave", "The hall is old.", "It is ä.")
	f.Add("Can the ß be İ?", "É", "No.", "So does \xc3.")
	f.Add("How many x of y do z have?", "", "28", "Both are.")
	f.Fuzz(func(t *testing.T, question, heading, a, b string) {
		got := ground.Resolve(question, []string{heading}, []string{a, b})
		if len(got) != 2 {
			t.Fatalf("Resolve gives %d claims for 2", len(got))
		}
		for _, s := range got {
			valid := utf8.ValidString(question) && utf8.ValidString(heading) && utf8.ValidString(a) && utf8.ValidString(b)
			if valid && !utf8.ValidString(s) {
				t.Errorf("Resolve(%q, %q, %q, %q) = %q", question, heading, a, b, got)
			}
		}
	})
}
