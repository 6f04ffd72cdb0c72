package ui

import (
	"os"
	"testing"

	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/internal/browsertest"
)

func TestChromiumLook(t *testing.T) {
	x := newSite(t)
	a, _ := x.session("root").Answer(t.Context(), engine.Request{Question: "How many days of annual leave does every employee have, and who approves travel to a customer?", NoCache: true})
	b, _ := x.session("root").Answer(t.Context(), engine.Request{Question: a.Question, NoCache: true, Strategy: "corrective"})
	x.publish()
	id := a.Run
	pages := map[string]string{"trace": "/runs/" + id + "/trace?open=2", "diff": "/runs/" + id + "/diff/" + b.Run, "fork": "/runs/" + id + "/fork?step=2", "proof": "/runs/" + id + "/proof", "gov": "/governance", "log": "/governance/log", "checkpoints": "/governance/checkpoints", "stop": "/governance/stop", "run": "/governance/runs/" + id}
	for _, o := range []struct {
		name string
		o    browsertest.Options
	}{{"light", browsertest.Options{Width: 1280, Height: 900}}, {"dark", browsertest.Options{Width: 1280, Height: 900, Dark: true}}, {"small", browsertest.Options{Width: 360, Height: 800}}} {
		p := x.browser(t, "root", o.o)
		for name, path := range pages {
			if o.name != "light" && name != "trace" && name != "gov" && name != "diff" && name != "proof" {
				continue
			}
			p.Go(x.url + path)
			os.WriteFile("/tmp/shots/"+name+"-"+o.name+".png", p.Picture(), 0o600)
		}
	}
}
