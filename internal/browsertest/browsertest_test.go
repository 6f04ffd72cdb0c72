package browsertest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMain(m *testing.M) { os.Exit(Run(m)) }

// pages are those of the server of the tests, by path.
var pages = map[string]string{
	"/": `<!doctype html><html lang="en"><title>One</title><link rel="icon" href="data:,"><h1>One</h1><p><a id="next" href="/two">Two</a></p>
		<form method="post" action="/sent"><label>Name <input name="name"></label><label>Note <textarea name="note">old</textarea></label>
		<label>Kind <select name="kind"><option value="a">A</option><option value="b">B</option></select></label>
		<label><input type="checkbox" name="sure" value="yes"> Sure</label> <button id="send">Send</button></form>`,
	"/two":     `<!doctype html><html lang="en"><title>Two</title><link rel="icon" href="data:,"><h1>Two</h1><p id="time"></p><script type="module" src="/two.js"></script>`,
	"/bad":     `<!doctype html><html lang="en"><title>Bad</title><link rel="icon" href="data:,"><h1 onclick="1">Bad</h1><script>alert(1)</script><img src="/none" alt=""><img src="http://elsewhere.example/x" alt="">`,
	"/dialog":  `<!doctype html><html lang="en"><title>Dialog</title><link rel="icon" href="data:,"><h1>Dialog</h1><script src="/dialog.js"></script>`,
	"/unnamed": `<!doctype html><html lang="en"><title>Unnamed</title><link rel="icon" href="data:,"><main><h1>Unnamed</h1><input><img src="data:,"></main>`,
	"/files":   `<!doctype html><html lang="en"><title>Files</title><link rel="icon" href="data:,"><h1>Files</h1><form method="post" action="/sent" enctype="multipart/form-data"><input type="file" name="file" aria-label="File"><button>Send</button></form><div id="here">Here</div><script src="/files.js"></script>`,
}

var scripts = map[string]string{
	"/two.js":    `document.getElementById("time").textContent = "scripted"; document.addEventListener("keydown", e => { if (e.key === "Enter" && e.shiftKey) location.assign("/"); });`,
	"/dialog.js": `alert("hello"); console.warn("careful"); throw new Error("broken");`,
	"/files.js":  `const here = document.getElementById("here"); here.addEventListener("dragover", e => e.preventDefault()); here.addEventListener("drop", e => { e.preventDefault(); here.textContent = e.dataTransfer.files[0].name; });`,
}

func server(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if text, ok := scripts[r.URL.Path]; ok {
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprint(w, text)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		csp := "default-src 'none'; script-src 'self'; form-action 'self'; connect-src 'self'; img-src 'self' data:; require-trusted-types-for 'script'"
		if r.URL.Path == "/bad" {
			csp += " ; img-src 'self' http://elsewhere.example"
		}
		w.Header().Set("Content-Security-Policy", csp)
		switch text, ok := pages[r.URL.Path]; {
		case r.Method == http.MethodPost:
			sent(w, r)
		case ok:
			fmt.Fprint(w, text)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// sent writes the form of a request, and its cookies and language.
func sent(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseMultipartForm(1 << 20); err != nil && err != http.ErrNotMultipart {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	fmt.Fprintf(w, `<!doctype html><html lang="en"><title>Sent</title><link rel="icon" href="data:,"><pre>name=%s note=%s kind=%s sure=%s language=%s`,
		r.PostForm.Get("name"), r.PostForm.Get("note"), r.PostForm.Get("kind"), r.PostForm.Get("sure"), r.Header.Get("Accept-Language"))
	if c, err := r.Cookie("who"); err == nil {
		fmt.Fprintf(w, " who=%s", c.Value)
	}
	if r.MultipartForm != nil {
		for _, h := range r.MultipartForm.File["file"] {
			f, err := h.Open()
			if err != nil {
				continue
			}
			data, err := io.ReadAll(f)
			fmt.Fprintf(w, " file=%s %q %t", h.Filename, data, err == nil)
			f.Close()
		}
	}
}

func TestChromiumFlow(t *testing.T) {
	t.Parallel()
	for _, noScript := range []bool{false, true} {
		t.Run(fmt.Sprintf("NoScript=%v", noScript), func(t *testing.T) {
			t.Parallel()
			b, site := Start(t), server(t)
			p := b.Page(t, Options{NoScript: noScript, Cookies: map[string]string{"who": "ann"}, Language: "de-DE"})
			p.Go(site + "/")
			p.Fill("[name=name]", "Ann Ö")
			p.Fill("[name=note]", "new\nlines")
			p.Fill("[name=kind]", "b")
			p.Click("[name=sure]")
			p.Click("#send")
			if got, want := p.Text("pre"), "name=Ann Ö note=new\nlines kind=b sure=yes language=de-DE who=ann"; got != want {
				t.Errorf("sent %q, want %q", got, want)
			}
			p.Back()
			p.Click("#next")
			if got := p.URL(); got != site+"/two" {
				t.Errorf("the link leads to %s", got)
			}
			if got, want := p.Text("h1"), "Two"; got != want {
				t.Errorf("the page is %q, want %q", got, want)
			}
			if got := p.Has("#time"); got == noScript {
				t.Errorf("the script has run: %v", got)
			}
			p.Back()
			p.WaitText("h1", "One")
			p.Forward()
			p.WaitText("h1", "Two")
		})
	}
}

func TestChromiumKeys(t *testing.T) {
	t.Parallel()
	b, site := Start(t), server(t)
	p := b.Page(t, Options{})
	p.Go(site + "/")
	p.Focus("[name=name]")
	p.Press("x")
	p.Press("Tab")
	p.Press("Shift+Tab")
	p.Press("End")
	p.Press("y")
	p.Press("Enter")
	if got := p.Text("pre"); !strings.HasPrefix(got, "name=xy note=old kind=a sure= language=en-US") {
		t.Errorf("sent %q", got)
	}
	p.Go(site + "/two")
	p.Press("Shift+Enter")
	p.WaitText("h1", "One")
}

func TestChromiumFiles(t *testing.T) {
	t.Parallel()
	b, site := Start(t), server(t)
	file := filepath.Join(t.TempDir(), "a note.txt")
	if err := os.WriteFile(file, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := b.Page(t, Options{})
	p.Go(site + "/files")
	p.Drop("#here", file)
	p.WaitText("#here", "a note.txt")
	p.SetFiles("[type=file]", file)
	p.Click("button")
	if got := p.Text("pre"); !strings.Contains(got, `file=a note.txt "content" true`) {
		t.Errorf("sent %q", got)
	}
}

// TestChromiumComplaints checks that what a page must not do is recorded.
func TestChromiumComplaints(t *testing.T) {
	t.Parallel()
	b, site := Start(t), server(t)
	for path, want := range map[string][]string{
		"/bad":    {"Content Security Policy", "request to another origin: http://elsewhere.example/x", "status of 404"},
		"/dialog": {"dialog: hello", "console.warning: ", "careful", "exception: Uncaught Error: broken"},
	} {
		p := b.Page(t, Options{})
		p.Go(site + path)
		all := strings.Join(p.Complaints(), "\n")
		for _, w := range want {
			if !strings.Contains(all, w) {
				t.Errorf("%s: no complaint %q in\n%s", path, w, all)
			}
		}
		p.Expect("")
		if left := p.Complaints(); len(left) != 0 {
			t.Errorf("%s: expected complaints are left: %q", path, left)
		}
	}
}

// A recorder is a test that records that it failed.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func TestChromiumAxe(t *testing.T) {
	t.Parallel()
	b, site := Start(t), server(t)
	if b.axe == "" {
		t.Skip("no axe-core here: scripts/axe fetch brings it")
	}
	p := b.Page(t, Options{})
	p.Go(site + "/")
	p.Axe(t)
	p.Go(site + "/unnamed")
	r := &recorder{TB: t}
	p.Axe(r)
	if all := strings.Join(r.errors, "\n"); !strings.Contains(all, "axe label") || !strings.Contains(all, "axe image-alt") {
		t.Errorf("axe finds\n%s", all)
	}
}

func TestChromiumOffline(t *testing.T) {
	t.Parallel()
	b, site := Start(t), server(t)
	p := b.Page(t, Options{})
	p.Go(site + "/")
	p.Expect("ERR_INTERNET_DISCONNECTED")
	p.Offline(true)
	var online, reached bool
	p.Eval("navigator.onLine", &online)
	p.Eval("fetch('/two').then(() => true, () => false)", &reached)
	if online || reached {
		t.Errorf("cut off: online %v, reached %v", online, reached)
	}
	p.Offline(false)
	p.Eval("navigator.onLine", &online)
	p.Go(site + "/two")
	if !online {
		t.Error("the page stays cut off")
	}
}

func TestChromiumPicture(t *testing.T) {
	t.Parallel()
	b, site := Start(t), server(t)
	p := b.Page(t, Options{Width: 640, Height: 300, Zoom: 2})
	p.Go(site + "/two")
	var width int
	p.Eval("innerWidth", &width)
	if width != 320 {
		t.Errorf("at 200 %% the page is %d pixels wide", width)
	}
	p.Shot(t, "two", Mask{"#time", "a moment ago"})
	if !b.ours || *update {
		return
	}
	p.Eval(`document.querySelector("h1").textContent = "Something else that is long"`, nil)
	r := &recorder{TB: t}
	p.Shot(r, "two")
	if len(r.errors) != 1 {
		t.Errorf("another page: %q", r.errors)
	}
	if pdf := p.PDF(); !strings.HasPrefix(string(pdf), "%PDF-") {
		t.Errorf("printed %.20q", pdf)
	}
}
