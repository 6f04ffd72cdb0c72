// Package lazyregexp provides regular expressions that are compiled at their first use. Patterns at
// package level then cost nothing in a command that does not match them.
package lazyregexp

import (
	"regexp"
	"sync"
)

// A Regexp is a regular expression that is compiled at its first use. Its methods are those
// of [regexp.Regexp] with the same names.
type Regexp struct{ compiled func() *regexp.Regexp }

// New returns the regular expression. Its first use panics if it does not parse, as
// [regexp.MustCompile] does.
func New(pattern string) *Regexp {
	return &Regexp{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })}
}

func (r *Regexp) MatchString(s string) bool { return r.compiled().MatchString(s) }

func (r *Regexp) FindString(s string) string { return r.compiled().FindString(s) }

func (r *Regexp) FindStringIndex(s string) []int { return r.compiled().FindStringIndex(s) }

func (r *Regexp) FindStringSubmatch(s string) []string { return r.compiled().FindStringSubmatch(s) }

func (r *Regexp) FindStringSubmatchIndex(s string) []int {
	return r.compiled().FindStringSubmatchIndex(s)
}

func (r *Regexp) FindAllString(s string, n int) []string { return r.compiled().FindAllString(s, n) }

func (r *Regexp) FindAllStringIndex(s string, n int) [][]int {
	return r.compiled().FindAllStringIndex(s, n)
}

func (r *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return r.compiled().FindAllStringSubmatch(s, n)
}

func (r *Regexp) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return r.compiled().FindAllStringSubmatchIndex(s, n)
}

func (r *Regexp) ReplaceAll(src, repl []byte) []byte { return r.compiled().ReplaceAll(src, repl) }

func (r *Regexp) ReplaceAllString(src, repl string) string {
	return r.compiled().ReplaceAllString(src, repl)
}

func (r *Regexp) ReplaceAllStringFunc(src string, repl func(string) string) string {
	return r.compiled().ReplaceAllStringFunc(src, repl)
}

func (r *Regexp) Split(s string, n int) []string { return r.compiled().Split(s, n) }

func (r *Regexp) ExpandString(dst []byte, template, src string, match []int) []byte {
	return r.compiled().ExpandString(dst, template, src, match)
}
