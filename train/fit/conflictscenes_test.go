package main

import (
	"math/rand/v2"
	"strings"
)

// A conflictScene is a template of a question with its answers, from which conflicts and controls
// are made. A text is "Title | Sentences", in which {s} is the subject, {v} the value and {c} the
// scope of a value. A yes-no question has texts for yes and for no instead of values.
type conflictScene struct {
	Question string     `json:"question"`
	Subjects []string   `json:"subjects"`
	Scopes   [][]string `json:"scopes"` // pairs of mutually exclusive scopes

	Values [][]string `json:"values"` // each in several spellings
	Says   []string   `json:"says"`
	Scoped []string   `json:"scoped"`
	Other  []string   `json:"other"` // about another property of the subject, with values of the same kind

	Yes       []string `json:"yes"`
	No        []string `json:"no"`
	ScopedYes []string `json:"scoped_yes"`
	ScopedNo  []string `json:"scoped_no"`
}

// A sceneSide is a text of a scene with the subject, value and scope to fill in.
type sceneSide struct {
	text, subject, value, scope string
}

func (s sceneSide) written() conflictText {
	title, text, _ := strings.Cut(strings.NewReplacer("{v}", s.value, "{c}", s.scope).Replace(s.text), " | ")
	title, text = strings.ReplaceAll(title, "{s}", s.subject), strings.ReplaceAll(text, "{s}", s.subject)
	return conflictText{Title: capitalised(title), Text: sentencesCapitalised(text)}
}

func capitalised(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

func sentencesCapitalised(text string) string {
	sentences := strings.SplitAfter(text, ". ")
	for i, s := range sentences {
		sentences[i] = capitalised(s)
	}
	return strings.Join(sentences, "")
}

// A sceneMaker makes cases from scenes. Its random choices are reproducible.
type sceneMaker struct {
	random *rand.Rand
	rows   []conflictRow
}

// conflictsOf makes cases from scenes.
func conflictsOf(scenes []conflictScene) []conflictRow {
	m := &sceneMaker{random: rand.New(rand.NewPCG(1, 2))}
	for _, s := range scenes {
		if len(s.Values) > 0 {
			m.values(s)
		} else {
			m.yesNo(s)
		}
	}
	return m.rows
}

func (m *sceneMaker) add(question string, conflict bool, kind string, a, b sceneSide) {
	if m.random.IntN(2) == 0 {
		a, b = b, a
	}
	c := conflictCase{Question: strings.ReplaceAll(question, "{s}", a.subject), A: a.written(), B: b.written(), Conflict: conflict, Kind: "made " + kind}
	m.rows = append(m.rows, conflictRow{conflictCase: c, group: question, weight: madeWeight})
}

func (m *sceneMaker) of(texts []string) string { return texts[m.random.IntN(len(texts))] }

// two returns two different numbers below n.
func (m *sceneMaker) two(n int) (i, j int) {
	i, j = m.random.IntN(n), m.random.IntN(n-1)
	if j >= i {
		j++
	}
	return i, j
}

// rounds is the number of times that the cases of a scene are made.
const rounds = 2

// values makes the cases of a scene whose answers are values.
func (m *sceneMaker) values(s conflictScene) {
	for range rounds {
		for _, says := range [][]string{s.Says, s.Says, s.Says, s.Scoped} {
			i, j := m.two(len(says))
			v, w := m.two(len(s.Values))
			subject, scope := m.of(s.Subjects), m.of(m.scopes(s))
			m.add(s.Question, true, "value", sceneSide{says[i], subject, m.of(s.Values[v]), scope}, sceneSide{says[j], subject, m.of(s.Values[w]), scope})
		}
		i, j := m.two(len(s.Says))
		v, w := m.two(len(s.Values))
		t, u := m.two(len(s.Subjects))
		first := sceneSide{s.Says[i], s.Subjects[t], m.of(s.Values[v]), ""}
		m.add(s.Question, false, "thing", first, sceneSide{s.Says[j], s.Subjects[u], m.of(s.Values[w]), ""})
		m.add(s.Question, false, "other", first, sceneSide{m.of(s.Other), first.subject, m.of(s.Values[w]), ""})
		same := s.Values[v]
		m.add(s.Question, false, "form", sceneSide{first.text, first.subject, same[0], ""}, sceneSide{s.Says[j], first.subject, same[len(same)-1], ""})
		scopes := s.Scopes[m.random.IntN(len(s.Scopes))]
		i, j = m.two(len(s.Scoped))
		m.add(s.Question, false, "scope", sceneSide{s.Scoped[i], first.subject, m.of(s.Values[v]), scopes[0]}, sceneSide{s.Scoped[j], first.subject, m.of(s.Values[w]), scopes[1]})
	}
}

// yesNo makes the cases of a scene whose answers are yes or no.
func (m *sceneMaker) yesNo(s conflictScene) {
	for range rounds {
		t, u := m.two(len(s.Subjects))
		side := func(texts []string, subject int, scope string) sceneSide {
			return sceneSide{m.of(texts), s.Subjects[subject], "", scope}
		}
		for range 3 {
			m.add(s.Question, true, "yesno", side(s.Yes, t, ""), side(s.No, t, ""))
		}
		scope := m.of(m.scopes(s))
		m.add(s.Question, true, "yesno", side(s.ScopedYes, t, scope), side(s.ScopedNo, t, scope))
		m.add(s.Question, false, "thing", side(s.Yes, t, ""), side(s.No, u, ""))
		for _, texts := range [][]string{s.Yes, s.No} {
			i, j := m.two(len(texts))
			m.add(s.Question, false, "form", sceneSide{texts[i], s.Subjects[t], "", ""}, sceneSide{texts[j], s.Subjects[t], "", ""})
		}
		scopes := s.Scopes[m.random.IntN(len(s.Scopes))]
		m.add(s.Question, false, "scope", side(s.ScopedYes, t, scopes[0]), side(s.ScopedNo, t, scopes[1]))
	}
}

// scopes returns all scopes of a scene.
func (m *sceneMaker) scopes(s conflictScene) []string {
	var all []string
	for _, pair := range s.Scopes {
		all = append(all, pair...)
	}
	return all
}
