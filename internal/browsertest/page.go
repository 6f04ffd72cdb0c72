package browsertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Options are those of a page. The zero value is a light page of 1280 by 800 pixels.
type Options struct {
	Dark          bool
	NoScript      bool // the browser runs no scripts of the page
	ReducedMotion bool
	Width, Height int               // of the window; 0: 1280 and 800
	Zoom          float64           // of the browser, 2 is 200 %; 0: 1
	Language      string            // of the browser, as in "de-DE"; empty: "en-US"
	Cookies       map[string]string // for 127.0.0.1
}

// opTimeout is the longest time that one call may take on a busy machine.
const opTimeout = 3 * time.Minute

// A Page is a page in a browser context of its own. Its methods fail the test if they cannot do their
// work within three minutes. They must be called from the goroutine of the test.
type Page struct {
	t       testing.TB
	browser *Browser
	ctx     context.Context
	options Options

	mu         sync.Mutex
	frame      cdp.FrameID   // the main one
	navigating bool          // a navigation has begun and not ended
	changed    chan struct{} // closed when navigating changes
	origin     string        // of the first page; requests to others are complaints
	complaints []string
	expected   []string
}

// Page opens an empty page, which is closed when the test ends. The test then fails if the page has
// complaints that it does not expect.
func (b *Browser) Page(t testing.TB, o Options) *Page {
	t.Helper()
	if o.Width == 0 {
		o.Width = 1280
	}
	if o.Height == 0 {
		o.Height = 800
	}
	if o.Zoom == 0 {
		o.Zoom = 1
	}
	if o.Language == "" {
		o.Language = "en-US"
	}
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	p := &Page{t: t, browser: b, ctx: ctx, options: o, changed: make(chan struct{})}
	t.Cleanup(func() {
		cancel()
		for _, c := range p.Complaints() {
			t.Errorf("the page complains: %s", c)
		}
	})
	if err := chromedp.Listen(ctx, p.hear); err != nil {
		t.Fatal(err)
	}
	p.setUp()
	return p
}

// setUp applies the options.
func (p *Page) setUp() {
	p.t.Helper()
	o := p.options
	call(p, audits.Enable, cdp.Empty{})
	call(p, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	p.Resize(o.Width, o.Height)
	p.SetDark(o.Dark)
	call(p, emulation.SetLocaleOverride, emulation.SetLocaleOverrideParams{Locale: strings.ReplaceAll(o.Language, "-", "_")})
	call(p, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Accept-Language": o.Language}})
	if o.NoScript {
		call(p, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	}
	for name, value := range o.Cookies {
		p.SetCookie(name, value)
	}
}

// Resize changes the size of the window.
func (p *Page) Resize(width, height int) {
	p.t.Helper()
	p.options.Width, p.options.Height = width, height
	zoom := p.options.Zoom
	call(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: int64(float64(width) / zoom), Height: int64(float64(height) / zoom), DeviceScaleFactor: zoom,
	})
}

// SetDark sets the colour scheme that the user prefers.
func (p *Page) SetDark(dark bool) {
	p.t.Helper()
	p.options.Dark = dark
	scheme, motion := "light", "no-preference"
	if dark {
		scheme = "dark"
	}
	if p.options.ReducedMotion {
		motion = "reduce"
	}
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: motion},
	}})
}

// SetPrint shows the page as it is printed, or on the screen again.
func (p *Page) SetPrint(on bool) {
	p.t.Helper()
	medium := "screen"
	if on {
		medium = "print"
	}
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: medium})
}

// SetCookie sets a cookie for 127.0.0.1, which scripts cannot read.
func (p *Page) SetCookie(name, value string) {
	p.t.Helper()
	call(p, network.SetCookies, network.SetCookiesParams{Cookies: []*network.CookieParam{
		{Name: name, Value: value, Domain: "127.0.0.1", Path: "/", HTTPOnly: true, SameSite: network.CookieSameSiteStrict},
	}})
}

// call sends a command and fails the test if it fails.
func call[P, R any](p *Page, cmd cdp.Command[P, R], params P) R {
	p.t.Helper()
	r, err := try(p, cmd, params)
	if err != nil {
		p.t.Fatalf("%s: %v", cmd.Method, err)
	}
	return r
}

// try sends a command.
func try[P, R any](p *Page, cmd cdp.Command[P, R], params P) (R, error) {
	ctx, cancel := context.WithTimeout(p.ctx, opTimeout)
	defer cancel()
	return chromedp.Call(ctx, cmd, params)
}

// quoted returns a JSON value.
func quoted(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and lists of strings only
	}
	return data
}

// Go loads a URL.
func (p *Page) Go(address string) {
	p.t.Helper()
	if u, err := url.Parse(address); err == nil {
		p.mu.Lock()
		if p.origin == "" {
			p.origin = u.Scheme + "://" + u.Host
		}
		p.mu.Unlock()
	}
	p.begin()
	r := call(p, page.Navigate, page.NavigateParams{URL: address})
	switch {
	case r.ErrorText != "":
		p.t.Fatalf("load %s: %s", address, r.ErrorText)
	case r.LoaderID == "": // within the document
		p.end()
	}
	p.settle()
}

// Reload loads the page again.
func (p *Page) Reload() {
	p.t.Helper()
	p.begin()
	call(p, page.Reload, page.ReloadParams{})
	p.settle()
}

// Back goes to the page before this one, as the button of the browser does.
func (p *Page) Back() {
	p.t.Helper()
	p.travel(-1)
}

// Forward undoes Back.
func (p *Page) Forward() {
	p.t.Helper()
	p.travel(1)
}

func (p *Page) travel(by int64) {
	p.t.Helper()
	h := call(p, page.GetNavigationHistory, cdp.Empty{})
	to := h.CurrentIndex + by
	if to < 0 || to >= int64(len(h.Entries)) {
		p.t.Fatalf("the history has %d pages, this is number %d", len(h.Entries), h.CurrentIndex)
	}
	p.begin()
	call(p, page.NavigateToHistoryEntry, page.NavigateToHistoryEntryParams{EntryID: h.Entries[to].ID})
	p.settle()
}

// Offline cuts the page off from the network, also requests that are under way, or joins it again.
func (p *Page) Offline(offline bool) {
	p.t.Helper()
	call(p, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
		MatchedNetworkConditions: []*network.Conditions{{Offline: offline, DownloadThroughput: -1, UploadThroughput: -1}},
	})
	call(p, network.OverrideNetworkState, network.OverrideNetworkStateParams{Offline: offline, DownloadThroughput: -1, UploadThroughput: -1})
}

// URL returns the address of the page.
func (p *Page) URL() string {
	p.t.Helper()
	var address string
	p.Eval("location.href", &address)
	return address
}

// Eval runs an expression of JavaScript in the page, awaits it, and decodes its value into out, unless
// that is nil. The Content-Security-Policy does not apply to it.
func (p *Page) Eval(expression string, out any) {
	p.t.Helper()
	if err := p.eval(expression, 0, out); err != nil {
		p.t.Fatalf("%s: %v", shortened(expression), err)
	}
}

// eval is Eval in an execution context; 0: that of the page.
func (p *Page) eval(expression string, in runtime.ExecutionContextID, out any) error {
	yes := true
	r, err := try(p, runtime.Evaluate, runtime.EvaluateParams{
		Expression: expression, AwaitPromise: &yes, ReturnByValue: &yes, UserGesture: &yes, AllowUnsafeEvalBlockedByCSP: &yes, ContextID: in,
	})
	if err != nil {
		return err
	}
	if e := r.ExceptionDetails; e != nil {
		return errors.New(exceptionText(e))
	}
	if out == nil {
		return nil
	}
	if r.Result.Type == runtime.RemoteObjectTypeUndefined {
		return errors.New("the value is undefined")
	}
	return json.Unmarshal([]byte(r.Result.Value), out)
}

// shortened returns an expression for a message.
func shortened(expression string) string {
	if len(expression) > 200 {
		return expression[:200] + "…"
	}
	return expression
}

func exceptionText(e *runtime.ExceptionDetails) string {
	if e.Exception != nil && e.Exception.Description != "" {
		return e.Text + " " + e.Exception.Description
	}
	return e.Text
}

// begin notes that a navigation has begun.
func (p *Page) begin() { p.setNavigating(true) }

// end notes that it has ended.
func (p *Page) end() { p.setNavigating(false) }

func (p *Page) setNavigating(is bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.navigating != is {
		p.navigating = is
		close(p.changed)
		p.changed = make(chan struct{})
	}
}

// settle waits until the page has handled its input, and until a navigation that this began has ended.
func (p *Page) settle() {
	p.t.Helper()
	deadline := time.After(opTimeout)
	for range 2 { // a navigation ends with a page that takes a moment to show itself
		p.moment()
		for {
			p.mu.Lock()
			is, changed := p.navigating, p.changed
			p.mu.Unlock()
			if !is {
				break
			}
			select {
			case <-changed:
			case <-deadline:
				p.t.Fatalf("the page does not load within %v", opTimeout)
			}
		}
	}
}

// moment waits for two frames and a turn of the page's timers.
func (p *Page) moment() {
	p.t.Helper()
	if p.options.NoScript { // neither frames nor timers call scripts
		p.turn()
		time.Sleep(60 * time.Millisecond)
		p.turn()
		return
	}
	err := p.eval(`new Promise(done => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(() => done(true)))))`, 0, nil)
	if err != nil && !isGone(err) {
		p.t.Fatalf("the page does not draw: %v", err)
	}
}

// turn waits until the page evaluates an expression, which it does after the events that it has received.
func (p *Page) turn() {
	p.t.Helper()
	if err := p.eval("0", 0, nil); err != nil && !isGone(err) {
		p.t.Fatalf("the page does not respond: %v", err)
	}
}

// wait calls an expression until it is true. what says it in the message of the failure.
func (p *Page) wait(what, expression string) {
	p.t.Helper()
	deadline := time.Now().Add(opTimeout)
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		var is bool
		err := p.eval(expression, 0, &is)
		switch {
		case err == nil && is:
			return
		case err != nil && !isGone(err):
			p.t.Fatalf("wait for %s: %v", what, err)
		case time.Now().After(deadline):
			p.t.Fatalf("wait for %s: not within %v\n%s", what, opTimeout, p.glance())
		}
		time.Sleep(pause)
	}
}

// glance describes the page for the message of a failure.
func (p *Page) glance() string {
	var text string
	if err := p.eval(`location.href + "\n" + document.body.innerText.slice(0, 2000)`, 0, &text); err != nil {
		return fmt.Sprintf("the page does not say where it is: %v", err)
	}
	return text
}
