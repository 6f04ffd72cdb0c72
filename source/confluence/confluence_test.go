package confluence

import (
	"cmp"
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

// A wiki imitates Confluence, with pages in one space.
//
// Shapes: "Search content by CQL" and "Content restrictions" of the cloud's version 1, "Get space
// permissions assignments" of version 2, and "Get all permissions" of Data Center 9.1, as of 2025.
type wiki struct {
	mu       sync.Mutex
	cloud    bool
	context  string // path of the base
	pages    map[string]*fakePage
	clock    time.Time
	space    []object // permissions
	noSpace  int      // status for the permissions of the space
	gone     map[string]bool
	members  map[string][]object
	hidden   map[string]bool // pages whose restrictions are not in listings
	next     string          // link to the next page; empty: the right one
	pageSize int
	count    int
}

type fakePage struct {
	id, kind, title, body, container string
	ancestors                        []string
	users, groups                    []object
	version                          int
	when                             time.Time
}

func newWiki(cloud bool) *wiki {
	w := &wiki{cloud: cloud, pages: map[string]*fakePage{}, gone: map[string]bool{}, members: map[string][]object{}, hidden: map[string]bool{},
		clock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), pageSize: 2}
	if cloud {
		w.context = "/wiki"
		w.space = []object{{"principal": object{"type": "group", "id": "g-all"}, "operation": object{"key": "read", "targetType": "space"}}}
		w.members["g-all"] = []object{{"accountId": "ann"}, {"accountId": "ben", "email": "Ben@Example.com"}}
		return w
	}
	w.context = "/confluence"
	w.space = []object{{"subject": object{"type": "group", "name": "all", "displayName": "all"}, "operation": object{"operationKey": "read", "targetType": "space"}}}
	w.members["all"] = []object{{"type": "known", "username": "ann"}, {"type": "known", "username": "ben"}}
	return w
}

func (w *wiki) put(p *fakePage) *fakePage {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock = w.clock.Add(time.Second)
	p.version, p.when = 1, w.clock
	if old := w.pages[p.id]; old != nil {
		p.version, p.users, p.groups = old.version+1, old.users, old.groups
	}
	if p.kind == "" {
		p.kind = "page"
	}
	w.pages[p.id] = p
	return p
}

func (w *wiki) object(p *fakePage, restrictions bool) object {
	o := object{"id": p.id, "type": p.kind, "status": "current", "title": p.title, "space": object{"id": 77, "key": "DS", "name": "Demo"},
		"version": object{"number": p.version, "when": p.when.Format("2006-01-02T15:04:05.000Z07:00"), "by": object{"displayName": "Ann"}},
		"history": object{"createdDate": "2025-01-01T00:00:00.000Z"}, "ancestors": []object{},
		"metadata": object{"labels": object{"results": []object{{"name": "howto"}}}}, "_links": object{}}
	for _, id := range p.ancestors {
		o["ancestors"] = append(o["ancestors"].([]object), object{"id": id, "type": "page"})
	}
	if p.container != "" {
		o["container"] = object{"id": p.container, "type": "page"}
	}
	if p.kind == "attachment" {
		o["extensions"] = object{"mediaType": "text/plain", "fileSize": len(p.body)}
		o["_links"] = object{"download": "/download/attachments/" + p.container + "/" + p.title}
	}
	if restrictions {
		o["restrictions"] = object{"read": object{"operation": "read", "restrictions": restrictionsOf(p)}}
	}
	return o
}

func restrictionsOf(p *fakePage) object {
	subjects := func(list []object) object {
		return object{"results": append([]object{}, list...), "start": 0, "limit": 200, "size": len(list)}
	}
	return object{"user": subjects(p.users), "group": subjects(p.groups)}
}

var sinceForm = lazyregexp.New(`lastmodified >= "([^"]+)"`)

func (w *wiki) search(out http.ResponseWriter, r *http.Request) {
	since := time.Time{}
	if m := sinceForm.FindStringSubmatch(r.FormValue("cql")); m != nil {
		since, _ = time.Parse("2006-01-02 15:04", m[1])
	}
	var all []*fakePage
	for _, p := range w.pages {
		if !p.when.Before(since) {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b *fakePage) int { return cmp.Or(a.when.Compare(b.when), cmp.Compare(a.id, b.id)) })
	start, _ := strconv.Atoi(r.FormValue("cursor"))
	end := min(start+w.pageSize, len(all))
	results := []object{}
	for _, p := range all[min(start, end):end] {
		results = append(results, w.object(p, !w.hidden[p.id]))
	}
	links := object{"base": "http://" + r.Host + w.context, "context": w.context}
	if end < len(all) {
		r.Form.Set("cursor", strconv.Itoa(end))
		links["next"] = "/rest/api/content/search?" + r.Form.Encode()
	}
	if w.next != "" {
		links["next"] = strings.ReplaceAll(w.next, "COUNT", strconv.Itoa(w.count))
		w.count++
	}
	resttest.JSON(out, object{"results": results, "start": start, "limit": w.pageSize, "size": len(results), "_links": links})
}

func (w *wiki) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	path, ok := strings.CutPrefix(r.URL.Path, w.context)
	if !ok {
		http.NotFound(out, r)
		return
	}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case path == "/rest/api/content/search":
		w.search(out, r)
	case path == "/api/v2/spaces":
		resttest.JSON(out, object{"results": []object{{"id": "77", "key": "DS"}}, "_links": object{}})
	case path == "/api/v2/spaces/77/permissions" || path == "/rest/api/space/DS/permissions":
		w.permissions(out)
	case strings.HasPrefix(path, "/rest/api/group/"):
		resttest.JSON(out, object{"results": append([]object{}, w.members[parts[3]]...), "_links": object{}})
	case path == "/rest/api/user":
		resttest.JSON(out, object{"displayName": "Cleo Carter"})
	case strings.HasPrefix(path, "/download/attachments/"):
		w.download(out, r, func(p *fakePage) bool { return p.title == parts[3] })
	case strings.HasSuffix(path, "/download"):
		w.download(out, r, func(p *fakePage) bool { return p.id == parts[6] })
	default:
		w.content(out, r, parts)
	}
}

func (w *wiki) download(out http.ResponseWriter, r *http.Request, is func(*fakePage) bool) {
	for _, p := range w.pages {
		if is(p) && !w.gone[p.id] {
			_, _ = io.WriteString(out, p.body)
			return
		}
	}
	http.NotFound(out, r)
}

func (w *wiki) permissions(out http.ResponseWriter) {
	switch {
	case w.noSpace != 0:
		out.WriteHeader(w.noSpace)
	case w.cloud:
		resttest.JSON(out, object{"results": w.space, "_links": object{}})
	default:
		resttest.JSON(out, w.space)
	}
}

func (w *wiki) content(out http.ResponseWriter, r *http.Request, parts []string) {
	p := w.pages[parts[3]]
	if p == nil || w.gone[p.id] {
		out.WriteHeader(http.StatusNotFound)
		resttest.JSON(out, object{"statusCode": 404, "message": "No content found"})
		return
	}
	if len(parts) > 4 {
		resttest.JSON(out, object{"operation": "read", "restrictions": restrictionsOf(p)})
		return
	}
	o := w.object(p, true)
	o["body"] = object{"storage": object{"value": p.body, "representation": "storage"}}
	resttest.JSON(out, o)
}

const secretToken = "tok-confluence-1234567890"

func (w *wiki) config(url string) source.Config {
	deployment := deploymentCloud
	credentials := map[string]string{"user": "ann@example.com", "token": secretToken}
	if !w.cloud {
		deployment, credentials = deploymentDataCenter, map[string]string{"token": secretToken}
	}
	return source.Config{Target: url + w.context, HTTP: http.DefaultClient, Options: map[string]string{"deployment": deployment},
		Credential: resttest.Credentials(credentials)}
}

func (w *wiki) start(t *testing.T) *resttest.Service {
	authorization := "Bearer " + secretToken
	if w.cloud {
		authorization = "Basic YW5uQGV4YW1wbGUuY29tOnRvay1jb25mbHVlbmNlLTEyMzQ1Njc4OTA="
	}
	return resttest.New(t, authorization, w)
}

func TestContract(t *testing.T) {
	t.Parallel()
	for _, cloud := range []bool{true, false} {
		t.Run(fmt.Sprintf("cloud=%v", cloud), func(t *testing.T) {
			sourcetest.Run(t, func(t *testing.T) sourcetest.World {
				w := newWiki(cloud)
				s := w.start(t)
				return sourcetest.World{
					Kind: Kind(), Config: w.config(s.URL),
					Put: func(name, text string) { w.put(&fakePage{id: name, title: name, body: "<p>" + text + "</p>"}) },
					Delete: func(name string) {
						w.mu.Lock()
						defer w.mu.Unlock()
						delete(w.pages, name)
					},
					URI: func(name string) string { return s.URL + w.context + "/pages/viewpage.action?pageId=" + name },
					SetACL: func(name, user string) {
						w.mu.Lock()
						defer w.mu.Unlock()
						w.pages[name].users = []object{{"type": "known", "accountId": user, "username": user}}
					},
					Throttle: s.Throttle,
					Vanish: func(name string) {
						w.mu.Lock()
						defer w.mu.Unlock()
						w.gone[name] = true
					},
					Refuse: s.Refuse,
				}
			})
		})
	}
}

func TestHostile(t *testing.T) {
	t.Parallel()
	w := newWiki(true)
	resttest.Hostile(t, Kind(), secretToken, w.config, nil)
	for what, next := range map[string]string{
		"endless":     "/rest/api/content/search?cursor=1000&n=COUNT",
		"repeated":    "/rest/api/content/search?cursor=0",
		"other host":  "https://evil.example/rest/api/content/search",
		"other host2": "//evil.example/rest/api/content/search",
		"user":        "http://a:b@127.0.0.1/wiki/rest/api/content/search",
	} {
		w := newWiki(true)
		w.next = next
		s, _ := resttest.Open(t, Kind(), w.config(w.start(t).URL))
		if err := resttest.Sweep(t.Context(), s).Err; !errors.Is(err, assay.ErrUnavailable) {
			t.Errorf("%s: %v, want it refused", what, err)
		}
	}
}

// TestAccess checks who may read a page below restricted pages.
func TestAccess(t *testing.T) {
	t.Parallel()
	user := func(id string) object { return object{"type": "known", "accountId": id} }
	group := func(id string) object { return object{"type": "group", "id": id, "name": "Name of " + id} }
	tests := map[string]struct {
		change func(w *wiki)
		want   []string // of the page "leaf"; nil: skipped
	}{
		"space alone":               {func(*wiki) {}, []string{"group:g-all"}},
		"own user":                  {func(w *wiki) { w.pages["leaf"].users = []object{user("ben")} }, []string{"user:ben@example.com"}},
		"user outside of the space": {func(w *wiki) { w.pages["leaf"].users = []object{user("eve")} }, []string{}},
		"own group and the space's": {func(w *wiki) { w.pages["leaf"].groups = []object{group("g-all")} }, []string{"group:g-all"}},
		"group compared by members": {func(w *wiki) {
			w.pages["leaf"].groups = []object{group("g-two")}
			w.members["g-two"] = []object{{"accountId": "ann"}, {"accountId": "eve"}}
		}, []string{"user:ann"}},
		"group without known members": {func(w *wiki) { w.pages["leaf"].groups = []object{group("g-none")} }, []string{}},
		"restricted ancestor": {func(w *wiki) {
			w.pages["root"].users = []object{user("ann"), user("ben")}
			w.pages["leaf"].users = []object{user("ben"), user("eve")}
		}, []string{"user:ben@example.com"}},
		"a reader without an id": {func(w *wiki) { w.pages["leaf"].users = []object{{"type": "unknown"}} }, []string{}},
		"restrictions not listed": {func(w *wiki) {
			w.hidden["leaf"] = true
			w.pages["leaf"].users = []object{user("ann")}
		}, []string{"user:ann"}},
		"an ancestor that is not readable": {func(w *wiki) { w.pages["leaf"].ancestors = []string{"secret"} }, nil},
		"space permissions refused":        {func(w *wiki) { w.noSpace = http.StatusForbidden }, nil},
		"space without readers":            {func(w *wiki) { w.space = nil }, []string{}},
		"space of a role": {func(w *wiki) {
			w.space = []object{{"principal": object{"type": "role", "id": "r"}, "operation": object{"key": "read", "targetType": "space"}}}
		}, []string{}},
	}
	for what, test := range tests {
		w := newWiki(true)
		w.put(&fakePage{id: "root", title: "Root"})
		w.put(&fakePage{id: "leaf", title: "Leaf", ancestors: []string{"root"}})
		test.change(w)
		service := w.start(t)
		s, _ := resttest.Open(t, Kind(), w.config(service.URL))
		got := resttest.Sweep(t.Context(), s)
		uri := service.URL + "/wiki/pages/viewpage.action?pageId=leaf"
		if test.want == nil {
			if got.Skips[uri] == nil || got.Skips[uri].Reason != source.UnknownACL || got.Err != nil {
				t.Errorf("%s: %+v, %v, want a skip", what, got.Skips, got.Err)
			}
			continue
		}
		acl := got.Items[uri].ACL
		if !slices.Equal(acl.Allow, test.want) || !acl.Restricted || got.Err != nil {
			t.Errorf("%s: %v, %v, want %v", what, acl, got.Err, test.want)
		}
	}
}

func TestServerAccess(t *testing.T) {
	t.Parallel()
	w := newWiki(false)
	w.put(&fakePage{id: "1", title: "Page"})
	w.space = append(w.space, object{"subject": object{"type": "anonymous"}, "operation": object{"operationKey": "read", "targetType": "space"}})
	s, _ := resttest.Open(t, Kind(), w.config(w.start(t).URL))
	for uri, item := range resttest.Sweep(t.Context(), s).Items {
		if !slices.Equal(item.ACL.Allow, []string{"*"}) {
			t.Errorf("%s: %v, want a space of anonymous users to be open", uri, item.ACL)
		}
	}
}

func TestAttachmentsAndComments(t *testing.T) {
	t.Parallel()
	for _, cloud := range []bool{true, false} {
		w := newWiki(cloud)
		w.put(&fakePage{id: "1", title: "Page", body: "<p>words</p>"}).users = []object{{"accountId": "ann", "username": "ann"}}
		w.put(&fakePage{id: "att2", kind: "attachment", title: "a.txt", container: "1", body: "attached words"})
		w.put(&fakePage{id: "3", kind: "comment", title: "Re: Page", container: "1", body: "<p>a remark</p>"})
		w.put(&fakePage{id: "att4", kind: "attachment", title: "lost.txt"})
		w.put(&fakePage{id: "5", kind: "whiteboard", title: "Board"})
		service := w.start(t)
		s, _ := resttest.Open(t, Kind(), w.config(service.URL))
		got := resttest.Sweep(t.Context(), s)
		base := service.URL + w.context + "/pages/viewpage.action?pageId="
		for uri, words := range map[string]string{"1&preview=%2F1%2Fatt2": "attached words", "1&focusedCommentId=3": "a remark"} {
			item := got.Items[base+uri]
			if !slices.Equal(item.ACL.Allow, []string{"user:ann"}) {
				t.Errorf("%s: %v, want the readers of the page", uri, item.ACL)
			}
			if text := resttest.Fetch(t, s, item); !strings.Contains(text, words) {
				t.Errorf("%s: %q", uri, text)
			}
		}
		if len(got.Items) != 3 || len(got.Skips) != 2 {
			t.Errorf("%d items and %v", len(got.Items), got.Skips)
		}
	}
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	w := newWiki(true)
	w.put(&fakePage{id: "1", title: "Page", body: strings.Repeat("<p>words</p>", 100)})
	w.put(&fakePage{id: "att2", kind: "attachment", title: "a.txt", container: "1", body: strings.Repeat("x", 2000)})
	c := w.config(w.start(t).URL)
	c.MaxBytes = 1000
	s, _ := resttest.Open(t, Kind(), c)
	got := resttest.Sweep(t.Context(), s)
	for _, item := range got.Items {
		_, err := s.Fetch(t.Context(), item)
		if skip, ok := source.AsSkip(err); !ok || skip.Reason != source.TooLarge {
			t.Errorf("%s: %v, want too large", item.URI, err)
		}
	}
	if len(got.Items) != 1 || len(got.Skips) != 1 {
		t.Errorf("%v and %v", got.Items, got.Skips)
	}
}

func TestStorage(t *testing.T) {
	t.Parallel()
	users := func(id string) (string, error) { return "User " + id, nil }
	for _, test := range []struct{ in, want string }{
		{"<p>A &amp; B&nbsp;<strong>c</strong><br/>d</p>", "<p>A &amp; B\u00a0<strong>c</strong><br>d</p>"},
		{`<p class="sidebar" style="display:none">shown</p>`, "<p>shown</p>"},
		{`<ac:structured-macro ac:name="code"><ac:parameter ac:name="language">go</ac:parameter><ac:parameter ac:name="title">Main</ac:parameter><ac:plain-text-body><![CDATA[if a < b { }]]></ac:plain-text-body></ac:structured-macro>`, "<p>Main</p><pre>if a &lt; b { }</pre>"},
		{`<ac:structured-macro ac:name="info"><ac:rich-text-body><p>Note</p></ac:rich-text-body></ac:structured-macro>`, "<div><p>Note</p></div>"},
		{`<ac:structured-macro ac:name="unheard-of"><ac:parameter ac:name="">words</ac:parameter><ac:foreign>kept</ac:foreign></ac:structured-macro>`, "<p>words</p>kept"},
		{`<ac:link><ri:page ri:content-title="Other"/></ac:link>`, "Other"},
		{`<ac:link><ri:page ri:content-title="Other"/><ac:link-body>see <em>this</em></ac:link-body></ac:link>`, "see <em>this</em>"},
		{`<ac:link><ri:user ri:account-id="7"/></ac:link>`, "@User 7"},
		{`<ac:image ac:alt="A chart"><ri:attachment ri:filename="chart.png"/></ac:image>`, `<img alt="A chart">chart.png `},
		{`<ac:task-list><ac:task><ac:task-id>1</ac:task-id><ac:task-status>complete</ac:task-status><ac:task-body>Do it</ac:task-body></ac:task></ac:task-list>`, "<ul><li><span>complete</span>Do it</li></ul>"},
		{`<time datetime="2026-03-01"/>`, "2026-03-01"},
		{`<ac:emoticon ac:name="tick"/>`, ":tick:"},
		{`<ac:adf-extension><ac:adf-node type="panel"><ac:adf-content><p>x</p></ac:adf-content></ac:adf-node><ac:adf-fallback><p>x</p></ac:adf-fallback></ac:adf-extension>`, "<div><p>x</p></div>"},
		{"<td>open", "<td>open</td>"},
		{"</p></ac:link>stray", "stray"},
	} {
		got, err := storageHTML("T", test.in, users)
		if err != nil {
			t.Errorf("%q: %v", test.in, err)
		}
		_, body, _ := strings.Cut(string(got), "<main>\n")
		if body = strings.TrimSuffix(body, "\n</main></body></html>\n"); body != test.want {
			t.Errorf("%q:\n got %q\nwant %q", test.in, body, test.want)
		}
	}
}

func FuzzStorage(f *testing.F) {
	f.Add(`<ac:link><ri:user ri:account-id="7"/></ac:link><ac:parameter ac:name="title">x</ac:parameter>`)
	f.Add(strings.Repeat("<div>", 2000) + "deep")
	f.Fuzz(func(t *testing.T, in string) {
		got, err := storageHTML("T", in, func(id string) (string, error) { return id, nil })
		if err != nil {
			t.Fatal(err)
		}
		if len(got) > 200+20*len(in) {
			t.Errorf("%d bytes from %d", len(got), len(in))
		}
	})
}

// TestParsed checks that the parser of HTML reads all words of a page.
func TestParsed(t *testing.T) {
	t.Parallel()
	const words = "title heading para info code one two cell1 cell2 other task complete tick kept macro alt"
	data, err := storageHTML("title", `<h1>heading</h1><p>para</p><ac:structured-macro ac:name="info"><ac:rich-text-body><p>info</p></ac:rich-text-body></ac:structured-macro>`+
		`<ac:structured-macro ac:name="code"><ac:plain-text-body><![CDATA[code < x]]></ac:plain-text-body></ac:structured-macro><ul><li>one</li><li>two</li></ul>`+
		`<table><tbody><tr><th>cell1</th><td>cell2</td></tr></tbody></table><p><ac:link><ri:page ri:content-title="other"/></ac:link></p>`+
		`<ac:task-list><ac:task><ac:task-status>complete</ac:task-status><ac:task-body>task</ac:task-body></ac:task></ac:task-list><ac:emoticon ac:name="tick"/>`+
		`<ac:structured-macro ac:name="x"><ac:parameter ac:name="">kept</ac:parameter><nav class="sidebar">macro</nav></ac:structured-macro><ac:image ac:alt="alt"/>`,
		func(id string) (string, error) { return id, nil })
	if err != nil {
		t.Fatal(err)
	}
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
