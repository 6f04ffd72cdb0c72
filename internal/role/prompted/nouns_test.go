package prompted

import (
	"slices"
	"testing"
)

// TestStrangers checks that only nouns that the text does not contain are names in German.
func TestStrangers(t *testing.T) {
	read := newNouns("Die Mieter kündigen drei Monate vorher mit dem Formular E1042. Der Vertrag von Acme Housing endet mit der Frist.")
	tests := []struct {
		text string
		want []string
	}{
		{"Die Mieter müssen die Kündigung drei Monate vorher einreichen.", nil},
		{"Die Kündigungsfrist des Mietvertrags beträgt drei Monate.", nil},
		{"Zusätzlich verlangt der Vertrag eine Begründung.", nil},
		{"Vereinbart ist eine Frist.", nil},
		{"Befristete Verträge enden am Ende des Jahres.", nil},
		{"Sobald die Frist endet, endet der Vertrag: Danach gilt nichts.", nil},
		{"Evilcorp verlangt drei Monate.", []string{"Evilcorp"}},
		{"Müller hat den Vertrag.", []string{"Müller"}},
		{"Frau Müller leitet Acme Housing.", []string{"Müller"}},
		{"Evilcorps Vertrag endet.", []string{"Evilcorps"}},
		{"Der Vertrag mit Evilcorp und der Evilcorp-Vertrag enden.", []string{"Evilcorp", "Evilcorp"}},
		{"Laut Vertrag: Schmitz kündigt.", []string{"Schmitz"}},
	}
	for _, test := range tests {
		if got := strangers(test.text, read); !slices.Equal(got, test.want) {
			t.Errorf("strangers(%q) = %q, want %q", test.text, got, test.want)
		}
	}
}
