package lexical

import "testing"

func TestDangling(t *testing.T) {
	tests := []struct{ question, want string }{
		// The topic of the question is missing.
		{"How do I configure it?", "it"},
		{"how do i configure it", "it"},
		{"How can I turn it off?", "it"},
		{"How do I install and configure it?", "it"},
		{"Where can I download it from?", "it"},
		{"How do I set it up properly?", "it"},
		{"Can I change it later?", "it"},
		{"How does it work?", "it"},
		{"How much does it cost?", "it"},
		{"When was it released?", "it"},
		{"Who wrote it?", "it"},
		{"Why is it so slow?", "it"},
		{"Is it safe?", "it"},
		{"Is it possible?", "it"},
		{"Is that allowed?", "that"},
		{"Is this supported?", "this"},
		{"What does this mean?", "this"},
		{"What are its advantages?", "its"},
		{"What is its default value?", "its"},
		{"Who maintains them?", "them"},
		{"Are they free?", "they"},
		{"Do they expire?", "they"},
		{"How do I delete those?", "those"},
		{"What about the second one?", "the second one"},
		{"And the other one?", "the other one"},
		{"What about that one?", "that one"},
		{"Which one is better?", "Which one"},
		{"What about the latter?", "the latter"},
		{"When did he die?", "he"},
		{"Where was she born?", "she"},
		{"Why?", "Why"},
		{"And then?", "And then"},
		{"Tell me more.", "Tell me more"},
		{"How many days?", "How many days"},
		{"And how much money?", "And how much money"},
		{"How many days is it?", "How many days is it"},
		{"Which version?", "Which version"},
		{"And in Germany?", "And in Germany"},
		{"And Beta?", "And Beta"},
		{"or for contractors?", "or for contractors"},
		{"What's that?", "that"},

		// "It" is a dummy pronoun or refers to the following clause.
		{"Is it possible to write to a nil map?", ""},
		{"Is it safe to close a channel twice?", ""},
		{"Is it true that slices are passed by value?", ""},
		{"How long does it take to process a refund?", ""},
		{"How much does it cost to park there?", ""},
		{"What does it mean to wrap an error?", ""},
		{"What does it mean when a request fails?", ""},
		{"When is it better to use a pointer?", ""},
		{"What time is it?", ""},
		{"What is it about?", ""},

		// The antecedent is in the question.
		{"If a request fails, is it retried?", ""},
		{"When a server is stopped, what happens to its connections?", ""},
		{"I have a server. How do I stop it?", ""},
		{"Does a closed channel block when it is read?", ""},
		{"Can a struct embed itself?", ""},
		{"Who wrote the handbook and when was it changed?", ""},
		{"Do employees have to pay for their own travel?", ""},
		{"What must a manager do before they approve leave?", ""},

		// All documents are meant.
		{"What is this document about?", ""},
		{"Who maintains this project?", ""},
		{"What does this library do?", ""},
		{"What are these documents about?", ""},
		{"What does it say about refunds?", ""},
		{"Does it support streaming?", ""},

		// There is no referring word.
		{"How many goroutines does a server start?", ""},
		{"How much memory does Heron need?", ""},
		{"Which HTTP?", ""},
		{"What is annual leave?", ""},
		{"And who approves travel?", ""},
		{"And what is the timeout of a request?", ""},
		{"Which planets?  Name all of them.", ""},
		{"How do I configure the server?", ""},
		{"What is allowed?", ""},
		{"Who approves travel to a customer?", ""},
		{"Which of the two is faster, a map or a slice?", ""},
		{"How does one start a goroutine?", ""},
		{"What are the three rules that everyone has to follow?", ""},
		{"Who are The Who?", ""},
		{"Who wrote It?", ""},
		{"What is IT?", ""},
		{"What does \"this\" mean in a method?", ""},
		{"What is an interface that has no methods called?", ""},
		{"When did the war that ended in 1945 begin?", ""},
		{"What is the one thing you cannot do with a constant?", ""},
		{"How many tests are there?", ""},
		{"refund policy", ""},
		{"Wie konfiguriere ich das?", ""},
		{"Was kostet das?", ""},
		{"", ""},
		{"???", ""},
		{"42", ""},
	}
	for _, test := range tests {
		if got, _ := Dangling(test.question); got != test.want {
			t.Errorf("Dangling(%q) = %q, want %q", test.question, got, test.want)
		}
	}
}

func FuzzDangling(f *testing.F) {
	for _, q := range []string{"How do I configure it?", "it it it", "that that that", "the one", "\xff it", "'s 's", "its"} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, q string) { Dangling(q) })
}

func TestDanglingBare(t *testing.T) {
	for question, want := range map[string]bool{
		"How do I configure it?": false, "Why?": true, "What about the second one?": true, "What does this mean?": true, "Is that allowed?": false, "Who approves travel?": false,
	} {
		if _, got := Dangling(question); got != want {
			t.Errorf("Dangling(%q) is bare: %v, want %v", question, got, want)
		}
	}
}
