package pdfium

import "math"

// A matrix maps (x, y) to (a*x + c*y + e, b*x + d*y + f).
type matrix struct{ a, b, c, d, e, f float32 }

var identity = matrix{a: 1, d: 1}

// then returns the matrix that applies m and then n.
func (m matrix) then(n matrix) matrix {
	return matrix{
		m.a*n.a + m.b*n.c, m.a*n.b + m.b*n.d,
		m.c*n.a + m.d*n.c, m.c*n.b + m.d*n.d,
		m.e*n.a + m.f*n.c + n.e, m.e*n.b + m.f*n.d + n.f,
	}
}

func (m matrix) apply(x, y float32) (float32, float32) {
	return m.a*x + m.c*y + m.e, m.b*x + m.d*y + m.f
}

// readObjects reads the rules, drawings and images of the page.
func (r *pageReader) readObjects() error {
	n := int(int32(r.in.get("FPDFPage_CountObjects", uint64(r.page))))
	r.container(r.page, false, n, identity, 0)
	return nil
}

// container reads the objects of a page or form.
func (r *pageReader) container(from handle, form bool, n int, outer matrix, depth int) {
	isForm := uint64(0)
	if form {
		isForm = 1
	}
	n = min(n, maxObjects-r.objects)
	r.objects += max(n, 0)
	r.in.batch(r.ctx, "objects", []uint64{uint64(from), isForm}, n, objectSize, func(_ int, o record) bool {
		r.object(o, outer, depth)
		return r.ctx.Err() == nil
	})
}

// object reads an object. Its coordinates are those of the page after outer.
func (r *pageReader) object(o record, outer matrix, depth int) {
	switch o.int(objectType) {
	case typePath:
		r.path(o, outer)
	case typeImage:
		if b, ok := r.bounds(o, outer); ok {
			r.out.Images = append(r.out.Images, Image{Box: b, MCID: o.int(objectMCID)})
		}
	case typeForm:
		if depth < maxFormDepth {
			h := handle(o.word(objectHandle))
			n := int(int32(r.in.get("FPDFFormObj_CountObjects", uint64(h))))
			r.container(h, true, n, o.matrix(objectMatrix).then(outer), depth+1)
		}
	}
}

// bounds returns the rectangle around an object, cut to the page. ok is false if it is not on the
// page.
func (r *pageReader) bounds(o record, outer matrix) (box Box, ok bool) {
	if o.int(objectBounded) == 0 {
		return Box{}, false
	}
	x0, y0, x1, y1 := o.float(objectBounds), o.float(objectBounds+4), o.float(objectBounds+8), o.float(objectBounds+12)
	return r.clip(r.around(outer, [][2]float32{{x0, y0}, {x1, y0}, {x1, y1}, {x0, y1}}))
}

// around returns the rectangle around points.
func (r *pageReader) around(m matrix, points [][2]float32) Box {
	inf := float32(math.Inf(1))
	box := Box{inf, inf, -inf, -inf}
	for _, p := range points {
		x, y := r.shown(m.apply(p[0], p[1]))
		box = Box{min(box.X0, x), min(box.Y0, y), max(box.X1, x), max(box.Y1, y)}
	}
	return box
}

// clip cuts a rectangle to the page.
func (r *pageReader) clip(b Box) (Box, bool) {
	b = Box{max(b.X0, 0), max(b.Y0, 0), min(b.X1, r.out.Width), min(b.Y1, r.out.Height)}
	return b, b.X0 <= b.X1 && b.Y0 <= b.Y1
}

// path reads a path: its horizontal and vertical lines as rules, any other as a drawing.
func (r *pageReader) path(o record, outer matrix) {
	n := o.int(pathSegments)
	r.segments += max(n, 0)
	if n > maxPath || r.segments > maxSegments || len(r.out.Rules) >= maxRules || !r.outline(o, outer, n) {
		if b, ok := r.bounds(o, outer); ok {
			r.out.Drawings = append(r.out.Drawings, b)
		}
	}
}

// outline reads a path of horizontal and vertical lines. It reports false if the path has others.
func (r *pageReader) outline(o record, outer matrix, n int) bool {
	filled, stroked := o.word(pathFill) != 0, o.word(pathStroked) != 0
	if !filled && !stroked {
		return true // clipping only
	}
	m := o.matrix(objectMatrix).then(outer)
	style := Rule{Filled: !stroked, Color: o.color(pathFillColor)}
	if stroked {
		scale := math.Sqrt(math.Abs(float64(m.a*m.d - m.b*m.c)))
		style.Width, style.Color = o.float(pathWidth)*float32(scale), o.color(pathStroke)
	}
	var shape []Rule
	for _, points := range r.subpaths(handle(o.word(objectHandle)), m, n) {
		rules, ok := straight(points)
		if !ok {
			return false
		}
		r.shapes++
		for _, rule := range rules {
			rule.Width, rule.Filled, rule.Color = style.Width, style.Filled, style.Color
			if len(rules) > 1 {
				rule.Rectangle = r.shapes
			}
			shape = append(shape, rule)
		}
	}
	for _, rule := range shape {
		if b, ok := r.clip(rule.Box); ok {
			rule.Box = b
			r.out.Rules = append(r.out.Rules, rule)
		}
	}
	return true
}

// subpaths returns the points of a path's parts as shown. A part with a curve is nil.
func (r *pageReader) subpaths(path handle, m matrix, n int) (parts [][][2]float32) {
	const (
		curve = 1
		move  = 2
	)
	var points [][2]float32
	curved := false
	end := func() {
		switch {
		case curved:
			parts = append(parts, nil)
		case len(points) > 1:
			parts = append(parts, points)
		}
		points, curved = nil, false
	}
	r.in.batch(r.ctx, "segments", []uint64{uint64(path)}, n, segmentSize, func(_ int, s record) bool {
		if s.int(segmentType) == move {
			end()
		}
		curved = curved || s.int(segmentType) == curve
		x, y := r.shown(m.apply(s.float(segmentX), s.float(segmentY)))
		points = append(points, [2]float32{x, y})
		if len(points) > 1 && s.int(segmentClosed) != 0 {
			points = append(points, points[0])
		}
		return true
	})
	end()
	return parts
}

// straight returns the lines between points. A rectangle with a side shorter than thin is a single
// line. ok is false if the points have a line that is neither horizontal nor vertical.
func straight(points [][2]float32) (rules []Rule, ok bool) {
	const (
		slack = 0.5 // points that a straight line may deviate
		thin  = 3
	)
	if points == nil {
		return nil, false
	}
	box := Box{points[0][0], points[0][1], points[0][0], points[0][1]}
	for i, p := range points {
		box = Box{min(box.X0, p[0]), min(box.Y0, p[1]), max(box.X1, p[0]), max(box.Y1, p[1])}
		if i == 0 {
			continue
		}
		q := points[i-1]
		dx, dy := abs(p[0]-q[0]), abs(p[1]-q[1])
		switch {
		case dx <= slack && dy <= slack:
		case dy <= slack:
			y := (p[1] + q[1]) / 2
			rules = append(rules, Rule{Box: Box{min(p[0], q[0]), y, max(p[0], q[0]), y}})
		case dx <= slack:
			x := (p[0] + q[0]) / 2
			rules = append(rules, Rule{Box: Box{x, min(p[1], q[1]), x, max(p[1], q[1])}})
		default:
			return nil, false
		}
	}
	width, height := box.X1-box.X0, box.Y1-box.Y0
	x, y := (box.X0+box.X1)/2, (box.Y0+box.Y1)/2
	switch {
	case width <= thin && height <= thin:
		return nil, true
	case height <= thin:
		return []Rule{{Box: Box{box.X0, y, box.X1, y}}}, true
	case width <= thin:
		return []Rule{{Box: Box{x, box.Y0, x, box.Y1}}}, true
	case len(points) == 4 && len(rules) == 3, len(points) > 4 && len(rules) == 3: // filled without its last side
		p, q := points[len(points)-1], points[0]
		if abs(p[0]-q[0]) <= slack {
			rules = append(rules, Rule{Box: Box{p[0], min(p[1], q[1]), p[0], max(p[1], q[1])}})
		} else if abs(p[1]-q[1]) <= slack {
			rules = append(rules, Rule{Box: Box{min(p[0], q[0]), p[1], max(p[0], q[0]), p[1]}})
		}
	}
	return rules, true
}

func abs(x float32) float32 { return float32(math.Abs(float64(x))) }
