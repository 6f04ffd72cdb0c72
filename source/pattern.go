package source

import "strings"

// A pattern is one line of a .gitignore file as described in gitignore(5). Matching is case
// sensitive and bytewise.
//
// Existing libraries were not used, because pruning a walk needs to know whether one line matches
// one path. The libraries tried match the path and everything below it at once. For "foo/**" with
// "!foo/keep" and "*" with "!docs" their result differs from git's. TestWalkAsGit compares the
// results with git.
type pattern struct {
	segments []string // between slashes; a segment of two or more stars matches any number of folders
	negate   bool     // "!": include what matches
	dirOnly  bool     // trailing slash: matches folders only
	anywhere bool     // no slash inside: matches the last path element at any depth
	git      bool     // from a .gitignore file
}

// parsePattern parses one line; ok is false for blank lines and comments.
func parsePattern(line string) (p pattern, ok bool) {
	line = trimSpaces(strings.TrimSuffix(line, "\r"))
	if strings.HasPrefix(line, "#") {
		return pattern{}, false
	}
	line, p.negate = strings.CutPrefix(line, "!")
	line, p.dirOnly = strings.CutSuffix(line, "/")
	p.anywhere = !strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return pattern{}, false
	}
	p.segments = strings.Split(line, "/")
	if last := p.segments[len(p.segments)-1]; !p.anywhere && isDoubleStar(last) {
		// "a/**" matches everything inside a, but not a itself.
		p.segments = append(p.segments, "*")
	}
	return p, true
}

// parsePatterns parses the lines of an ignore file.
func parsePatterns(data string, git bool) []pattern {
	var ps []pattern
	for line := range strings.SplitSeq(strings.TrimPrefix(data, "\ufeff"), "\n") {
		if p, ok := parsePattern(line); ok {
			p.git = git
			ps = append(ps, p)
		}
	}
	return ps
}

// trimSpaces removes trailing spaces that are not escaped by a backslash.
func trimSpaces(s string) string {
	end := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case ' ':
			continue
		case '\\':
			i++
		}
		end = min(i+1, len(s))
	}
	return s[:end]
}

func isDoubleStar(segment string) bool {
	return len(segment) >= 2 && strings.Trim(segment, "*") == ""
}

// match reports whether p matches the path, given as elements relative to the folder of the ignore
// file.
func (p *pattern) match(path []string, isDir bool) bool {
	if p.dirOnly && !isDir {
		return false
	}
	if p.anywhere {
		return matchName(p.segments[0], path[len(path)-1])
	}
	return matchPath(p.segments, path)
}

// matchPath matches segment by segment; a double star matches any number of path elements. It
// backtracks only to the last double star, so its time is bounded by the product of the lengths.
func matchPath(pattern, path []string) bool {
	pi, si := 0, 0
	starPi, starSi := -1, 0
	for si < len(path) {
		switch {
		case pi < len(pattern) && isDoubleStar(pattern[pi]):
			starPi, starSi = pi, si
			pi++
		case pi < len(pattern) && matchName(pattern[pi], path[si]):
			pi++
			si++
		case starPi >= 0:
			starSi++
			pi, si = starPi+1, starSi
		default:
			return false
		}
	}
	return pi == len(pattern)
}

// matchName matches one path element with *, ?, [...] and backslash escapes. As in git, a bracket
// that is not closed or names an unknown class matches nothing.
func matchName(glob, name string) bool {
	gi, ni := 0, 0
	starGi, starNi := -1, 0
	for ni < len(name) {
		if gi < len(glob) && glob[gi] == '*' {
			starGi, starNi = gi, ni
			gi++
			continue
		}
		if next, ok := matchByte(glob, gi, name[ni]); ok {
			gi, ni = next, ni+1
			continue
		}
		if starGi < 0 {
			return false
		}
		starNi++
		gi, ni = starGi+1, starNi
	}
	return strings.Trim(glob[gi:], "*") == ""
}

// matchByte matches c with the glob element at gi and returns the position after that element.
func matchByte(glob string, gi int, c byte) (next int, ok bool) {
	if gi >= len(glob) {
		return 0, false
	}
	switch glob[gi] {
	case '?':
		return gi + 1, true
	case '[':
		return matchBracket(glob, gi+1, c)
	case '\\':
		gi++
		return gi + 1, gi < len(glob) && glob[gi] == c
	}
	return gi + 1, glob[gi] == c
}

// matchBracket matches c with the bracket expression whose inside starts at i.
func matchBracket(glob string, i int, c byte) (next int, ok bool) {
	negated := i < len(glob) && (glob[i] == '!' || glob[i] == '^')
	if negated {
		i++
	}
	matched := false
	prev := -1 // the byte before a "-"; -1 if a range cannot start
	for first := true; ; first = false {
		if i >= len(glob) {
			return 0, false
		}
		switch {
		case glob[i] == ']' && !first:
			return i + 1, matched != negated
		case strings.HasPrefix(glob[i:], "[:"):
			if end := strings.IndexByte(glob[i+2:], ']'); end < 0 {
				return 0, false
			} else if end > 0 && glob[i+2+end-1] == ':' {
				in, known := inClass(glob[i+2:i+2+end-1], c)
				if !known {
					return 0, false
				}
				matched = matched || in
				prev = -1
				i += 2 + end + 1
				continue
			}
			matched = matched || c == '['
			prev = '['
			i++
			continue
		case glob[i] == '-' && prev >= 0 && i+1 < len(glob) && glob[i+1] != ']':
			i++
			if glob[i] == '\\' {
				if i++; i >= len(glob) {
					return 0, false
				}
			}
			matched = matched || int(c) >= prev && c <= glob[i]
			prev = -1
			i++
			continue
		case glob[i] == '\\':
			if i++; i >= len(glob) {
				return 0, false
			}
		}
		matched = matched || c == glob[i]
		prev = int(glob[i])
		i++
	}
}

// inClass reports whether c is in the named POSIX class, in ASCII.
func inClass(name string, c byte) (in, known bool) {
	lower, upper, digit := 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9'
	graph := '!' <= c && c <= '~'
	switch name {
	case "alnum":
		return lower || upper || digit, true
	case "alpha":
		return lower || upper, true
	case "blank":
		return c == ' ' || c == '\t', true
	case "cntrl":
		return c < ' ' || c == 0x7f, true
	case "digit":
		return digit, true
	case "graph":
		return graph, true
	case "lower":
		return lower, true
	case "print":
		return graph || c == ' ', true
	case "punct":
		return graph && !lower && !upper && !digit, true
	case "space":
		return c == ' ' || '\t' <= c && c <= '\r', true
	case "upper":
		return upper, true
	case "xdigit":
		return digit || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F', true
	}
	return false, false
}
