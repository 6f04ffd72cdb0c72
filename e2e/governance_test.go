package e2e

import (
	"path/filepath"
	"testing"
)

// TestGovernanceInChromium opens the page of a governance report. It must cause no console messages
// or requests and fit the width of a phone, in both colour schemes, and on paper.
func TestGovernanceInChromium(t *testing.T) {
	b := startChromium(t)
	page, err := filepath.Abs(filepath.Join("..", "governance", "testdata", "report.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, window := range []struct {
		name, scheme  string
		width, height int
	}{
		{"desktop-light", "light", 1200, 800}, {"desktop-dark", "dark", 1200, 800}, {"phone-light", "light", 360, 740}, {"phone-dark", "dark", 360, 740},
	} {
		v := b.open(page, window.width, window.height, window.scheme)
		if *shots != "" {
			v.shoot(filepath.Join(*shots, "governance-"+window.name))
		}
		checkFits(t, v, window.name)
		checkContrast(t, v, window.name)
		v.call("Emulation.setEmulatedMedia", map[string]any{"media": "print"}, nil)
		v.settle()
		checkQuiet(t, v, window.name)
	}
}

// checkContrast fails the test if a text has a contrast to the page under 4.5 to 1 (WCAG 2.2, 1.4.3).
func checkContrast(t *testing.T, v *tab, name string) {
	t.Helper()
	var got []string
	v.eval(`(() => {
		const luminance = c => {
			const [r, g, b] = c.match(/[0-9.]+/g).slice(0, 3).map(x => x / 255).map(x => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
			return 0.2126 * r + 0.7152 * g + 0.0722 * b;
		};
		const paper = luminance(getComputedStyle(document.body).backgroundColor), low = [];
		for (const e of document.querySelectorAll('body *')) {
			if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
			const s = getComputedStyle(e), ink = luminance(e.namespaceURI.endsWith('svg') ? s.fill : s.color);
			const ratio = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
			if (ratio < 4.5 && e.localName !== 'title') low.push(e.localName + ' ' + e.textContent.slice(0, 30) + ': ' + ratio.toFixed(2));
		}
		return low.slice(0, 5);
	})()`, &got)
	for _, text := range got {
		t.Errorf("%s: low contrast: %s", name, text)
	}
}
