package gdrive

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
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
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/source/internal/resttest"
	"github.com/assay-rag/assay/source/sourcetest"
)

type object = resttest.Object

const (
	accessToken = "ya29-token-abcdefghij"
	robot       = "robot@project.iam.gserviceaccount.com"
	pageSize    = 2
)

// privateKey is the key of the service account of all tests.
var privateKey = sync.OnceValue(func() string {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	data, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: data}))
})

// A cloud imitates Google Drive.
//
// Shapes: the references of files.list, files.export, changes.list, changes.getStartPageToken and
// permissions.list of the Drive API v3, "Resolve errors", and "Using OAuth 2.0 for Server to Server
// Applications", as of 2025.
type cloud struct {
	mu       sync.Mutex
	files    map[string]object
	texts    map[string]string
	order    []string // of files
	feed     []string
	valid    int
	gone     map[string]bool
	lists    map[string][]object // permissions that files do not state
	denied   map[string]int
	next     string // token of each page; empty: the right one
	count    int
	limited  int    // answers with 403 rateLimitExceeded
	exporter string // reason why exports fail
	subject  string // of the last token
}

func newCloud() *cloud {
	return &cloud{files: map[string]object{}, texts: map[string]string{}, gone: map[string]bool{}, lists: map[string][]object{}, denied: map[string]int{}}
}

func (c *cloud) put(id, text string, more object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := object{"id": id, "name": id + ".txt", "mimeType": "text/plain", "size": strconv.Itoa(len(text)), "md5Checksum": "md5 of " + text,
		"modifiedTime": time.Unix(int64(1.7e9+len(c.feed)), 0).UTC().Format(time.RFC3339), "owners": []object{{"displayName": "Ann"}},
		"capabilities": object{"canDownload": true}, "permissions": []object{{"id": "1", "type": "user", "role": "owner", "emailAddress": "Owner@Example.com"}}}
	if old := c.files[id]; old != nil {
		o["permissions"] = old["permissions"]
	}
	for key, value := range more {
		o[key] = value
		if value == nil {
			delete(o, key)
		}
	}
	c.files[id], c.texts[id] = o, text
	c.order = append(slices.DeleteFunc(c.order, func(s string) bool { return s == id }), id)
	c.feed = append(c.feed, id)
}

func (c *cloud) drop(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.files, id)
	c.order = slices.DeleteFunc(c.order, func(s string) bool { return s == id })
	c.feed = append(c.feed, id)
}

func fail(w http.ResponseWriter, status int, reason string) {
	w.WriteHeader(status)
	resttest.JSON(w, object{"error": object{"code": status, "message": "failed: " + reason, "errors": []object{{"domain": "global", "reason": reason}}}})
}

func (c *cloud) list(w http.ResponseWriter, r *http.Request) {
	start, _ := strconv.Atoi(r.FormValue("pageToken"))
	start = min(start, len(c.order))
	end := min(start+pageSize, len(c.order))
	reply := object{"kind": "drive#fileList", "incompleteSearch": false}
	files := []object{}
	for _, id := range c.order[start:end] {
		files = append(files, c.files[id])
	}
	reply["files"] = files
	if end < len(c.order) {
		reply["nextPageToken"] = strconv.Itoa(end)
	}
	if c.next != "" {
		c.count++
		reply["nextPageToken"] = strings.ReplaceAll(c.next, "COUNT", strconv.Itoa(c.count))
	}
	resttest.JSON(w, reply)
}

func (c *cloud) changes(w http.ResponseWriter, r *http.Request) {
	start, err := strconv.Atoi(r.FormValue("pageToken"))
	if err != nil || start < c.valid {
		fail(w, http.StatusBadRequest, "invalid")
		return
	}
	end := min(start+pageSize, len(c.feed))
	changes := []object{}
	for i, id := range c.feed[start:end] {
		if slices.Contains(c.feed[start+i+1:end], id) || id == "" {
			continue
		}
		change := object{"changeType": "file", "fileId": id, "removed": c.files[id] == nil}
		if f := c.files[id]; f != nil {
			change["file"] = f
		}
		changes = append(changes, change)
	}
	reply := object{"changes": changes}
	if end < len(c.feed) {
		reply["nextPageToken"] = strconv.Itoa(end)
	} else {
		reply["newStartPageToken"] = strconv.Itoa(end)
	}
	resttest.JSON(w, reply)
}

func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.limited > 0 && r.URL.Path != "/token" {
		c.limited--
		fail(w, http.StatusForbidden, "userRateLimitExceeded")
		return
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.URL.Path == "/token":
		c.subject = subject(r)
		token(w, r)
	case r.URL.Path == "/drive/v3/files":
		c.list(w, r)
	case r.URL.Path == "/drive/v3/changes/startPageToken":
		resttest.JSON(w, object{"startPageToken": strconv.Itoa(len(c.feed))})
	case r.URL.Path == "/drive/v3/changes":
		c.changes(w, r)
	case strings.HasSuffix(r.URL.Path, "/permissions"):
		if status := c.denied[parts[3]]; status != 0 {
			fail(w, status, "insufficientFilePermissions")
			return
		}
		resttest.JSON(w, object{"permissions": append([]object{}, c.lists[parts[3]]...)})
	case len(parts) < 4 || c.files[parts[3]] == nil || c.gone[parts[3]]:
		fail(w, http.StatusNotFound, "notFound")
	case strings.HasSuffix(r.URL.Path, "/export"):
		if c.exporter != "" {
			fail(w, http.StatusForbidden, c.exporter)
			return
		}
		_, _ = io.WriteString(w, r.FormValue("mimeType")+": "+c.texts[parts[3]])
	default:
		_, _ = io.WriteString(w, c.texts[parts[3]])
	}
}

// subject returns the user in whose name a token is asked for.
func subject(r *http.Request) string {
	parts := strings.Split(r.FormValue("assertion"), ".")
	if len(parts) != 3 {
		return "malformed"
	}
	data, _ := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct{ Iss, Sub, Aud string }
	if json.Unmarshal(data, &claims) != nil || claims.Iss != robot || !strings.HasSuffix(claims.Aud, "/token") {
		return "malformed"
	}
	return claims.Sub
}

func token(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Path != "/token" {
		return false
	}
	if subject(r) == "malformed" {
		w.WriteHeader(http.StatusBadRequest)
		resttest.JSON(w, object{"error": "invalid_grant", "error_description": "Invalid JWT Signature."})
		return true
	}
	resttest.JSON(w, object{"access_token": accessToken, "expires_in": 3599, "token_type": "Bearer"})
	return true
}

func (c *cloud) start(t *testing.T) *resttest.Service {
	return resttest.New(t, "Bearer "+accessToken, c, "/token")
}

func config(url string) source.Config {
	key, err := json.Marshal(object{"type": "service_account", "private_key_id": "k1", "private_key": privateKey(), "client_email": robot, "token_uri": url + "/token"})
	if err != nil {
		panic(err)
	}
	return source.Config{Target: "user:ann@example.com", HTTP: http.DefaultClient, Options: map[string]string{"endpoint": url},
		Credential: resttest.Credentials(map[string]string{"service-account": string(key)})}
}

func TestContract(t *testing.T) {
	t.Parallel()
	sourcetest.Run(t, func(t *testing.T) sourcetest.World {
		c := newCloud()
		s := c.start(t)
		return sourcetest.World{
			Kind: Kind(), Config: config(s.URL),
			Put: func(name, text string) { c.put(name, text, nil) }, Delete: c.drop, URI: uri,
			SetACL: func(name, user string) {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.files[name]["permissions"] = []object{{"type": "user", "role": "reader", "emailAddress": user + "@example.com"}}
			},
			Principal: func(user string) string { return "user:" + user + "@example.com" },
			Throttle:  s.Throttle,
			Vanish:    func(name string) { c.mu.Lock(); defer c.mu.Unlock(); c.gone[name] = true },
			ExpireCursor: func() {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.feed = append(c.feed, "")
				c.valid = len(c.feed)
			},
			Refuse: s.Refuse,
		}
	})
}

func TestHostile(t *testing.T) {
	t.Parallel()
	resttest.Hostile(t, Kind(), accessToken, config, token)
	for what, next := range map[string]string{"endless": "900COUNT", "repeated": "900"} {
		c := newCloud()
		c.next = next
		s, _ := resttest.Open(t, Kind(), config(c.start(t).URL))
		if err := resttest.Sweep(t.Context(), s).Err; !errors.Is(err, assay.ErrUnavailable) {
			t.Errorf("%s: %v, want it refused", what, err)
		}
	}
}

// TestRateLimit checks that the status 403 with the reason of a limit is tried again, and is not
// taken for refused credentials.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	c := newCloud()
	c.put("a", "words", nil)
	s, clock := resttest.Open(t, Kind(), config(c.start(t).URL))
	c.limited = 2
	if got := resttest.Sweep(t.Context(), s); got.Err != nil || len(got.Items) != 1 || clock.Slept() != 3*time.Second {
		t.Errorf("%+v after %v", got, clock.Slept())
	}
	c.limited = 1 << 30
	if err := resttest.Sweep(t.Context(), s).Err; !errors.Is(err, assay.ErrUnavailable) || errors.Is(err, source.ErrCredentials) {
		t.Errorf("%v, want it unavailable", err)
	}
}

func TestAccess(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		permission object
		want       []string
	}{
		"user":                  {object{"type": "user", "role": "reader", "emailAddress": "Ann@Example.com"}, []string{"user:ann@example.com"}},
		"user without address":  {object{"id": "42", "type": "user", "role": "reader"}, []string{"user:42"}},
		"group":                 {object{"type": "group", "role": "writer", "emailAddress": "G@Example.com"}, []string{"group:g@example.com"}},
		"own domain":            {object{"type": "domain", "role": "reader", "domain": "Example.com", "allowFileDiscovery": true}, []string{"*"}},
		"own domain, with link": {object{"type": "domain", "role": "reader", "domain": "example.com"}, nil},
		"other domain":          {object{"type": "domain", "role": "reader", "domain": "other.com", "allowFileDiscovery": true}, []string{"group:other.com"}},
		"anyone":                {object{"type": "anyone", "role": "reader", "allowFileDiscovery": true}, []string{"*"}},
		"anyone, with link":     {object{"type": "anyone", "role": "reader"}, nil},
		"deleted":               {object{"type": "user", "role": "reader", "emailAddress": "a@b.c", "deleted": true}, nil},
		"expired":               {object{"type": "user", "role": "reader", "emailAddress": "a@b.c", "expirationTime": "2025-01-01T00:00:00Z"}, nil},
		"unreadable expiry":     {object{"type": "user", "role": "reader", "emailAddress": "a@b.c", "expirationTime": "soon"}, nil},
		"published":             {object{"type": "user", "role": "reader", "emailAddress": "a@b.c", "view": "published"}, nil},
		"unknown role":          {object{"type": "user", "role": "watcher", "emailAddress": "a@b.c"}, nil},
		"unknown type":          {object{"type": "alien", "role": "reader", "emailAddress": "a@b.c"}, nil},
	}
	for what, test := range tests {
		for _, stated := range []bool{true, false} {
			c := newCloud()
			c.put("a", "words", object{"permissions": []object{test.permission}})
			if !stated {
				delete(c.files["a"], "permissions")
				c.lists["a"] = []object{test.permission}
			}
			configuration := config(c.start(t).URL)
			configuration.Options["domain"] = "example.com"
			s, _ := resttest.Open(t, Kind(), configuration)
			got := resttest.Sweep(t.Context(), s)
			acl := got.Items[uri("a")].ACL
			if !acl.Restricted || !slices.Equal(acl.Allow, test.want) || got.Err != nil {
				t.Errorf("%s, stated %v: %v, %v, want %v", what, stated, acl, got.Err, test.want)
			}
		}
	}
}

func TestItems(t *testing.T) {
	t.Parallel()
	c := newCloud()
	c.put("folder", "", object{"mimeType": native + "folder"})
	c.put("shortcut", "", object{"mimeType": native + "shortcut"})
	c.put("form", "", object{"mimeType": native + "form"})
	c.put("locked", "words", object{"capabilities": object{"canDownload": false}})
	c.put("huge", "words", object{"size": "99999999999"})
	c.put("secret", "words", object{"permissions": nil})
	c.denied["secret"] = http.StatusForbidden
	c.put("lost", "words", object{"permissions": nil})
	c.denied["lost"] = http.StatusNotFound
	c.put("doc", "words", object{"name": "A/B", "mimeType": native + "document", "size": nil, "md5Checksum": nil})
	service := c.start(t)
	configuration := config(service.URL)
	configuration.Target = "drive:D1"
	s, _ := resttest.Open(t, Kind(), configuration)
	got := resttest.Sweep(t.Context(), s)
	reasons := map[string]source.Reason{}
	for at, skip := range got.Skips {
		reasons[strings.TrimPrefix(at, uri(""))] = skip.Reason
	}
	want := map[string]source.Reason{"form": source.Unsupported, "locked": source.Excluded, "huge": source.TooLarge, "secret": source.UnknownACL}
	if fmt.Sprint(reasons) != fmt.Sprint(want) || got.Err != nil || len(got.Items) != 1 || c.subject != "" {
		t.Errorf("%v, %v, %d items, want %v", reasons, got.Err, len(got.Items), want)
	}
	item := got.Items[uri("doc")]
	if text := resttest.Fetch(t, s, item); item.Name != "A B.docx" || text != officeMedia+"wordprocessingml.document: words" {
		t.Errorf("%s: %q", item.Name, text)
	}
	c.exporter = "exportSizeLimitExceeded"
	_, err := s.Fetch(t.Context(), item)
	if skip, ok := source.AsSkip(err); !ok || skip.Reason != source.TooLarge {
		t.Errorf("an export that is too large: %v", err)
	}
	c.put("doc", "words", object{"trashed": true})
	if got := resttest.Changes(t.Context(), s, "7"); !got.Deleted[uri("doc")] || got.Err != nil {
		t.Errorf("a file in the bin: %+v", got)
	}
}

func TestSubject(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]string{"user:ann@example.com": "ann@example.com", "user:" + robot: "", "drive:D1": ""} {
		c := newCloud()
		configuration := config(c.start(t).URL)
		configuration.Target = target
		s, _ := resttest.Open(t, Kind(), configuration)
		if err := resttest.Sweep(t.Context(), s).Err; err != nil || c.subject != want {
			t.Errorf("%s: %v, token for %q", target, err, c.subject)
		}
	}
}

func TestInvalid(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*source.Config){
		"target": func(c *source.Config) { c.Target = "D1" },
		"user":   func(c *source.Config) { c.Target = "user:ann" },
		"export": func(c *source.Config) { c.Options["export"] = "pdf" },
		"no key": func(c *source.Config) { c.Credential = resttest.Credentials(nil) },
		"a key that is none": func(c *source.Config) {
			c.Credential = resttest.Credentials(map[string]string{"service-account": `{"type":"service_account","client_email":"a","token_uri":"https://a","private_key":"secret"}`})
		},
	} {
		c := config("https://www.googleapis.com")
		c.Options["export"] = "office"
		change(&c)
		if _, err := Kind().Open(t.Context(), c); !errors.Is(err, assay.ErrInvalid) || strings.Contains(err.Error(), "secret\"") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
