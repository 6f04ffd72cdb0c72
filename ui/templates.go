package ui

import (
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/plot"
)

// parseTemplates parses the pages by file. Each page is parsed together with the frame and the parts,
// whose names begin with "_".
func (p *Pages) parseTemplates() (map[string]*template.Template, error) {
	base := template.New("").Funcs(p.functions())
	base, err := base.ParseFS(files, "templates/_*.html")
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(files, "templates/*.html")
	if err != nil {
		return nil, err
	}
	pages := map[string]*template.Template{}
	for _, name := range names {
		if strings.HasPrefix(path.Base(name), "_") {
			continue
		}
		t, err := base.Clone()
		if err == nil {
			t, err = t.ParseFS(files, name)
		}
		if err != nil {
			return nil, err
		}
		pages[path.Base(name)] = t
	}
	return pages, nil
}

// functions are the functions that templates call.
func (p *Pages) functions() template.FuncMap {
	return template.FuncMap{
		"asset":    p.assets.path,
		"icon":     icon,
		"time":     exactTime,
		"ago":      ago,
		"duration": duration,
		"size":     size,
		"count":    count,
		"percent":  percent,
		"fixed":    fixed,
		"cost":     cost,
		"join":     strings.Join,
		"status":   func(s assay.Status) statusWords { return statuses[s] },
		"plot":     func(s plot.SVG) template.HTML { return template.HTML(s) }, // package plot escapes its texts
		"inc":      func(n int) int { return n + 1 },
		"with2":    func(a, b any) [2]any { return [2]any{a, b} },
	}
}

// icons are paths in a square of 16 units, drawn with a stroke.
var icons = map[string]string{
	"check":    "M3 8.5l3.2 3.2L13 4.8",
	"cross":    "M4 4l8 8M12 4l-8 8",
	"dash":     "M3 8h10",
	"question": "M5.8 6a2.2 2.2 0 1 1 3.2 2c-.7.4-1 .8-1 1.6M8 12.2v.1",
	"clock":    "M8 4.5V8l2.4 1.6M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0",
	"split":    "M8 14V8M8 8L3.5 3M8 8l4.5-5M3.5 6V3h3M12.5 6V3h-3",
	"search":   "M10.7 10.7L14 14M12 7A5 5 0 1 1 2 7a5 5 0 0 1 10 0",
	"file":     "M4 2h5l3 3v9H4zM9 2v3h3",
	"upload":   "M8 11V3M4.8 6L8 2.8 11.2 6M3 13h10",
	"download": "M8 3v8M4.8 8L8 11.2 11.2 8M3 13h10",
	"copy":     "M5.5 5.5V3h7.5v7.5h-2.5M3 5.5h7.5V13H3z",
	"link":     "M6.8 9.2l2.4-2.4M7.4 4.6l1-1a2.8 2.8 0 0 1 4 4l-1 1M8.6 11.4l-1 1a2.8 2.8 0 0 1-4-4l1-1",
	"flag":     "M4 14V2.5h7.5L10 5.2l1.5 2.8H4",
	"shield":   "M8 2l5 1.8v4c0 3-2 5.2-5 6.2-3-1-5-3.2-5-6.2v-4zM5.8 8l1.6 1.6L10.4 6.4",
	"person":   "M8 8.2a2.6 2.6 0 1 0 0-5.2 2.6 2.6 0 0 0 0 5.2M3 13.5c.6-2.4 2.5-3.6 5-3.6s4.400 1.200 5 3.600",
	"stop":     "M5.500 2h5L14 5.500v5L10.500 14h-5L2 10.500v-5z",
	"play":     "M5 3.200v9.600l7.600-4.800z",
	"theme":    "M8 2a6 6 0 1 0 0 12zM8 2a6 6 0 0 1 0 12",
	"menu":     "M2.500 4.500h11M2.500 8h11M2.500 11.500h11",
	"plan":     "M3 4h2M3 8h2M3 12h2M7 4h6M7 8h6M7 12h6",
	"write":    "M3 13l.6-2.800L10.800 3l2.200 2.200-7.200 7.200z",
	"scale":    "M8 2.500v11M4.500 13.500h7M3 4.500h10M3 4.500L1.500 9h3zM13 4.500L11.500 9h3z",
	"right":    "M6 3.500L10.500 8 6 12.500",
	"warning":  "M8 2.500L14 13.500H2zM8 6.500v3.200M8 11.600v.1",
	"key":      "M9.500 6.500a3 3 0 1 0-2.600 2.980L8.400 11H10v1.500h1.500V14H14v-2.100L9.300 7.200",
}

// icon returns an icon, which is hidden from screen readers.
func icon(name string) (template.HTML, error) {
	d, ok := icons[name]
	if !ok {
		return "", fmt.Errorf("ui: there is no icon %s", name)
	}
	return template.HTML(`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false"><path d="` + d + `"/></svg>`), nil // a constant
}

// A statusWords is how pages show a Status: the class of its colour, its icon, a word, and one sentence.
type statusWords struct{ Class, Icon, Word, Says string }

// statuses are the words for the outcomes of a question.
var statuses = map[assay.Status]statusWords{
	assay.Answered:      {"good", "check", "Answered", "Each claim is supported by the words that it cites."},
	assay.Incomplete:    {"warn", "dash", "Incomplete", "This is the part that could be verified."},
	assay.Conflicting:   {"warn", "split", "Conflicting", "The documents disagree. Both sides are cited."},
	assay.NotFound:      {"soft", "question", "Not found", "The documents do not answer this question."},
	assay.PendingReview: {"wait", "clock", "Waiting for review", "A person decides before the answer is shown."},
	assay.Rejected:      {"bad", "cross", "Rejected", "The answer is not shown."},
}

// exactTime returns a time in UTC; empty for the zero time.
func exactTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04 UTC")
}

// ago relates a time to now: "3 min ago", "in 2 h". A time more than a month away is a date.
func ago(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	d := now().Sub(t)
	form := "%s ago"
	if d < 0 {
		d, form = rounded(-d), "in %s"
	}
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf(form, fmt.Sprintf("%d min", d/time.Minute))
	case d < 24*time.Hour:
		return fmt.Sprintf(form, fmt.Sprintf("%d h", d/time.Hour))
	case d < 31*24*time.Hour:
		return fmt.Sprintf(form, count(int64(d/(24*time.Hour)), "day"))
	}
	return t.UTC().Format("2006-01-02")
}

// rounded rounds a duration to the unit in which it is told, so that a link for 7 days, made a moment ago,
// ends in 7 days and not in 6.
func rounded(d time.Duration) time.Duration {
	switch {
	case d < time.Hour:
		return d.Round(time.Minute)
	case d < 24*time.Hour:
		return d.Round(time.Hour)
	}
	return d.Round(24 * time.Hour)
}

// duration returns a duration with the unit that people use: "12 ms", "3.4 s", "2 min 5 s".
func duration(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%.1f ms", d.Seconds()*1000)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

// size returns a number of bytes with a unit.
func size(bytes int64) string {
	switch {
	case bytes < 1000:
		return fmt.Sprintf("%d bytes", bytes)
	case bytes < 1_000_000:
		return fmt.Sprintf("%.1f kB", float64(bytes)/1e3)
	case bytes < 1_000_000_000:
		return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
	}
	return fmt.Sprintf("%.2f GB", float64(bytes)/1e9)
}

// count returns a number with its noun: "1 hit", "1,200 hits". n is an int or an int64.
func count(n any, noun string) string {
	v, ok := n.(int64)
	if !ok {
		v = int64(n.(int))
	}
	if v == 1 {
		return "1 " + noun
	}
	if base, isY := strings.CutSuffix(noun, "y"); isY && !strings.HasSuffix(noun, "ey") && !strings.HasSuffix(noun, "ay") {
		noun = base + "ie"
	}
	if strings.HasSuffix(noun, "ch") {
		noun += "e"
	}
	return grouped(v) + " " + noun + "s"
}

// grouped returns a number with commas between groups of three digits.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// percent returns a share in [0, 1] in percent.
func percent(share float64) string { return fmt.Sprintf("%.0f %%", share*100) }

// fixed returns a number with two decimals.
func fixed(v float64) string { return fmt.Sprintf("%.2f", v) }

// cost returns millionths of the configured currency.
func cost(micros int64) string { return fmt.Sprintf("%.4f", float64(micros)/1e6) }
