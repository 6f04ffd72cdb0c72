package browsertest

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
)

// Expect says that complaints that contain a text are part of the test.
func (p *Page) Expect(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected = append(p.expected, text)
}

// Complaints returns what the page should not have done and the test does not expect: errors and warnings on
// the console, exceptions, violations of the Content-Security-Policy, dialogs, and requests to other origins.
func (p *Page) Complaints() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.complaints), func(c string) bool {
		return slices.ContainsFunc(p.expected, func(e string) bool { return strings.Contains(c, e) })
	})
}

// complain records a complaint.
func (p *Page) complain(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.complaints = append(p.complaints, fmt.Sprintf(format, args...))
}

// hear takes the events of the page. It must not send commands and wait for them.
func (p *Page) hear(event any) {
	switch e := event.(type) {
	case *page.EventFrameRequestedNavigation:
		if p.isMain(e.FrameID) && e.Disposition == page.ClientNavigationDispositionCurrentTab {
			p.begin()
		}
	case *page.EventFrameStartedNavigating:
		if p.isMain(e.FrameID) && !strings.HasPrefix(string(e.NavigationType), "sameDocument") && !strings.HasPrefix(string(e.NavigationType), "historySameDocument") {
			p.begin()
		}
	case *page.EventNavigatedWithinDocument:
		if p.isMain(e.FrameID) {
			p.end()
		}
	case *page.EventFrameNavigated:
		p.navigated(e)
	case *page.EventFrameStoppedLoading:
		if p.isMain(e.FrameID) {
			p.end()
		}
	case *runtime.EventConsoleAPICalled:
		p.complain("console.%s: %s", e.Type, consoleText(e.Args))
	case *runtime.EventExceptionThrown:
		p.complain("exception: %s", exceptionText(e.ExceptionDetails))
	case *log.EventEntryAdded:
		p.complain("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL)
	case *audits.EventIssueAdded:
		p.complain("issue: %s %s", e.Issue.Code, quoted(e.Issue.Details))
	case *page.EventJavascriptDialogOpening:
		p.complain("dialog: %s", e.Message)
		go func() { // the page may have closed it
			_, _ = try(p, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true})
		}()
	case *network.EventRequestWillBeSent:
		p.checkOrigin(e.Request.URL)
	case *network.EventWebSocketCreated:
		p.checkOrigin(e.URL)
	}
}

// navigated takes the end of a navigation. A page of the browser's own cache is not loaded again.
func (p *Page) navigated(e *page.EventFrameNavigated) {
	if e.Frame.ParentID != "" {
		return
	}
	p.mu.Lock()
	p.frame = e.Frame.ID
	p.mu.Unlock()
	if e.Type == page.NavigationTypeBackForwardCacheRestore {
		p.end()
	}
}

// isMain reports whether a frame is that of the page itself.
func (p *Page) isMain(frame cdp.FrameID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.frame == "" || p.frame == frame
}

// localSchemes are the schemes of addresses that cause no request.
var localSchemes = []string{"about", "blob", "data"}

// checkOrigin complains about a request to another origin than that of the first page.
func (p *Page) checkOrigin(address string) {
	u, err := url.Parse(address)
	p.mu.Lock()
	origin := p.origin
	p.mu.Unlock()
	if err == nil && (slices.Contains(localSchemes, u.Scheme) || u.Scheme+"://"+u.Host == origin) {
		return
	}
	p.complain("request to another origin: %s", shortened(address))
}

// consoleText returns the arguments of a call of console.
func consoleText(args []*runtime.RemoteObject) string {
	var texts []string
	for _, a := range args {
		text := a.Description
		if text == "" {
			text = string(a.Value)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, " ")
}
