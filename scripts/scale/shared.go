package main

import "slices"

// A shared serves all visits at once, as a machine's cores serve the threads of several processes. It
// gives each server units in proportion to its threads, at most each of them, and divides them among
// the server's visits in proportion to theirs. No visit has more units than threads.
type shared struct {
	usage
	s           *simulation
	units, each float64
	others      float64 // threads of other programs
	weight      float64 // of one of them
	visiting    []*visit
	shares      int // how often units were divided, so that outdated events are known
}

// A visit is being served.
type visit struct {
	work
	left  float64 // processor time
	rate  float64 // units that it has
	since float64
	done  func()
}

// negligible is processor time in milliseconds that rounding leaves.
const negligible = 1e-6

// enter lets a visit wait for what is not processor time, and then compute.
func (q *shared) enter(w work, done func()) {
	compute := func() {
		q.spend()
		q.visits++
		q.visiting = append(q.visiting, &visit{work: w, left: w.cpu, since: q.s.now, done: done})
		q.longest = max(q.longest, len(q.visiting)-int(q.units))
		q.share()
	}
	if rest := w.ms - w.cpu/w.threads; rest > negligible {
		q.s.after(rest, compute)
		return
	}
	compute()
}

// spend adds up what was computed since the units were last divided.
func (q *shared) spend() {
	took := q.s.now - q.last
	for _, v := range q.visiting {
		v.left -= v.rate * took
		q.spent += v.rate * took
	}
	q.last = q.s.now
}

// share divides the units until the next visit ends.
func (q *shared) share() {
	wanted := map[int]float64{} // threads by server
	for _, v := range q.visiting {
		wanted[v.server] += v.threads
	}
	running := 0.0 // threads of all servers that would run at once
	for _, v := range q.visiting {
		running += v.threads * min(1, q.each/wanted[v.server])
	}
	share := q.portion(running)
	next := -1.0
	for _, v := range q.visiting {
		v.rate = share * v.threads * min(1, q.each/wanted[v.server])
		if ends := max(v.left, 0) / v.rate; next < 0 || ends < next {
			next = ends
		}
	}
	if next < 0 {
		return
	}
	q.shares++
	current := q.shares
	q.s.after(next, func() {
		if current == q.shares {
			q.leave()
		}
	})
}

// portion returns how many units each of so many threads has beside those of other programs, of which none has
// more than one either.
func (q *shared) portion(running float64) float64 {
	if spare := q.units - q.others; q.weight*spare > running {
		return min(1, spare/running)
	}
	return min(1, q.units/(running+q.weight*q.others))
}

// leave ends the visits that have computed all that they want.
func (q *shared) leave() {
	q.spend()
	var ended []*visit
	q.visiting = slices.DeleteFunc(q.visiting, func(v *visit) bool {
		if v.left > negligible {
			return false
		}
		q.waited += q.s.now - v.since - v.cpu/v.threads
		ended = append(ended, v)
		return true
	})
	q.share()
	for _, v := range ended {
		v.done()
	}
}

func (q *shared) reset() {
	q.spend()
	q.usage = usage{last: q.last, longest: max(len(q.visiting)-int(q.units), 0)}
}
