package local_test

import (
	"context"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/role/local"
)

// talk makes a conversation of questions and answers in turn.
func talk(said ...string) []assay.Turn {
	var turns []assay.Turn
	for i := 0; i < len(said); i += 2 {
		turns = append(turns, assay.Turn{Question: said[i], Answer: said[i+1]})
	}
	return turns
}

func resolved(t *testing.T, question string, history []assay.Turn) string {
	t.Helper()
	out, err := local.Rewriter{}.Rewrite(context.Background(), nil, role.RewriteInput{Question: question, Technique: role.Resolve, History: history})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Queries) == 0 {
		return ""
	}
	return out.Queries[0]
}

func TestResolve(t *testing.T) {
	retention := talk("What is the retention period for invoices?", "Invoices are kept for ten years. [1]")
	leave := talk("How long is parental leave in France?", "Parental leave lasts 16 weeks. [1]")
	capital := talk("What is the capital of France?", "The capital of France is Paris. [1]")
	founder := talk("Who founded Springfield?", "Jebediah Springfield founded it in 1796. [1]")
	saml := talk("How do I enable SAML in Okta?", "Open the admin console.")
	goroutine := talk("What is a goroutine?", "A goroutine is a lightweight thread managed by the Go runtime.")
	reset := talk("What is the difference between a soft reset and a hard reset?", "A soft reset keeps data.")
	unknown := talk("What is the Milky Way?", "I do not have that information.")
	back := talk("How do I configure it?", "What is meant: the gateway, the mail server or TLS?")
	backBy := talk("How do I configure it?", "What is meant by \"it\": Mail server, Gateway, TLS, Proxy, or something else?")
	pinned := talk("How long is the timeout?", "What is meant: ReadTimeout or WriteTimeout?")
	tests := []struct {
		name     string
		history  []assay.Turn
		question string
		want     string // empty: as it is
	}{
		{"no conversation", nil, "How do I configure it?", ""},
		{"stands alone", retention, "How do I configure TLS on the gateway?", ""},
		{"stands alone, a new thing", retention, "What is a goroutine?", ""},
		{"stands alone, names itself", retention, "How long are receipts kept in the archive?", ""},
		{"thanks", retention, "Thank you!", ""},
		{"ok", retention, "ok, thanks", ""},

		{"it", retention, "Can I change it?", "Can I change the retention period for invoices?"},
		{"this", retention, "Who can change this?", "Who can change the retention period for invoices?"},
		{"does that", retention, "Does that apply to contractors?", "Does the retention period for invoices apply to contractors?"},
		{"it, of a name", saml, "Is it free?", "Is SAML in Okta free?"},
		{"it, of an indefinite", goroutine, "How do I stop it?", "How do I stop a goroutine?"},
		{"its", goroutine, "What is its stack size?", "What is a goroutine's stack size?"},
		{"a noun that was said", retention, "Who set this period?", "Who set the retention period for invoices?"},
		{"the answer is meant", capital, "How many people live there?", "How many people live in Paris?"},
		{"the answer is meant by it", capital, "Is it larger than Lyon?", "Is Paris larger than Lyon?"},
		{"a person", founder, "When was he born?", "When was Jebediah Springfield born?"},
		{"a person's", founder, "What were his children called?", "What were Jebediah Springfield's children called?"},
		{"a thing, not the person", founder, "When was it founded?", "When was Springfield founded?"},
		{"an answer that is none", unknown, "How old is it?", "How old is the Milky Way?"},
		{"they are two", talk("Do Berlin and Hamburg have ports?", "Hamburg does."), "How large are they?", "How large are Berlin and Hamburg?"},
		{"it is one of two", talk("Is Hamburg larger than Berlin?", "No."), "How old is it?", ""},
		{"he is nobody", retention, "When was he born?", ""},
		{"a chain", append(talk("What is a goroutine?", "A thread."), talk("How do I start it?", "With go.")...), "Does it have an ID?", "Does a goroutine have an ID?"},
		{"small talk between", append(talk("What is a goroutine?", "A thread."), talk("thanks", "You are welcome.")...), "How do I stop it?", "How do I stop a goroutine?"},
		{"one", talk("How do I get a building permit?", "Ask."), "Do I need one in Bavaria?", "Do I need a building permit in Bavaria?"},

		{"it of its own clause", retention, "If the server crashes, does it restart?", ""},
		{"its of its own clause", retention, "Does the server keep its logs?", ""},
		{"two questions", retention, "What does os.Open return and how do I close it?", ""},
		{"it for nothing", retention, "Is it possible to run two servers side by side?", ""},
		{"it takes", retention, "How long does it take to renew a passport?", ""},
		{"what time", retention, "What time is it in Tokyo?", ""},
		{"there is", retention, "Is there a limit on uploads?", ""},
		{"that joins", retention, "Which drivers say that rows were changed?", ""},
		{"this year", retention, "Which holidays are left this year?", ""},
		{"a noun that nobody said", retention, "What makes this burger so popular?", ""},
		{"one is anyone", retention, "Can one of the servers be stopped?", ""},

		{"and in", leave, "And in Germany?", "How long is parental leave in Germany?"},
		{"what about in", leave, "What about in Germany?", "How long is parental leave in Germany?"},
		{"what about a name", leave, "What about Germany?", "How long is parental leave in Germany?"},
		{"in a year", leave, "And in 2019?", "How long is parental leave in France in 2019?"},
		{"the same head", leave, "What about maternity leave?", "How long is maternity leave in France?"},
		{"the same head inside", talk("How many days of annual leave does every employee have?", "30."), "What about parental leave?", "How many days of parental leave does every employee have?"},
		{"the same head, with its article", talk("How long is the read timeout by default?", "A minute."), "And the write timeout?", "How long is the write timeout by default?"},
		{"bare words", retention, "And for receipts?", "What is the retention period for receipts?"},
		{"bare words, about", retention, "What about receipts?", "What is the retention period for receipts?"},
		{"the same for", retention, "Is it the same for receipts?", "What is the retention period for receipts?"},
		{"a clause", leave, "And if I work part-time?", "How long is parental leave in France, if I work part-time?"},
		{"nothing like it", goroutine, "And for contractors?", "What is a goroutine? And for contractors?"},
		{"the other one", append(reset, talk("How long does the soft reset take?", "A minute.")...), "What about the other one?", "How long does the hard reset take?"},
		{"the other of two, both meant", reset, "What about the other one?", ""},
		{"the latter", append(talk("Which is cheaper, Basic or Premium?", "Basic."), talk("How much is Basic?", "5 euros.")...), "How much is the latter?", "How much is Premium?"},
		{"the other of none", retention, "What about the other one?", ""},

		{"why", talk("Does Go have exceptions?", "No."), "Why not?", "Does Go have exceptions? Why not?"},
		{"more", goroutine, "Tell me more", "What is a goroutine? Tell me more"},
		{"sure", talk("Does Go have exceptions?", "No."), "Are you sure?", "Does Go have exceptions?"},
		{"one word", talk("What is parental leave?", "Leave for parents."), "What are the requirements?", "What are the requirements (parental leave)?"},
		{"how long", talk("What is parental leave?", "Leave for parents."), "How long does it take?", "How long does parental leave take?"},
		{"asked back, a name", back, "The gateway", "How do I configure the gateway?"},
		{"a reading of several, by name", backBy, "the gateway", "How do I configure Gateway?"},
		{"a reading of several, none of them", backBy, "something else", ""},
		{"asked back, in a sentence", back, "I mean the mail server.", "How do I configure the mail server?"},
		{"asked back, a place", back, "the second one", "How do I configure the mail server?"},
		{"asked back, the last", back, "The last", "How do I configure TLS?"},
		{"asked back, a number", back, "3", "How do I configure TLS?"},
		{"asked back, none of them", back, "the fifth one", ""},
		{"asked back, nothing to fill in", pinned, "WriteTimeout", "How long is the timeout (WriteTimeout)?"},
		{"asked back, both", pinned, "ReadTimeout and WriteTimeout", "How long is the timeout (ReadTimeout and WriteTimeout)?"},
		{"asked back, and on", append(back, talk("TLS", "Set tls: true.")...), "Is it free?", "Is TLS free?"},

		{"a key word", talk("Microsoft Teams", "It is a service."), "Is it a paid service?", "Is Microsoft Teams a paid service?"},
		{"a key word of its own", leave, "Cesarean section", ""},
	}
	for _, tt := range tests {
		if got := resolved(t, tt.question, tt.history); got != tt.want {
			t.Errorf("%s: %q is %q, want %q", tt.name, tt.question, got, tt.want)
		}
	}
}
