package jira

import (
	"cmp"
	"encoding/json"
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
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/parse"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/source/internal/resttest"
	"github.com/assay-rag/assay/source/sourcetest"
)

type object = resttest.Object

const (
	secretToken = "tok-jira-1234567890"
	pageSize    = 2
)

// A site imitates Jira Cloud with one project.
//
// Shapes: "Search for issues using JQL enhanced search (POST)", "Get issue", "Get comments", "Get
// attachment content", "Get assigned permission scheme", "Get project issue security scheme", "Get
// issue security level members", "Get project role for project" and "Get users from group" of the
// Jira Cloud platform REST API v3, as of 2025.
type site struct {
	mu       sync.Mutex
	issues   map[string]*fakeIssue
	clock    time.Time
	holders  []object            // of BROWSE_PROJECTS
	levels   map[string][]object // holders of security levels
	members  map[string][]object
	roles    map[string][]object // actors
	denied   map[string]int      // status by path
	next     string
	count    int
	comments []object
	fields   object // more fields of each issue
	gone     map[string]bool
}

type fakeIssue struct {
	id, text    string
	updated     time.Time
	more        object
	attachments []object
}

func newSite() *site {
	return &site{issues: map[string]*fakeIssue{}, clock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), levels: map[string][]object{}, members: map[string][]object{},
		roles: map[string][]object{}, denied: map[string]int{}, gone: map[string]bool{}, holders: []object{{"type": "group", "parameter": "all", "value": "g-all"}}}
}

func (s *site) put(id, text string) *fakeIssue {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock = s.clock.Add(time.Second)
	i := &fakeIssue{id: id, text: text, updated: s.clock, more: object{}}
	if old := s.issues[id]; old != nil {
		i.more = old.more
	}
	s.issues[id] = i
	return i
}

func (s *site) object(i *fakeIssue) object {
	fields := object{"summary": "About " + i.id, "created": "2025-01-01T00:00:00.000+0100", "updated": i.updated.Format("2006-01-02T15:04:05.000-0700"),
		"creator": object{"accountId": "ann", "displayName": "Ann"}, "reporter": object{"accountId": "rep", "displayName": "Rep"}, "assignee": nil,
		"project": object{"id": "1", "key": "PRJ"}, "status": object{"name": "Open"}, "issuetype": object{"name": "Bug"}, "labels": []string{"x"},
		"attachment":  append([]object{}, i.attachments...),
		"description": adf(object{"type": "paragraph", "content": []object{{"type": "text", "text": i.text}}})}
	for _, more := range []object{s.fields, i.more} {
		for key, value := range more {
			fields[key] = value
		}
	}
	return object{"id": i.id, "key": "PRJ-" + i.id, "fields": fields, "names": object{"description": "Description", "customfield_1": "Impact"}}
}

func adf(content ...object) object {
	return object{"type": "doc", "version": 1, "content": content}
}

var sinceForm = lazyregexp.New(`updated >= "([^"]+)"`)

func (s *site) search(w http.ResponseWriter, r *http.Request) {
	var query struct {
		JQL           string
		NextPageToken string
		Fields        []string
	}
	if err := json.NewDecoder(r.Body).Decode(&query); err != nil {
		panic(err)
	}
	since, err := time.Parse("2006-01-02 15:04", sinceForm.FindStringSubmatch(query.JQL)[1])
	if err != nil {
		panic(err)
	}
	var all []*fakeIssue
	for _, i := range s.issues {
		if !i.updated.Before(since) {
			all = append(all, i)
		}
	}
	slices.SortFunc(all, func(a, b *fakeIssue) int { return cmp.Or(a.updated.Compare(b.updated), cmp.Compare(a.id, b.id)) })
	start, _ := strconv.Atoi(query.NextPageToken)
	end := min(start+pageSize, len(all))
	issues := []object{}
	for _, i := range all[min(start, end):end] {
		issues = append(issues, s.object(i))
	}
	reply := object{"issues": issues, "isLast": end == len(all)}
	if end < len(all) {
		reply["nextPageToken"] = strconv.Itoa(end)
	}
	if s.next != "" {
		s.count++
		reply["nextPageToken"] = strings.ReplaceAll(s.next, "COUNT", strconv.Itoa(s.count))
	}
	resttest.JSON(w, reply)
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := strings.TrimPrefix(r.URL.Path, "/rest/api/3")
	if status := s.denied[path]; status != 0 {
		w.WriteHeader(status)
		resttest.JSON(w, object{"errorMessages": []string{"You do not have permission"}, "errors": object{}})
		return
	}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case path == "/search/jql":
		s.search(w, r)
	case path == "/project/PRJ":
		resttest.JSON(w, object{"key": "PRJ", "lead": object{"accountId": "lead"}})
	case path == "/project/PRJ/permissionscheme":
		permissions := []object{{"permission": "EDIT_ISSUES", "holder": object{"type": "anyone"}}}
		for _, h := range s.holders {
			permissions = append(permissions, object{"permission": "BROWSE_PROJECTS", "holder": h})
		}
		resttest.JSON(w, object{"id": 1, "permissions": permissions})
	case path == "/project/PRJ/issuesecuritylevelscheme":
		resttest.JSON(w, object{"id": 500, "name": "Default"})
	case path == "/issuesecurityschemes/500/members":
		values := []object{}
		for level, holders := range s.levels {
			for _, h := range holders {
				id, _ := strconv.Atoi(level)
				values = append(values, object{"issueSecurityLevelId": id, "holder": h})
			}
		}
		resttest.JSON(w, object{"isLast": true, "values": values})
	case path == "/group/member":
		s.group(w, r)
	case strings.HasPrefix(path, "/project/PRJ/role/"):
		resttest.JSON(w, object{"actors": s.roles[parts[3]]})
	case strings.HasPrefix(path, "/attachment/content/"):
		_, _ = io.WriteString(w, "attached words")
	case s.issues[parts[1]] == nil || s.gone[parts[1]]:
		w.WriteHeader(http.StatusNotFound)
		resttest.JSON(w, object{"errorMessages": []string{"Issue does not exist or you do not have permission to see it."}})
	case strings.HasSuffix(path, "/comment"):
		start, _ := strconv.Atoi(r.FormValue("startAt"))
		resttest.JSON(w, object{"startAt": start, "total": len(s.comments), "comments": append([]object{}, s.comments[start:min(start+1, len(s.comments))]...)})
	default:
		resttest.JSON(w, s.object(s.issues[parts[1]]))
	}
}

// group answers with one member for each page.
func (s *site) group(w http.ResponseWriter, r *http.Request) {
	all := s.members[r.FormValue("groupId")]
	start, _ := strconv.Atoi(r.FormValue("startAt"))
	end := min(start+1, len(all))
	resttest.JSON(w, object{"isLast": end == len(all), "values": append([]object{}, all[start:end]...)})
}

func config(url string) source.Config {
	return source.Config{Target: url, HTTP: http.DefaultClient,
		Credential: resttest.Credentials(map[string]string{"user": "ann@example.com", "token": secretToken})}
}

func (s *site) start(t *testing.T) *resttest.Service {
	return resttest.New(t, "Basic YW5uQGV4YW1wbGUuY29tOnRvay1qaXJhLTEyMzQ1Njc4OTA=", s)
}

func TestContract(t *testing.T) {
	t.Parallel()
	sourcetest.Run(t, func(t *testing.T) sourcetest.World {
		s := newSite()
		service := s.start(t)
		return sourcetest.World{
			Kind: Kind(), Config: config(service.URL),
			Put:    func(name, text string) { s.put(name, text) },
			Delete: func(name string) { s.mu.Lock(); defer s.mu.Unlock(); delete(s.issues, name) },
			URI:    func(name string) string { return service.URL + "/browse/PRJ-" + name },
			SetACL: func(name, user string) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.members["g-all"] = []object{{"accountId": "zoe"}, {"accountId": user}}
				s.issues[name].more["security"] = object{"id": "900"}
				s.levels["900"] = []object{{"type": "user", "user": object{"accountId": user}}}
			},
			Throttle: service.Throttle,
			Vanish:   func(name string) { s.mu.Lock(); defer s.mu.Unlock(); s.gone[name] = true },
			Refuse:   service.Refuse,
		}
	})
}

func TestHostile(t *testing.T) {
	t.Parallel()
	resttest.Hostile(t, Kind(), secretToken, config, nil)
	for what, next := range map[string]string{"endless": "900COUNT", "repeated": "900"} {
		site := newSite()
		site.next = next
		s, _ := resttest.Open(t, Kind(), config(site.start(t).URL))
		if err := resttest.Sweep(t.Context(), s).Err; !errors.Is(err, assay.ErrUnavailable) {
			t.Errorf("%s: %v, want it refused", what, err)
		}
	}
}

func TestAccess(t *testing.T) {
	t.Parallel()
	skipped := []string{"skipped"}
	group := func(id string) object { return object{"type": "group", "value": id} }
	tests := map[string]struct {
		change func(s *site)
		want   []string
	}{
		"group":              {func(*site) {}, []string{"group:g-all"}},
		"nobody":             {func(s *site) { s.holders = nil }, nil},
		"anyone":             {func(s *site) { s.holders = []object{{"type": "anyone"}} }, []string{"*"}},
		"logged in":          {func(s *site) { s.holders = []object{{"type": "applicationRole"}} }, []string{"*"}},
		"users of a product": {func(s *site) { s.holders = []object{{"type": "applicationRole", "parameter": "jira-software"}} }, nil},
		"custom field":       {func(s *site) { s.holders = []object{{"type": "userCustomField", "parameter": "f"}} }, nil},
		"role": {func(s *site) {
			s.holders = []object{{"type": "projectRole", "parameter": "10", "value": "10"}}
			s.roles["10"] = []object{{"type": "atlassian-user-role-actor", "actorUser": object{"accountId": "ann"}}, {"type": "atlassian-group-role-actor", "actorGroup": object{"groupId": "g-2"}}}
		}, []string{"group:g-2", "user:ann"}},
		"lead, reporter and assignee": {func(s *site) {
			s.holders = []object{{"type": "projectLead"}, {"type": "reporter"}, {"type": "assignee"}}
		}, []string{"user:lead", "user:rep"}},
		"level of a member": {func(s *site) {
			s.issues["1"].more["security"] = object{"id": "900"}
			s.levels["900"] = []object{group("g-2"), {"type": "reporter"}}
			s.members["g-all"] = []object{{"accountId": "ann"}, {"accountId": "ben", "emailAddress": "Ben@Example.com"}, {"accountId": "rep"}}
			s.members["g-2"] = []object{{"accountId": "ben"}, {"accountId": "eve"}}
		}, []string{"user:ben@example.com", "user:rep"}},
		"level without members": {func(s *site) { s.issues["1"].more["security"] = object{"id": "900"} }, nil},
		"level for anyone": {func(s *site) {
			s.issues["1"].more["security"] = object{"id": "900"}
			s.levels["900"] = []object{{"type": "anyone"}}
		}, []string{"group:g-all"}},
		"level that is not readable": {func(s *site) {
			s.issues["1"].more["security"] = object{"id": "900"}
			s.denied["/issuesecurityschemes/500/members"] = http.StatusForbidden
		}, skipped},
		"scheme that is not readable": {func(s *site) { s.denied["/project/PRJ/permissionscheme"] = http.StatusForbidden }, skipped},
		"role that is not readable": {func(s *site) {
			s.holders = []object{{"type": "projectRole", "value": "10"}}
			s.denied["/project/PRJ/role/10"] = http.StatusNotFound
		}, skipped},
		"no project": {func(s *site) { s.issues["1"].more["project"] = nil }, skipped},
	}
	for what, test := range tests {
		site := newSite()
		site.put("1", "words")
		test.change(site)
		service := site.start(t)
		s, _ := resttest.Open(t, Kind(), config(service.URL))
		got := resttest.Sweep(t.Context(), s)
		uri := service.URL + "/browse/PRJ-1"
		acl := got.Items[uri].ACL
		switch {
		case got.Err != nil:
			t.Errorf("%s: %v", what, got.Err)
		case slices.Equal(test.want, skipped):
			if got.Skips[uri] == nil || got.Skips[uri].Reason != source.UnknownACL {
				t.Errorf("%s: %v, %v, want a skip", what, got.Items, got.Skips)
			}
		case !acl.Restricted || !slices.Equal(acl.Allow, test.want):
			t.Errorf("%s: %v, want %v", what, acl, test.want)
		}
	}
}

func TestContent(t *testing.T) {
	t.Parallel()
	site := newSite()
	site.put("1", "the description").attachments = []object{{"id": "7", "filename": "a/b.txt", "mimeType": "text/plain", "size": 5, "created": "2026-01-01T00:00:00.000+0000"}, {"id": "8", "filename": "huge", "size": 1 << 40}}
	site.fields = object{"customfield_1": adf(object{"type": "paragraph", "content": []object{{"type": "text", "text": "an impact"}}}), "customfield_2": "0|i00067:",
		"customfield_3": object{"value": "Europe", "child": object{"value": "Norway"}}, "customfield_4": 12.5,
		"issuelinks": []object{{"type": object{"inward": "is blocked by"}, "inwardIssue": object{"key": "SEC-1", "fields": object{"summary": "secret summary"}}}},
		"subtasks":   []object{{"key": "PRJ-9", "fields": object{"summary": "secret summary"}}}}
	said := func(text string, visibility any) object {
		c := object{"id": text, "author": object{"displayName": "Cleo"}, "created": "2026-01-01", "body": adf(object{"type": "paragraph", "content": []object{{"type": "text", "text": text}}})}
		if visibility != nil {
			c["visibility"] = visibility
		}
		return c
	}
	site.comments = []object{said("first remark", nil), said("secret remark", object{"type": "role", "value": "Administrators"}), said("last remark", nil)}
	service := site.start(t)
	s, _ := resttest.Open(t, Kind(), config(service.URL))
	got := resttest.Sweep(t.Context(), s)
	text := resttest.Fetch(t, s, got.Items[service.URL+"/browse/PRJ-1"])
	for _, want := range []string{"<title>PRJ-1 About 1</title>", "the description", "<h2>Impact</h2>\n<p>an impact</p>", "Europe / Norway", "12.5", "is blocked by SEC-1", "PRJ-9", "first remark", "last remark", "Cleo"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	for _, secret := range []string{"secret", "i00067"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q in %s", secret, text)
		}
	}
	item := got.Items[service.URL+"/rest/api/3/attachment/content/7"]
	if item.Name != "a b.txt" || !slices.Equal(item.ACL.Allow, []string{"group:g-all"}) || resttest.Fetch(t, s, item) != "attached words" {
		t.Errorf("%+v", item)
	}
	if len(got.Skips) != 1 || len(got.Items) != 2 {
		t.Errorf("%v", got.Skips)
	}
}

func TestDocument(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ in, want string }{
		{`{"type":"paragraph","content":[{"type":"text","text":"a<b","marks":[{"type":"strong"},{"type":"link","attrs":{"href":"https://x?a&b"}}]},{"type":"hardBreak"},{"type":"text","text":"c","marks":[{"type":"unheard"}]}]}`,
			`<p><strong><a href="https://x?a&amp;b">a&lt;b</a></strong><br>c</p>`},
		{`{"type":"heading","attrs":{"level":9},"content":[{"type":"text","text":"H"}]}`, "<h6>H</h6>"},
		{`{"type":"bulletList","content":[{"type":"listItem","content":[{"type":"paragraph","content":[{"type":"text","text":"one"}]}]}]}`, "<ul><li><p>one</p>\n</li></ul>"},
		{`{"type":"codeBlock","attrs":{"language":"go"},"content":[{"type":"text","text":"a < b"}]}`, "<pre>a &lt; b</pre>"},
		{`{"type":"table","content":[{"type":"tableRow","content":[{"type":"tableHeader","attrs":{"colspan":2},"content":[{"type":"paragraph","content":[{"type":"text","text":"x"}]}]}]}]}`,
			"<table><tr><th colspan=\"2\"><p>x</p>\n</th>\n</tr>\n</table>"},
		{`{"type":"taskList","content":[{"type":"taskItem","attrs":{"state":"DONE"},"content":[{"type":"text","text":"do"}]}]}`, "<ul><li>DONE do</li></ul>"},
		{`{"type":"mention","attrs":{"id":"1","text":"@Ann"}}`, "@Ann "},
		{`{"type":"status","attrs":{"text":"LATE","color":"red"}}`, "LATE "},
		{`{"type":"emoji","attrs":{"shortName":":smile:","text":"😀"}}`, "😀"},
		{`{"type":"date","attrs":{"timestamp":"1767225600000"}}`, "2026-01-01"},
		{`{"type":"date","attrs":{"timestamp":"<soon>"}}`, "&lt;soon&gt;"},
		{`{"type":"inlineCard","attrs":{"url":"https://x/y"}}`, "https://x/y "},
		{`{"type":"expand","attrs":{"title":"More"},"content":[{"type":"paragraph","content":[{"type":"text","text":"x"}]}]}`, "<p><strong>More</strong></p><div><p>x</p>\n</div>"},
		{`{"type":"unheard","attrs":{"title":"kept"},"content":[{"type":"unheard2","text":"also kept"}]}`, "kept also kept"},
		{`{"type":"rule"}`, "<hr>"},
		{`"a string"`, ""},
	} {
		var node any
		if err := json.Unmarshal([]byte(`{"type":"doc","content":[`+test.in+`]}`), &node); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(documentHTML(node)); got != strings.TrimSpace(test.want) {
			t.Errorf("%s:\n got %q\nwant %q", test.in, got, test.want)
		}
	}
}

func FuzzDocument(f *testing.F) {
	f.Add(`{"type":"doc","content":[{"type":"paragraph","content":[{"type":"text","text":"a","marks":[{"type":"strong"}]}]}]}`)
	f.Add(strings.Repeat(`{"type":"panel","content":[`, 300) + `{"type":"text","text":"deep"}` + strings.Repeat("]}", 300))
	f.Fuzz(func(t *testing.T, in string) {
		var node any
		if json.Unmarshal([]byte(in), &node) != nil {
			return
		}
		if got := documentHTML(node); len(got) > 100+20*len(in) {
			t.Errorf("%d bytes from %d", len(got), len(in))
		}
		fields, _ := node.(map[string]any)
		issueHTML(wholeIssue{Key: "A-1", Fields: fields}, nil)
	})
}

func TestInvalid(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"", "ftp://x", "https://", "https://x.atlassian.net/wiki", "https://a:b@x.atlassian.net"} {
		c := config(target)
		c.Options = map[string]string{"attachments": "true"}
		if _, err := Kind().Open(t.Context(), c); !errors.Is(err, assay.ErrInvalid) || strings.Contains(fmt.Sprint(err), secretToken) {
			t.Errorf("%q: %v", target, err)
		}
	}
}

// TestParsed checks that the parser of HTML reads all words of an issue.
func TestParsed(t *testing.T) {
	t.Parallel()
	const words = "KEY-1 summary described heading item panel code Field value cell @Ann LATE remark Cleo unknown"
	text := func(kind, words string) object {
		return object{"type": kind, "content": []any{object{"type": "text", "text": words}}}
	}
	within := func(kind string, children ...any) object { return object{"type": kind, "content": children} }
	document := within("doc", text("paragraph", "described"), text("heading", "heading"), within("bulletList", within("listItem", text("paragraph", "item"))),
		within("panel", text("paragraph", "panel")), text("codeBlock", "code"), within("table", within("tableRow", within("tableCell", text("paragraph", "cell")))),
		within("paragraph", object{"type": "mention", "attrs": object{"text": "@Ann"}}, object{"type": "status", "attrs": object{"text": "LATE"}}), text("unheard", "unknown"))
	issue := wholeIssue{Key: "KEY-1", Fields: object{"summary": "summary", "description": document, "f": "value"}, Names: map[string]string{"f": "Field"}}
	data := []byte(issueHTML(issue, []comment{{Author: user{DisplayName: "Cleo"}, Body: within("doc", text("paragraph", "remark"))}}))
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
