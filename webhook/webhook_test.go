package webhook

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

var (
	secretA = secretPrefix + base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef"))
	secretB = secretPrefix + base64.StdEncoding.EncodeToString([]byte("another secret of thirty-two byt"))
)

// signed returns the headers of a message signed at a time.
func signed(t *testing.T, id string, at time.Time, body string, secrets ...string) http.Header {
	t.Helper()
	h := http.Header{}
	stamp := strconv.FormatInt(at.Unix(), 10)
	var signatures []string
	for _, s := range secrets {
		k, err := parseKey(s)
		if err != nil {
			t.Fatal(err)
		}
		signatures = append(signatures, k.sign(id, stamp, []byte(body)))
	}
	h.Set(HeaderID, id)
	h.Set(HeaderTimestamp, stamp)
	h.Set(HeaderSignature, strings.Join(signatures, " "))
	return h
}

// TestSignVector checks the example of the specification's reference implementations.
func TestSignVector(t *testing.T) {
	k, err := parseKey("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	const want = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	if got := k.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`)); got != want {
		t.Errorf("sign = %s, want %s", got, want)
	}
}

func TestVerify(t *testing.T) {
	now := time.Unix(1_760_000_000, 0)
	const body = `{"type":"review.needed"}`
	for _, test := range []struct {
		name   string
		header http.Header
		body   string
		at     time.Duration // of the receiver's clock, after now
		want   error
	}{
		{"good", signed(t, "msg_1", now, body, secretA), body, 0, nil},
		{"old secret during a rotation", signed(t, "msg_1", now, body, secretB, secretA), body, 0, nil},
		{"just within the tolerance", signed(t, "msg_1", now, body, secretA), body, Tolerance, nil},
		{"replayed later", signed(t, "msg_1", now, body, secretA), body, Tolerance + time.Second, ErrTimestamp},
		{"from the future", signed(t, "msg_1", now, body, secretA), body, -Tolerance - time.Second, ErrTimestamp},
		{"another secret", signed(t, "msg_1", now, body, secretB), body, 0, ErrSignature},
		{"another body", signed(t, "msg_1", now, body, secretA), body + " ", 0, ErrSignature},
		{"no headers", http.Header{}, body, 0, ErrSignature},
		{"another ID", with(signed(t, "msg_1", now, body, secretA), HeaderID, "msg_2"), body, 0, ErrSignature},
		{"a new timestamp on an old message", with(signed(t, "msg_1", now, body, secretA), HeaderTimestamp, "1760000001"), body, 0, ErrSignature},
		{"no timestamp", with(signed(t, "msg_1", now, body, secretA), HeaderTimestamp, "soon"), body, 0, ErrSignature},
		{"another version", with(signed(t, "msg_1", now, body, secretA), HeaderSignature, "v1a,xyz"), body, 0, ErrSignature},
	} {
		if err := Verify(test.header, []byte(test.body), now.Add(test.at), secretA); !errors.Is(err, test.want) {
			t.Errorf("%s: Verify = %v, want %v", test.name, err, test.want)
		}
	}
	if err := Verify(signed(t, "m", now, body, secretA), []byte(body), now, "secret"); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("Verify with no secret = %v", err)
	}
}

func with(h http.Header, name, value string) http.Header {
	h.Set(name, value)
	return h
}

func FuzzVerify(f *testing.F) {
	f.Add("msg_1", "1760000000", "v1,abc v1,def", []byte("{}"))
	f.Fuzz(func(t *testing.T, id, stamp, signature string, body []byte) {
		h := http.Header{}
		h.Set(HeaderID, id)
		h.Set(HeaderTimestamp, stamp)
		h.Set(HeaderSignature, signature)
		if Verify(h, body, time.Unix(1_760_000_000, 0), secretA) == nil {
			t.Errorf("accepted %q %q %q", id, stamp, signature)
		}
	})
}

func TestParseKey(t *testing.T) {
	for _, bad := range []string{"", "whsec_", "0123456789abcdef0123456789abcdef", "whsec_***", "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 65)), "whsec_c2hvcnQ="} {
		if _, err := parseKey(bad); !errors.Is(err, assay.ErrInvalid) || bad != "" && len(bad) > 10 && strings.Contains(err.Error(), bad) {
			t.Errorf("parseKey(%q) = %v", bad, err)
		}
	}
}

func TestTargetCheck(t *testing.T) {
	good := Target{URL: "https://example.com/hook", Events: []string{"review.*"}, Form: Standard, Secrets: []string{"env:HOOK"}}
	for _, test := range []struct {
		name   string
		change func(*Target)
		ok     bool
	}{
		{"good", func(*Target) {}, true},
		{"localhost", func(t *Target) { t.URL = "http://127.0.0.1:8080/x" }, true},
		{"IPv6 localhost", func(t *Target) { t.URL = "http://[::1]:8080/x" }, true},
		{"http elsewhere", func(t *Target) { t.URL = "http://example.com/x" }, false},
		{"http on a host that resembles localhost", func(t *Target) { t.URL = "http://localhost.example.com/x" }, false},
		{"another scheme", func(t *Target) { t.URL = "file:///etc/passwd" }, true}, // a reference
		{"ftp", func(t *Target) { t.URL = "ftp://example.com" }, false},
		{"no host", func(t *Target) { t.URL = "https:///x" }, false},
		{"a password", func(t *Target) { t.URL = "https://me:pass@example.com/" }, false},
		{"no events", func(t *Target) { t.Events = nil }, false},
		{"all events", func(t *Target) { t.Events = []string{"*"} }, true},
		{"a bad event", func(t *Target) { t.Events = []string{"review*"} }, false},
		{"the secret itself", func(t *Target) { t.Secrets = []string{secretA} }, false},
		{"no secret", func(t *Target) { t.Secrets = nil }, false},
		{"two secrets", func(t *Target) { t.Secrets = []string{"env:A", "file:/run/b"} }, true},
		{"a command", func(t *Target) { t.Secrets = []string{"command:pass show hook"} }, true},
		{"a bad variable", func(t *Target) { t.Secrets = []string{"env:A B"} }, false},
		{"a bad form", func(t *Target) { t.Form = "teams" }, false},
		{"slack with an open address", func(t *Target) { t.Form, t.Secrets = Slack, nil }, false},
		{"an address of Slack in the other form", func(t *Target) { t.URL = "https://hooks.slack.com/services/x" }, false},
		{"slack", func(t *Target) { t.Form, t.Secrets, t.URL = Slack, nil, "env:SLACK" }, true},
		{"slack with a secret", func(t *Target) { t.Form, t.URL = Slack, "env:SLACK" }, false},
		{"a link", func(t *Target) { t.Link = "https://assay.example.com" }, true},
		{"a link with a query", func(t *Target) { t.Link = "https://assay.example.com?x" }, false},
	} {
		target := good
		test.change(&target)
		err := target.Check()
		if (err == nil) != test.ok || err != nil && !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%s: Check = %v", test.name, err)
		}
		if err != nil && (strings.Contains(err.Error(), "pass@") || strings.Contains(err.Error(), secretA)) {
			t.Errorf("%s: the error shows a credential: %v", test.name, err)
		}
	}
}

func TestWants(t *testing.T) {
	for _, test := range []struct {
		event, kind string
		want        bool
	}{
		{"review.needed", "review.needed", true},
		{"review.needed", "review.needed_again", false},
		{"review.*", "review.decided", true},
		{"review.*", "reviewer.added", false},
		{"review", "review.needed", false},
		{"*", "key.created", true},
	} {
		if got := (Target{Events: []string{"none.at_all", test.event}}).wants(test.kind); got != test.want {
			t.Errorf("%q wants %q: %v", test.event, test.kind, got)
		}
	}
}

// TestPayload checks that messages identify an act and repeat no text.
func TestPayload(t *testing.T) {
	act := store.LoggedAct{Sequence: 7, Time: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC), Act: store.Act{
		Kind: "review.needed", Subject: "run1", Actor: assay.Principal{User: "alice"}, Reason: "the merger with Initech",
		Detail: json.RawMessage(`{"policies":["high-stakes","all"],"deadline":"2026-03-02T09:00:00Z","question":"Do we buy Initech?","status":"the answer is yes","approvals_needed":2,"scope":["x y"],"run":"run1"}`),
	}}
	target := Target{Form: Standard, Link: "https://assay.example.com/"}
	got, err := body(target, act)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"type":"review.needed","timestamp":"2026-03-01T09:00:00Z","data":{"approvals_needed":2,"command":"assay review show run1","deadline":"2026-03-02T09:00:00Z",` +
		`"link":"https://assay.example.com/runs/run1","policies":["high-stakes","all"],"run":"run1","sequence":7,"subject":"run1"}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
	target.Form = Slack
	got, err = body(target, act)
	if err != nil {
		t.Fatal(err)
	}
	const slack = `{"text":"An answer waits for a review","blocks":[{"type":"section","text":{"type":"mrkdwn","text":` +
		"\"*An answer waits for a review*\\nsubject `run1`, approvals_needed `2`, deadline `2026-03-02T09:00:00Z`, policies `high-stakes all`, run `run1`\\n<https://assay.example.com/runs/run1|Open it>\"}}]}"
	if diff := cmp.Diff(slack, string(got)); diff != "" {
		t.Errorf("Slack's body (-want +got):\n%s", diff)
	}
}

// TestPayloadOfAlarm checks the members of an alarm's inner detail.
func TestPayloadOfAlarm(t *testing.T) {
	got, err := body(Target{Form: Standard}, store.LoggedAct{Sequence: 7, Act: store.Act{
		Kind: "canary.alarm", Subject: "c1", Detail: json.RawMessage(`{"run":"run1","detail":{"place":"answer","foreign":true,"run":"x","text":"secret"}}`),
	}})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"type":"canary.alarm","timestamp":"0001-01-01T00:00:00Z","data":{"command":"assay show run1","foreign":true,"place":"answer","run":"run1","sequence":7,"subject":"c1"}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

func TestSlackEscape(t *testing.T) {
	got := slackOf(payload{Type: "x.y", Data: map[string]any{"subject": "<!channel> & `code`\n<https://evil.example|x>"}})
	const want = "*x.y*\nsubject `&lt;!channel&gt; &amp; 'code' &lt;https://evil.example|x&gt;`"
	if got.Blocks[0].Text.Text != want {
		t.Errorf("text = %q, want %q", got.Blocks[0].Text.Text, want)
	}
}

// FuzzPayload checks that no detail gets longer text into a message.
func FuzzPayload(f *testing.F) {
	f.Add("review.needed", "run1", []byte(`{"policy":"a b","run":"x"}`))
	f.Fuzz(func(t *testing.T, kind, subject string, detail []byte) {
		for _, form := range []Form{Standard, Slack} {
			got, err := body(Target{Form: form}, store.LoggedAct{Act: store.Act{Kind: kind, Subject: subject, Detail: detail}})
			if err != nil || !json.Valid(got) {
				t.Fatalf("body = %q, %v", got, err)
			}
		}
		for name, v := range payloadOf(Target{}, store.LoggedAct{Act: store.Act{Kind: kind, Subject: subject, Detail: detail}}).Data {
			if s, ok := v.(string); ok && name != "command" && (len(s) > 128 || strings.ContainsAny(s, " \n\t<>&`")) {
				t.Errorf("%s = %q", name, s)
			}
		}
	})
}
