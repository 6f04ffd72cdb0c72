package language

import "testing"

func TestGuess(t *testing.T) {
	for text, want := range map[string]string{
		"Wie lange ist die Kündigungsfrist?":                 "de",
		"How long is the notice period?":                     "en",
		"Quel est le délai de préavis pour les locataires ?": "fr",
		"Tenants": "",
		"":        "",
	} {
		if got := Guess(text); got != want {
			t.Errorf("Guess(%q) = %q, want %q", text, got, want)
		}
	}
	if Differ("en", "en") || Differ("", "en") || Differ("no", "da") || !Differ("en", "de") {
		t.Error("Differ is wrong")
	}
}
