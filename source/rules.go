package source

import "strings"

// rules decides what a walk leaves out. Deeper folders make a copy with their
// own ignore files added, so that leaving a folder drops them again.
type rules struct {
	options []pattern // Options.Exclude; they win
	levels  []level   // ignore files, the root's first
	hidden  bool      // Options.Hidden
}

// A level is the patterns of one folder's ignore files, in the order of
// precedence: the last that matches decides.
type level struct {
	depth    int // parts of the folder's path below the root
	patterns []pattern
}

func (r rules) with(l level) rules {
	r.levels = append(r.levels[:len(r.levels):len(r.levels)], l)
	return r
}

// excludes reports whether the entry at path (its parts below the root) is left
// out. Its folders must have been asked about before: what is below an excluded
// folder cannot be brought back.
func (r rules) excludes(path []string, isDir bool) bool {
	switch r.decide(path, isDir) {
	case ruleExclude:
		return true
	case ruleInclude:
		return false
	}
	return r.byDefault(path[len(path)-1], isDir)
}

type decision int

const (
	ruleNone    decision = iota // no pattern, or only a .gitignore's "!", which is about git
	ruleExclude                 // a pattern leaves it out
	ruleInclude                 // a "!" of assay's own patterns keeps it, defaults or not
)

// decide asks the patterns, without the defaults.
func (r rules) decide(path []string, isDir bool) decision {
	if d, ok := lastMatch(r.options, path, isDir); ok {
		return d
	}
	for i := len(r.levels) - 1; i >= 0; i-- {
		l := r.levels[i]
		if d, ok := lastMatch(l.patterns, path[l.depth:], isDir); ok {
			return d
		}
	}
	return ruleNone
}

func lastMatch(ps []pattern, path []string, isDir bool) (decision, bool) {
	for i := len(ps) - 1; i >= 0; i-- {
		p := &ps[i]
		if !p.match(path, isDir) {
			continue
		}
		switch {
		case !p.negate:
			return ruleExclude, true
		case p.git:
			return ruleNone, true
		default:
			return ruleInclude, true
		}
	}
	return ruleNone, false
}

// byDefault reports whether an entry is left out when no pattern speaks of it.
func (r rules) byDefault(name string, isDir bool) bool {
	if isDir {
		switch name {
		case ".git", ".hg", ".svn", ".bzr", ".jj", "_darcs", "CVS", "node_modules", ".assay":
			return true
		}
	}
	return !r.hidden && strings.HasPrefix(name, ".")
}
