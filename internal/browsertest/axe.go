package browsertest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
)

// axeTags are the rules of WCAG 2.2, levels A and AA.
var axeTags = []string{"wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa"}

// A violation is what axe-core reports, see
// https://github.com/dequelabs/axe-core/blob/develop/doc/API.md#results-object.
type violation struct {
	ID, Help string
	Nodes    []struct {
		HTML           string
		FailureSummary string
	}
}

// Axe checks the page with axe-core by the rules of WCAG 2.2 AA. It skips the check, and says so, if
// scripts/axe has not fetched it. The page's scripts do not see it, and its Content-Security-Policy does not
// apply to it.
func (p *Page) Axe(t testing.TB) {
	t.Helper()
	if p.options.NoScript {
		t.Fatal("axe-core needs scripts")
	}
	if p.browser.axe == "" {
		t.Log("not checked with axe-core: scripts/axe fetch brings it")
		return
	}
	p.mu.Lock()
	frame := p.frame
	p.mu.Unlock()
	world := call(p, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{FrameID: frame, WorldName: "axe"}).ExecutionContextID
	var found []violation
	err := p.eval(p.browser.axe+";true", world, nil)
	if err == nil {
		err = p.eval(fmt.Sprintf(`axe.run(document, {runOnly: {type: "tag", values: %s}, resultTypes: ["violations"]})
			.then(r => r.violations.map(v => ({id: v.id, help: v.help, nodes: v.nodes.map(n => ({html: n.html, failureSummary: n.failureSummary}))})))`,
			quoted(axeTags)), world, &found)
	}
	if err != nil {
		t.Fatalf("axe-core: %v", err)
	}
	for _, v := range found {
		for i, n := range v.Nodes {
			if i == 5 {
				t.Errorf("axe %s: and %d more", v.ID, len(v.Nodes)-i)
				break
			}
			t.Errorf("axe %s: %s\n%s\n%s\n%s", v.ID, v.Help, p.URL(), n.HTML, strings.ReplaceAll(n.FailureSummary, "\n", "\n  "))
		}
	}
}
