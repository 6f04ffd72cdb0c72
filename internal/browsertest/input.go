package browsertest

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp/kb"
)

// Selectors are those of CSS. Each stands for the first element that it matches.

// visible is an expression that is true if the element e is shown.
const visible = `e !== null && e.checkVisibility({visibilityProperty: true}) && [...e.getClientRects()].some(r => r.width > 0 && r.height > 0)`

// on returns an expression about the element e of a selector.
func on(selector, expression string) string {
	return fmt.Sprintf(`(e => %s)(document.querySelector(%s))`, expression, quoted(selector))
}

// Wait waits until an element is shown.
func (p *Page) Wait(selector string) {
	p.t.Helper()
	p.wait(selector, on(selector, visible))
}

// WaitGone waits until an element is not shown.
func (p *Page) WaitGone(selector string) {
	p.t.Helper()
	p.wait(selector+" to go", on(selector, "!("+visible+")"))
}

// WaitText waits until the text of an element contains another.
func (p *Page) WaitText(selector, text string) {
	p.t.Helper()
	p.wait(fmt.Sprintf("%s with the text %q", selector, text), on(selector, fmt.Sprintf("e !== null && e.innerText.includes(%s)", quoted(text))))
}

// Text waits for an element and returns its text as it is shown.
func (p *Page) Text(selector string) string {
	p.t.Helper()
	p.Wait(selector)
	var text string
	p.Eval(on(selector, "e.innerText"), &text)
	return text
}

// Attr waits for an element in the document and returns an attribute; empty if it has none.
func (p *Page) Attr(selector, name string) string {
	p.t.Helper()
	p.wait(selector, on(selector, "e !== null"))
	var value string
	p.Eval(on(selector, fmt.Sprintf(`e.getAttribute(%s) ?? ""`, quoted(name))), &value)
	return value
}

// Value waits for a field and returns its value.
func (p *Page) Value(selector string) string {
	p.t.Helper()
	p.Wait(selector)
	var value string
	p.Eval(on(selector, "e.value"), &value)
	return value
}

// Has reports whether an element is shown now.
func (p *Page) Has(selector string) bool {
	p.t.Helper()
	var is bool
	p.Eval(on(selector, visible), &is)
	return is
}

// Count returns how many elements of the document match a selector.
func (p *Page) Count(selector string) int {
	p.t.Helper()
	var n int
	p.Eval(fmt.Sprintf("document.querySelectorAll(%s).length", quoted(selector)), &n)
	return n
}

// Click waits for an element and clicks on it with the mouse. If that leaves the page, it waits for the next
// one.
func (p *Page) Click(selector string) {
	p.t.Helper()
	x, y := p.middle(selector)
	p.mouse(input.DispatchMouseEventTypeMouseMoved, x, y)
	p.mouse(input.DispatchMouseEventTypeMousePressed, x, y)
	p.mouse(input.DispatchMouseEventTypeMouseReleased, x, y)
	p.settle()
}

// Hover waits for an element and moves the mouse over it.
func (p *Page) Hover(selector string) {
	p.t.Helper()
	x, y := p.middle(selector)
	p.mouse(input.DispatchMouseEventTypeMouseMoved, x, y)
	p.settle()
}

// middle scrolls an element into view and returns a point of it that the mouse reaches, in pixels of the
// window.
func (p *Page) middle(selector string) (x, y float64) {
	p.t.Helper()
	p.Wait(selector)
	var at struct {
		X, Y  float64
		Above string // the element that hides it; empty: none
	}
	p.Eval(on(selector, `{
		e.scrollIntoView({block: "center", inline: "nearest", behavior: "instant"});
		const r = [...e.getClientRects()].find(r => r.width > 0 && r.height > 0);
		const x = r.x + r.width / 2, y = r.y + r.height / 2;
		const top = document.elementFromPoint(x, y);
		const related = [e, ...(e.labels ?? [])].some(part => part.contains(top));
		const mine = top !== null && (related || top.contains(e));
		return {X: x, Y: y, Above: mine ? "" : top === null ? "nothing" : top.outerHTML.slice(0, 200)};
	}`), &at)
	if at.Above != "" {
		p.t.Fatalf("%s is hidden by %s", selector, at.Above)
	}
	return at.X, at.Y
}

func (p *Page) mouse(kind input.DispatchMouseEventType, x, y float64) {
	p.t.Helper()
	e := input.DispatchMouseEventParams{Type: kind, X: x, Y: y}
	if kind != input.DispatchMouseEventTypeMouseMoved {
		e.Button, e.ClickCount = input.MouseButtonLeft, 1
	}
	call(p, input.DispatchMouseEvent, e)
}

// Focus waits for an element and gives it the focus.
func (p *Page) Focus(selector string) {
	p.t.Helper()
	p.Wait(selector)
	p.Eval(on(selector, "e.focus()"), nil)
}

// Fill waits for a field and replaces its text, as typing does. A date or a choice of a list is set.
func (p *Page) Fill(selector, text string) {
	p.t.Helper()
	p.Wait(selector)
	var typed bool
	p.Eval(on(selector, fmt.Sprintf(`{
		e.focus();
		if (e.matches("textarea, [contenteditable]") || (e.matches("input") && !/^(date|time|datetime-local|month|week|color|range)$/.test(e.type))) {
			e.select ? e.select() : getSelection().selectAllChildren(e);
			return true;
		}
		e.value = %s;
		e.dispatchEvent(new Event("input", {bubbles: true}));
		e.dispatchEvent(new Event("change", {bubbles: true}));
		return false;
	}`, quoted(text))), &typed)
	if typed && text == "" {
		p.Press("Backspace")
	} else if typed {
		call(p, input.InsertText, input.InsertTextParams{Text: text})
	}
	p.settle()
}

// keys are the names of keys that are no characters.
var keys = map[string]string{
	"Enter": kb.Enter, "Escape": kb.Escape, "Tab": kb.Tab, "Backspace": kb.Backspace, "Delete": kb.Delete, "Space": " ", "Home": kb.Home, "End": kb.End,
	"ArrowUp": kb.ArrowUp, "ArrowDown": kb.ArrowDown, "ArrowLeft": kb.ArrowLeft, "ArrowRight": kb.ArrowRight, "PageUp": kb.PageUp, "PageDown": kb.PageDown,
}

// modifiers are the prefixes of keys.
var modifiers = map[string]kb.Modifier{"Shift": kb.ModifierShift, "Ctrl": kb.ModifierCtrl, "Alt": kb.ModifierAlt, "Meta": kb.ModifierMeta}

// Press presses a key: a character, or a name such as "Enter" or "ArrowDown", with modifiers before it as
// in "Shift+Tab". If that leaves the page, it waits for the next one.
func (p *Page) Press(key string) {
	p.t.Helper()
	p.PressOnly(key)
	p.settle()
}

// PressOnly is Press without the wait, for a key that cannot leave the page.
func (p *Page) PressOnly(key string) {
	p.t.Helper()
	var held int64
	name := key
	for {
		prefix, rest, found := strings.Cut(name, "+")
		if !found || rest == "" {
			break
		}
		m, ok := modifiers[prefix]
		if !ok {
			p.t.Fatalf("there is no modifier %s in %s", prefix, key)
		}
		held, name = held|int64(m), rest
	}
	text, ok := keys[name]
	if !ok {
		text = name
	}
	if utf8.RuneCountInString(text) != 1 {
		p.t.Fatalf("there is no key %s", key)
	}
	r, _ := utf8.DecodeRuneInString(text)
	for _, e := range kb.Encode(r) {
		e.Modifiers |= held
		if e.Type == input.DispatchKeyEventTypeChar && held&^int64(kb.ModifierShift) != 0 {
			continue
		}
		call(p, input.DispatchKeyEvent, *e)
	}
}

// SetFiles waits for a field of files in the document and chooses files.
func (p *Page) SetFiles(selector string, paths ...string) {
	p.t.Helper()
	p.wait(selector, on(selector, "e !== null"))
	r := call(p, runtime.Evaluate, runtime.EvaluateParams{Expression: on(selector, "e")})
	call(p, dom.SetFileInputFiles, dom.SetFileInputFilesParams{Files: paths, ObjectID: r.Result.ObjectID})
	p.settle()
}

// Drop drags files from elsewhere over an element and drops them on it.
func (p *Page) Drop(selector string, paths ...string) {
	p.t.Helper()
	x, y := p.middle(selector)
	data := &input.DragData{Items: []*input.DragDataItem{}, Files: paths, DragOperationsMask: 1}
	for _, kind := range []input.DispatchDragEventType{input.DispatchDragEventTypeDragEnter, input.DispatchDragEventTypeDragOver, input.DispatchDragEventTypeDrop} {
		call(p, input.DispatchDragEvent, input.DispatchDragEventParams{Type: kind, X: x, Y: y, Data: data})
	}
	p.settle()
}
