package ui

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay/internal/browsertest"
)

// TestChromiumAsk asks in a browser with the keyboard, follows the run, and reads the answer and its sources
// with the keyboard and the mouse.
func TestChromiumAsk(t *testing.T) {
	t.Parallel()
	g := &gate{}
	x := newSite(t, withGate(g))
	p := x.browser(t, "ann", browsertest.Options{Width: 1280, Height: 900})
	p.Axe(t)
	p.Press("/")
	if got := focused(p); got != "question" {
		t.Errorf("after / the focus is on %q", got)
	}
	p.Fill("#question", "Compare parental leave with sick leave")
	p.Press("Shift+Enter")
	if got := p.Value("#question"); !strings.HasSuffix(got, "\n") {
		t.Errorf("Shift and Enter begin no line: %q", got)
	}
	p.Press("Enter")
	p.Wait(".step.running")
	if got := p.Text(".step.running"); !strings.Contains(got, "Searching") {
		t.Errorf("the running step: %q", got)
	}
	p.Axe(t)
	close(g.open)
	p.Wait("#answer")
	p.WaitText("#announcement", "Answered")
	if got := p.Text(".fold > summary"); !strings.Contains(got, "3 searches") || !strings.Contains(got, "claims checked") {
		t.Errorf("the folded steps: %q", got)
	}
	if p.Has(".fold .step") {
		t.Error("the steps are not folded")
	}
	p.Axe(t)
	p.Hover("#claim-3")
	p.Wait("#source-2.on")
	if p.Has("#source-1.on") || p.Attr("#claim-3", "class") != "claim supported on" {
		t.Error("more than the source of the claim is marked")
	}
	p.Press("1")
	p.Wait("#source-1.on")
	if got := focused(p); got != "source-1" {
		t.Errorf("after 1 the focus is on %q", got)
	}
	p.Press("Escape")
	p.WaitGone("#source-1.on")
	for key, want := range map[string]string{"j": "claim-"} {
		p.Press(key)
		if got := focused(p); !strings.HasPrefix(got, want) {
			t.Errorf("after %s the focus is on %q", key, got)
		}
	}
	p.Click(".fold > summary")
	p.Wait(".fold .step")
	p.Axe(t)
	if !bytes.HasPrefix(p.PDF(), []byte("%PDF-")) {
		t.Error("the page cannot be printed")
	}
	address := p.URL()
	p.Press("t")
	p.WaitText("main", "Budget")
	p.Back()
	p.Wait("#answer")
	p.Back()
	p.Wait("#question")
	p.Forward()
	p.Wait("#answer")
	if p.URL() != address {
		t.Errorf("forward leads to %s, want %s", p.URL(), address)
	}
}

// focused returns the ID of the element that has the focus.
func focused(p *browsertest.Page) (id string) {
	p.Eval("document.activeElement.id", &id)
	return id
}

// TestChromiumAskPlain asks without JavaScript: the page loads itself again until the answer is there, and
// the sources are beside it.
func TestChromiumAskPlain(t *testing.T) {
	t.Parallel()
	g := &gate{}
	x := newSite(t, withGate(g))
	p := x.browser(t, "ann", browsertest.Options{NoScript: true})
	p.Fill("#question", annualLeave)
	p.Click(".composer .main")
	p.WaitText("h2", "Looking for an answer")
	<-g.arrived
	close(g.open)
	p.Wait("#answer")
	if got := p.Text("#source-1"); !strings.Contains(got, "Every employee has 28 days") {
		t.Errorf("the source: %q", got)
	}
	p.Click("#claim-1")
	if !strings.HasSuffix(p.URL(), "#source-1") {
		t.Errorf("a claim leads to %s", p.URL())
	}
	p.Fill("#follow", "And how long is parental leave?")
	p.Click(".follow .main")
	p.WaitText("h1", "And how long is parental leave?")
	p.WaitText(".earlier", annualLeave)
}

// TestChromiumReconnect cuts the browser off in mid-run. When it is back it shows the answer, and no step
// twice before.
func TestChromiumReconnect(t *testing.T) {
	t.Parallel()
	g := &gate{}
	x := newSite(t, withGate(g))
	p := x.browser(t, "ann", browsertest.Options{})
	p.Expect("ERR_INTERNET_DISCONNECTED")
	p.Go(x.url + x.beginRun("ann", "Compare parental leave with sick leave"))
	p.Wait(".step.running")
	p.Offline(true)
	g.open <- struct{}{}
	<-g.arrived
	p.Offline(false)
	p.WaitText("#steps", "Searched")
	var ids []string
	p.Eval("[...document.querySelectorAll('.step')].map(s => s.id)", &ids)
	if n := len(ids); n != len(slices.Compact(slices.Sorted(slices.Values(ids)))) {
		t.Errorf("steps are shown twice: %q", ids)
	}
	p.Reload()
	p.WaitText("#steps", "Searched")
	close(g.open)
	p.Wait("#answer")
}

// TestChromiumRestart restarts the server in mid-run, at which the sign-in ends. The page leads to the page
// that signs in, and that back to the run, which is then resumed.
func TestChromiumRestart(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, o browsertest.Options) {
		g := &gate{}
		x := newSite(t, withGate(g))
		p := x.browser(t, "ann", o)
		for _, part := range []string{"ERR_", "MIME type", "status of 401"} {
			p.Expect(part)
		}
		p.Go(x.url + x.beginRun("ann", "Compare parental leave with sick leave"))
		address := p.URL()
		g.open <- struct{}{}
		p.WaitText("#steps", "Searched")
		x.stop()
		x.serve()
		if o.NoScript {
			p.Go(address) // the browser shows an error of its own, if it loaded the page meanwhile
		}
		p.Wait("#key")
		p.Fill("#key", x.keys["ann"])
		p.Click("main button[type=submit]")
		p.WaitText("#steps", "Searched")
		if p.URL() != address {
			t.Errorf("signing in leads to %s, want %s", p.URL(), address)
		}
		p.WaitText(".state", "No process works on this question now")
		if !o.NoScript {
			p.Axe(t)
		}
		close(g.open)
		p.Click(".state .main")
		p.Wait("#answer")
		if p.URL() != address {
			t.Errorf("resuming leads to %s, want %s", p.URL(), address)
		}
	})
}

// TestChromiumCopy copies an answer, its Markdown and its BibTeX with the buttons.
func TestChromiumCopy(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	path := x.ask("ann", annualLeave)
	p := x.browser(t, "ann", browsertest.Options{})
	p.Go(x.url + path)
	p.Eval(`navigator.clipboard.write = async (items) => { window.copied = await (await items[0].getType("text/plain")).text(); }`, nil)
	for _, e := range []string{"txt", "md", "bib"} {
		button := fmt.Sprintf("button[data-export$='%s']", e)
		before := p.Text(button)
		p.Click(button)
		p.WaitText(button, "Copied")
		p.WaitText("#announcement", "Copied")
		var got string
		if p.Eval("window.copied", &got); got != x.page("ann", path+"/export."+e) {
			t.Errorf("%s: copied %q", e, got)
		}
		p.WaitText(button, before)
	}
	p.Eval(`navigator.clipboard.write = async () => { throw new Error("not allowed"); }`, nil)
	p.Click("button[data-export$=txt]")
	p.WaitText("button[data-export$=txt]", "Could not copy; use Download")
}

// TestChromiumFocusAfterRun looks at where the focus is when a run ends without an answer: on the question,
// because the button that had it is gone.
func TestChromiumFocusAfterRun(t *testing.T) {
	t.Parallel()
	g := &gate{}
	x := newSite(t, withGate(g))
	p := x.browser(t, "ann", browsertest.Options{})
	p.Go(x.url + x.beginRun("ann", "Who painted the ceiling of the canteen?"))
	p.Wait(".step.running")
	p.Focus(".working button")
	close(g.open)
	p.WaitText(".state", "Not found")
	var tag string
	if p.Eval("document.activeElement.tagName", &tag); tag != "H1" {
		t.Errorf("the focus is on %s", tag)
	}
}

// TestChromiumPrintDark prints a page for someone who has chosen the dark: in dark ink.
func TestChromiumPrintDark(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	p := x.browser(t, "ann", browsertest.Options{Dark: true})
	p.Go(x.url + x.ask("ann", "Who painted the ceiling of the canteen?"))
	p.SetPrint(true)
	var inks []string
	p.Eval(`["light", "dark"].map(theme => { document.documentElement.dataset.theme = theme; return getComputedStyle(document.querySelector(".state")).backgroundColor; })`, &inks)
	if inks[0] != inks[1] {
		t.Errorf("a state is printed on %s in the light and on %s in the dark", inks[0], inks[1])
	}
}

// TestChromiumCancel cancels a run in mid-search.
func TestChromiumCancel(t *testing.T) {
	t.Parallel()
	g := &gate{}
	x := newSite(t, withGate(g))
	both(t, func(t *testing.T, o browsertest.Options) {
		p := x.browser(t, "ann", o)
		p.Go(x.url + x.beginRun("ann", "Compare parental leave with sick leave", "no_cache", "1"))
		<-g.arrived
		p.Click(".working button")
		p.WaitText(".state", "It was cancelled.")
		if !o.NoScript {
			p.Axe(t)
		}
	})
}

// TestChromiumSheet reads a source on a phone: it opens over the page, and Escape or Close gives the place
// back.
func TestChromiumSheet(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	path := x.ask("ann", "Compare parental leave with sick leave")
	p := x.browser(t, "ann", browsertest.Options{Width: 360, Height: 740, Dark: true})
	p.Go(x.url + path)
	p.Click("#claim-3")
	p.Wait(".sources.sheet #source-2")
	if p.Has("#source-1") {
		t.Error("the sheet shows another source")
	}
	p.Axe(t)
	p.Press("Escape")
	p.WaitGone(".sheet")
	if got := focused(p); got != "claim-3" {
		t.Errorf("the focus returns to %q", got)
	}
	p.Click("#claim-1")
	p.Click("[data-close]")
	p.WaitGone(".sheet")
	var wide bool
	if p.Eval("document.documentElement.scrollWidth > innerWidth", &wide); wide {
		t.Error("the page scrolls sideways")
	}
}

// TestChromiumPainted reports how long after its arrival an event is painted.
func TestChromiumPainted(t *testing.T) {
	t.Parallel()
	g := &gate{}
	x := newSite(t, withGate(g))
	p := x.browser(t, "ann", browsertest.Options{})
	var times []float64
	for _, question := range []string{"Compare parental leave with sick leave", "Compare annual leave with sick leave", "Compare annual leave with parental leave"} {
		p.Go(x.url + x.beginRun("ann", question))
		p.Wait(".step.running")
		p.Eval(`(() => {
			const arrived = new Map();
			window.delays = [];
			const second = new EventSource(document.querySelector("[data-run]").dataset.live);
			const seen = new Map();
			const both = (id) => {
				if (arrived.has(id) && seen.has(id)) { window.delays.push(seen.get(id) - arrived.get(id)); arrived.delete(id); seen.delete(id); }
			};
			second.addEventListener("step", (e) => { const m = JSON.parse(e.data); arrived.set(m.id, performance.now()); both(m.id); });
			new MutationObserver((all) => {
				for (const r of all) for (const n of r.addedNodes) if (n.id && Number(n.dataset.ordinal) >= 0) {
					requestAnimationFrame(() => setTimeout(() => { seen.set(n.id, performance.now()); both(n.id); }));
				}
			}).observe(document.getElementById("steps"), {childList: true});
			return new Promise((done) => { second.onopen = () => done(true); });
		})()`, nil)
		for range 3 {
			g.open <- struct{}{} // a search
		}
		p.Wait("#answer")
		var some []float64
		p.Eval("window.delays", &some)
		times = append(times, some...)
	}
	if len(times) == 0 {
		t.Fatal("no event was painted")
	}
	slices.Sort(times)
	t.Logf("painted %d events after their arrival: median %.1f ms, longest %.1f ms", len(times), times[len(times)/2], times[len(times)-1])
}
