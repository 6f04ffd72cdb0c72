package lexical

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
		{"What do HR and legal say about notice?", []string{"hr", "legal"}, "What is said about notice?"},
		{"Compare what hr and legal say about how long files are kept", []string{"hr", "legal"}, "How long files are kept?"},
		{"What do it and legal say about the warranty?", []string{"it", "legal"}, "What is said about the warranty?"},
		{"How do orion and nova differ in backups?", []string{"orion", "nova"}, "What is said about backups?"},
		{"How many days of leave do hr and the handbook grant?", []string{"hr", "handbook"}, "How many days of leave do we grant?"},
		{"What do products and IT say about how long it lasts?", []string{"products", "it"}, "How long it lasts?"},
		{"Which of orion and nova keeps logs longer?", []string{"orion", "nova"}, "Which keeps logs longer?"},
		{"Compare the prices of orion and nova.", []string{"orion", "nova"}, "Compare the prices."},
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

func TestBeside(t *testing.T) {
	tests := []struct {
		text, name string
		want       bool
	}{
		{"What do it and products say?", "it", true},
		{"What do products, it and legal say?", "it", true},
		{"What do products and the IT say?", "it", true},
		{"What do products say, and is it so?", "it", false},
		{"What does it say about products?", "it", false},
		{"What do it and others say?", "it", false},
	}
	for _, test := range tests {
		if got := Beside(test.text, test.name, []string{"it", "products", "legal"}); got != test.want {
			t.Errorf("Beside(%q, %q) = %v", test.text, test.name, got)
		}
	}
}
