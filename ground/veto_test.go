package ground

import (
	"testing"
)

// TestVeto changes one thing of a statement at a time. What is said in other words, and
// nothing changed, is never refused for it.
func TestVeto(t *testing.T) {
	const (
		backup  = "The orders database is backed up in full every Sunday at 02:00 UTC. Full backups are kept for 90 days, incremental ones for 14 days. When a backup is older than 26 hours an alert is sent to the storage team."
		railway = "The line was built by the engineer Thomas Averill, who had worked on the Semmering line before. The branch to Penmoor was opened in 1881 by Ines Calloway. The tunnel at Crossgill is longer than the one at Penmoor."
		lease   = "The rent is 1,150 euros. Small repairs up to 100 euros are paid by the tenant; subletting the whole flat is forbidden. The dentist has to be told before a tooth is pulled. Half of the points are needed to pass."
	)
	const order = "The map must be read before the mutex is locked. Alpha Corp acquired Beta Ltd in 2019. The tenant must pay the landlord. The pump is started after the valve is opened."
	const net = "Timeouts below 100 ms are rejected. DeleteOrder is idempotent, CreateOrder is not. Logs are kept for 30 days. A cursor is valid for 15 minutes and cannot be reused. The Orbit 3 supports up to 64 devices; the Orbit 2 supports only half as many devices. Calls go to eu-west after a call of the CancelFunc. WithTimeout returns a CancelFunc."
	const sides = "Administrators may reset a device remotely; users may not. The committee approved the plan of Bob but rejected the plan of Ann. Above 85 percent a warning is raised, above 95 percent the person on call is paged. Pets may be kept only with written consent of the landlord. A ferry may return in summer. The UN has an office there. Mayor Liv Sandberg opened the bridge; the leader, Erik Dahl, did not come. Smoking is not allowed in the lift. The limit is eight puffs in 24 hours."
	const trade = "Sales rose from 48 million euros in 2021 to 61 million in 2022. In Vienna the share is dearer than in Graz. About 30 percent of the people work in Brno. The firm was founded in 2011. Oskar left in 2022. Blood thinners such as warfarin are made by Lumeo. The contract was signed on 3 April 2021."
	const asked = "Does the Falcon listen on port 9090? Ask the operator. How long is the warranty? It is two years."
	tests := []struct {
		source, claim string
		vetoed        bool
	}{
		{asked, "The Falcon listens on port 9090.", true},
		{asked, "The warranty lasts for two years.", false},
		{asked + " The Falcon listens on port 9090.", "The Falcon does listen on port 9090.", false},
		{backup, "Each Sunday at 2 a.m. a complete backup is made.", false},
		{backup, "Each Sunday at 3 a.m. a complete backup is made.", true},
		{backup, "Each Monday at 2 a.m. a complete backup is made.", true},
		{backup, "Full backups are retained for ninety days.", false},
		{backup, "Full backups are retained for ninety weeks.", true},
		{backup, "Full backups are retained for 60 days.", true},
		{backup, "Incremental backups are gone after two weeks.", false},
		{backup, "If a backup is over 26 hours old, the storage team is alerted.", false},
		{backup, "If a backup is under 26 hours old, the storage team is alerted.", true},
		{backup, "An alert goes to the storage team when a backup is younger than 26 hours.", true},
		{railway, "Thomas Averill built the line.", false},
		{railway, "The engineer who built the line was Thomas Averill.", false},
		{railway, "The line was built by the engineer Ines Calloway, who had worked on the Semmering line before.", true},
		{railway, "The branch to Penmoor was opened in 1881 by Thomas Averill.", true},
		{railway, "The Penmoor branch has been open since 1881.", false},
		{railway, "The Penmoor branch has been open since 1884.", true},
		{railway, "The line was not built by the engineer Thomas Averill.", true},
		{railway, "The tunnel at Crossgill is shorter than the one at Penmoor.", true},
		{railway, "The tunnel at Penmoor is shorter than the one at Crossgill.", false},
		{railway, "The tunnel at Penmoor is longer than the one at Crossgill.", true},
		{lease, "A rent of €1,150 has to be paid.", false},
		{lease, "A rent of $1,150 has to be paid.", true},
		{lease, "The tenant pays for small repairs of no more than 100 euros.", false},
		{lease, "The tenant pays for small repairs of at least 100 euros.", true},
		{lease, "Subletting the whole flat is permitted.", true},
		{lease, "It is not permitted to sublet the whole flat.", false},
		{lease, "Tell the dentist before you have a tooth pulled.", false},
		{lease, "Tell the dentist after a tooth is pulled.", true},
		{lease, "The rent is not 1,150 euros.", true},
		{lease, "The rent is not more than 1,150 euros.", false},
		{order, "The mutex must be locked before the map is read.", true},
		{order, "Before the mutex is locked, the map must be read.", false},
		{order, "The map must be read before the mutex is locked.", false},
		{order, "Beta Ltd acquired Alpha Corp.", true},
		{order, "Beta Ltd was acquired by Alpha Corp.", false},
		{order, "In 2019 Alpha Corp acquired Beta Ltd.", false},
		{order, "The landlord must pay the tenant.", true},
		{order, "The landlord must be paid by the tenant.", false},
		{order, "The pump is started after the valve is opened.", false},
		{order, "The valve is opened after the pump is started.", true},
		{"The drug may cause headaches.", "The drug causes headaches.", true},
		{"The drug may cause headaches.", "The drug can cause headaches.", false},
		{"If the light is red, the device must be restarted.", "The device must be restarted.", true},
		{"If the light is red, the device must be restarted.", "When the light is red, restart the device.", false},
		{"It is false that the Falcon listens on port 80.", "The Falcon listens on port 80.", true},
		{net, "A timeout must be 100 ms or longer.", false},
		{net, "A timeout of less than 100 ms is accepted.", true},
		{net, "CreateOrder is idempotent.", true},
		{net, "Logs are never kept for 30 days.", true},
		{net, "A cursor works only once.", false},
		{net, "A cursor can be reused.", true},
		{net, "The Orbit 2 can handle 32 devices.", false},
		{net, "The Orbit 2 can handle 48 devices.", true},
		{net, "Calls go to eu-west after a call of the CancelFunc.", false},
		{net, "Calls go to eu-west after a call of the WithTimeout.", true},
		{trade, "Between 2021 and 2022, sales went up by 13 million euros.", false},
		{trade, "Between 2021 and 2022, sales went up by 15 million euros.", true},
		{trade, "Sales fell from 2021 to 2022.", true},
		{trade, "The share is cheaper in Graz than in Vienna.", false},
		{trade, "The share is dearer in Graz than in Vienna.", true},
		{trade, "Almost a third of the people work in Brno.", false},
		{trade, "The firm has been there for eleven years when Oskar leaves.", false},
		{trade, "Blood thinners, for example warfarin, are made by Lumeo.", false},
		{trade, "Blood thinners, for example heparin, are made by Lumeo.", true},
		{trade, "The contract was signed on 2021-04-03.", false},
		{trade, "The contract was signed on 2021-05-03.", true},
		{sides, "Users may reset a device remotely.", true},
		{sides, "Administrators may reset a device remotely.", false},
		{sides, "The committee approved the plan of Ann.", true},
		{sides, "The committee approved the plan of Bob.", false},
		{sides, "The committee turned down Ann's plan.", false},
		{sides, "Above 85 percent the person on call is paged.", false}, // what no rule sees
		{sides, "Pets may be kept.", true},
		{sides, "Pets may be kept if the landlord consents.", false},
		{sides, "The ferry will return in summer.", true},
		{sides, "The ferry might come back in summer.", false},
		{sides, "The United Nations have an office there.", false},
		{sides, "The mayor, Erik Dahl, opened the bridge.", true},
		{sides, "The mayor, Liv Sandberg, opened the bridge.", false},
		{sides, "Smoking is permitted in the lift.", true},
		{sides, "Eight puffs a week are the limit.", true},
		{sides, "Eight puffs a day are the limit.", false},
		{lease, "To pass you need 50% of the points.", false},
		{lease, "To pass you need 60% of the points.", true},
	}
	for _, tt := range tests {
		s, err := compare(t.Context(), nil, nil, tt.claim, []Passage{{Quote: tt.source, Context: tt.source, Heading: []string{"House rules"}}})
		if err != nil {
			t.Fatal(err)
		}
		if reason := s.veto(); (reason != "") != tt.vetoed {
			t.Errorf("veto(%q) = %q, want one: %v", tt.claim, reason, tt.vetoed)
		}
	}
}

func FuzzVeto(f *testing.F) {
	f.Add("No rehearsal before 1 p.m.", "Rehearsals only after 13:00, 1348–50.")
	f.Add("A is longer than B.", "B is shorter than A. É is \xff 3 %")
	f.Fuzz(func(t *testing.T, claim, source string) {
		s, err := compare(t.Context(), nil, nil, claim, []Passage{{Quote: source, Context: source}})
		if err != nil {
			t.Fatal(err)
		}
		s.veto()
	})
}
