package source

import "strings"

// rules decides which entries a walk excludes. Deeper folders use a copy with their own ignore
// files added, so that leaving a folder drops them again.
type rules struct {
	options []pattern // Options.Exclude; takes precedence
	levels  []level   // ignore files, starting with the root's
	hidden  bool      // Options.Hidden
}

// A level holds the patterns of one folder's ignore files in order of precedence: the last match
// decides.
type level struct {
	depth    int // number of elements of the folder's path below the root
	patterns []pattern
}

func (r rules) with(l level) rules {
	r.levels = append(r.levels[:len(r.levels):len(r.levels)], l)
	return r
}

// excludes reports whether the entry at path (its elements below the root) is excluded. The caller
// must have checked its parent folders, because an entry below an excluded folder cannot be
// included again.
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
	ruleNone    decision = iota // no match, or only a .gitignore's "!", which applies to git only
	ruleExclude                 // a pattern excludes it
	ruleInclude                 // a "!" of assay's own patterns includes it, overriding the defaults
)

// decide applies the patterns without the defaults.
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

// byDefault reports whether an entry that no pattern matches is excluded.
func (r rules) byDefault(name string, isDir bool) bool {
	if isDir {
		switch name {
		case ".git", ".hg", ".svn", ".bzr", ".jj", "_darcs", "CVS", "node_modules", ".assay":
			return true
		}
	}
	return !r.hidden && strings.HasPrefix(name, ".")
}
