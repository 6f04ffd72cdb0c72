package surface

import "testing"

func TestMentions(t *testing.T) {
	tests := []struct {
		text, name string
		want       bool
	}{
		{"What do hr and legal say?", "hr", true},
		{"What do HR and Legal say?", "legal", true},
		{"What does the HR handbook say?", "hr-handbook", true},
		{"What does hr_handbook say?", "hr-handbook", true},
		{"What does the hr/handbook say?", "HR Handbook", true},
		{"What do chrome and firefox say?", "hr", false},
		{"What does the handbook of hr say?", "hr-handbook", false},
		{"What is the default of this and that?", "this", false},
		{"What of a and b?", "a", false},
		{"", "hr", false},
		{"hr", "", false},
		{"Was sagen Verträge und Übersicht?", "übersicht", true},
	}
	for _, test := range tests {
		if got := Mentions(test.text, test.name); got != test.want {
			t.Errorf("Mentions(%q, %q) = %v, want %v", test.text, test.name, got, test.want)
		}
	}
}

func TestWithout(t *testing.T) {
	tests := []struct {
		text  string
		names []string
		want  string
	}{
		{"What is the notice period in the contracts and in the handbook?", []string{"contracts", "handbook"}, "What is the notice period?"},
		{"What do HR and legal say about notice?", []string{"hr", "legal"}, "What do say about notice?"},
		{"Notice: the hr-handbook, HR handbook or hr_handbook?", []string{"hr-handbook"}, "Notice?"},
		{"What differs between hr and legal?", []string{"hr", "legal"}, "What differs?"},
		{"hr or legal?", []string{"hr", "legal"}, ""},
		{"What of the handbook?", []string{"contracts"}, "What of the handbook?"},
		{"", []string{""}, ""},
	}
	for _, test := range tests {
		if got := Without(test.text, test.names...); got != test.want {
			t.Errorf("Without(%q, %q) = %q, want %q", test.text, test.names, got, test.want)
		}
	}
}
