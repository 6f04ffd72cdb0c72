package pdfium

import (
	"strconv"
	"strings"
	"time"
)

// ParseDate parses a date in the form of PDF, "D:YYYYMMDDHHmmSSOHH'mm'", of which all after the year
// may be missing. A date without an offset is taken as UTC. Source: ISO 32000-1, section 7.9.4.
func ParseDate(s string) (time.Time, bool) {
	s = strings.TrimPrefix(strings.TrimSpace(s), "D:")
	digits := 0
	for digits < len(s) && digits < 14 && s[digits] >= '0' && s[digits] <= '9' {
		digits++
	}
	if digits < 4 || digits%2 != 0 {
		return time.Time{}, false
	}
	const full = "20060102150405"
	t, err := time.Parse(full[:digits], s[:digits])
	if err != nil {
		return time.Time{}, false
	}
	offset, ok := dateOffset(s[digits:])
	if !ok {
		return time.Time{}, false
	}
	return t.Add(-offset), true
}

// dateOffset parses "Z", "+HH'mm'" and "-HH'mm'", of which the minutes may be missing.
func dateOffset(s string) (time.Duration, bool) {
	s = strings.ReplaceAll(s, "'", "")
	if s == "" || s[0] == 'Z' {
		return 0, true
	}
	if s[0] != '+' && s[0] != '-' || len(s) != 3 && len(s) != 5 {
		return 0, false
	}
	hours, err := strconv.ParseUint(s[1:3], 10, 8)
	minutes := uint64(0)
	if err == nil && len(s) == 5 {
		minutes, err = strconv.ParseUint(s[3:5], 10, 8)
	}
	if err != nil || hours > 23 || minutes > 59 {
		return 0, false
	}
	d := time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute
	if s[0] == '-' {
		d = -d
	}
	return d, true
}
