package ground_test

import (
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
)

const (
	travel = "Travel to a customer is approved by the head of the department. Travel outside\nEurope is approved by the finance team as well."
	spend  = "Receipts are handed in within 30 days. A hotel may cost up to 140 euros a night.\nMeals are paid at a flat rate of 40 euros a day."
	trains = "Trains are booked in second class. Flights shorter than four hours are booked in\neconomy class."
	leave  = "Every employee has 28 days of annual leave. Up to five days of unused leave may be\ncarried over to the next year. Days that are carried over expire on 31 March."
	parent = "Parental leave lasts up to 26 weeks. It must be announced eight weeks before it\nbegins."
	sick   = "Sick leave longer than three days needs a note from a doctor. The note is sent to\nthe people team."
	lost   = "A lost laptop is reported to the platform team within one hour. The platform team\nlocks the device and wipes its disk."
	guests = "Visitors sign in at the reception and wear a badge. They are accompanied at all\ntimes."
	basic  = "The Basic plan costs 12 euros a month. It includes 5 GB of storage and e-mail support."
	pro    = "The Pro plan costs 30 euros a month. It includes 100 GB of storage and telephone support around the clock."
	reise  = "Dienstreisen innerhalb Europas genehmigt die Abteilungsleitung. Reisen außerhalb Europas genehmigt zusätzlich die Finanzabteilung."
)

// headings are what the passages stand under.
var headings = map[string][]string{
	travel: {"Travel", "Approval"}, spend: {"Travel", "Expenses"}, trains: {"Travel", "Trains and flights"},
	leave: {"Leave", "Annual leave"}, parent: {"Leave", "Parental leave"}, sick: {"Leave", "Sick leave"},
	lost: {"Security", "Lost devices"}, guests: {"Security", "Visitors"},
	basic: {"Plans", "Basic plan"}, pro: {"Plans", "Pro plan"}, reise: {"Dienstreisen", "Genehmigung"},
}

// verdict is what becomes of a claim that cites a passage: the words that are nearest
// to it are found, and judged.
func verdict(t *testing.T, claim, passage string, heading []string) ground.Judgement {
	t.Helper()
	start, end := ground.Locate(claim, passage)
	if start == end {
		start, end = 0, len(passage)
	}
	j, err := ground.Local{}.Verify(t.Context(), claim, []ground.Passage{{Quote: passage[start:end], Context: passage, Heading: heading}})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// TestRewordings are statements that say what their source says.
func TestRewordings(t *testing.T) {
	for passage, claims := range map[string][]string{
		travel: {
			"The head of the department approves travel to a customer.",
			"Travel to a customer is approved by the head of the department",
			"Travel outside Europe is approved by the finance team.",
			"Travel outside Europe is also approved by the finance team.",
			"The finance team approves travel outside Europe.",
			"In short, travel to a customer is approved by the head of the department.",
		},
		spend: {
			"Yes, a hotel may cost up to 140 euros a night.",
			"According to the passage, a hotel may cost up to 140 euros a night.",
			"According to the travel policy, a hotel may cost up to 140 euros a night.",
			"A hotel may cost up to 140 EUR a night.",
			"A hotel can cost at most €140 per night.",
			"A hotel may cost 140 euros a night at most.",
			"You must hand in receipts within 30 days.|no",
			"Receipts are handed in within thirty days.",
			"Within 30 days, receipts are handed in.",
			"Meals are paid at a flat rate of €40 a day.",
			"Meals are paid at a flat rate.|no",
		},
		trains: {
			"Flights that are shorter than four hours are booked in economy class.",
			"Flights shorter than 4 hours are booked in economy class.",
			"Trains are booked in second class, and flights shorter than 4 hours are booked in economy class.",
		},
		leave: {
			"Up to 5 days of unused leave may be carried over to the next year.",
			"Up to five days of unused annual leave may be carried over to the next year.",
			"Up to five days of unused leave may be carried over.",
			"You may carry over up to five days of unused leave to the next year.",
			"Employees can carry over up to 5 days of unused leave to the next year.",
			"Employees have 28 days of annual leave.",
			"You have 28 days of annual leave.",
			"Days carried over expire on March 31.",
			"Every employee has twenty-eight days of annual leave.",
			"At most five days of unused leave can be carried over to the next year.",
		},
		parent: {
			"Parental leave must be announced eight weeks before it begins.",
			"Parental leave lasts up to 26 weeks and must be announced 8 weeks before it begins.",
			"You must announce it eight weeks before it begins.",
		},
		sick: {
			"A note from a doctor is needed|no",
			"Sick leave that is longer than three days needs a note from a doctor.",
			"Yes: sick leave longer than 3 days needs a note from a doctor.",
		},
		lost: {
			"A lost laptop is reported to the platform team within 1 hour.",
			"The platform team locks the device.",
			"The platform team wipes its disk.",
			"Within one hour, a lost laptop is reported to the platform team.",
		},
		guests: {
			"Visitors are always accompanied.|no",
			"Visitors are accompanied at all times.",
			"Visitors wear a badge.",
			"Visitors sign in at the reception.",
			"Visitors sign in at the reception, wear a badge and are accompanied at all times.",
		},
		basic: {
			"The Basic plan costs 12 euros a month and includes 5 GB of storage.",
			"The Basic plan costs €12 per month.",
			"The Basic plan includes 5 GB of storage.",
			"Plan: Basic plan; Price: 12 euros a month; Storage: 5 GB",
			"Basic plan; price: 12 euros a month; storage: 5 GB",
		},
		reise: {
			"Dienstreisen innerhalb Europas genehmigt die Abteilungsleitung",
			"Ja, Dienstreisen innerhalb Europas genehmigt die Abteilungsleitung.",
		},
	} {
		for _, claim := range claims {
			want := true
			if n := len(claim) - len("|no"); claim[n:] == "|no" {
				claim, want = claim[:n], false // true, and told apart by nothing that this verifier knows
			}
			if j := verdict(t, claim, passage, headings[passage]); (j.Verdict == assay.Supported) != want {
				t.Errorf("%q is %s (%s)", claim, j.Verdict, j.Reason)
			}
		}
	}
}

// TestMixUps are statements that their source does not say, in its words.
func TestMixUps(t *testing.T) {
	for passage, claims := range map[string][]string{
		travel: {
			"Travel to a customer is approved by the finance team.",
			"Travel outside Europe is approved by the head of the department.",
			"Travel outside Europe is approved by the customer.",
			"The head of the department is approved by the finance team.",
			"Travel to a customer is approved by the head of the finance department.",
			"Only the finance team approves travel outside Europe.",
			"The head of the department is approved by travel to a customer.",
			"Travel is approved by the head of the department.",
			"A customer is approved by the head of the department.",
			"A customer approves travel to the head of the department.",
			"Travel to a customer approves the head of the department.",
			"Travel outside Europe is not approved by the finance team.",
			"Travel to a customer must be approved by the head of the department.",
			"Travel to a customer is approved by the head of the department and the finance team.",
			"Travel to a customer outside Europe is approved by the finance team.",
			"All travel is approved by the head of the department.",
			"The head of the department approves travel outside Europe.",
			"Travel from a customer is approved by the head of the department.",
			"Travel to a customer was approved by the head of the department.",
			"No, travel to a customer is approved by the head of the department.",
		},
		spend: {
			"A hotel may cost up to 40 euros a night.", "A hotel may cost up to 140 euros a day.",
			"A hotel may cost at least 140 euros a night.", "A hotel may cost more than 140 euros a night.",
			"A hotel must cost up to 140 euros a night.", "A hotel costs 140 euros a night.", "A hotel costs up to 140 euros a night.",
			"A hotel may cost up to 140 dollars a night.", "Meals are paid at a flat rate of 140 euros a day.",
			"Meals are paid at a flat rate of up to 40 euros a day.", "Meals may be paid at a flat rate of 40 euros a day.",
			"Receipts are handed in after 30 days.", "Receipts are handed in within 30 nights.", "Receipts are handed in within 40 days.",
			"Meals are handed in within 30 days.", "A hotel is paid at a flat rate of 40 euros a day.", "Meals cost up to 140 euros a night.",
			"Receipts may not be handed in within 30 days.", "Only meals are paid at a flat rate of 40 euros a day.",
			"Item: Hotel; Rate: 40 euros a day", "Item: Meals; Rate: 140 euros a night",
		},
		trains: {
			"Flights are booked in economy class.", "Trains are booked in economy class.", "Flights shorter than four hours are booked in second class.",
			"Flights longer than four hours are booked in economy class.", "Only flights shorter than four hours are booked in economy class.",
			"Trains shorter than four hours are booked in second class.", "Trains and flights are booked in economy class.",
			"Trains are usually booked in second class.", "Trains are never booked in second class.", "Trains may be booked in second class.",
		},
		leave: {
			"Up to 28 days of unused leave may be carried over to the next year.", "Every employee has five days of annual leave.",
			"At least five days of unused leave may be carried over to the next year.", "Up to five days of unused leave must be carried over to the next year.",
			"Unused leave expires on 31 March.", "Up to five days of unused leave may not be carried over to the next year.",
			"Five days of unused leave may be carried over to the next year.", "Up to five days of annual leave may be carried over to the next year.",
			"Up to five days of leave may be carried over to the next year.", "Days that are carried over expire after 31 March.",
			"Days that are carried over expire before 31 March.", "Annual leave expires on 31 March.", "Every employee has up to 28 days of annual leave.",
			"Every employee may have 28 days of annual leave.", "Some employees have 28 days of annual leave.", "All days expire on 31 March.",
			"Days expire on 31 March.", "Every employee has 28 days of unused leave.", "More than five days of unused leave may be carried over to the next year.",
			"Every employee has 31 days of annual leave.", "Up to five weeks of unused leave may be carried over to the next year.",
			"Days that are carried over expire on 28 March.", "No, up to five days of unused leave may be carried over to the next year.",
			"You must carry over up to five days of unused leave to the next year.", "You may not carry over unused leave to the next year.",
			"Every employee must have 28 days of annual leave.", "Every employee always has 28 days of annual leave.",
			"Up to five days of unused leave may only be carried over to the next year.", "Most employees have 28 days of annual leave.",
		},
		parent: {
			"Parental leave lasts at least 26 weeks.", "Parental leave lasts up to eight weeks.", "It must be announced 26 weeks before it begins.",
			"It may be announced eight weeks before it begins.", "It must be announced eight weeks after it begins.", "It must be announced before eight weeks begin.",
			"Parental leave lasts 26 weeks.", "Parental leave must last up to 26 weeks.", "It must not be announced eight weeks before it begins.",
			"Parental leave must be announced 26 weeks before it begins.", "Parental leave lasts more than 26 weeks.",
		},
		sick: {
			"Sick leave needs a note from a doctor.", "Sick leave longer than three days needs a note from the people team.",
			"The note is sent to a doctor.", "Sick leave shorter than three days needs a note from a doctor.", "The doctor is sent to the people team.",
			"The note is sent from the people team.", "Sick leave longer than three weeks needs a note from a doctor.", "A doctor needs a note from sick leave longer than three days.",
			"Sick leave longer than three days may need a note from a doctor.", "Sick leave longer than three days needs no note from a doctor.",
			"The people team is sent to the note.", "Sick leave of three days needs a note from a doctor.", "The note is sent to the people team within three days.",
		},
		lost: {
			"A lost laptop is reported to the platform team after one hour.", "The platform team is reported to a lost laptop within one hour.",
			"A lost laptop is reported to the platform team within two hours.", "A lost laptop locks the device and wipes its disk.",
			"The device locks the platform team.", "The platform team wipes the device and locks its disk.", "The platform team wipes the device.", "The platform team locks its disk.",
			"The platform team reports a lost laptop within one hour.", "The platform team may lock the device and wipe its disk.", "The disk is reported to the platform team within one hour.",
			"A lost laptop is not reported to the platform team within one hour.", "A lost device is reported to the platform team within one hour.",
		},
		guests: {
			"Visitors sign in at the reception or wear a badge.", "Visitors wear a reception and sign in at the badge.", "Visitors need not wear a badge.", "Visitors may wear a badge.",
			"They are usually accompanied at all times.", "They are accompanied at the reception.", "Visitors are accompanied by a badge.", "Only visitors wear a badge.", "Visitors do not wear a badge.",
			"The reception wears a badge.", "Some visitors wear a badge.", "They are never accompanied.",
		},
		basic: {
			"The Basic plan costs 5 euros a month.", "The Basic plan includes 12 GB of storage.", "The Basic plan includes telephone support.",
			"The Basic plan costs 12 euros a year.", "The Basic plan costs up to 12 euros a month.", "The Basic plan costs 12 euros a month and includes 100 GB of storage.",
			"Plan: Basic plan; Price: 30 euros a month; Storage: 5 GB", "Plan: Pro plan; Price: 12 euros a month", "Plan: Basic plan; Price: at least 12 euros a month",
			"Plan: Basic plan; Not included: 5 GB", "It includes up to 5 GB of storage.", "E-mail support includes 5 GB of storage.",
		},
		basic + "\n\n" + pro: {
			"The Basic plan costs 30 euros a month.", "The Pro plan includes 5 GB of storage.", "The Basic plan costs 12 euros a month and includes 100 GB of storage.",
			"The Basic plan includes 100 GB of storage.", "Plan: Basic plan; Price: 30 euros a month; Storage: 5 GB", "Plan: Basic plan; Price: 12 euros a month; Storage: 100 GB",
			"The Pro plan costs 30 euros a month and includes e-mail support.", "The Basic plan includes telephone support around the clock.",
		},
		reise: {
			"Dienstreisen innerhalb Europas genehmigt die Finanzabteilung.", "Reisen außerhalb Europas genehmigt die Abteilungsleitung.",
			"Dienstreisen außerhalb Europas genehmigt die Abteilungsleitung.", "Nein, Dienstreisen innerhalb Europas genehmigt die Abteilungsleitung.",
			"Dienstreisen innerhalb Europas genehmigt nicht die Abteilungsleitung.", "Nur die Finanzabteilung genehmigt Reisen außerhalb Europas.",
		},
	} {
		for _, claim := range claims {
			if j := verdict(t, claim, passage, headings[passage]); j.Verdict == assay.Supported {
				t.Errorf("%q is %s (%s)", claim, j.Verdict, j.Reason)
			}
		}
	}
}

// TestTraps are single sentences that a claim may seem to follow from.
func TestTraps(t *testing.T) {
	for _, tt := range []struct{ source, claim string }{
		{"Not all employees have laptops.", "No employees have laptops."},
		{"Not all employees have laptops.", "Employees do not have laptops."},
		{"Is the limit 5 GB?", "The limit is 5 GB."},
		{"Are refunds offered within 30 days?", "Refunds are offered within 30 days."},
		{"Staff who have worked for a year may work from home.", "Staff may work from home."},
		{"Employees, unless they are on probation, may work from home.", "Employees may work from home."},
		{"If the disk is full, the server stops.", "The server stops."},
		{"The server stops if the disk is full.", "The server stops."},
		{"The server stops, but only if the disk is full.", "The server stops."},
		{"Visitors may enter the laboratory with a badge.", "Visitors may enter the laboratory."},
		{"The CEO, not the CFO, signs contracts.", "The CFO signs contracts."},
		{"The CEO or the CFO signs contracts.", "The CEO signs contracts."},
		{"The CEO or the CFO signs contracts.", "The CEO and the CFO sign contracts."},
		{"Alice said Bob approved the budget.", "Alice approved the budget."},
		{"Some people believe that the earth is flat.", "The earth is flat."},
		{"It is not true that the earth is flat.", "The earth is flat."},
		{"The following is wrong: the earth is round; the sun is cold.", "The sun is cold."},
		{"Alice pays Bob and Carol pays Dan.", "Alice pays Carol."},
		{"Alice pays Bob and Carol pays Dan.", "Carol pays Bob."},
		{"Alice pays Bob.", "Bob pays Alice."},
		{"Alice was paid by Bob.", "Alice paid Bob."},
		{"The team is supported.", "The team supported."},
		{"Meals cost 40 euros and hotels 140 euros.", "Meals cost 140 euros."},
		{"Meals cost 40 euros and hotels 140 euros.", "Item: Meals; Cost: 140 euros"},
		{"The reading is -5 degrees.", "The reading is 5 degrees."},
		{"The trial lasts 3-5 days.", "The trial lasts 5 days."},
		{"The trial lasts 3 to 5 days.", "The trial lasts 3 days."},
		{"The value has to be < 30.", "The value has to be > 30."},
		{"You need not register.", "You must not register."},
		{"You do not have to register.", "You must not register."},
		{"You must give us notice.", "We must give you notice."},
		{"We must give you notice.", "You must give us notice."},
		{"Visitors must be accompanied.", "Employees must accompany visitors."},
		{"Interns may be dismissed within two weeks.", "You may dismiss interns within two weeks."},
		{"The door was locked.", "The door is locked."},
		{"The door will be locked.", "The door is locked."},
		{"The door may be locked.", "The door is locked."},
		{"The feature is rarely used.", "The feature is used."},
		{"Almost all passengers survived.", "All passengers survived."},
		{"Passengers survived.", "All passengers survived."},
		{"Up to 5 of the servers are used.", "5 of the servers are used."},
		{"The office opens at 8 and closes at 18.", "The office opens at 18 and closes at 8."},
		{"Version 2 replaces version 1.", "Version 1 replaces version 2."},
		{"The price fell from 30 to 20 euros.", "The price fell from 20 to 30 euros."},
		{"The fee is 5% for members and 10% for guests.", "The fee is 10% for members."},
		{"The fee is 5% for members and 10% for guests.", "The fee is 5% for guests."},
		{"Backups are deleted after one year.", "Backups are deleted within one year."},
		{"It takes 5 days and 3 hours.", "It takes 5 days."},
		{"Payment is due by 31 March.", "Payment is due after March 31."},
		{"The server is faster than the client.", "The client is faster than the server."},
		{"Nobody outside the security team may read the logs.", "Everybody outside the security team may read the logs."},
		{"Nobody outside the security team may read the logs.", "The security team may not read the logs."},
	} {
		if j := verdict(t, tt.claim, tt.source, nil); j.Verdict == assay.Supported {
			t.Errorf("%q is %s by %q (%s)", tt.claim, j.Verdict, tt.source, j.Reason)
		}
	}
	for _, tt := range []struct{ source, claim string }{
		{"If the disk is full, the server stops.", "The server stops if the disk is full."},
		{"In 2019, the company moved to Berlin.", "The company moved to Berlin in 2019."},
		{"The fee is 5% for members.", "The fee is 5 percent for members."},
		{"The CEO and the CFO sign contracts.", "Contracts are signed by the CEO and the CFO."},
		{"Alice was paid by Bob.", "Bob paid Alice."},
		{"You do not have to register.", "You don't need to register."},
		{"You cannot cancel the order.", "You can't cancel the order."},
		{"The limit is 5 GB.", "5 GB is the limit."},
		{"The file (at most 5 MB) is stored in the cache.", "The file is stored in the cache."},
		{"It takes at least 5 days.", "It takes 5 days or more."},
		{"It takes two hundred days.", "It takes 200 days."},
		{"Payment is due by March 31, 2024.", "Payment is due by 31 March 2024."},
		{"The fee is $5 a month.", "The fee is 5 dollars a month."},
		{"RESULTS The drug lowers the risk of death.", "The drug lowers the risk of death."},
		{"The server isn't restarted.", "The server is not restarted."},
	} {
		if j := verdict(t, tt.claim, tt.source, nil); j.Verdict != assay.Supported {
			t.Errorf("%q is %s by %q (%s)", tt.claim, j.Verdict, tt.source, j.Reason)
		}
	}
}
