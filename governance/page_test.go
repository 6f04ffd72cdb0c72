package governance

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// void are the elements without an end tag.
var void = []string{"meta", "link", "br", "hr", "img", "input"}

// TestPage checks the structure of the page: every element is closed, IDs are unique and links lead to
// them, no level of heading is skipped, and tables have captions and scopes.
func TestPage(t *testing.T) {
	for name, r := range map[string]Report{"full": sampleReport(), "empty": NewBuilder(Options{Tenant: "<i>x"}).Report()} {
		var page bytes.Buffer
		if err := HTML(&page, r); err != nil {
			t.Fatal(err)
		}
		c := pageCheck{ids: map[string]int{}}
		z := html.NewTokenizer(&page)
		for z.Next() != html.ErrorToken {
			c.token(z.Token())
		}
		if !errors.Is(z.Err(), io.EOF) {
			t.Errorf("%s: %v", name, z.Err())
		}
		for _, target := range c.targets {
			if c.ids[target] != 1 {
				t.Errorf("%s: %d elements have the ID %s", name, c.ids[target], target)
			}
		}
		for id, n := range c.ids {
			if n != 1 {
				t.Errorf("%s: %d elements have the ID %s", name, n, id)
			}
		}
		if len(c.open) > 0 || len(c.faults) > 0 {
			t.Errorf("%s: open: %v, faults: %q", name, c.open, c.faults)
		}
		if c.tables != c.captions || c.tables == 0 || c.headings[0] != 1 || c.mains != 1 {
			t.Errorf("%s: %d tables, %d captions, headings %v, %d main", name, c.tables, c.captions, c.headings, c.mains)
		}
	}
}

// A pageCheck collects what TestPage checks.
type pageCheck struct {
	open                    []string
	ids                     map[string]int
	targets, faults         []string
	headings                []int
	tables, captions, mains int
}

func (c *pageCheck) token(t html.Token) {
	switch t.Type {
	case html.EndTagToken:
		if n := len(c.open); n == 0 || c.open[n-1] != t.Data {
			c.faults = append(c.faults, "</"+t.Data+"> in "+strings.Join(c.open, " "))
		} else {
			c.open = c.open[:n-1]
		}
	case html.StartTagToken:
		c.start(t)
	}
}

func (c *pageCheck) start(t html.Token) {
	if !slices.Contains(void, t.Data) {
		c.open = append(c.open, t.Data)
	}
	attribute := map[string]string{}
	for _, a := range t.Attr {
		attribute[a.Key] = a.Val
		switch a.Key {
		case "id":
			c.ids[a.Val]++
		case "aria-labelledby":
			c.targets = append(c.targets, a.Val)
		case "href":
			c.targets = append(c.targets, strings.TrimPrefix(a.Val, "#"))
		}
	}
	switch t.Data {
	case "h1", "h2", "h3":
		level := int(t.Data[1] - '0')
		if n := len(c.headings); n > 0 && level > c.headings[n-1]+1 {
			c.faults = append(c.faults, t.Data+" skips a level")
		}
		c.headings = append(c.headings, level)
	case "table":
		c.tables++
	case "caption":
		c.captions++
	case "main":
		c.mains++
	case "th":
		if attribute["scope"] == "" {
			c.faults = append(c.faults, "th without a scope")
		}
	case "svg":
		if attribute["role"] != "img" || attribute["aria-label"] == "" {
			c.faults = append(c.faults, "svg without a name")
		}
	}
}
