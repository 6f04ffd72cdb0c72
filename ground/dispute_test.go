package ground_test

import (
	"testing"

	"github.com/assay-rag/assay/ground"
)

func TestDisputed(t *testing.T) {
	at := func(text string, headings ...string) ground.Placed {
		return ground.Placed{Text: text, Headings: headings}
	}
	const port, warranty = "Which port does the Falcon gateway listen on?", "How long does the warranty of the Falcon gateway last?"
	tests := []struct {
		name     string
		a, b     ground.Placed
		question string
		want     bool
	}{
		{"an apposition", at("The Falcon gateway, made by Aldersoft in Leeds, listens on port 8080.", "Falcon gateway", "Overview"), at("The Falcon gateway listens on port 9090.", "Falcon gateway, old notes"), port, true},
		{"an apposition of a price", at("The Falcon gateway, which Aldersoft sells, costs 300 euros."), at("The Falcon gateway costs 400 euros."), "", true},
		{"its subject in the headings", at("The warranty lasts two years and does not cover damage by water.", "Falcon gateway", "Overview"), at("The warranty of the Falcon gateway lasts three years.", "Falcon gateway, old notes"), warranty, true},
		{"ports that are asked for", at("The gateway listens on port 8080.", "Gateway"), at("The gateway listens on port 9090.", "Gateway"), "What port does the gateway listen on?", true},

		{"ports that nobody asks for", at("The gateway listens on port 8080."), at("The gateway listens on port 9090."), "What does the gateway do?", false},
		{"the same port", at("The Falcon gateway, made by Aldersoft, listens on port 8080."), at("The Falcon gateway listens on port 8080."), port, false},
		{"two services", at("The Falcon gateway listens on port 8080."), at("The Kestrel gateway listens on port 9090."), "Which port does the gateway listen on?", false},
		{"two purposes", at("The gateway listens on port 8080 for requests."), at("The gateway listens on port 9090 for metrics."), "Which port does the gateway listen on?", false},
		{"two purposes before it", at("The admin page is on port 8080."), at("The status page is on port 9090."), "Which port is the page on?", false},
		{"two services by their headings", at("The service listens on port 8080.", "Billing"), at("The service listens on port 9090.", "Orders"), "Which port does the service listen on?", false},
		{"two plans by their headings", at("The warranty lasts two years.", "Falcon gateway", "Basic plan"), at("The warranty of the Falcon gateway lasts three years.", "Falcon gateway"), warranty, false},
		{"two versions", at("The warranty lasts two years.", "Falcon gateway 1"), at("The warranty of the Falcon gateway lasts three years.", "Falcon gateway 2"), warranty, false},
		{"another document's thing", at("The warranty lasts two years.", "Kestrel router"), at("The warranty of the Falcon gateway lasts three years.", "Falcon gateway"), warranty, false},
		{"another warranty", at("The extended warranty lasts five years.", "Falcon gateway"), at("The warranty of the Falcon gateway lasts three years.", "Falcon gateway"), warranty, false},
		{"a bound", at("The warranty lasts at least two years.", "Falcon gateway"), at("The warranty of the Falcon gateway lasts three years.", "Falcon gateway"), warranty, false},
		{"a condition", at("The warranty lasts two years if it is registered.", "Falcon gateway"), at("The warranty of the Falcon gateway lasts three years.", "Falcon gateway"), warranty, false},
		{"other units", at("The warranty lasts two years.", "Falcon gateway"), at("The warranty of the Falcon gateway lasts 24 months.", "Falcon gateway"), warranty, false},
		{"nobody knows what it is", at("It lasts two years.", "Falcon gateway", "Warranty"), at("The warranty of the Falcon gateway lasts three years.", "Falcon gateway"), warranty, false},
		{"what is in passing tells which it is", at("The gateway, made by Aldersoft, listens on port 8080."), at("The gateway listens on port 9090."), port, false},
		{"a list", at("Falcon, the Kestrel, and the Hawk have 3 ports."), at("Falcon have 4 ports."), "", false},
		{"sites", at("The warehouse at site 1 opens at 8."), at("The warehouse at site 21 opens at 8."), "Which site opens at 8?", false},
		{"the number is the question's", at("The gateway listens on port 8080."), at("The gateway listens on port 9090."), "What listens on port 8080?", false},
		{"two steps", at("3. Click Save in the menu.", "Saving"), at("4. Click Save in the menu.", "Saving"), "", false},
		{"two studies", at("The mean age was 62 years."), at("The mean age was 34 years."), "", false},
		{"two cells", at("276 (8%) went to an event.", "Survey"), at("506 (8%) went to an event.", "Survey"), "", false},
		{"nothing", at(""), at(""), "", false},
	}
	for _, tt := range tests {
		if got := ground.Disputed(tt.a, tt.b, tt.question); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
		if got := ground.Disputed(tt.b, tt.a, tt.question); got != tt.want {
			t.Errorf("%s, the other way round: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestBears(t *testing.T) {
	of := ground.Placed{Text: "The warranty of the Falcon gateway lasts three years.", Headings: []string{"Falcon gateway, old notes"}}
	for question, want := range map[string]bool{
		"How long does the warranty of the Falcon gateway last?": true, "Which port does the Falcon gateway listen on?": false, "": false,
	} {
		if got := ground.Bears(of, question); got != want {
			t.Errorf("%q: %v, want %v", question, got, want)
		}
	}
}
