package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// page is a tab of a headless Chromium, driven as a person drives it: by what is visible, with real
// mouse and key events. Every wait is for a condition.
type page struct {
	ctx context.Context
	ui  string // the UI's workflow list, without a query
}

// The window: as wide as the details' table, and no larger than a laptop's.
const windowWidth, windowHeight = 1440, 900

// openBrowser starts Chromium with its own profile. Without Chromium it skips the test, or fails it if
// ROPEWALK_REQUIRE_CHROMIUM is set.
func openBrowser(t *testing.T, h *home) *page {
	t.Helper()
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		const what = "Chromium is not on PATH (Debian: apt-get install chromium)"
		if os.Getenv("ROPEWALK_REQUIRE_CHROMIUM") != "" {
			t.Fatal("ROPEWALK_REQUIRE_CHROMIUM is set, and " + what)
		}
		t.Skip(what)
	}
	// Root, as in a container, cannot have Chromium's own sandbox; the pages are the local server's.
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.WindowSize(windowWidth, windowHeight),
		chromedp.UserDataDir(t.TempDir()))
	ctx, end := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(end)
	ctx, end = chromedp.NewContext(ctx)
	t.Cleanup(end)
	p := &page{ctx: ctx, ui: variable(h.env, "ROPEWALK_UI") + "/namespaces/" + h.namespace + "/workflows"}
	require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(windowWidth, windowHeight)))
	return p
}

// open goes to an address below the workflow list: "/ID" is a run's page, "?query=…" a filtered list.
func (p *page) open(t *testing.T, path string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate(p.ui+path)))
}

// found is the position of an element, or null.
type found struct {
	X, Y float64
}

// named finds what a person calls by a name, the likeliest first: fields by their labels; else elements by
// their whole text (of an option, its first line), their label for screen readers or their test id. What is
// disabled, hidden, or behind an open dialog is not found.
const named = `(name => {
	const root = document.querySelector('dialog[open]') ?? document;
	const words = text => (text ?? '').trim().replace(/\s+/g, ' ');
	const labels = [...root.querySelectorAll('label')].filter(l => l.htmlFor && words(l.innerText) === name);
	const fields = labels.map(l => root.querySelector('[id="' + l.htmlFor + '"]')).filter(e => e).map(e => e.querySelector('[role=textbox]') ?? e.closest('button') ?? e);
	const kinds = 'a, button, input, textarea, [role=button], [role=tab], [role=menuitem], [role=option], [data-testid]';
	const line = e => e.role === 'option' ? (e.innerText ?? '').trim().split('\n')[0] : e.innerText;
	const called = e => words(line(e)) === name || e.ariaLabel === name || e.dataset.testid === name;
	const live = e => e.checkVisibility({visibilityProperty: true, opacityProperty: true}) && !e.disabled && e.ariaDisabled !== 'true';
	return [...fields, ...[...root.querySelectorAll(kinds)].filter(called)].filter(live);
})`

// locate is where a click at the centre of the first of elements would meet it and nothing that covers it.
// The page notes whether a press reaches it there: it may move away before.
const locate = `(elements => {
	for (const e of elements) {
		e.scrollIntoView({block: 'nearest', inline: 'nearest'});
		const r = e.getBoundingClientRect();
		const at = {X: r.x + r.width / 2, Y: r.y + r.height / 2};
		const top = document.elementFromPoint(at.X, at.Y);
		if (r.width > 0 && top && (e.contains(top) || top.contains(e))) {
			window.ropewalkMissed = true;
			top.addEventListener('mousedown', () => window.ropewalkMissed = false, {once: true, capture: true});
			return at;
		}
	}
	return null;
})`

// click clicks the element with this name once it is there and has stopped moving. If it moves all the same, click
// clicks again.
func (p *page) click(t *testing.T, name string) {
	t.Helper()
	p.until(t, fmt.Sprintf("%q to be there to click", name), p.clicked(t, name))
}

// clicks is click on each of some elements in order. It reports false if one of them does not appear in half a minute.
func (p *page) clicks(t *testing.T, names ...string) bool {
	t.Helper()
	for _, name := range names {
		if !p.within(30*time.Second, p.clicked(t, name)) {
			return false
		}
	}
	return true
}

// clicked returns the attempt to click an element, which reports whether the click has reached it.
func (p *page) clicked(t *testing.T, name string) func() bool {
	t.Helper()
	script := fmt.Sprintf("%s(%s(%s))", locate, named, quoted(t, name))
	var before *found
	return func() bool {
		now := evaluate[*found](t, p, script)
		still := now != nil && before != nil && *now == *before
		before = now
		if !still {
			return false
		}
		require.NoError(t, chromedp.Do(p.ctx, chromedp.MouseClickXY(now.X, now.Y)))
		return evaluate[bool](t, p, "window.ropewalkMissed !== true") // a page that has gone has no note
	}
}

// fill clicks a field and, once it has the focus, replaces what it holds, as pasting does. Without the
// focus the keys would go to the page, and the field stay empty.
func (p *page) fill(t *testing.T, name, text string) {
	t.Helper()
	focused := fmt.Sprintf("%s(%s).some(e => e.contains(document.activeElement))", named, quoted(t, name))
	p.until(t, fmt.Sprintf("%q to take the focus", name), func() bool {
		p.click(t, name)
		return evaluate[bool](t, p, focused)
	})
	require.NoError(t, chromedp.Do(p.ctx, chromedp.KeyEvent("a", chromedp.KeyModifiers(kb.ModifierCtrl)),
		chromedp.KeyEvent(kb.Backspace)))
	_, err := chromedp.Call(p.ctx, input.InsertText, input.InsertTextParams{Text: text})
	require.NoError(t, err)
}

// sees waits until all of these texts are on the page.
func (p *page) sees(t *testing.T, texts ...string) {
	t.Helper()
	p.until(t, fmt.Sprintf("%q to be on the page", texts), func() bool {
		text := p.text(t)
		for _, want := range texts {
			if !strings.Contains(text, want) {
				return false
			}
		}
		return true
	})
}

// offers reports whether an open list shows, within half a minute, an option whose text begins with this prefix.
func (p *page) offers(t *testing.T, option string) bool {
	t.Helper()
	return p.within(30*time.Second, func() bool {
		return evaluate[bool](t, p, fmt.Sprintf(`(text => [...document.querySelectorAll('[role=option]')].some(e =>
	e.checkVisibility({visibilityProperty: true, opacityProperty: true}) && e.innerText.trim().replace(/\s+/g, ' ').startsWith(text)))(%s)`, quoted(t, option)))
	})
}

// text is what is visible on the page, white space folded: fields of forms and the frame that the
// UI draws markdown in included.
func (p *page) text(t *testing.T) string {
	t.Helper()
	return strings.Join(strings.Fields(evaluate[string](t, p, `[
	document.body?.innerText ?? '',
	...[...document.querySelectorAll('input, textarea')].map(e => e.value),
	...[...document.querySelectorAll('iframe')].map(f => f.contentDocument?.body?.innerText ?? ''),
].join(' ')`)), " ")
}

// until polls the page until a condition holds. If it never does, the test fails with the page's text. The polls become
// less frequent, because laying out a long page for every poll keeps the browser busy.
func (p *page) until(t *testing.T, what string, done func() bool) {
	t.Helper()
	if !p.within(patience, done) {
		picture := filepath.Join(os.TempDir(), "ropewalk-browser.png")
		p.shoot(t, picture)
		t.Fatalf("waited %s for %s at %s, see %s; the page says:\n%s", patience, what, p.at(t), picture, p.text(t))
	}
}

// within polls the page until a condition holds, for as long as the limit says, and reports whether it holds.
func (p *page) within(limit time.Duration, done func() bool) bool {
	const first, most = 50 * time.Millisecond, 400 * time.Millisecond
	end, pause := time.Now().Add(limit), first
	for !done() {
		if time.Now().After(end) {
			return false
		}
		time.Sleep(pause)
		pause = min(pause*5/4, most)
	}
	return true
}

// shoot writes a picture of the window.
func (p *page) shoot(t *testing.T, file string) {
	t.Helper()
	picture, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, picture, 0o644))
}

// at is the page's address, without its query's escapes undone.
func (p *page) at(t *testing.T) string {
	t.Helper()
	return evaluate[string](t, p, "location.href")
}

// press presses a key while no field has the focus.
func (p *page) press(t *testing.T, key string) {
	t.Helper()
	require.NoError(t, chromedp.Do(p.ctx, chromedp.KeyEvent(key)))
}

// scrollTo brings a heading to the window's top.
func (p *page) scrollTo(t *testing.T, heading string) {
	t.Helper()
	require.True(t, evaluate[bool](t, p, fmt.Sprintf(`(name => {
	const h = [...document.querySelectorAll('h1, h2, h3')].find(e => e.innerText.trim() === name);
	if (!h) return false;
	h.style.scrollMarginTop = '5rem'; // the UI's bar covers the top
	h.scrollIntoView({block: 'start'});
	return true;
})(%s)`, quoted(t, heading))), heading)
}

// table is the text of the first table with this first cell, by rows. The table must exist.
func (p *page) table(t *testing.T, first string) [][]string {
	t.Helper()
	rows := evaluate[[][]string](t, p, fmt.Sprintf(`(first => {
	const documents = [document, ...[...document.querySelectorAll('iframe')].map(f => f.contentDocument)];
	const tables = documents.flatMap(d => [...(d?.querySelectorAll('table') ?? [])]).map(t => [...t.rows].map(r => [...r.cells].map(c => c.innerText.trim().replace(/\s+/g, ' '))));
	return tables.find(t => t.length > 0 && t[0][0] === first) ?? [];
})(%s)`, quoted(t, first)))
	require.NotEmpty(t, rows, "no table begins with %q", first)
	return rows
}

// evaluate is the value of a JavaScript expression on the page.
func evaluate[T any](t *testing.T, p *page, script string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](script))
	require.NoError(t, err)
	return value
}

// quoted is a value as JSON, which JavaScript reads too.
func quoted(t *testing.T, value any) string {
	t.Helper()
	out, err := json.Marshal(value)
	require.NoError(t, err)
	return string(out)
}
