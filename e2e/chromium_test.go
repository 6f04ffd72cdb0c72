package e2e

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// A chromium is a headless browser without network access: its proxy is a port without a listener,
// and no name resolves. The test drives it by the Chrome DevTools Protocol over a pipe
// (https://chromedevtools.github.io/devtools-protocol/). With --remote-debugging-pipe it reads file
// descriptor 3 and writes 4, and messages end in NUL.
type chromium struct {
	t   *testing.T
	in  *os.File
	out chan message

	last int
}

// message is a reply, which has an ID, or an event, which has a method.
type message struct {
	ID      int             `json:"id"`
	Session string          `json:"sessionId"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// chromiumCommand returns the command that starts a browser: the one named by ASSAY_CHROMIUM (an
// executable, or a folder of scripts/chromium), the one that scripts/chromium has fetched, or an
// installed one. It skips the test if there is none, with -short, and if ASSAY_CHROMIUM is "off".
func chromiumCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	place := os.Getenv("ASSAY_CHROMIUM")
	switch {
	case testing.Short():
		t.Skip("a real browser takes its time: not with -short")
	case place == "off":
		t.Skip("ASSAY_CHROMIUM is off")
	case runtime.GOOS == "windows":
		t.Skip("the browser is spoken to over inherited pipes")
	}
	if info, err := os.Stat(place); err == nil && !info.IsDir() {
		return exec.Command(place, args...)
	}
	if place == "" {
		if cache, err := os.UserCacheDir(); err == nil {
			place = filepath.Join(cache, "assay", "chromium")
		}
	}
	if _, err := os.Stat(filepath.Join(place, "edition")); err == nil {
		cmd := exec.Command("../scripts/chromium", append([]string{"run"}, args...)...)
		// A folder of another version is not downloaded again, since a test must not do that.
		cmd.Env = append(os.Environ(), "ASSAY_CHROMIUM="+place, "ASSAY_CHROMIUM_ARCHIVE="+filepath.Join(t.TempDir(), "none"))
		return cmd
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if found, err := exec.LookPath(name); err == nil {
			return exec.Command(found, args...)
		}
	}
	t.Skip("no Chromium here: scripts/chromium fetch brings one, ASSAY_CHROMIUM names another")
	return nil
}

// startChromium starts a browser for a test.
func startChromium(t *testing.T) *chromium {
	t.Helper()
	cmd := chromiumCommand(t, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
		"--disable-background-networking", "--disable-component-update", "--disable-default-apps", "--disable-sync",
		"--proxy-server=http://127.0.0.1:9", "--proxy-bypass-list=<-loopback>", "--host-resolver-rules=MAP * ~NOTFOUND",
		"--user-data-dir="+t.TempDir(), "--remote-debugging-pipe", "about:blank")
	read, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, written, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.ExtraFiles, cmd.Stderr = []*os.File{read, written}, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read.Close()
	written.Close()
	c := &chromium{t: t, in: in, out: make(chan message)}
	ended := make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() { c.read(out, ended) })
	t.Cleanup(func() {
		close(ended)
		in.Close() // the browser exits when its pipe closes
		done := time.AfterFunc(10*time.Second, func() { cmd.Process.Kill() })
		cmd.Wait()
		done.Stop()
		out.Close()
		reading.Wait()
		if t.Failed() && testing.Verbose() {
			t.Logf("the browser's log:\n%s", &stderr)
		}
	})
	return c
}

// read forwards the browser's messages until it exits or the test ends.
func (c *chromium) read(from *os.File, ended chan struct{}) {
	defer close(c.out)
	r := bufio.NewReader(from)
	for {
		data, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(data[:len(data)-1], &m) != nil {
			continue
		}
		select {
		case c.out <- m:
		case <-ended:
			return
		}
	}
}

// A tab is an open page, with the complaints and requests recorded so far.
type tab struct {
	*chromium
	session    string
	complaints []string // on the console: errors, warnings, exceptions, dialogues, policy violations
	requests   []string // for anything but the page itself and its embedded content
	loaded     bool
	page       string
}

// open loads a file in a window of the given size and colour scheme.
func (c *chromium) open(file string, width, height int, scheme string) *tab {
	c.t.Helper()
	var target struct {
		ID string `json:"targetId"`
	}
	var attached struct {
		Session string `json:"sessionId"`
	}
	v := &tab{chromium: c, page: (&url.URL{Scheme: "file", Path: file}).String()}
	v.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	v.call("Target.attachToTarget", map[string]any{"targetId": target.ID, "flatten": true}, &attached)
	v.session = attached.Session
	for _, domain := range []string{"Runtime", "Log", "Network", "Page", "Audits"} {
		v.call(domain+".enable", nil, nil)
	}
	v.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}, nil)
	v.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	v.call("Page.navigate", map[string]any{"url": v.page}, nil)
	for !v.loaded {
		v.hear(time.Minute)
	}
	v.settle()
	return v
}

// settle waits for pending output and requests of the page: two frames and a turn of its timers.
func (v *tab) settle() {
	v.t.Helper()
	v.eval(`new Promise(done => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(() => done(true))), 200))`, nil)
}

// hear waits for one message and records it.
func (v *tab) hear(atMost time.Duration) message {
	v.t.Helper()
	select {
	case m, ok := <-v.out:
		if !ok {
			v.t.Fatal("the browser has ended")
		}
		v.note(m)
		return m
	case <-time.After(atMost):
		v.t.Fatal("the browser says nothing")
		return message{}
	}
}

// call sends a command to the browser and waits for its reply. It decodes the result into the
// argument into, unless that is nil.
func (v *tab) call(method string, params any, into any) {
	v.t.Helper()
	v.last++
	id := v.last
	data, err := json.Marshal(map[string]any{"id": id, "sessionId": v.session, "method": method, "params": params})
	if v.session == "" {
		data, err = json.Marshal(map[string]any{"id": id, "method": method, "params": params})
	}
	if err == nil {
		_, err = v.in.Write(append(data, 0))
	}
	if err != nil {
		v.t.Fatal(err)
	}
	for {
		m := v.hear(time.Minute)
		if m.ID != id {
			continue
		}
		if m.Error != nil {
			v.t.Fatalf("%s: %s", method, m.Error.Message)
		}
		if into != nil {
			if err := json.Unmarshal(m.Result, into); err != nil {
				v.t.Fatal(err)
			}
		}
		return
	}
}

// eval runs an expression in the page as if its user had caused it, awaits it and decodes its
// value.
func (v *tab) eval(expression string, into any) {
	v.t.Helper()
	var got struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	v.call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true}, &got)
	if got.Exception != nil {
		v.t.Fatalf("%s: %s %s", expression, got.Exception.Text, got.Exception.Exception.Description)
	}
	if into != nil {
		if err := json.Unmarshal(got.Result.Value, into); err != nil {
			v.t.Fatalf("%s: %v", expression, err)
		}
	}
}

// note records the events of the page.
func (v *tab) note(m message) {
	if m.Session != v.session || m.Method == "" {
		return
	}
	var p struct {
		Type    string `json:"type"`
		Message string `json:"message"`
		URL     string `json:"url"`
		Args    []struct {
			Value       any    `json:"value"`
			Description string `json:"description"`
		} `json:"args"`
		Entry struct {
			Level string `json:"level"`
			Text  string `json:"text"`
		} `json:"entry"`
		Exception struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
		Issue struct {
			Code    string          `json:"code"`
			Details json.RawMessage `json:"details"`
		} `json:"issue"`
		Request struct {
			URL string `json:"url"`
		} `json:"request"`
	}
	if err := json.Unmarshal(m.Params, &p); err != nil {
		v.complaints = append(v.complaints, m.Method+": "+err.Error())
		return
	}
	complain := func(format string, args ...any) { v.complaints = append(v.complaints, fmt.Sprintf(format, args...)) }
	switch m.Method {
	case "Page.loadEventFired":
		v.loaded = true
	case "Runtime.consoleAPICalled":
		complain("console.%s: %v", p.Type, p.Args)
	case "Runtime.exceptionThrown":
		complain("%s %s", p.Exception.Text, p.Exception.Exception.Description)
	case "Log.entryAdded":
		complain("%s: %s", p.Entry.Level, p.Entry.Text)
	case "Audits.issueAdded":
		complain("issue: %s %s", p.Issue.Code, p.Issue.Details)
	case "Page.javascriptDialogOpening":
		complain("a dialogue: %s", p.Message)
		v.last++
		data, _ := json.Marshal(map[string]any{"id": v.last, "sessionId": v.session, "method": "Page.handleJavaScriptDialog", "params": map[string]any{"accept": true}})
		v.in.Write(append(data, 0))
	case "Network.requestWillBeSent":
		if at, _, _ := strings.Cut(p.Request.URL, "#"); at != v.page && !strings.HasPrefix(at, "data:") {
			v.requests = append(v.requests, p.Request.URL)
		}
	}
}

// shoot writes pictures of the page from top to bottom: at most twelve PNGs of at most 1,400 pixels
// in height, name-0.png and so on.
func (v *tab) shoot(name string) {
	v.t.Helper()
	var size struct{ Width, Height int }
	v.eval(`({Width: innerWidth, Height: document.documentElement.scrollHeight})`, &size)
	for i, y := 0, 0; y < size.Height && i < 12; i, y = i+1, y+1400 {
		var shot struct {
			Data string `json:"data"`
		}
		clip := map[string]any{"x": 0, "y": y, "width": size.Width, "height": min(1400, size.Height-y), "scale": 1}
		v.call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true, "clip": clip}, &shot)
		data, err := base64.StdEncoding.DecodeString(shot.Data)
		if err == nil {
			err = os.WriteFile(fmt.Sprintf("%s-%d.png", name, i), data, 0o644)
		}
		if err != nil {
			v.t.Fatal(err)
		}
	}
}
