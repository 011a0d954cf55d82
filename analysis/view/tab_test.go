package view_test

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// tab is a page in Chromium.
type tab struct {
	t   *testing.T
	ctx context.Context
}

// openTab starts Chromium with its own profile. Without Chromium it skips the test, or fails it if
// ROPEWALK_REQUIRE_CHROMIUM is set.
func openTab(t *testing.T) *tab {
	t.Helper()
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		require.Empty(t, os.Getenv("ROPEWALK_REQUIRE_CHROMIUM"), "there is no chromium on PATH")
		t.Skip("there is no chromium on PATH")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox,
		chromedp.UserDataDir(t.TempDir()))
	ctx, end := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(end)
	ctx, end = chromedp.NewContext(ctx)
	t.Cleanup(end)
	p := &tab{t: t, ctx: ctx}
	require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(1440, 900)))
	return p
}

func (p *tab) open(address string) {
	p.t.Helper()
	require.NoError(p.t, chromedp.Do(p.ctx, chromedp.Navigate(address)))
}

// press presses keys. The page may keep one from its field, as it may a person's.
func (p *tab) press(keys string) {
	p.t.Helper()
	named := map[string]string{"\r": "Enter", "\u001b": "Escape"}
	for _, key := range keys {
		text := string(key)
		_, err := chromedp.Call(p.ctx, input.DispatchKeyEvent, input.DispatchKeyEventParams{
			Type: input.DispatchKeyEventTypeKeyDown, Key: cmp.Or(named[text], text), Text: text})
		require.NoError(p.t, err)
	}
}

// write types a text where the focus is.
func (p *tab) write(text string) {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, input.InsertText, input.InsertTextParams{Text: text})
	require.NoError(p.t, err)
}

// value is the value of a JavaScript expression on the page, as text.
func (p *tab) value(script string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, time.Minute)
	defer cancel()
	out, err := chromedp.Run(ctx, chromedp.Evaluate[string]("String("+script+")"))
	require.NoError(p.t, err)
	return out
}

// is waits until an expression has a value.
func (p *tab) is(want, script string) {
	p.t.Helper()
	got := ""
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(30 * time.Millisecond) {
		if got = p.value(script); got == want {
			return
		}
	}
	require.Equal(p.t, want, got, "%s at %s, which shows:\n%s", script, p.value("location.href"),
		p.value("document.body.innerText"))
}

// patience is how long a test waits for the page on a busy machine.
const patience = 30 * time.Second

// Expressions about the page.
const (
	listed   = `document.querySelector("#summary b")?.textContent`
	firstRow = `document.querySelector(".row")?.dataset.id`
	shownID  = `(document.getElementById("closeup").hidden ? "" : document.getElementById("closeup").dataset.id)`
	query    = `location.search`
	coloured = `[...document.querySelectorAll("#closeup .piece[data-tone]")].filter(` +
		`(p) => getComputedStyle(p).backgroundColor !== "rgba(0, 0, 0, 0)").length > 0`
	colourBy = `document.getElementById("closeup").dataset.colour`
)
