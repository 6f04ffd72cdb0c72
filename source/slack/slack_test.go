package slack

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/parse"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/source/internal/resttest"
	"github.com/assay-rag/assay/source/sourcetest"
)

type object = resttest.Object

const (
	secretToken = "xoxb-1234567890-abcdefgh"
	pageSize    = 2
	workspace   = "https://acme.slack.com"
)

// A team imitates Slack.
//
// Shapes: conversations.list, conversations.history, conversations.replies, conversations.members
// and users.list of the Slack Web API, "Pagination through collections", "Rate limits" and "File
// object", as of 2025.
type team struct {
	mu       sync.Mutex
	channels []object
	members  map[string][]string
	users    []object
	posts    map[string][]object // by channel, the oldest first; a post may have "replies"
	clock    int64
	gone     map[string]bool // timestamps
	failure  string          // error of all methods
	failures int
	next     string
	count    int
}

func newTeam() *team {
	return &team{members: map[string][]string{}, posts: map[string][]object{}, gone: map[string]bool{}, clock: time.Date(2025, 12, 1, 0, 0, 0, 0, time.UTC).Unix(),
		users: []object{person("U1", "Ann"), person("U2", "Ben"), {"id": "B1", "is_bot": true, "profile": object{}}, {"id": "U3", "deleted": true, "profile": object{"email": "gone@example.com"}}}}
}

func person(id, name string) object {
	return object{"id": id, "name": strings.ToLower(name), "profile": object{"email": name + "@Example.com", "display_name": name}}
}

func (s *team) channel(id string, private bool, members ...string) {
	s.channels = append(s.channels, object{"id": id, "name": "n-" + strings.ToLower(id), "is_private": private, "is_member": true})
	s.members[id] = members
}

// ts returns the next timestamp.
func (s *team) ts() string {
	s.clock++
	return fmt.Sprintf("%d.000100", s.clock)
}

func (s *team) post(channel string, message object) object {
	s.mu.Lock()
	defer s.mu.Unlock()
	if message["ts"] == nil {
		message["ts"] = s.ts()
	}
	message["type"] = "message"
	s.posts[channel] = append(s.posts[channel], message)
	return message
}

func reply(w http.ResponseWriter, key string, list any, next string) {
	resttest.JSON(w, object{"ok": true, key: list, "response_metadata": object{"next_cursor": next}})
}

func (s *team) page(w http.ResponseWriter, r *http.Request, key string, all []object) {
	start, _ := strconv.Atoi(r.FormValue("cursor"))
	end := min(start+pageSize, len(all))
	next := ""
	if end < len(all) {
		next = strconv.Itoa(end)
	}
	if s.next != "" {
		s.count++
		next = strings.ReplaceAll(s.next, "COUNT", strconv.Itoa(s.count))
	}
	reply(w, key, append([]object{}, all[min(start, end):end]...), next)
}

func (s *team) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failures > 0 {
		s.failures--
		resttest.JSON(w, object{"ok": false, "error": s.failure})
		return
	}
	channel := r.FormValue("channel")
	switch r.URL.Path {
	case "/api/conversations.list":
		s.page(w, r, "channels", s.channels)
	case "/api/users.list":
		s.page(w, r, "members", s.users)
	case "/api/conversations.members":
		if s.members[channel] == nil {
			resttest.JSON(w, object{"ok": false, "error": "channel_not_found"})
			return
		}
		reply(w, "members", s.members[channel], "")
	case "/api/conversations.history":
		var all []object
		for _, p := range slices.Backward(s.posts[channel]) {
			if p["ts"].(string) >= r.FormValue("oldest") {
				all = append(all, p)
			}
		}
		s.page(w, r, "messages", all)
	case "/api/conversations.replies":
		for _, p := range s.posts[channel] {
			if p["ts"] == r.FormValue("ts") && !s.gone[r.FormValue("ts")] {
				replies, _ := p["replies"].([]object)
				s.page(w, r, "messages", append([]object{p}, replies...))
				return
			}
		}
		resttest.JSON(w, object{"ok": false, "error": "thread_not_found"})
	case "/files/a.txt":
		_, _ = io.WriteString(w, "file words")
	case "/files/login.txt":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<html>Sign in</html>")
	default:
		http.NotFound(w, r)
	}
}

func config(url string) source.Config {
	return source.Config{Target: workspace, HTTP: http.DefaultClient, Options: map[string]string{"endpoint": url + "/api"},
		Credential: resttest.Credentials(map[string]string{"token": secretToken})}
}

func (s *team) start(t *testing.T) *resttest.Service {
	return resttest.New(t, "Bearer "+secretToken, s)
}

// uriOf returns the address of a message.
func uriOf(channel string, message object) string {
	return workspace + "/archives/" + channel + "/p" + strings.ReplaceAll(message["ts"].(string), ".", "")
}

// TestContract puts each item into a channel of its own, because channels have the ACLs.
func TestContract(t *testing.T) {
	t.Parallel()
	sourcetest.Run(t, func(t *testing.T) sourcetest.World {
		s := newTeam()
		service := s.start(t)
		channel := func(name string) string { return "C" + strings.ToUpper(name) }
		first := map[string]object{}
		return sourcetest.World{
			Kind: Kind(), Config: config(service.URL),
			Put: func(name, text string) {
				if old := first[name]; old != nil {
					s.mu.Lock()
					defer s.mu.Unlock()
					old["text"], old["edited"] = text, object{"user": "U1", "ts": s.ts()}
					return
				}
				s.mu.Lock()
				s.channel(channel(name), true, "U1", "U2", "B1", "U3")
				s.mu.Unlock()
				first[name] = s.post(channel(name), object{"user": "U1", "text": text})
			},
			Delete: func(name string) { s.mu.Lock(); defer s.mu.Unlock(); delete(s.posts, channel(name)) },
			URI:    func(name string) string { return uriOf(channel(name), first[name]) },
			SetACL: func(name, user string) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.members[channel(name)] = []string{user}
			},
			Throttle: service.Throttle,
			Vanish:   func(name string) { s.mu.Lock(); defer s.mu.Unlock(); s.gone[first[name]["ts"].(string)] = true },
			Refuse:   service.Refuse,
		}
	})
}

func TestHostile(t *testing.T) {
	t.Parallel()
	resttest.Hostile(t, Kind(), secretToken, config, nil)
	for what, next := range map[string]string{"endless": "900COUNT", "repeated": "900"} {
		s := newTeam()
		s.next = next
		opened, _ := resttest.Open(t, Kind(), config(s.start(t).URL))
		if err := resttest.Sweep(t.Context(), opened).Err; !errors.Is(err, assay.ErrUnavailable) {
			t.Errorf("%s: %v, want it refused", what, err)
		}
	}
}

// TestErrors checks errors that Slack reports with the status 200.
func TestErrors(t *testing.T) {
	t.Parallel()
	for failure, want := range map[string]error{
		"invalid_auth": source.ErrCredentials, "missing_scope": source.ErrCredentials, "token_revoked": source.ErrCredentials,
		"ratelimited": assay.ErrUnavailable, "unheard_of": assay.ErrUnavailable,
	} {
		s := newTeam()
		s.failure, s.failures = failure, 1<<30
		opened, _ := resttest.Open(t, Kind(), config(s.start(t).URL))
		if err := resttest.Sweep(t.Context(), opened).Err; !errors.Is(err, want) {
			t.Errorf("%s: %v", failure, err)
		}
	}
	s := newTeam()
	s.failure, s.failures = "ratelimited", 2
	opened, _ := resttest.Open(t, Kind(), config(s.start(t).URL))
	if err := resttest.Sweep(t.Context(), opened).Err; err != nil {
		t.Errorf("after two limits: %v", err)
	}
}

func TestAccess(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		public, channel string
		want            []string
	}{
		{"members", "C1", []string{"user:ann@example.com", "user:ben@example.com"}},
		{"members", "C2", []string{"user:UX", "user:ann@example.com"}},
		{"everyone", "C1", []string{"*"}},
		{"everyone", "C2", []string{"user:UX", "user:ann@example.com"}},
	} {
		s := newTeam()
		s.channel("C1", false, "U1", "U2", "B1")
		s.channel("C2", true, "U1", "U3", "UX")
		s.channel("C3", true)
		s.channels = append(s.channels, object{"id": "C4", "name": "other", "is_member": false})
		s.members["C3"] = nil // cannot be read
		posts := map[string]object{}
		for _, c := range []string{"C1", "C2", "C3", "C4"} {
			posts[c] = s.post(c, object{"user": "U1", "text": "hello"})
		}
		c := config(s.start(t).URL)
		c.Options["public"] = test.public
		opened, _ := resttest.Open(t, Kind(), c)
		got := resttest.Sweep(t.Context(), opened)
		acl := got.Items[uriOf(test.channel, posts[test.channel])].ACL
		if !acl.Restricted || !slices.Equal(acl.Allow, test.want) || got.Err != nil || len(got.Items) != 2 {
			t.Errorf("%s %s: %v, %v, %d items", test.public, test.channel, acl, got.Err, len(got.Items))
		}
	}
}

func TestThreads(t *testing.T) {
	t.Parallel()
	s := newTeam()
	s.channel("C1", true, "U1")
	service := s.start(t)
	file := func(id string, more object) object {
		f := object{"id": id, "name": id + ".txt", "mimetype": "text/plain", "mode": "hosted", "size": 10, "url_private_download": service.URL + "/files/a.txt"}
		for key, value := range more {
			f[key] = value
		}
		return f
	}
	s.post("C1", object{"user": "U1", "subtype": "channel_join", "text": "<@U1> has joined"})
	old := s.post("C1", object{"ts": "1600000000.000100", "user": "U1", "text": "too old"})
	parent := s.post("C1", object{"user": "U1", "text": "the question", "reply_count": 3})
	parent["replies"] = []object{{"ts": s.ts(), "thread_ts": parent["ts"], "user": "U2", "text": "first reply"},
		{"ts": s.ts(), "thread_ts": parent["ts"], "user": "U2", "text": "", "files": []object{file("F1", nil), file("F2", object{"mode": "tombstone"}),
			file("F3", object{"is_external": true}), file("F4", object{"size": 1 << 40}), file("F5", object{"url_private_download": "https://evil.example/x"}), file("F6", object{"url_private_download": service.URL + "/files/login.txt"})}},
		{"ts": s.ts(), "thread_ts": parent["ts"], "username": "robot", "blocks": []object{{"type": "section", "text": object{"type": "mrkdwn", "text": "in a block"}}}}}
	s.post("C1", object{"subtype": "thread_broadcast", "thread_ts": parent["ts"], "user": "U2", "text": "first reply"})
	opened, _ := resttest.Open(t, Kind(), config(service.URL))
	first := resttest.Sweep(t.Context(), opened)
	uri := uriOf("C1", parent)
	if len(first.Items) != 4 || first.Items[uriOf("C1", old)].URI != "" || first.Err != nil {
		t.Errorf("%v, %v", first.Items, first.Err)
	}
	text := resttest.Fetch(t, opened, first.Items[uri])
	for _, want := range []string{"<title>#n-c1: the question</title>", "<strong>Ann</strong>", "first reply", "in a block", "robot", "F1.txt"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if got := resttest.Fetch(t, opened, first.Items[uri+"?file=F1"]); got != "file words" {
		t.Errorf("file: %q", got)
	}
	for id, want := range map[string]source.Reason{"F3": source.Unsupported, "F4": source.TooLarge} {
		if skip := first.Skips[uri+"?file="+id]; skip == nil || skip.Reason != want {
			t.Errorf("%s: %v", id, skip)
		}
	}
	for _, id := range []string{"F5", "F6"} {
		_, err := opened.Fetch(t.Context(), first.Items[uri+"?file="+id])
		if skip, ok := source.AsSkip(err); !ok || skip.Reason != source.Unreadable {
			t.Errorf("%s: %v, want it skipped", id, err)
		}
	}
	s.mu.Lock()
	replies := parent["replies"].([]object)
	replies[0]["text"], replies[0]["edited"] = "edited reply", object{"ts": s.ts()}
	s.mu.Unlock()
	second := resttest.Sweep(t.Context(), opened)
	if v := second.Items[uri].Version; v == "" || v == first.Items[uri].Version {
		t.Errorf("an edited reply has the version %q in %v", v, second)
	}
}

func TestMissingChannel(t *testing.T) {
	t.Parallel()
	s := newTeam()
	s.channel("C1", true, "U1")
	c := config(s.start(t).URL)
	c.Options["channels"] = "#n-c1, secret"
	opened, _ := resttest.Open(t, Kind(), c)
	got := resttest.Sweep(t.Context(), opened)
	if skip := got.Skips[workspace+"/archives/secret"]; skip == nil || !skip.Folder || len(got.Skips) != 1 {
		t.Errorf("%v, want a part that is not listed", got.Skips)
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	users := &directory{users: map[string]user{"U1": {ID: "U1", Name: "ann"}}}
	for _, test := range []struct{ in, want string }{
		{"a &lt;b&gt; &amp; c", "<p>a &lt;b&gt; &amp; c</p>\n"},
		{"hi <@U1> and <@U9|ben>, see <#C1|general> <!here> <!subteam^S1|@team>", "<p>hi @ann and @ben, see #general @here @team</p>\n"},
		{"<https://x.y/?a=1&amp;b=2|label> <https://z>", `<p><a href="https://x.y/?a=1&amp;b=2">label</a> <a href="https://z">https://z</a></p>` + "\n"},
		{"<!date^1392734382^Posted {date}|18 February>", "<p>18 February</p>\n"},
		{"*bold* and _it_ and ~no~ `code`, 2*3*4 snake_case_name", "<p><strong>bold</strong> and <em>it</em> and <s>no</s> <code>code</code>, 2*3*4 snake_case_name</p>\n"},
		{"one\ntwo\n\nthree", "<p>one<br>two</p>\n<p>three</p>\n"},
		{"&gt; said\n&gt; again\nanswer", "<blockquote>said<br>again</blockquote>\n<p>answer</p>\n"},
		{"before ```if a &lt; b {\n}``` after", "<p>before </p>\n<pre>if a &lt; b {\n}</pre>\n<p> after</p>\n"},
		{"open ```fence", "<p>open </p>\n<pre>fence</pre>\n"},
		{"", ""},
	} {
		if got := textHTML(test.in, users); got != test.want {
			t.Errorf("%q:\n got %q\nwant %q", test.in, got, test.want)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("*a* <@U1|x> ```b``` &gt; c\n\n")
	f.Add("<!date^1^x|y> <#|> <@> <|>")
	f.Fuzz(func(t *testing.T, in string) {
		users := &directory{users: map[string]user{}}
		if got := textHTML(in, users); len(got) > 100+40*len(in) {
			t.Errorf("%d bytes from %d", len(got), len(in))
		}
		thread := []message{{TS: in, Text: in}}
		threadHTML("c", thread, users)
		activity(thread)
	})
}

func TestInvalid(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*source.Config){
		"no address": func(c *source.Config) { c.Target = "acme" },
		"a path":     func(c *source.Config) { c.Target = workspace + "/archives" },
		"days":       func(c *source.Config) { c.Options["days"] = "0" },
		"public":     func(c *source.Config) { c.Options["public"] = "all" },
		"no token":   func(c *source.Config) { c.Credential = resttest.Credentials(nil) },
	} {
		c := config("https://slack.com")
		options, err := Kind().Complete(c.Options)
		if err != nil {
			t.Fatal(err)
		}
		c.Options = options
		change(&c)
		if _, err := Kind().Open(t.Context(), c); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestParsed checks that the parser of HTML reads all words of a thread.
func TestParsed(t *testing.T) {
	t.Parallel()
	const words = "#general question Ann strong answer code quoted f.pdf label"
	users := &directory{users: map[string]user{"U1": {ID: "U1", Name: "Ann"}}}
	data := []byte(threadHTML("general", []message{{TS: "1.000001", User: "U1", Text: "question *strong*"},
		{TS: "2.000001", User: "U1", Text: "answer\n```code```\n&gt; quoted <https://x|label>", Files: []file{{ID: "F", Name: "f.pdf"}}}}, users))
	d, err := parse.Parse(t.Context(), parse.Input{Name: "x.html", Type: "text/html", Data: data})
	if err != nil {
		t.Fatal(err)
	}
	read := d.Title + " " + d.Text
	for word := range strings.FieldsSeq(words) {
		if !strings.Contains(read, word) {
			t.Errorf("no %q in %q", word, read)
		}
	}
}
