package parse

import (
	"strconv"
	"strings"

	"golang.org/x/net/html"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lazyregexp"
)

var (
	cueTiming = lazyregexp.New(`^\s*(?:(\d{1,3}):)?(\d{1,2}):(\d{2})[,.](\d{1,3})\s+-->\s+(?:(\d{1,3}):)?(\d{1,2}):(\d{2})[,.](\d{1,3})`)
	srtStart  = lazyregexp.New(`^\s*\d+[ \t]*\n\s*\d{1,3}:\d{2}:\d{2}[,.]\d{1,3}\s+-->\s+\d`)
	vttStart  = lazyregexp.New(`^WEBVTT(?:[ \t][^\n]*)?(?:\n|$)`)
)

// isSubtitles reports whether src starts as WebVTT or SubRip does.
func isSubtitles(src *source) bool {
	switch src.ext {
	case ".srt", ".vtt", "", ".txt", ".text":
		return vttStart.MatchString(head(src.text)) || srtStart.MatchString(head(src.text))
	}
	return false
}

// parseSubtitles parses SubRip and WebVTT subtitles. Consecutive cues of a speaker become
// paragraphs; tags, positions, styles and numbers are left out. A line that a cue repeats from the
// one before, as rolling captions do, is written once.
//
// Source: W3C, "WebVTT: The Web Video Text Tracks Format".
func parseSubtitles(src *source, b *builder) bool {
	s := &subtitles{b: b, lines: src.lines()}
	if vttStart.MatchString(src.text) {
		s.header()
	}
	for s.at < len(s.lines) && !b.canceled() {
		s.block()
	}
	b.end()
	if s.last > 0 {
		b.set("duration_seconds", assay.NumberValue(s.last))
	}
	return true
}

const (
	longestSpeech = 1200 // bytes of a paragraph, after which it ends with a sentence
	longestPause  = 3.0  // seconds of silence inside a paragraph
)

// A subtitles is the state of reading cues.
type subtitles struct {
	b       *builder
	lines   []string
	at      int
	last    float64 // end of the last cue in seconds
	speaker string
	before  []string // lines of the cue before
	open    bool
	size    int // bytes of the open paragraph
}

// header reads the title and the fields of a WebVTT file.
func (s *subtitles) header() {
	if title := strings.TrimSpace(strings.TrimPrefix(s.lines[0], "WEBVTT")); title != "" {
		s.b.title = strings.TrimSpace(strings.TrimPrefix(title, "-"))
	}
	for s.at = 1; s.at < len(s.lines) && !isBlank(s.lines[s.at]) && !cueTiming.MatchString(s.lines[s.at]); s.at++ {
		if code, ok := strings.CutPrefix(s.lines[s.at], "Language:"); ok && !isBlank(code) {
			s.b.set(assay.MetaLanguage, assay.StringValue(languageCode(code)))
		}
	}
}

// block reads the lines up to a blank one: a cue, or a comment, style or region.
func (s *subtitles) block() {
	for s.at < len(s.lines) && isBlank(s.lines[s.at]) {
		s.at++
	}
	if s.at >= len(s.lines) {
		return
	}
	first := strings.TrimSpace(s.lines[s.at])
	timing := s.at
	if !cueTiming.MatchString(first) {
		timing++
	}
	if timing >= len(s.lines) || !cueTiming.MatchString(s.lines[timing]) {
		s.other(first)
		return
	}
	m := cueTiming.FindStringSubmatch(s.lines[timing])
	start, end := cueSeconds(m[1:5]), cueSeconds(m[5:9])
	if s.open && start-s.last > longestPause {
		s.finish()
	}
	s.last = max(s.last, end)
	var kept []string
	for s.at = timing + 1; s.at < len(s.lines) && !isBlank(s.lines[s.at]); s.at++ {
		if next := s.at + 1; isCueNumber(s.lines[s.at]) && next < len(s.lines) && cueTiming.MatchString(s.lines[next]) {
			break // a blank line is missing
		}
		kept = append(kept, s.speech(s.lines[s.at], s.at+1))
	}
	s.before = kept
}

// other reads a block that is not a cue. Text outside cues, as broken files have it, is kept.
func (s *subtitles) other(first string) {
	word, _, _ := strings.Cut(first, " ")
	drop := word == "NOTE" || word == "STYLE" || word == "REGION" || word == "STYLE:" || word == "WEBVTT"
	for ; s.at < len(s.lines) && !isBlank(s.lines[s.at]); s.at++ {
		if !drop && !isCueNumber(s.lines[s.at]) {
			s.speech(s.lines[s.at], s.at+1)
		}
	}
}

func isCueNumber(l string) bool {
	l = strings.TrimSpace(l)
	return l != "" && strings.Trim(l, "0123456789") == ""
}

func cueSeconds(m []string) float64 {
	total := 0.0
	for i, unit := range []float64{3600, 60, 1} {
		if v, err := strconv.Atoi(m[i]); err == nil {
			total += float64(v) * unit
		}
	}
	if v, err := strconv.ParseFloat("0."+m[3], 64); err == nil {
		total += v
	}
	return total
}

func (s *subtitles) finish() {
	s.b.end()
	s.open, s.size = false, 0
}

var (
	cueVoice = lazyregexp.New(`<v(?:\.[^\s>]*)?[ \t]+([^>]+)>`)
	cueTag   = lazyregexp.New(`</?(?:[a-zA-Z][^<>]*|\d[\d:.]*)>|\{\\[^{}]*\}`)
)

// speech adds a line of a cue and returns it without tags.
func (s *subtitles) speech(l string, line int) string {
	speaker := s.speaker
	if m := cueVoice.FindStringSubmatch(l); m != nil {
		speaker = strings.TrimSpace(html.UnescapeString(m[1]))
	}
	text := strings.Join(strings.Fields(html.UnescapeString(cueTag.ReplaceAllString(l, ""))), " ")
	if text == "" {
		return ""
	}
	for _, b := range s.before {
		if b == text {
			return text
		}
	}
	if s.open && (speaker != s.speaker || s.size > longestSpeech && endsSentence(s.b.text)) {
		s.finish()
	}
	label := ""
	if !s.open {
		s.b.begin(Paragraph)
		s.open = true
		if speaker != "" {
			label = speaker + ": "
		}
	} else {
		s.b.glue(" ")
	}
	s.speaker = speaker
	s.b.put(label+text, line)
	s.size += len(text)
	return text
}

func endsSentence(text []byte) bool {
	return len(text) > 0 && strings.IndexByte(".!?\"", text[len(text)-1]) >= 0
}
