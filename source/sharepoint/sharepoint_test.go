package sharepoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/source/internal/resttest"
	"github.com/assay-rag/assay/source/sourcetest"
)

type object = resttest.Object

const (
	clientSecret = "client-secret-123456789"
	accessToken  = "access-token-abcdefghij"
	pageSize     = 2
)

// A graph imitates Microsoft Graph with one drive.
//
// Shapes: "Combine multiple HTTP requests using JSON batching", "driveItem: delta", "List sharing permissions on a driveItem", "Download driveItem
// content" and "Microsoft Graph error responses" of Graph v1.0, and "Get a token" of the client
// credentials flow, as of 2025.
type graph struct {
	mu          sync.Mutex
	items       map[string]object
	permissions map[string][]object
	contents    map[string]string
	feed        []string
	valid       int // tokens before this position are gone
	gone        map[string]bool
	denied      map[string]int // status for the permissions of an item
	next        string         // link of each page; empty: the right one
	count       int
	tokens      int    // issued
	storage     string // host of contents

	permissionRequests int // outside of batches
}

func newGraph() *graph {
	return &graph{items: map[string]object{}, permissions: map[string][]object{}, contents: map[string]string{}, gone: map[string]bool{}, denied: map[string]int{}}
}

func (g *graph) put(id, text string, more object) {
	g.mu.Lock()
	defer g.mu.Unlock()
	o := object{"id": id, "name": id + ".txt", "size": len(text), "cTag": fmt.Sprintf("c%d", len(g.feed)), "eTag": "e",
		"webUrl": "https://contoso.sharepoint.com/sites/a/" + id + ".txt", "file": object{"mimeType": "text/plain"},
		"createdBy": object{"user": object{"displayName": "Ann"}}, "lastModifiedDateTime": "2026-01-02T03:04:05Z",
		"parentReference": object{"driveId": "D1", "path": "/drives/D1/root:/A%20B/C"}}
	for key, value := range more {
		o[key] = value
		if value == nil {
			delete(o, key)
		}
	}
	g.items[id], g.contents[id] = o, text
	if g.permissions[id] == nil {
		g.permissions[id] = []object{{"id": "1", "roles": []string{"read"}, "grantedToV2": object{"group": object{"id": "G-1"}}}}
	}
	g.feed = append(g.feed, id)
}

// link returns a link with the given token.
func link(r *http.Request, token string) string {
	return "http://" + r.Host + "/v1.0/drives/D1/root/delta?token=" + token
}

// delta answers tokens of the forms FROM-TO, a page of a listing up to the position TO, and latest
// positions.
func (g *graph) delta(w http.ResponseWriter, r *http.Request) {
	from, to, _ := strings.Cut(r.FormValue("token"), "-")
	start, _ := strconv.Atoi(from)
	if r.FormValue("token") != "" && start < g.valid {
		w.WriteHeader(http.StatusGone)
		resttest.JSON(w, object{"error": object{"code": "resyncChangesApplyDifferences", "message": "Resync required"}})
		return
	}
	end, err := strconv.Atoi(to)
	if err != nil {
		end = len(g.feed)
	}
	value := []object{}
	for ; start < end && len(value) < pageSize; start++ {
		id := g.feed[start]
		if id == "" || slices.Contains(g.feed[start+1:end], id) {
			continue
		}
		if o := g.items[id]; o != nil {
			value = append(value, o)
		} else if r.FormValue("token") != "" {
			value = append(value, object{"id": id, "deleted": object{"state": "deleted"}})
		}
	}
	reply := object{"value": value}
	switch {
	case g.next != "":
		g.count++
		reply["@odata.nextLink"] = strings.ReplaceAll(g.next, "COUNT", strconv.Itoa(g.count))
	case start < end:
		reply["@odata.nextLink"] = link(r, fmt.Sprintf("%d-%d", start, end))
	default:
		reply["@odata.deltaLink"] = link(r, strconv.Itoa(end))
	}
	resttest.JSON(w, reply)
}

func (g *graph) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case strings.HasSuffix(r.URL.Path, "/oauth2/v2.0/token"):
		g.tokens++
		token(w, r)
	case r.URL.Path == "/v1.0/drives/D1" || r.URL.Path == "/v1.0/users/ann@contoso.com/drive":
		resttest.JSON(w, object{"id": "D1", "driveType": "documentLibrary"})
	case r.URL.Path == "/v1.0/sites/contoso.sharepoint.com:/sites/a:/drives":
		resttest.JSON(w, object{"value": []object{{"id": "D1"}}})
	case r.URL.Path == "/v1.0/drives/D1/root/delta":
		g.delta(w, r)
	case r.URL.Path == "/v1.0/$batch":
		g.batch(w, r)
	case strings.HasSuffix(r.URL.Path, "/permissions"):
		g.permissionRequests++
		if status := g.denied[parts[4]]; status != 0 {
			w.WriteHeader(status)
			resttest.JSON(w, object{"error": object{"code": "accessDenied", "message": "Access denied"}})
			return
		}
		resttest.JSON(w, object{"value": append([]object{}, g.permissions[parts[4]]...)})
	case strings.HasSuffix(r.URL.Path, "/content"):
		if g.gone[parts[4]] || g.items[parts[4]] == nil {
			w.WriteHeader(http.StatusNotFound)
			resttest.JSON(w, object{"error": object{"code": "itemNotFound", "message": "The resource could not be found."}})
			return
		}
		http.Redirect(w, r, g.storage+"/"+parts[4], http.StatusFound)
	default:
		http.NotFound(w, r)
	}
}

// batch answers each second request of a batch with 429.
func (g *graph) batch(w http.ResponseWriter, r *http.Request) {
	var batch struct {
		Requests []struct{ ID, Method, URL string }
	}
	if err := json.NewDecoder(r.Body).Decode(&batch); err != nil || len(batch.Requests) > batchSize {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	responses := []object{}
	for i, q := range batch.Requests {
		id := strings.Split(q.URL, "/")[4]
		switch {
		case i%2 == 1:
			responses = append(responses, object{"id": q.ID, "status": http.StatusTooManyRequests, "headers": object{"Retry-After": "1"}, "body": object{}})
		case g.denied[id] != 0:
			responses = append(responses, object{"id": q.ID, "status": g.denied[id], "body": object{"error": object{"code": "accessDenied"}}})
		default:
			responses = append(responses, object{"id": q.ID, "status": http.StatusOK, "body": object{"value": append([]object{}, g.permissions[id]...)}})
		}
	}
	slices.Reverse(responses) // the order is not that of the requests
	resttest.JSON(w, object{"responses": responses})
}

// token answers a request for an access token.
func token(w http.ResponseWriter, r *http.Request) bool {
	if !strings.HasSuffix(r.URL.Path, "/oauth2/v2.0/token") {
		return false
	}
	valid := r.FormValue("client_secret") == clientSecret && r.FormValue("client_id") == "app" && r.FormValue("grant_type") == "client_credentials" &&
		strings.HasSuffix(r.FormValue("scope"), "/.default")
	if !valid {
		w.WriteHeader(http.StatusBadRequest)
		resttest.JSON(w, object{"error": "invalid_client", "error_description": "AADSTS7000215: Invalid client secret " + r.FormValue("client_secret")})
		return true
	}
	resttest.JSON(w, object{"token_type": "Bearer", "expires_in": 3599, "access_token": accessToken})
	return true
}

func (g *graph) start(t *testing.T) *resttest.Service {
	storage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the host of contents got the credentials")
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		_, _ = io.WriteString(w, g.contents[strings.Trim(r.URL.Path, "/")])
	}))
	t.Cleanup(storage.Close)
	g.storage = storage.URL
	return resttest.New(t, "Bearer "+accessToken, g, "/contoso/oauth2/")
}

func config(url string) source.Config {
	return source.Config{Target: "drive:D1", HTTP: http.DefaultClient,
		Options:    map[string]string{"tenant": "contoso", "client-id": "app", "endpoint": url, "login": url},
		Credential: resttest.Credentials(map[string]string{"client-secret": clientSecret})}
}

func TestContract(t *testing.T) {
	t.Parallel()
	sourcetest.Run(t, func(t *testing.T) sourcetest.World {
		g := newGraph()
		s := g.start(t)
		locked := func(change func(name string)) func(string) {
			return func(name string) {
				g.mu.Lock()
				defer g.mu.Unlock()
				change(name)
			}
		}
		return sourcetest.World{
			Kind: Kind(), Config: config(s.URL),
			Put:    func(name, text string) { g.put(name, text, nil) },
			Delete: locked(func(name string) { delete(g.items, name); g.feed = append(g.feed, name) }),
			URI:    func(name string) string { return s.URL + "/v1.0/drives/D1/items/" + name },
			SetACL: func(name, user string) {
				locked(func(name string) {
					g.permissions[name] = []object{{"roles": []string{"write"}, "grantedToV2": object{"user": object{"id": user}}}}
				})(name)
			},
			Throttle:     s.Throttle,
			Vanish:       locked(func(name string) { g.gone[name] = true }),
			ExpireCursor: func() { locked(func(string) { g.feed = append(g.feed, ""); g.valid = len(g.feed) })("") },
			Refuse:       s.Refuse,
		}
	})
}

func TestHostile(t *testing.T) {
	t.Parallel()
	resttest.Hostile(t, Kind(), accessToken, config, token)
	for what, next := range map[string]string{
		"endless":  "/v1.0/drives/D1/root/delta?token=0-0&n=COUNT",
		"repeated": "/v1.0/drives/D1/root/delta?token=0-0",
		"host":     "https://evil.example/v1.0/drives/D1/root/delta",
	} {
		g := newGraph()
		g.next = next
		s, _ := resttest.Open(t, Kind(), config(g.start(t).URL))
		if err := resttest.Sweep(t.Context(), s).Err; !errors.Is(err, assay.ErrUnavailable) {
			t.Errorf("%s: %v, want it refused", what, err)
		}
	}
}

// TestCredentials checks refused credentials of the application, tokens that expire, and tokens
// that are revoked.
func TestCredentials(t *testing.T) {
	t.Parallel()
	g := newGraph()
	service := g.start(t)
	c := config(service.URL)
	c.Credential = resttest.Credentials(map[string]string{"client-secret": "wrong-secret-123456789"})
	s, _ := resttest.Open(t, Kind(), c)
	err := resttest.Sweep(t.Context(), s).Err
	if !errors.Is(err, source.ErrCredentials) || strings.Contains(err.Error(), "wrong-secret") {
		t.Errorf("a wrong secret: %v", err)
	}
	s, clock := resttest.Open(t, Kind(), config(service.URL))
	g.tokens = 0
	for range 3 {
		if err := resttest.Sweep(t.Context(), s).Err; err != nil {
			t.Error(err)
		}
	}
	clock.Advance(3600e9)
	if err := resttest.Sweep(t.Context(), s).Err; err != nil || g.tokens != 2 {
		t.Errorf("%v after %d tokens, want 2", err, g.tokens)
	}
	service.Refuse()
	if err := resttest.Sweep(t.Context(), s).Err; !errors.Is(err, source.ErrCredentials) || g.tokens != 3 {
		t.Errorf("%v after %d tokens, want 3", err, g.tokens)
	}
}

func TestAccess(t *testing.T) {
	t.Parallel()
	read := []string{"read"}
	tests := map[string]struct {
		permissions []object
		want        []string
	}{
		"none":             {[]object{}, nil},
		"user with e-mail": {[]object{{"roles": read, "grantedToV2": object{"user": object{"id": "u1", "email": "Ann@Contoso.com"}}}}, []string{"user:ann@contoso.com"}},
		"user of the site": {[]object{{"roles": read, "grantedToV2": object{"siteUser": object{"id": "7", "loginName": "i:0#.f|membership|Ann@Contoso.com"}}}}, []string{"user:ann@contoso.com"}},
		"group of Entra":   {[]object{{"roles": read, "grantedToV2": object{"group": object{"id": "G-1", "email": "g@contoso.com"}, "siteUser": object{"loginName": "c:0o.c|federateddirectoryclaimprovider|G-1"}}}}, []string{"group:G-1"}},
		"group of the site": {[]object{{"roles": read, "grantedToV2": object{"siteGroup": object{"id": "5", "displayName": "Members"}}}},
			[]string{"group:sharepoint:D1:5"}},
		"everyone":           {[]object{{"roles": read, "grantedToV2": object{"siteUser": object{"loginName": "c:0-.f|rolemanager|spo-grid-all-users/1234"}}}}, []string{"*"}},
		"link for users":     {[]object{{"roles": read, "link": object{"scope": "users"}, "grantedToIdentitiesV2": []object{{"user": object{"email": "b@c.d"}}}}}, []string{"user:b@c.d"}},
		"link for anyone":    {[]object{{"roles": read, "link": object{"scope": "anonymous"}}}, nil},
		"link for all":       {[]object{{"roles": read, "link": object{"scope": "organization"}}}, nil},
		"expired":            {[]object{{"roles": read, "expirationDateTime": "2025-12-31T00:00:00Z", "grantedToV2": object{"user": object{"id": "u"}}}}, nil},
		"never expires":      {[]object{{"roles": read, "expirationDateTime": "0001-01-01T00:00:00Z", "grantedToV2": object{"user": object{"id": "u"}}}}, []string{"user:u"}},
		"unreadable expiry":  {[]object{{"roles": read, "expirationDateTime": "soon", "grantedToV2": object{"user": object{"id": "u"}}}}, nil},
		"role without read":  {[]object{{"roles": []string{"sp.limited access"}, "grantedToV2": object{"user": object{"id": "u"}}}}, nil},
		"application":        {[]object{{"roles": read, "grantedToV2": object{"application": object{"id": "app"}}}}, nil},
		"user without an id": {[]object{{"roles": read, "grantedToV2": object{"user": object{"displayName": "Ann"}}}}, nil},
	}
	for what, test := range tests {
		g := newGraph()
		g.put("a", "words", nil)
		g.permissions["a"] = test.permissions
		s, _ := resttest.Open(t, Kind(), config(g.start(t).URL))
		got := resttest.Sweep(t.Context(), s)
		for _, item := range got.Items {
			if !item.ACL.Restricted || !slices.Equal(item.ACL.Allow, test.want) {
				t.Errorf("%s: %v, want %v", what, item.ACL, test.want)
			}
		}
		if len(got.Items) != 1 || got.Err != nil {
			t.Errorf("%s: %+v", what, got)
		}
	}
}

func TestItems(t *testing.T) {
	t.Parallel()
	g := newGraph()
	g.put("folder", "", object{"file": nil, "folder": object{"childCount": 1}})
	g.put("notes", "", object{"file": nil, "package": object{"type": "oneNote"}})
	g.put("virus", "words", object{"malware": object{"description": "x"}})
	g.put("huge", "words", object{"size": 1 << 40})
	g.put("secret", "words", nil)
	g.denied["secret"] = http.StatusForbidden
	g.put("lost", "words", nil)
	g.denied["lost"] = http.StatusNotFound
	g.put("liar", strings.Repeat("x", 3000), object{"size": 10})
	service := g.start(t)
	for _, target := range []string{"drive:D1", "onedrive:ann@contoso.com", "https://contoso.sharepoint.com/sites/a/"} {
		c := config(service.URL)
		c.Target, c.MaxBytes = target, 1000
		s, _ := resttest.Open(t, Kind(), c)
		got := resttest.Sweep(t.Context(), s)
		reasons := map[string]source.Reason{}
		for uri, skip := range got.Skips {
			reasons[uri[strings.LastIndex(uri, "/")+1:]] = skip.Reason
		}
		want := map[string]source.Reason{"notes": source.Unsupported, "virus": source.Excluded, "huge": source.TooLarge, "secret": source.UnknownACL}
		if fmt.Sprint(reasons) != fmt.Sprint(want) || got.Err != nil || len(got.Items) != 1 {
			t.Errorf("%s: %v, %v, %d items, want %v", target, reasons, got.Err, len(got.Items), want)
		}
		for _, item := range got.Items {
			if path := item.Metadata[assay.MetaPath]; !slices.Equal(path.List, []string{"A B", "C"}) {
				t.Errorf("path %v", path)
			}
			_, err := s.Fetch(t.Context(), item)
			if skip, ok := source.AsSkip(err); !ok || skip.Reason != source.TooLarge {
				t.Errorf("a content over its stated size: %v", err)
			}
		}
	}
}

func TestInvalid(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"", "drive:", "onedrive:", "http://contoso.sharepoint.com/", "https:///x"} {
		c := config("https://graph.microsoft.com")
		c.Target = target
		if _, err := Kind().Open(t.Context(), c); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%q: %v", target, err)
		}
	}
	g := newGraph()
	s, _ := resttest.Open(t, Kind(), config(g.start(t).URL))
	for _, cursor := range []string{"x", `{"D1":"https://evil.example/"}`, "[]"} {
		if err := resttest.Changes(t.Context(), s, cursor).Err; !errors.Is(err, source.ErrCursor) {
			t.Errorf("cursor %q: %v", cursor, err)
		}
	}
}

// TestBatch checks that permissions are read in batches, and again where a batch has no answer.
func TestBatch(t *testing.T) {
	t.Parallel()
	g := newGraph()
	for i := range 7 {
		g.put(fmt.Sprintf("f%d", i), "words", nil)
		g.permissions[fmt.Sprintf("f%d", i)] = []object{{"roles": []string{"read"}, "grantedToV2": object{"user": object{"id": fmt.Sprintf("u%d", i)}}}}
	}
	service := g.start(t)
	s, _ := resttest.Open(t, Kind(), config(service.URL))
	got := resttest.Sweep(t.Context(), s)
	for i := range 7 {
		item := got.Items[service.URL+fmt.Sprintf("/v1.0/drives/D1/items/f%d", i)]
		if !slices.Equal(item.ACL.Allow, []string{fmt.Sprintf("user:u%d", i)}) {
			t.Errorf("f%d: %v", i, item.ACL)
		}
	}
	if g.permissionRequests != 3 || got.Err != nil { // the second items of three pages of two
		t.Errorf("%d requests for permissions, %v", g.permissionRequests, got.Err)
	}
}
