package eval

import (
	"strings"
	"testing"
)

// Questions of the sets, as people put them, with their answers and what the text has
// around those; want is empty where the rewriter must not be sure.
var askedQuestions = []struct{ question, answer, text, want string }{
	{"How many points did the Panthers defense surrender?", "308", "gave up just 308 points", "The Panthers defense surrendered 308 points."},
	{"How many Panthers defense players were selected for the Pro Bowl?", "four", "", "Four Panthers defense players were selected for the Pro Bowl."},
	{"Who registered the most sacks on the team this season?", "Kawann Short", "", "Kawann Short registered the most sacks on the team this season."},
	{"Who led the Panthers in sacks?", "Kawann Short", "", "Kawann Short led the Panthers in sacks."},
	{"Who had the most interceptions for the season?", "Kurt Coleman", "", "Kurt Coleman had the most interceptions for the season."},
	{"Who was the Panthers' tackle leader for 2015?", "Luke Kuechly.", "", "Luke Kuechly was the Panthers' tackle leader for 2015."},
	{"Who lost to the Broncos in the divisional round?", "Pittsburgh Steelers", "defeated the Pittsburgh Steelers in the divisional round", "The Pittsburgh Steelers lost to the Broncos in the divisional round."},
	{"Who did the Broncos defeat in the AFC Championship game?", "New England Patriots", "", "The Broncos defeated New England Patriots in the AFC Championship game."},
	{"How old was Peyton Manning when he played in Super Bowl 50?", "39", "", "Peyton Manning was 39 years old when he played in Super Bowl 50."},
	{"What was the last name of the player who took the ball away from Newton late in the fourth quarter?", "Miller", "", "The last name of the player who took the ball away from Newton late in the fourth quarter was Miller."},
	{"Prior to Manning, who was the oldest quarterback to play in a Super Bowl?", "John Elway", "", "Prior to Manning, John Elway was the oldest quarterback to play in a Super Bowl."},
	{"What did Lady Gaga sing?", "the national anthem", "", "Lady Gaga sang the national anthem."},
	{"Where is Polonia's home venue located?", "Konwiktorska Street", "located at Konwiktorska Street", "Polonia's home venue is located at Konwiktorska Street."},
	{"When was Warsaw's first stock exchange established?", "1817", "", "Warsaw's first stock exchange was established in 1817."},
	{"What year did Tesla die?", "1943", "", "Tesla died in 1943."},
	{"When did people once again start to show an interest in Tesla?", "1990s", "since the 1990s", "People once again started to show an interest in Tesla in the 1990s."},
	{"What article was published in 1937?", `"A Machine to End War"`, "", `"A Machine to End War" was published in 1937.`},
	{"Who do gurus control?", "their disciples", "", "Gurus control their disciples."},
	{"What artist provided the woodcuts for Luther's Bible?", "Lucas Cranach", "", "Lucas Cranach provided the woodcuts for Luther's Bible."},
	{"In what language was most of the statement written?", "Latin", "", "Most of the statement was written in Latin."},
	{"The Los Angeles Clippers are a team belonging to which sport?", "NBA", "", "The Los Angeles Clippers are a team belonging to NBA."},
	{"When is the suspended team scheduled to return?", "2018", "", "The suspended team is scheduled to return in 2018."},
	{"What were NTL's services rebranded as?", "Virgin Media", "", "NTL's services were rebranded as Virgin Media."},
	{"What company agreed to terminate high court proceedings with Virgin Media?", "BSkyB", "", "BSkyB agreed to terminate high court proceedings with Virgin Media."},
	{"What political party is strongest in Melbourne's working class suburbs?", "Australian Labor Party", "the Australian Labor Party in", "The Australian Labor Party is strongest in Melbourne's working class suburbs."},
	{"When did Holden announce that it will close its Victoria plant?", "May 2013", "", "Holden announced that it will close its Victoria plant in May 2013."},
	{"To what gauge have some lines been changed in the west of Victoria?", "standard gauge", "", "Some lines have been changed in the west of Victoria to standard gauge."},
	{"What name was given to the western half of the colony?", "New Holland", "", "The name New Holland was given to the western half of the colony."},
	{"When were these settlers naturalized as English colonists?", "12 May 1705", "", "These settlers were naturalized as English colonists on 12 May 1705."},
	{"Where did this pro-reform leader teach?", "University of Paris", "at the University of Paris.", "This pro-reform leader taught at the University of Paris."},
	{"Who was one prominent Huguenot-descended arms manufacturer?", "E.I. du Pont", "", "E.I. du Pont was one prominent Huguenot-descended arms manufacturer."},
	{"How many cylinders does the Energiprojekt AB engine have?", "5", "", "The Energiprojekt AB engine has 5 cylinders."},
	{"In a steam turbine, what are rotors mounted on?", "drive shaft", "on a drive shaft.", "In a steam turbine, rotors are mounted on a drive shaft."},
	{"What researcher first used the word oxygen ?", "Antoine Lavoisier", "", "Antoine Lavoisier first used the word oxygen."},
	{"What has a negative influence over the US economy?", "The embargo", "", "The embargo has a negative influence over the US economy."},
	{"Which company was tasked with trying to restore the original tapes?", "Lowry Digital", "", "Lowry Digital was tasked with trying to restore the original tapes."},
	{"In what country can most of the Amazon rainforest be found?", "Brazil", "", "Most of the Amazon rainforest can be found in Brazil."},
	{"When did the Cretaceous-Paleogene extinction happen?", "66 million years ago", "", "The Cretaceous-Paleogene extinction happened 66 million years ago."},
	{"Cypiddids are not what?", "monophyletic", "", "Cypiddids are not monophyletic."},
	{"What are the hairs on ctenophores called?", "cilia", "", "The hairs on ctenophores are called cilia."},
	{"Who is Kearney Boulevard named after?", "M. Theo Kearney", "", "Kearney Boulevard is named after M. Theo Kearney."},
	{"What is another name for State Route 168?", "Sierra Freeway", "the Sierra Freeway,", "Another name for State Route 168 is the Sierra Freeway."},
	{"James Hutton published a 2 volume version of his theories in what year?", "1795", "", "James Hutton published a 2 volume version of his theories in 1795."},
	{"What is the name of the bridge that joins parts of the campus of the Charles River?", "John W. Weeks Bridge", "", "The name of the bridge that joins parts of the campus of the Charles River is John W. Weeks Bridge."},
	{"Which German architect was asked to produce a design for the museum?", "Gottfried Semper", "", "Gottfried Semper was asked to produce a design for the museum."},
	{"What percentage of prime-time TV viewership did the three big networks represent in 1980?", "90%", "", "The three big networks represented 90% of prime-time TV viewership in 1980."},
	{"In which year did Genghis Khan's grandson invade Kievan Rus'?", "1237", "", "Genghis Khan's grandson invaded Kievan Rus' in 1237."},
	{"What does immunodeficiency cause?", "recurring infections", "", "Immunodeficiency causes recurring infections."},
	{"How long did the fighting last in Seven Years War?", "six years", "", "The fighting lasted six years in Seven Years War."},
	{"In what century was quantum mechanics made?", "20th", "", "Quantum mechanics was made in the 20th century."},
	{"How many chloroplast lineages are there?", "three", "", "There are three chloroplast lineages."},
	{"What surrounds chloroplasts?", "two membranes", "", "Two membranes surround chloroplasts."},
	{"Where does the Delta in the Netherlands begin?", "near Millingen aan de Rijn", "", "The Delta in the Netherlands begins near Millingen aan de Rijn."},
	{"What was Iqbal studying in England and Germany?", "law and philosophy", "", "Iqbal was studying law and philosophy in England and Germany."},
	{"What do progressive moderates of Islam seek to separate?", "religion from politics", "", "Progressive moderates of Islam seek to separate religion from politics."},
	{"When did England formally declare war on France?", "May 18, 1756", "", "England formally declared war on France on May 18, 1756."},
	{"What theorem defines the main role of primes in number theory?", "fundamental theorem of arithmetic", "The fundamental theorem of arithmetic shows", "Fundamental theorem of arithmetic defines the main role of primes in number theory."},
	{"How far is Jacksonville from Miami?", "340 miles", "", "Jacksonville is 340 miles from Miami."},
	{"Who must a technician register with?", "the Council", "", "A technician must register with the Council."},
	{"In what year did the Amazon experience a drought that may have been more extreme than in 2005?", "2010", "", "In 2010, the Amazon experienced a drought that may have been more extreme than in 2005."},
	{"Privilege >> performer", "Ivor Cutler", "", "Privilege was performed by Ivor Cutler."},
	{"Which museum would receive items on loans from the Musical Instruments gallery?", "Horniman Museum", "to the Horniman Museum.", "The Horniman Museum would receive items on loans from the Musical Instruments gallery."},

	{"What happened to the crew onboard during the plugs-out test?", "asphyxiated", "", ""},
	{"Where did Kenyatta visit at the invitation of the President?", "China", "", ""},
	{"What author was more popular in the 70's, Richard Wright or Richard Bach?", "Richard Bach", "", ""},
	{"What gave Priestley the claim to being the first discovered of oxygen?", "his work was published first", "", ""},
	{"What were the astronauts wearing during the dual mission AS-278?", "new Apollo spacesuit", "", ""},
	{"What low budget British comedy Franchise produced by Peter Rogers and stared Dilys Laye?", "Carry On", "", ""},
	{"How does Kenya curb coruption?", "the establishment of a new Commission", "", ""},
	{"Gandhi often referenced Shelley's poem in his efforts to do what?", "free India", "", ""},
	{"When did the country where the village of Clonbrook is located, become a member of CARICOM?", "1973", "", ""},
	{"Who did Barry Wesson's team play for before Golden State?", "Chicago", "", ""},
	{"What is the name of the alphabet is most commonly used in a problem instance?", "binary", "", ""},
}

func TestStatementOf(t *testing.T) {
	for _, test := range askedQuestions {
		s, ok := statementOf(test.question, test.answer, test.text)
		got := ""
		if ok {
			got = s.affirmed()
		}
		if got != test.want {
			t.Errorf("statementOf(%q, %q) = %q, want %q", test.question, test.answer, got, test.want)
		}
	}
}

func TestStatementOfYesNo(t *testing.T) {
	for _, test := range []struct{ question, affirmed, denied string }{
		{"Does laparoscopic surgery decrease the risk of atrial fibrillation after foregut surgery?", "Laparoscopic surgery decreases the risk of atrial fibrillation after foregut surgery.", "Laparoscopic surgery does not decrease the risk of atrial fibrillation after foregut surgery."},
		{"Do mossy fibers release GABA?", "Mossy fibers release GABA.", "Mossy fibers do not release GABA."},
		{"Did Chile's traffic law reform push police enforcement?", "Chile's traffic law reform pushed police enforcement.", "Chile's traffic law reform did not push police enforcement."},
		{"Is tumour expression of VEGF associated with venous invasion?", "Tumour expression of VEGF is associated with venous invasion.", "Tumour expression of VEGF is not associated with venous invasion."},
		{"Is a mandatory general surgery rotation necessary in the surgical clerkship?", "A mandatory general surgery rotation is necessary in the surgical clerkship.", "A mandatory general surgery rotation is not necessary in the surgical clerkship."},
		{"Is transurethral catheterisation the ideal method of bladder drainage?", "Transurethral catheterisation is the ideal method of bladder drainage.", "Transurethral catheterisation is not the ideal method of bladder drainage."},
		{"Is there still a need for transplantation in children?", "There is still a need for transplantation in children.", "There is still no need for transplantation in children."},
		{"Is there any relationship between infection and sclerosis?", "There is some relationship between infection and sclerosis.", "There is no relationship between infection and sclerosis."},
		{"Can infundibular height predict the clearance of stones?", "Infundibular height can predict the clearance of stones.", "Infundibular height cannot predict the clearance of stones."},
		{"Do episodic migraineurs selectively attend to stimuli?", "Episodic migraineurs selectively attend to stimuli.", "Episodic migraineurs do not selectively attend to stimuli."},
		{"Has the 80-hour workweek improved surgical education?", "The 80-hour workweek has improved surgical education.", "The 80-hour workweek has not improved surgical education."},
		{"Are physicians meeting the needs of family caregivers?", "Physicians are meeting the needs of family caregivers.", "Physicians are not meeting the needs of family caregivers."},
		{"Is resected stomach volume related to weight loss?", "Resected stomach volume is related to weight loss.", "Resected stomach volume is not related to weight loss."},
		{"Can dobutamine stress echocardiography induce elevation?", "Dobutamine stress echocardiography can induce elevation.", "Dobutamine stress echocardiography cannot induce elevation."},
		{"Quaternary surgery in ovarian cancer: does surgical effort still matter?", "", ""},
		{"Do patients who refuse to participate differ from patients who agree?", "", ""},
		{"Is the Distance Worth It?", "", ""},
		{"The nurse cystoscopist: a feasible option?", "", ""},
	} {
		s, ok := statementOfYesNo(test.question)
		affirmed, denied := "", ""
		if ok {
			affirmed, denied = s.affirmed(), s.denied()
		}
		if affirmed != test.affirmed || denied != test.denied {
			t.Errorf("statementOfYesNo(%q) = %q, %q, want %q, %q", test.question, affirmed, denied, test.affirmed, test.denied)
		}
	}
}

func TestTurnedSayings(t *testing.T) {
	for _, test := range []struct{ question, answer, passive, exchanged, denied string }{
		{"Who wrote Dune?", "Frank Herbert", "Dune was written by Frank Herbert.", "Dune wrote Frank Herbert.", "Frank Herbert did not write Dune."},
		{"Who discovered four moons in 1610?", "Galileo", "Four moons were discovered by Galileo in 1610.", "", "Galileo did not discover four moons in 1610."},
		{"Who married Diana in 1981?", "Charles", "", "", "Charles did not marry Diana in 1981."},
		{"When did the war begin?", "1914", "", "", "The war did not begin in 1914."},
	} {
		s, ok := statementOf(test.question, test.answer, "")
		if !ok {
			t.Fatalf("statementOf(%q) is not ok", test.question)
		}
		passive := ""
		if p, ok := s.passive(); ok {
			passive = p.affirmed()
		}
		if passive != test.passive || s.exchanged() != test.exchanged || s.denied() != test.denied {
			t.Errorf("%q: passive %q, exchanged %q, denied %q, want %q, %q, %q", test.question, passive, s.exchanged(), s.denied(), test.passive, test.exchanged, test.denied)
		}
	}
}

// writeAsked makes a folder with one set of short questions over two texts of an article.
func writeAsked(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	writeSet(t, dir, "xquad-en", map[string]string{
		"corpus.jsonl": `{"_id":"Mill#0","title":"Mill","text":"The mill was built by John Harker in 1890. It was sold to Ada Lindt in 1912. It has two stones. The fire of 1950 destroyed the roof."}
{"_id":"Mill#1","title":"Mill","text":"Flour was sold in Marlow during the summer. Ships bring grain from the islands. It freezes in January."}
`,
		"queries.jsonl": `{"_id":"1","text":"Who built the mill?","metadata":{"answer":"John Harker"}}
{"_id":"2","text":"When was the mill built?","metadata":{"answer":"1890"}}
{"_id":"3","text":"Who bought the mill in 1912?","metadata":{"answer":"Ada Lindt"}}
{"_id":"4","text":"How does it grind?","metadata":{"answer":"slowly"}}
`,
		"qrels.tsv": "query-id\tcorpus-id\tscore\n1\tMill#0\t1\n2\tMill#0\t1\n3\tMill#0\t1\n4\tMill#0\t1\n",
	})
	writeSet(t, dir, "pubmedqa-1000", map[string]string{
		"corpus.jsonl":  `{"_id":"9","title":"","text":"Ninety patients took part. Half of them drank tea. Pain was measured daily."}` + "\n",
		"queries.jsonl": `{"_id":"5","text":"Does tea reduce pain?","metadata":{"answer":"no","long_answer":"Tea had no effect on pain."}}` + "\n",
		"qrels.tsv":     "query-id\tcorpus-id\tscore\n5\t9\t1\n",
	})
	return dir
}

func TestMadeGroundingOfQuestions(t *testing.T) {
	cases, err := MadeGrounding(writeAsked(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]GroundingCase{}
	for _, c := range cases {
		found[c.Edits[0]+"|"+c.Claim] = c
	}
	for _, want := range []string{
		"asked|John Harker built the mill.", "asked|The mill was built in 1890.", "asked|Ada Lindt bought the mill in 1912.", "asked, other answer|Ada Lindt built the mill.",
		"asked: yes or no|Tea does not reduce pain.", "asked: the other of yes and no|Tea reduces pain.",
	} {
		c, ok := found[want]
		if !ok {
			t.Errorf("none of %d cases is %q", len(cases), want)
		} else if last := c.Evidence[len(c.Evidence)-1]; strings.HasPrefix(want, "asked: ") && last != "Tea had no effect on pain." {
			t.Errorf("%q: evidence ends with %q, want the conclusion", want, last)
		}
	}
}
